"""What a turn changed in the workspace, found out from what was there before each call."""

import shutil
import stat
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.errors import NotFound
from gateway.files.snapshot import ChangeRecorder, FileChanges
from gateway.http.export import FORMATS, export
from gateway.ids import LOCAL_USER
from gateway.journal.cli import run_logs_command
from gateway.observability.effects import describe_effects
from gateway.observability.paths import PathView
from gateway.turns.file_changes import NO_CHANGES, describe_blocking
from gateway.turns.sanitizer import OutputSanitizer
from policies.secrets import mask_secrets
from tests.support.services import RunningServices, running_services, script
from tests.unit.policies.judging import count_calls

SECRET = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3eF5gH7jK9m" * 2


def _bash(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}}


def _write(path: str, content: str) -> dict[str, Any]:
    return {"tool": "Write", "input": {"file_path": path, "content": content}}


async def _changes(services: RunningServices, result: dict[str, Any]) -> dict[str, Any]:
    return await services.chat.reader.file_changes(
        LOCAL_USER, result["conversation_id"], result["turn_id"]
    )


def _make(workspace: Path) -> None:
    (workspace / "docs" / "old").mkdir(parents=True)
    (workspace / "docs" / "plan.md").write_text("".join(f"line {n}\n" for n in range(20)))
    (workspace / "docs" / "old" / "x.txt").write_text("x\n")
    (workspace / "m.txt").write_text("moved\n")
    (workspace / "same.txt").write_text("same\n")
    (workspace / "picture.bin").write_bytes(b"\0\1")
    (workspace / "large.txt").write_text("l" * 300_000)


