"""`deploy/backup.py` beside a server that works, and a server that starts on what it has copied."""

import contextlib
import os
import runpy
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.live_server import bash, running_server, script
from tests.support.postgres import new_database_blocking, programs
from tests.support.program import ROOT

pytestmark = pytest.mark.e2e


async def test_a_restored_backup_has_conversation_memory_and_files(tmp_path: Path) -> None:
    """Taken in the middle of a turn, which the restored server ends as cut off."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    async with running_server(home) as server, server.client() as client:
        note = script(
            {"tool": "Write", "input": {"file_path": "zebra.txt", "content": "stripes"}},
            {"text": "Wrote down that the zebrafish eat at noon."},
        )
        told = await client.ask(note)
        conversation_id = told["conversation_id"]
        await client.wait_until("/memory/search?q=zebra", lambda found: found["items"])
        server.make_pipe("pipe")
        async with client.stream(script(bash("cat pipe")), conversation_id) as events:
            await events.until("tool.started")
            program = ROOT / "deploy" / "backup.py"
            places = (server.data_dir, server.workspace, server.log_dir, copy)
            await anyio.run_process([sys.executable, str(program), *map(str, places)])
        server.kill()

    for name in ("data", "workspace", "logs"):
        shutil.rmtree(home / name)
        (copy / name).rename(home / name)
    async with running_server(home) as server, server.client() as client:
        messages = (await client.get(f"/conversations/{conversation_id}/messages"))["messages"]
        assert told["reply"] in str(messages)
        assert messages[-1]["result"]["cause"] == "crashed"
        assert (await client.get("/memory/search?q=zebra"))["items"]
        assert (await client.http.get(f"/logs/{told['log_file']}")).status_code == 200
        assert (server.workspace / "zebra.txt").read_text("utf-8") == "stripes"
        again = await client.ask("What did I say before?", conversation_id)
        assert again["outcome"] == "answered"
        assert not [notice for notice in again["notices"] if notice["code"] == "session_lost"]


async def test_a_dump_of_postgresql_and_the_folders_are_restored_elsewhere(tmp_path: Path) -> None:
    """As docs/scale.md says; vectors are left out and made again."""
    home, copy, dump = tmp_path / "home", tmp_path / "copy", str(tmp_path / "candor.dump")
    kept = {"node_url": "http://127.0.0.1:0", "node_ttl_s": 60, "embedder": "auto"}
    what = ["--schema=candor", "--schema=candor_memory"]
    vectors = "--exclude-table=candor_memory.item_vectors"
    with new_database_blocking("before") as url, new_database_blocking("after") as new_url:
        async with (
            running_server(home, database_url=url, **kept) as server,
            server.client() as client,
        ):
            told = await client.ask("Please remember that the cat sleeps on the sofa.")
            conversation_id = told["conversation_id"]
            await client.wait_until("/memory/search?q=sofa", lambda found: found["items"])
            server.make_pipe("pipe")
            async with client.stream(script(bash("cat pipe")), conversation_id) as events:
                await events.until("tool.started")
                dumped = ["--format=custom", *what, vectors, f"--file={dump}", url]
                await anyio.run_process([str(programs() / "pg_dump"), *dumped])
                places = (server.data_dir, server.workspace, server.log_dir, copy)
                program = ROOT / "deploy" / "backup.py"
                await anyio.run_process([sys.executable, str(program), *map(str, places)])
            server.kill()
        shutil.rmtree(home / "data")
        shutil.rmtree(home / "workspace")
        (copy / "workspace").rename(home / "workspace")
        await anyio.run_process([str(programs() / "pg_restore"), f"--dbname={new_url}", dump])
        async with (
            running_server(home, database_url=new_url, **kept) as server,
            server.client() as client,
        ):
            messages = (await client.get(f"/conversations/{conversation_id}/messages"))["messages"]
            assert messages[1]["result"]["reply"] == told["reply"]
            found = await client.wait_until("/memory/search?q=猫在睡觉", lambda one: one["items"])
            assert "meaning" in found["items"][0]["why"]
            again = await client.ask("What did I say before?", conversation_id)
            assert again["outcome"] == "answered"
            assert not [notice for notice in again["notices"] if notice["code"] == "session_lost"]
            messages = (await client.get(f"/conversations/{conversation_id}/messages"))["messages"]
            assert [one["result"]["cause"] for one in messages if "result" in one][1] == "crashed"


def test_a_backup_leaves_an_older_one_alone(tmp_path: Path) -> None:
    (tmp_path / "copy" / "data").mkdir(parents=True)
    done = back_up(".", ".", ".", tmp_path / "copy")
    assert done.returncode == 1
    assert done.stderr.startswith("The backup failed")
    assert "Name another folder" in done.stderr
    assert "Errno" not in done.stderr


@pytest.mark.parametrize("source", ["data", "workspace", "logs"])
def test_a_backup_into_what_it_copies_is_refused_before_anything_is_made(
    tmp_path: Path, source: str
) -> None:
    places = sources(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / source)
    for target in (tmp_path / source / "backups" / "today", tmp_path / "link" / "today"):
        done = back_up(*places, target)
        assert done.returncode == 1
        assert done.stderr == (
            f"The backup failed: TARGET {target} is inside {tmp_path / source}, which is copied. "
            "Name a folder outside of the three.\n"
        )
        assert not list((tmp_path / source).iterdir())


def test_a_backup_of_a_folder_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    data, workspace, logs = sources(tmp_path)
    done = back_up(data, tmp_path / "worksapce", logs, tmp_path / "copy")
    assert done.returncode == 1
    assert done.stderr == (
        f"The backup failed: WORKSPACE {tmp_path / 'worksapce'} is not a folder.\n"
    )
    assert not (tmp_path / "copy").exists()
    (data / "candor.sqlite3").touch()
    assert back_up(data, workspace, logs, tmp_path / "copy").returncode == 0


@pytest.mark.parametrize("place", ["WORKSPACE", "LOG_DIR"])
@pytest.mark.parametrize("how", ["swapped", "around it"])
def test_a_backup_refuses_to_copy_a_database_as_a_plain_file(
    tmp_path: Path, place: str, how: str
) -> None:
    given = dict(zip(("DATA_DIR", "WORKSPACE", "LOG_DIR"), sources(tmp_path), strict=True))
    if how == "swapped":
        given["DATA_DIR"], given[place] = given[place], given["DATA_DIR"]
        (tmp_path / "data" / "candor.sqlite3").touch()
    else:
        given["DATA_DIR"] = given[place] / "data"
        given["DATA_DIR"].mkdir()
        (given["DATA_DIR"] / "candor.sqlite3").touch()
    done = back_up(*given.values(), tmp_path / "copy")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"The backup failed: {place} {given[place]} holds the server's databases"
    )
    assert not (tmp_path / "copy").exists()


def test_a_backup_of_a_folder_that_is_not_the_servers_is_refused(tmp_path: Path) -> None:
    done = back_up(*sources(tmp_path), tmp_path / "copy")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"The backup failed: DATA_DIR {tmp_path / 'data'} holds no candor.sqlite3"
    )
    assert not (tmp_path / "copy").exists()


def test_a_backup_beside_postgresql_says_that_the_database_is_not_in_it(tmp_path: Path) -> None:
    data, *others = sources(tmp_path)
    (data / "node").touch()
    done = back_up(data, *others, tmp_path / "copy")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"DATA_DIR {data} holds no candor.sqlite3")
    assert "pg_dump" in done.stderr
    assert (tmp_path / "copy" / "data" / "node").exists()


def test_a_backup_holds_what_agents_and_users_name_like_what_it_leaves_out(tmp_path: Path) -> None:
    data, *others = sources(tmp_path)
    kept = (
        "users/tmp/sessions/one.jsonl",  # of a user with this name
        "users/vectors/sessions/one.jsonl",
        "sessions/projects/-srv/memory/tmp/笔记.md",
        "home/project/Cargo.lock",
        "mcp/notes/vectors/one.bin",
        "mcp/notes/memory.sqlite3",
    )
    left_out = ("tmp/one", "users/ada/tmp/one", "vectors/one", "server.lock")
    for name in (*kept, *left_out, "candor.sqlite3"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    done = back_up(data, *others, tmp_path / "copy")
    assert (done.returncode, done.stderr) == (0, "")
    copied = (tmp_path / "copy" / "data").rglob("*")
    names = {str(path.relative_to(tmp_path / "copy" / "data")) for path in copied if path.is_file()}
    assert names == {*kept, "candor.sqlite3"}


def test_a_backup_goes_past_sockets_and_what_is_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, workspace, logs = sources(tmp_path)
    (data / "candor.sqlite3").touch()
    (workspace / "gone").mkdir()
    (workspace / "kept").mkdir()
    (workspace / "kept" / "zebra.txt").touch()
    monkeypatch.chdir(workspace)  # a socket's path must be short
    list_folder = os.scandir

    @contextlib.contextmanager
    def listing(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
        with list_folder(folder) as entries:
            yield entries
        if Path(folder) == workspace:
            (workspace / "gone").rmdir()

    program = runpy.run_path(str(ROOT / "deploy" / "backup.py"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with monkeypatch.context() as patched:
            patched.setattr("os.scandir", listing)
            program["back_up"](data, workspace, logs, tmp_path / "copy")
    found = (tmp_path / "copy" / "workspace").rglob("*")
    assert sorted(path.name for path in found) == ["kept", "zebra.txt"]


def test_a_backup_that_could_not_read_a_folder_fails(tmp_path: Path) -> None:
    data, workspace, logs = sources(tmp_path)
    (data / "candor.sqlite3").touch()
    (workspace / "kept").mkdir()
    program = runpy.run_path(str(ROOT / "deploy" / "backup.py"))

    list_folder = os.scandir

    def listing(folder: Path | str) -> Any:
        if Path(folder) == workspace / "kept":
            raise PermissionError(folder)
        return list_folder(folder)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.scandir", listing)
        with pytest.raises(shutil.Error, match="kept"):
            program["back_up"](data, workspace, logs, tmp_path / "copy")


def sources(home: Path) -> list[Path]:
    places = [home / name for name in ("data", "workspace", "logs")]
    for place in places:
        place.mkdir()
    return places


def back_up(*places: Path | str) -> subprocess.CompletedProcess[str]:
    """Run the program with its three sources and the target."""
    return subprocess.run(
        [sys.executable, ROOT / "deploy" / "backup.py", *places],
        capture_output=True,
        text=True,
        check=False,
    )
