"""The search for what is protected in a workspace."""

import os
from pathlib import Path

import pytest

from gateway.engine.box.search import Searcher, ancestors

OLD_S = 100.0


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")


def found(searcher: Searcher) -> dict[str, str]:
    entries, unclear = searcher.search_blocking()
    assert unclear == ""
    return {entry.path: entry.kind for entry in entries}


def test_protected_names_are_found_at_any_depth_and_of_every_kind(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", ".env", "x/y/.env.local", "x/.ssh/id_rsa", "x/.claude/settings.json")
    write(tmp_path, ".git/config", ".git/HEAD", ".git/hooks/x", ".git/objects/config", "sub/.git")
    (tmp_path / "CLAUDE.md").symlink_to("a.txt")
    assert found(Searcher(tmp_path)) == {
        ".env": "secret_file",
        ".git": "repository",
        ".git/config": "acting",
        ".git/hooks": "acting",
        "CLAUDE.md": "link",
        "sub/.git": "acting",
        "x/.claude": "acting",
        "x/.ssh": "secret_folder",
        "x/y/.env.local": "secret_file",
    }


def test_dependencies_are_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path, "node_modules/a/.npmrc", "venv/lib/site-packages/certifi/cacert.pem", "b/x.pem")
    write(tmp_path, ".cargo/registry/src/a/x.pem", ".bundle/ruby/gems/a/x.key", "registry/y.pem")
    write(tmp_path, ".devcontainer/registry/server.key")
    assert found(Searcher(tmp_path)) == {
        ".bundle": "acting",
        ".cargo": "acting",
        ".devcontainer": "acting",
        ".devcontainer/registry/server.key": "secret_file",
        "b/x.pem": "secret_file",
        "registry/y.pem": "secret_file",
    }


def test_a_folder_that_looks_like_a_repository_is_looked_into_as_well(tmp_path: Path) -> None:
    write(tmp_path, "bare/HEAD", "bare/objects/x", "bare/refs/x", "bare/config", "bare/x/.claude/y")
    assert found(Searcher(tmp_path)) == {"bare/config": "acting", "bare/x/.claude": "acting"}


def test_only_folders_that_changed_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "old/a/x", "new/b/x")
    searcher = Searcher(tmp_path)
    monkeypatch.setattr("time.time_ns", lambda: tmp_path.stat().st_ctime_ns + 5_000_000_000)
    assert found(searcher) == {}
    read: list[str] = []
    usual = os.scandir

    def scandir(path: Path) -> object:
        read.append(Path(path).name)
        return usual(path)

    monkeypatch.setattr("os.scandir", scandir)
    assert found(searcher) == {}
    assert read == []
    write(tmp_path, "new/b/.env")
    assert found(searcher) == {"new/b/.env": "secret_file"}
    assert read == ["b"]


def test_a_folder_that_has_just_changed_is_read_again_whatever_its_date(tmp_path: Path) -> None:
    """Two changes within one tick of the clock give it one date."""
    write(tmp_path, "a/x")
    searcher = Searcher(tmp_path)
    assert found(searcher) == {}
    dates = (tmp_path / "a").stat()
    write(tmp_path, "a/.env")
    os.utime(tmp_path / "a", ns=(dates.st_atime_ns, dates.st_mtime_ns))
    assert found(searcher) == {"a/.env": "secret_file"}


def test_what_cannot_be_searched_is_told_and_the_rest_is_found(tmp_path: Path) -> None:
    write(tmp_path, "z/.env")
    deep = tmp_path
    here = Path.cwd()
    try:
        for _ in range(30):
            os.chdir(deep)
            deep = Path("d" * 200)
            deep.mkdir()
    finally:
        os.chdir(here)
    entries, unclear = Searcher(tmp_path).search_blocking()
    assert [entry.path for entry in entries] == ["z/.env"]
    assert unclear.startswith("the folder ddd")
    assert unclear.endswith("cannot be read (File name too long)")


def test_the_folders_above_are_named_once_and_from_the_top() -> None:
    assert list(ancestors(["a/b/x", "a/b/y", "a/c/z", "w"])) == ["a", "a/b", "a/c"]


def test_the_following_of_links_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b/../" * 500 + "a")
    (tmp_path / "b").mkdir()
    for number in range(1_000):
        (tmp_path / f"{number}.pem").symlink_to("a")
    _, unclear = Searcher(tmp_path).search_blocking()
    assert unclear == "the workspace holds too many links with protected names"
    for number in range(300, 1_000):
        (tmp_path / f"{number}.pem").unlink()
    assert len(found(Searcher(tmp_path))) == 301


def test_a_link_that_goes_while_its_folder_is_read_hides_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command in another box can make and remove one all the time."""
    write(tmp_path, ".git/config", ".env")
    links = [tmp_path / name for name in (".netrc", ".github", ".git/x", "bare/y")]
    write(tmp_path, *(f"bare/{name}" for name in ("HEAD", "objects/x", "refs/x", "config")))
    for link in links:
        link.symlink_to("nothing")
    readlink = os.readlink

    def read_late(path: str) -> str:
        if Path(path) in links:
            Path(path).unlink(missing_ok=True)
        return readlink(path)

    monkeypatch.setattr("os.readlink", read_late)
    assert {".env", ".git", ".git/config", "bare/config"} <= found(Searcher(tmp_path)).keys()
    assert not any(map(os.path.lexists, links))