async def test_each_kind_of_change_is_found_with_its_diff(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        workspace = tmp_path / "ws"
        await anyio.to_thread.run_sync(_make, workspace)
        edit = {"file_path": "docs/plan.md", "old_string": "line 9\n", "new_string": "NINE\nTEN\n"}
        result = await services.ask(
            script(
                {"tool": "Edit", "input": edit},
                _write("new.txt", f"key {SECRET}\nno end"),
                _write("same.txt", "same\n"),
                _bash("mv m.txt docs"),
                _bash("rm -r docs/old"),
                _bash("cp picture.bin docs/copy.bin"),
                _bash("cp a.txt large.txt"),
                _bash("mkdir empty"),
                _bash("cat a.txt"),
                {"text": "done"},
            )
        )
        assert [tool["status"] for tool in result["tools"]] == ["ok"] * 9, result["tools"]
        changes = await _changes(services, result)
        forked = await services.fork(result["conversation_id"], result["turn_id"])
        (copied,) = await services.messages_of(forked)
        await services.delete(result["conversation_id"])
        kept = await services.chat.reader.file_changes(LOCAL_USER, forked, copied.id)
    told = ("kind", "moved_from", "added", "removed", "unread")
    found = {file["path"]: tuple(file[key] for key in told) for file in changes["files"]}
    assert found == {
        "docs/copy.bin": ("created", None, 0, 0, "binary"),
        "docs/m.txt": ("moved", "m.txt", 0, 0, None),
        "docs/old/x.txt": ("deleted", None, 0, 1, None),
        "docs/plan.md": ("modified", None, 2, 1, None),
        "empty/": ("created", None, 0, 0, None),
        "large.txt": ("modified", None, 0, 0, "too_large"),
        "new.txt": ("created", None, 2, 0, None),
    }
    diffs = {file["path"]: file["diff"] for file in changes["files"]}
    assert diffs["docs/plan.md"] == (
        "--- a/docs/plan.md\n+++ b/docs/plan.md\n@@ -7,7 +7,8 @@\n line 6\n line 7\n line 8\n"
        "-line 9\n+NINE\n+TEN\n line 10\n line 11\n line 12\n"
    )
    assert diffs["docs/old/x.txt"] == "--- a/docs/old/x.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    assert diffs["new.txt"].startswith("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+key ")
    assert diffs["new.txt"].endswith("+no end\n\\ No newline at end of file\n")
    assert SECRET not in str(changes)
    assert changes["complete"]
    assert result["changes"] == {"files": 7, "added": 4, "removed": 2, "complete": True}
    assert kept["files"] == changes["files"]


async def test_what_cannot_be_known_is_not_claimed(tmp_path: Path) -> None:
    """A denied call changes nothing; a further directory is not the workspace; a turn of before is unknown."""
    (tmp_path / "further").mkdir()
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[directories]\nread_write = ["{tmp_path}/further"]\n', encoding="utf-8")
    async with running_services(tmp_path, policy_file=rules) as services:
        denied = await services.ask(script(_write(".env", "x"), {"text": "done"}))
        outside = await services.ask(
            script(_write(f"{tmp_path}/further/a", "x"), _write("in.txt", "x\n"), {"text": "done"})
        )
        changes = await _changes(services, outside)
        other = denied["conversation_id"], outside["turn_id"]
        for ids in (other, (denied["conversation_id"], "trn_unknown")):
            with pytest.raises(NotFound):
                await services.chat.reader.file_changes(LOCAL_USER, *ids)
        nothing = {"turn_id": denied["turn_id"], "complete": True, "files": []}
        assert await _changes(services, denied) == nothing
    assert outside["tools"][0]["status"] == "ok", outside
    assert ([file["path"] for file in changes["files"]], changes["complete"]) == (["in.txt"], False)
    assert str(tmp_path) not in str(changes)


ENDINGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "no call": (
        script({"text": "Done. I wrote report.csv."}),
        {},
        "no tool was called; no file was changed",
    ),
    "nothing changed": (script(_bash("ls"), {"text": "Done."}), {}, "1 call; no file was changed"),
    "changed": (
        script(_write("new.txt", "a\nb\n"), _bash("cat gone.txt"), {"text": "Done."}),
        {"files": 1, "added": 2},
        "2 calls, 1 failed; 1 file changed (+2 -0)",
    ),
    "command": ("/help-me", {}, "no tool was called; no file was changed"),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_every_door_tells_plainly_what_a_turn_changed(tmp_path: Path, ending: str) -> None:
    message, changed, told = ENDINGS[ending]
    async with running_services(tmp_path) as services:
        result = await services.ask(message)
        lines = await services.journal_of(result)
        view = await services.view(result["conversation_id"])
        turns = services.chat.conversations.history(LOCAL_USER, result["conversation_id"])
        pieces = [piece async for piece in export(view, turns, FORMATS["markdown"])]
    assert result["changes"] == {**NO_CHANGES, **changed}
    assert lines[-1]["changes"] == result["changes"]
    assert told in pieces[-1].splitlines()[-1]
    out = StringIO()
    show = partial(run_logs_command, log_dir=services.settings.log_dir, out=out)
    await anyio.to_thread.run_sync(show, ["show", result["log_file"]])
    assert f"did         {told}" in out.getvalue()


@pytest.mark.parametrize("calls", [[], [_bash("ls")]], ids=["no call", "a call"])
async def test_a_turn_that_a_crash_cut_off_does_not_say_that_nothing_was_changed(
    tmp_path: Path, calls: list[dict[str, Any]]
) -> None:
    """What the files were before is known to the dead server alone; without a call they are the same."""
    async with running_services(tmp_path / "before") as services:
        accepted = await services.begin(script(*calls, {"text": "I begin"}, {"hang": True}))
        await services.copy_as_after_a_crash(tmp_path / "after")
        await services.interrupt(accepted.conversation_id)
    async with running_services(tmp_path / "after") as services:
        result = await services.result_of(accepted)
    assert result["changes"] == {**NO_CHANGES, "complete": not calls}
    told = "no file was changed" if not calls else "which files were changed is not known"
    assert told in describe_effects(result)


def _recorded(workspace: Path) -> ChangeRecorder:
    """Return a recorder that has noted a whole workspace, as before a command in the box."""
    recorder = ChangeRecorder(workspace)
    recorder.note_blocking([str(workspace)])
    return recorder


def _told(changes: FileChanges) -> dict[str, tuple[str, str | None]]:
    return {file.path: (file.kind, file.unread) for file in changes.files}


DEEP = ("deep/er/est/far/kept.txt", "deep/er/est/far/changed.txt", "deep/er/est/far/gone.txt")


def _make_deep(workspace: Path) -> None:
    (workspace / DEEP[0]).parent.mkdir(parents=True)
    for path in DEEP:
        (workspace / path).write_text("before\n")


def _fill(workspace: Path) -> None:
    """Make more files than are compared, less deep than those of `DEEP`."""
    for folder in range(100):
        (workspace / f"node_modules/{folder}").mkdir(parents=True)
        for file in range(60):
            (workspace / f"node_modules/{folder}/{file}.js").touch()


def test_a_turn_that_makes_too_many_files_tells_no_other_as_deleted(tmp_path: Path) -> None:
    _make_deep(tmp_path)
    recorder = _recorded(tmp_path)
    _fill(tmp_path)
    (tmp_path / DEEP[1]).write_text("after\n")
    (tmp_path / DEEP[2]).unlink()
    changes = recorder.changes_blocking()
    told = {path: kind for path, (kind, _) in _told(changes).items()}
    made = {path for path, kind in told.items() if kind == "created"}
    assert {path: told[path] for path in told.keys() - made} == {
        DEEP[1]: "modified",
        DEEP[2]: "deleted",
    }
    assert all(path.startswith("node_modules/") for path in made)
    assert len(made) > 4_000
    assert not changes.complete


def test_a_new_file_beyond_the_limits_of_a_turn_is_told_as_too_large(tmp_path: Path) -> None:
    recorder = ChangeRecorder(tmp_path)
    recorder.note_blocking([str(tmp_path)])
    for number in range(501):
        (tmp_path / f"{number:03}.txt").write_text("text\n")
    (tmp_path / "000.txt").write_bytes(b"\0")
    found = {file.path: file.unread for file in recorder.changes_blocking().files}
    assert (found["000.txt"], found["499.txt"], found["500.txt"]) == ("binary", None, "too_large")


def test_a_turn_that_removes_too_many_files_tells_no_other_as_created(tmp_path: Path) -> None:
    _make_deep(tmp_path)
    _fill(tmp_path)
    recorder = _recorded(tmp_path)
    shutil.rmtree(tmp_path / "node_modules")
    (tmp_path / "new").mkdir()
    (tmp_path / "new/x.txt").write_text("new\n")
    changes = recorder.changes_blocking()
    told = _told(changes)
    assert {path for path, (kind, _) in told.items() if kind != "deleted"} == {"new/x.txt"}
    assert told["new/x.txt"] == ("created", None)
    assert "node_modules/0/0.js" in told
    assert not changes.complete


def test_a_file_that_a_folder_replaces_is_told_as_deleted(tmp_path: Path) -> None:
    for path in ("a.py", "b.py", "c.py"):
        (tmp_path / path).write_text(f"{path}\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x").write_text("x\n")
    (tmp_path / "e").mkdir()
    (tmp_path / "m.txt").write_text("m\n")
    recorder = _recorded(tmp_path)
    (tmp_path / "a.py").unlink()
    (tmp_path / "a.py").mkdir()
    (tmp_path / "a.py/x").write_text("1\n")
    (tmp_path / "b.py").unlink()
    (tmp_path / "b.py").mkdir()
    (tmp_path / "c.py").rename(tmp_path / "c")
    (tmp_path / "c.py").mkdir()
    (tmp_path / "c").rename(tmp_path / "c.py/moved")
    shutil.rmtree(tmp_path / "d")
    (tmp_path / "d").write_text("d\n")
    (tmp_path / "e").rmdir()
    (tmp_path / "m.txt").rename(tmp_path / "e")
    changes = recorder.changes_blocking()
    assert [(file.path, file.kind, file.moved_from, file.unread) for file in changes.files] == [
        ("a.py", "deleted", None, None),
        ("a.py/x", "created", None, None),
        ("b.py", "deleted", None, None),
        ("b.py/", "created", None, None),
        ("c.py/moved", "moved", "c.py", None),
        ("d", "created", None, None),
        ("d/x", "deleted", None, None),
        ("e/", "deleted", None, None),
        ("e", "moved", "m.txt", None),
    ]
    texts = {file.path: (file.before, file.after) for file in changes.files}
    assert texts["a.py"] == ("a.py\n", "")
    assert changes.complete


def test_a_changed_mode_is_told_as_a_modified_file_without_a_diff(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in ("run.sh", "same.sh"):
        (tmp_path / path).write_text("echo\n")
    recorder = _recorded(tmp_path)
    for path in ("run.sh", "folder"):
        (tmp_path / path).chmod(0o700)
    (tmp_path / "folder/empty").mkdir()
    (tmp_path / "same.sh").chmod(stat.S_IMODE((tmp_path / "same.sh").stat().st_mode))
    sanitizer = OutputSanitizer(PathView([str(tmp_path)]), mask_secrets)
    changes = describe_blocking(recorder.changes_blocking(), sanitizer)
    told = ("path", "kind", "added", "removed", "diff", "unread")
    assert [tuple(file[key] for key in told) for file in changes.files] == [
        ("folder/", "modified", 0, 0, None, None),
        ("folder/empty/", "created", 0, 0, None, None),
        ("run.sh", "modified", 0, 0, None, None),
    ]
    assert changes.complete


def _calls_to_compare(workspace: Path, count: int) -> int:
    """Return how many calls of functions it takes where a folder's files give way to others."""
    for name in ("old", "new"):
        (workspace / name).mkdir(parents=True)
    for number in range(count):
        (workspace / f"old/{number}").write_text(f"old {number}")
    recorder = _recorded(workspace)
    for number in range(count):
        (workspace / f"new/{number}").write_text(f"new {number}")
        (workspace / f"old/{number}").unlink()
    calls, changes = count_calls(recorder.changes_blocking)
    assert [file.kind for file in changes.files] == ["created"] * count + ["deleted"] * count
    return calls


def test_the_work_of_a_comparison_grows_with_the_number_of_files(tmp_path: Path) -> None:
    few, many = (_calls_to_compare(tmp_path / str(count), count) for count in (50, 200))
    assert many < 6 * few


def test_of_files_with_one_content_each_comes_from_one_of_them(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("same")
    recorder = _recorded(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / name).unlink()
    for name in ("x", "y", "z", "zz"):
        (tmp_path / name).write_text("same")
    changes = recorder.changes_blocking()
    assert [(file.path, file.moved_from) for file in changes.files] == [
        ("x", "a"),
        ("y", "b"),
        ("z", "c"),
        ("zz", None),
    ]
