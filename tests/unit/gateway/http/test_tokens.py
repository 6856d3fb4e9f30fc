"""The tokens file."""

import errno
import os
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.http.auth import check_exposure, served_users
from gateway.http.tokens import TokenFile, load_tokens, make_token, read_tokens
from gateway.ids import LOCAL_USER, UserId
from gateway.settings import Settings


def _file(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "tokens"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_a_token_lets_its_user_in_and_nobody_else(tmp_path: Path) -> None:
    ada, ada_line = make_token("ada")
    again, again_line = make_token("ada")
    bob, bob_line = make_token("bob.b-2")
    text = f"# ours\n\n  {ada_line}  \r\n{again_line}\n{bob_line}\n"
    tokens = load_tokens(_file(tmp_path, text))
    assert [tokens.user_of(value) for value in (ada, again, bob)] == ["ada", "ada", "bob.b-2"]
    wrong = ("", ada[:-1], ada + "x", ada.upper(), ada_line, ada_line.split()[1], "ä", "\udcff")
    assert [tokens.user_of(item) for item in wrong] == [None] * len(wrong)


def test_neither_a_name_nor_a_line_may_be_wrong() -> None:
    for name in ("", "a b", "-a", "a/b", "ä", "x" * 65, "#a", "a\n"):
        with pytest.raises(StartError):
            make_token(name)
    digest = "a" * 64
    for text in (
        *("", "# nothing\n", "ada", "ada short", f"ada {'G' * 64}", digest),
        *(f"ada {digest} more", f"a/b {digest}", f"ada {digest}\nbob {digest}"),
    ):
        with pytest.raises(StartError):
            read_tokens(text)


def test_a_file_that_others_may_touch_or_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for mode in (0o640, 0o604, 0o620, 0o666):
        with pytest.raises(StartError):
            load_tokens(_file(tmp_path, make_token("ada")[1], mode))
    path = _file(tmp_path, "")
    path.write_bytes(b"ada \xff")
    for unreadable in (path, tmp_path, tmp_path / "missing"):
        with pytest.raises(StartError):
            load_tokens(unreadable)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path, make_token("ada")[1])
    load_tokens(path)
    if os.geteuid() == 0:  # who else may not give a file away, and is another user to it instead
        os.chown(path, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(StartError, match="another user"):
        load_tokens(path)


def test_the_file_and_what_is_kept_of_it_hold_no_token(tmp_path: Path) -> None:
    (token, line), (other, _) = make_token("ada"), make_token("ada")
    assert token != other
    assert len(token) > 40
    path = _file(tmp_path, line)
    kept = repr(load_tokens(path))
    for part in (token, token.removeprefix("candor_"), token[10:30]):
        assert part not in path.read_text(encoding="utf-8")
        assert part not in kept
    assert sha256(token.encode()).hexdigest() in kept


def test_every_token_is_compared_and_none_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long an answer takes tells nothing about how near a guess was, nor about whose it is."""
    compared: list[str] = []

    def counting(given: str, known: str) -> bool:
        compared.append(known)
        return compare_digest(given, known)

    monkeypatch.setattr("gateway.http.tokens.compare_digest", counting)
    made = [make_token(name) for name in ("ada", "bob", "eve")]
    tokens = read_tokens("\n".join(line for _, line in made))
    for guess in (made[0][0], made[2][0], "candor_guess", ""):
        compared.clear()
        tokens.user_of(guess)
        assert compared == [known for known, _ in tokens.users]


def test_only_on_loopback_no_tokens_are_needed(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        assert check_exposure(Settings(host=host)) is None
    path = _file(tmp_path, make_token("ada")[1])
    for host in ("0.0.0.0", "::", "192.168.0.1"):
        with pytest.raises(StartError):
            check_exposure(Settings(host=host))
        assert check_exposure(Settings(host=host, tokens_file=path)) is not None
    with pytest.raises(StartError):  # a file that is named must be there
        check_exposure(Settings(tokens_file=tmp_path / "missing"))


def test_who_is_served_has_a_token_or_is_named_by_a_proxy_or_is_alone(tmp_path: Path) -> None:
    tokens = TokenFile(_file(tmp_path, make_token("ada")[1]))
    alone, behind = Settings(), Settings(identity_header="X-User", identity_proxies=("10.0.0.1",))
    served = []
    for settings, file in ((alone, None), (alone, tokens), (behind, None), (behind, tokens)):
        serves = served_users(settings, file)
        served.append([user for user in (LOCAL_USER, UserId("ada"), UserId("bob")) if serves(user)])
    assert served == [["local"], ["ada"], ["ada", "bob"], ["ada", "bob"]]


def test_a_changed_file_counts_once_it_has_stayed_the_same(tmp_path: Path) -> None:
    ada, ada_line = make_token("ada")
    bob, bob_line = make_token("bob")
    file = TokenFile(path := _file(tmp_path, f"{ada_line}\n{bob_line}\n"))
    assert not file.look_blocking()
    path.write_text("half a li", encoding="utf-8")
    assert not file.look_blocking()
    path.write_text(f"{bob_line}\n", encoding="utf-8")
    assert (file.look_blocking(), file.user_of(ada)) == (False, "ada")
    assert (file.look_blocking(), file.user_of(ada), file.user_of(bob)) == (True, None, "bob")
    assert not file.look_blocking()


def test_a_file_that_can_no_longer_be_used_lets_nobody_in_until_it_can(tmp_path: Path) -> None:
    ada, line = make_token("ada")
    file = TokenFile(path := _file(tmp_path, line))
    spoilings: list[Callable[[], object]] = [
        path.unlink,
        lambda: path.write_text(f"{line}\nbob", encoding="utf-8"),
        lambda: path.chmod(0o666),
    ]
    for spoil in spoilings:
        spoil()
        assert [file.look_blocking() for _ in range(3)] == [False, True, False]
        assert file.user_of(ada) is None
        _file(tmp_path, line)
        assert [file.look_blocking() for _ in range(2)] == [False, True]
        assert file.user_of(ada) == "ada"


def test_a_fault_that_passes_locks_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ada, ada_line), (bob, bob_line) = make_token("ada"), make_token("bob")
    file = TokenFile(path := _file(tmp_path, ada_line))
    path.write_text(bob_line, encoding="utf-8")
    file.look_blocking()
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        patch.setattr(Path, "open", fail)
        assert (file.look_blocking(), file.user_of(ada)) == (False, "ada")
    assert (file.look_blocking(), file.user_of(ada), file.user_of(bob)) == (True, None, "bob")
