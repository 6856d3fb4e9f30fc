"""`candor user`, `token` and `audit` beside a running server, and without one."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.live_server import DEADLINE_S, started_server
from tests.support.postgres import new_database_blocking
from tests.support.program import one_sentence, run_app

pytestmark = pytest.mark.e2e
ON: dict[str, Any] = {"users": "on"}


def run(directory: Path, *words: str) -> list[str]:
    done = run_app(*words, directory=directory, **ON)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def test_a_command_counts_in_the_running_server_at_once(tmp_path: Path) -> None:
    assert run(tmp_path, "user", "add", "ada", "--admin") == ["added: ada (admin)"]
    sentence, token = run(tmp_path, "token", "add", "ada", "--name", "laptop", "--days", "9")
    assert re.fullmatch(r"candor_[\w-]{43}", token)
    token_id = sentence.split()[2]
    with started_server(tmp_path, host="0.0.0.0", **ON) as server:

        def asks(given: str) -> int:
            headers = {"Authorization": f"Bearer {given}"}
            url = f"{server.url}/conversations"
            return httpx.get(url, headers=headers, timeout=DEADLINE_S).status_code

        run(tmp_path, "user", "add", "ben@example.org")
        *_, other = run(tmp_path, "token", "add", "ben@example.org")
        assert [asks(token), asks(other), asks("candor_guess")] == [200, 200, 401]
        run(tmp_path, "user", "disable", "ben@example.org")
        run(tmp_path, "token", "revoke", token_id)
        assert [asks(token), asks(other)] == [401, 401]
        (listed,) = run(tmp_path, "token", "list", "ada")
        assert re.fullmatch(rf"{token_id}  ada  revoked [\d-]+  made [\d-]+  laptop", listed)
    run(tmp_path, "user", "role", "ada", "user")
    users = run(tmp_path, "user", "list")
    assert [re.sub(r"[\d-]{10}", "DAY", user) for user in users] == [
        "ada  user  since DAY",
        "ben@example.org  user  since DAY  disabled DAY",
    ]
    entries = [json.loads(line) for line in run(tmp_path, "audit", "--json")]
    told = [(one["action"], one["subject"]) for one in entries]
    assert told == [
        ("user.added", "ada"),
        ("token.made", token_id),
        ("user.added", "ben@example.org"),
        ("token.made", entries[3]["subject"]),
        ("sign_in.refused", "127.0.0.1"),
        ("user.disabled", "ben@example.org"),
        ("token.revoked", token_id),
        *[("sign_in.refused", "127.0.0.1")] * 2,
        ("user.role_changed", "ada"),
    ]
    assert {one["actor"] for one in entries} - {None} == {entries[0]["actor"]}
    assert entries[0]["actor"].startswith("command:")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("candor.sqlite3*"))
    assert token.encode() not in kept


def test_a_command_says_that_a_server_without_users_of_the_database_goes_by_none(
    tmp_path: Path,
) -> None:
    tokens: dict[str, Any] = {"tokens_file": tmp_path / "tokens"}
    made = run_app("token", "ada", directory=tmp_path, **tokens)
    token = made.stdout.splitlines()[-1]
    for words in (["add"], ["role", "admin"], ["disable"], ["enable"], ["disable"]):
        done = run_app("user", words[0], "ada", *words[1:], directory=tmp_path, **tokens)
        assert "CANDOR_USERS=on, which is not set here" in done.stdout.splitlines()[-1]
    assert "CANDOR_USERS" not in run_app("user", "list", directory=tmp_path, **tokens).stdout
    with started_server(tmp_path, **tokens) as server:
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{server.url}/session", headers=headers, timeout=DEADLINE_S)
        assert answer.json() == {"user": "ada", "role": "user", "signed_in_by": "token"}


def test_a_wrong_name_or_id_is_told_in_a_sentence(tmp_path: Path) -> None:
    run(tmp_path, "user", "add", "ada")
    for words, told in (
        (("user", "add", "ada"), "There is a user ada already"),
        (("user", "role", "ben", "admin"), "no user ben"),
        (("user", "disable", "ben"), "no user ben"),
        (("token", "add", "ben"), "no user ben"),
        (("token", "revoke", "tok_a"), "no valid token tok_a"),
    ):
        done = run_app(*words, directory=tmp_path, **ON)
        assert (done.returncode, done.stdout) == (1, "")
        assert told in one_sentence(done.stderr)
    for wrong in (("user", "add", "a b"), ("token", "add", "ada", "--days", "0"), ("user",)):
        assert run_app(*wrong, directory=tmp_path, **ON).returncode == 2
    assert run_app("token", "add", "ada", directory=tmp_path).stdout.endswith("not set here.\n")
    for name in ("张三", "_ada"):
        told = run_app("user", "add", name, directory=tmp_path, **ON).stderr
        assert "ASCII letters, digits and `. _ @ + -`, beginning with a letter or digit" in told


NOT_FOUND = (
    (("user", "disable", "ben"), "There is no user ben in {}; add one with"),
    (("token", "add", "ben"), "There is no user ben in {}; add one with"),
    (("token", "revoke", "tok_a"), "There is no valid token tok_a in {}; see"),
    (("user", "list"), "There are no users in {}; add one with"),
    (("token", "list"), "There are no tokens in {}."),
)


def test_what_is_not_found_is_told_with_the_data_directory(tmp_path: Path) -> None:
    """So that one which is not the server's is noticed."""
    for words, told in NOT_FOUND:
        done = run_app(*words, directory=tmp_path, **ON)
        where = f"the database in {tmp_path / 'data'}"
        assert (done.stdout or one_sentence(done.stderr)).startswith(told.format(where))


