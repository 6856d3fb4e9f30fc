"""What of the `memory/` folder is read, and what is not, whatever lies there."""

import os
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.notes import folder
from memory.notes.folder import (
    MAX_FILE_BYTES,
    NoteFile,
    NoteText,
    list_notes_blocking,
    read_note_blocking,
    remove_note_blocking,
)
from policies.paths.protected import find_protected_entry
from policies.secrets import mask_secrets
from tests.unit.memory.notes.indexed import SECRET, workspace_with, write


def names(workspace: Path) -> list[str]:
    return [file.name for file in list_notes_blocking(workspace)]


def read(workspace: Path, name: str) -> NoteText | None:
    return read_note_blocking(workspace, NoteFile(name, 0, 0), mask_secrets)


def text_of(workspace: Path, name: str) -> str:
    note = read(workspace, name)
    assert note is not None
    return note.text


NO_NOTES = [
    *("f.txt", "g.md.bak", "h.mdx", "md", "i", ".md", "j.json", "k.py"),
    *(".hidden.md", ".git/a.md", ".sub/a.md", ".env.md", "secrets.yaml", "Secrets.YML"),
    *(".ssh/notes.md", "server.key/a.md", "CLAUDE.md", ".github/workflows/ci.yml"),
    *("two\nlines.md", "a\u2028b.md", "a\x85b.md", "a\x1b[2Jb.md", "ends\r.md"),
]


def test_the_three_endings_are_notes_unless_hidden_secret_acting_or_breaking_a_line(
    tmp_path: Path,
) -> None:
    kept = ["a.md", "b.yaml", "c.yml", "d.MD", "e.Yaml", "logs/f.md", "sub/记忆.md"]
    workspace = workspace_with(tmp_path, dict.fromkeys([*kept, *NO_NOTES], "x"))
    assert names(workspace) == [f"memory/{name}" for name in kept]


def test_links_and_what_is_no_file_are_no_notes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "o.md").write_text("outside")
    workspace = workspace_with(tmp_path, {"a.md": "x", "d.md/inner.md": "y"})
    memory = workspace / "memory"
    (memory / "soft.md").symlink_to(outside / "o.md")
    (memory / "inside.md").symlink_to(memory / "a.md")
    (memory / "dangling.md").symlink_to(memory / "nothing")
    (memory / "folder").symlink_to(outside)
    (memory / "hard.md").hardlink_to(outside / "o.md")
    os.mkfifo(memory / "pipe.md")
    assert names(workspace) == ["memory/a.md", "memory/d.md/inner.md"]
    for name in ("soft", "inside", "dangling", "folder/o", "hard", "pipe"):
        assert read(workspace, f"memory/{name}.md") is None


@pytest.mark.parametrize("to", ["outside", "workspace/elsewhere"])
def test_a_folder_that_is_a_link_itself_holds_no_notes(tmp_path: Path, to: str) -> None:
    (tmp_path / "workspace").mkdir()
    target = tmp_path / to
    target.mkdir()
    (target / "o.md").write_text("outside")
    workspace = tmp_path / "workspace"
    (workspace / "memory").symlink_to(target)
    assert names(workspace) == []
    assert read(workspace, "memory/o.md") is None
    assert remove_note_blocking(workspace, "memory/o.md")
    assert (target / "o.md").exists()


def test_the_workspace_itself_may_be_reached_by_a_link(tmp_path: Path) -> None:
    workspace_with(tmp_path, {"a.md": "x"})
    (tmp_path / "link").symlink_to(tmp_path / "workspace")
    assert names(tmp_path / "link") == ["memory/a.md"]
    assert text_of(tmp_path / "link", "memory/a.md") == "x"


def to_link(place: Path, outside: Path) -> None:
    place.rename(place.with_name("moved"))
    place.symlink_to(outside)


def to_link_above(place: Path, outside: Path) -> None:
    to_link(place.parent, outside.parent)


def to_hard_link(place: Path, outside: Path) -> None:
    (place / "a.md").unlink()
    (place / "a.md").hardlink_to(outside / "a.md")


def to_soft_link(place: Path, outside: Path) -> None:
    (place / "a.md").unlink()
    (place / "a.md").symlink_to(outside / "a.md")


def to_pipe(place: Path, outside: Path) -> None:
    del outside
    (place / "a.md").unlink()
    os.mkfifo(place / "a.md")


