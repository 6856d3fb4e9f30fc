"""`deploy/backup.py` beside a server that works, and a server that starts on what it has copied."""

import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.support.live_server import bash, running_server, script
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


def test_a_backup_leaves_an_older_one_alone(tmp_path: Path) -> None:
    (tmp_path / "copy" / "data").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, ROOT / "deploy" / "backup.py", *["."] * 3, tmp_path / "copy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The backup failed")