def test_what_is_not_found_in_postgresql_is_told_without_its_password(tmp_path: Path) -> None:
    with new_database_blocking("zebra") as url:
        for words, told in NOT_FOUND:
            done = run_app(*words, directory=tmp_path, database_url=url, **ON)
            where = "the PostgreSQL database of CANDOR_DATABASE_URL"
            assert (done.stdout or one_sentence(done.stderr)).startswith(told.format(where))
            assert "zebra" not in done.stdout + done.stderr


LARGE = ["1234567", "12345678.91", "0.000004"]
"""Limits whose digits must not be rounded."""


def test_a_users_own_limits_are_set_shown_and_taken_back(tmp_path: Path) -> None:
    run(tmp_path, "quota", "set", "ada", "daily_usd", "1.50")
    run(tmp_path, "quota", "set", "ada", "live_agents", "none")
    assert run(tmp_path, "quota", "show", "ada") == [
        "running_turns: everybody's",
        "live_agents: no limit",
        "daily_turns: everybody's",
        "daily_usd: 1.5",
    ]
    for most in LARGE:
        limit = "daily_usd" if "." in most else "daily_turns"
        told = run(tmp_path, "quota", "set", "ada", limit, most)
        assert told == [f"{limit} of ada: {most}, from the next turn on"]
        assert f"most={most}" in run(tmp_path, "audit", "--limit", "1")[0]
    assert run(tmp_path, "audit", "--actor", "nobody") == ["There is no entry of this actor."]
    run(tmp_path, "quota", "reset", "ada", "daily_turns")
    run(tmp_path, "quota", "reset", "ada", "daily_usd")
    assert "daily_usd: everybody's" in run(tmp_path, "quota", "show", "ada")
    for wrong, code in (("1.5", 1), ("-1", 2), ("many", 2)):
        words = ("quota", "set", "ada", "daily_turns", wrong)
        assert run_app(*words, directory=tmp_path, **ON).returncode == code
    changes = [json.loads(line)["details"] for line in run(tmp_path, "audit", "--json")]
    assert [one["most"] for one in changes] == ["1.5", "none", *LARGE, "default", "default"]


def test_an_editor_opens_the_folder_of_a_user_of_the_database(tmp_path: Path) -> None:
    run(tmp_path, "user", "add", "ada")
    sentence, token = run(tmp_path, "token", "add", "ada")
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")

    def opens() -> tuple[int, str]:
        given: dict[str, Any] = {"given": "", "environ": {"PYTHONUNBUFFERED": "1"}}  # by a pipe
        words = ("acp", "--token-file", str(file))
        done = run_app(*words, directory=tmp_path, workspaces="per_user", **given, **ON)
        return done.returncode, done.stderr

    assert opens() == (0, "")
    run(tmp_path, "token", "revoke", sentence.split()[2])
    code, told = opens()
    assert code == 1
    assert one_sentence(told).startswith("Each user has a workspace: give a token")