@pytest.mark.parametrize("swap", [to_link, to_link_above, to_hard_link, to_soft_link, to_pipe])
def test_what_is_swapped_after_it_was_listed_is_neither_read_nor_removed(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside" / "deep"
    outside.mkdir(parents=True)
    (outside / "a.md").write_text("outside")
    workspace = workspace_with(tmp_path, {"sub/deep/a.md": "inside"})
    (listed,) = list_notes_blocking(workspace)
    swap(workspace / "memory" / "sub" / "deep", outside)
    assert read_note_blocking(workspace, listed, mask_secrets) is None
    assert remove_note_blocking(workspace, listed.name), "there is no such note any more"
    assert (outside / "a.md").read_text() == "outside"
    assert os.path.lexists(workspace / listed.name)


def test_a_name_that_does_not_lead_straight_down_is_refused(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"a.md": "x"})
    (workspace / "a.md").write_text("the workspace's own")
    for name in ("a.md", "memory/../a.md", "memory//a.md", "other/a.md"):
        with pytest.raises(AssertionError):
            read(workspace, name)
        with pytest.raises(AssertionError):
            remove_note_blocking(workspace, name)
    assert (workspace / "a.md").exists()


def test_eight_folders_down_are_looked_into_and_no_more_files_than_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eighth = "/".join("12345678")
    workspace = workspace_with(tmp_path, {f"{eighth}/a.md": "x", f"{eighth}/9/b.md": "y"})
    assert names(workspace) == [f"memory/{eighth}/a.md"]
    monkeypatch.setattr(folder, "MAX_FILES", 3)
    workspace = workspace_with(tmp_path, {f"{n}.md": "x" for n in range(5)})
    assert len(names(workspace)) == 3


def test_a_folder_that_becomes_a_pipe_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = workspace_with(tmp_path, {"a/a.md": "x", "b.md": "y"})

    def swapped(parts: list[str]) -> object:
        if parts == ["memory", "a"]:
            shutil.rmtree(workspace / "memory" / "a")
            os.mkfifo(workspace / "memory" / "a")
        return find_protected_entry(parts)

    def hangs(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(folder, "find_protected_entry", swapped)
    signal.signal(signal.SIGALRM, hangs)
    signal.alarm(30)
    assert names(workspace) == ["memory/b.md"]
    signal.alarm(0)


@pytest.mark.parametrize("at_s", [-5, 40_000_000_000])
def test_a_date_that_cannot_be_stored_is_the_nearest_that_can(tmp_path: Path, at_s: int) -> None:
    workspace = workspace_with(tmp_path, {})
    has = write(workspace, "a.md", "x", at_s=at_s).stat().st_mtime_ns
    assert list_notes_blocking(workspace)[0].mtime_ns == min(max(0, has), 2**63 - 1)


def test_of_a_huge_file_its_beginning_is_read_in_whole_lines(tmp_path: Path) -> None:
    line = "一行 a line\n"
    lines = line * (2 * MAX_FILE_BYTES // len(line.encode()))
    text = text_of(workspace_with(tmp_path, {"a.md": lines}), "memory/a.md")
    assert MAX_FILE_BYTES - 2 * len(line.encode()) < len(text.encode()) <= MAX_FILE_BYTES
    assert set(text.split("\n")) == {line.strip()}


def test_a_secret_that_the_cut_goes_through_is_left_out(tmp_path: Path) -> None:
    filler = "word " * ((MAX_FILE_BYTES - 20) // 5)
    for gap in ("\n", " "):
        workspace = workspace_with(tmp_path, {"a.md": f"{filler}{gap}{SECRET} and more"})
        assert text_of(workspace, "memory/a.md").rstrip() == filler.rstrip()


def test_text_in_any_form_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    texts = {
        b"Z\xfcrich HB": "Z\ufffdrich HB",
        "\ufeff# 标题".encode(): "# 标题",
        b"a\r\nb\rc\n": "a\nb\nc\n",
        b"": "",
    }
    for raw, text in texts.items():
        assert text_of(workspace_with(tmp_path, {"a.md": raw}), "memory/a.md") == text


def test_a_note_is_removed_and_nothing_else_or_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = workspace_with(tmp_path, {"a.md": "x", "b.md": "y"})
    assert remove_note_blocking(workspace, "memory/a.md")
    assert names(workspace) == ["memory/b.md"]
    assert remove_note_blocking(workspace, "memory/a.md"), "it is gone already"
    assert remove_note_blocking(workspace, "memory/nowhere/a.md")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    assert not remove_note_blocking(workspace, "memory/b.md")


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"a.md": "x", "s/b.md": "y", "s/t/c.md": "z"})
    (workspace / "memory" / "link").symlink_to(tmp_path)
    before = open_descriptors()
    for _ in range(5):
        list_notes_blocking(workspace)
        read(workspace, "memory/s/t/c.md")
        read(workspace, "memory/link/c.md")
        remove_note_blocking(workspace, "memory/link/c.md")
    after = open_descriptors()
    assert after == before


def test_a_folder_that_may_not_be_entered_hides_only_itself(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"a.md": "x", "closed/b.md": "y"})
    closed = workspace / "memory" / "closed"
    closed.chmod(0)
    try:
        expected = ["memory/a.md"]
        if os.access(closed, os.R_OK):  # the superuser enters everywhere
            expected.append("memory/closed/b.md")
        assert names(workspace) == expected
    finally:
        closed.chmod(stat.S_IRWXU)
