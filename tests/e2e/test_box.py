"""`CANDOR_SHELL=sandboxed` with the real agent process: work gets done in the box, and stays in it."""

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest

from tests.support.engine_talk import step
from tests.support.live_server import LiveServer, bash, let_go, script, started_server
from tests.support.program import environment, one_sentence, run_app, run_program
from tests.support.walls import needs_boxes

pytestmark = [pytest.mark.e2e, needs_boxes]

SECRET = "S3CR3T-OF-THE-WORKSPACE"

PYTHON = {
    "py/adder.py": "def add(a, b):\n    return a - b\n",
    "py/test_adder.py": "import unittest\nfrom adder import add\n\n"
    "class T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n",
}
JAVASCRIPT = {
    "js/adder.js": "exports.add = (a, b) => a - b;\n",
    "js/adder.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
    "test('adds', () => assert.strictEqual(require('./adder').add(2, 3), 5));\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose agents run any command in a box, on a workspace that is a repository."""
    root = tmp_path_factory.mktemp("boxed") / "it's 工作区"
    root.mkdir()
    workspace = root / "ws"
    workspace.mkdir()
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    (workspace / ".env").write_text(SECRET, encoding="utf-8")
    (workspace / ".gitignore").write_text(".env\n", encoding="utf-8")
    with started_server(root, shell="sandboxed", workspace=workspace, demo_cadence_ms=0) as server:
        yield server


@pytest.fixture(scope="module")
def conversation(server: LiveServer) -> str:
    """Return a conversation for what leaves the working directory as it was."""
    return server.new_conversation()


async def play(server: LiveServer, conversation: str, *steps: dict[str, Any]) -> Any:
    async with server.client() as client:
        return await client.ask(script(*steps, {"text": "Done."}), conversation)


def statuses(result: Any) -> list[str]:
    return [tool["status"] for tool in result["tools"]]


async def test_a_program_is_written_tested_mended_and_committed_in_two_languages(
    server: LiveServer, conversation: str
) -> None:
    files = [
        step("Write", file_path=str(server.workspace / name), content=content)
        for name, content in {**PYTHON, **JAVASCRIPT}.items()
    ]
    mended = [
        step(
            "Edit",
            file_path=str(server.workspace / name),
            old_string="a - b",
            new_string="a + b",
        )
        for name in ("py/adder.py", "js/adder.js")
    ]
    tests = [
        bash("(cd py && python3 -m unittest 2>&1) | tail -3; exit ${PIPESTATUS[0]}"),
        bash("cd js && node --test . > out.txt && tail -3 out.txt"),
        bash("cd .. && pwd"),
    ]
    result = await play(
        server,
        conversation,
        *files,
        *tests[:2],
        *mended,
        *tests,
        bash(
            "rm js/out.txt && git add -A && git commit -qm 'Add numbers' && git log --oneline | wc -l"
        ),
    )
    assert statuses(result) == ["ok"] * 4 + ["failed"] * 2 + ["ok"] * 6
    log = (
        await anyio.run_process(
            ["git", "-C", str(server.workspace), "log", "--format=%an %s", "--name-only"]
        )
    ).stdout.decode()
    assert log.startswith("Candor agent Add numbers")
    assert set(PYTHON) | set(JAVASCRIPT) <= set(log.split())
    assert ".env" not in log.split()


async def test_the_doctor_of_a_server_that_runs_leaves_its_box_alone(
    server: LiveServer, conversation: str
) -> None:
    found = await anyio.to_thread.run_sync(
        partial(
            run_app,
            "doctor",
            directory=server.data_dir.parent,
            shell="sandboxed",
            workspace=server.workspace,
            data_dir=server.data_dir,
        )
    )
    assert "Shell commands run in a box of their own" in found.stdout
    assert statuses(await play(server, conversation, bash("pwd"))) == ["ok"]
    assert not list(server.data_dir.glob("box-*"))


async def test_what_a_command_writes_is_seen_while_it_runs_without_its_secrets(
    server: LiveServer, conversation: str
) -> None:
    pipe = server.make_pipe("waits")
    key = "sk-ant-api03-Zq8vN3kPw7Lx2TyR5sJdZq8vN3kPw7Lx2TyR5sJdZq8vN3kPw7Lx2TyR5sJdZq8vN3kPw7Lx2TyR5sJd"
    steps = [bash(f"echo first; echo the key {key} is; cat waits; echo last"), {"text": "Done."}]
    async with (
        server.client() as client,
        client.stream(script(*steps), conversation) as events,
    ):
        seen = await events.until("tool.output")
        assert seen.data["index"] == 1
        assert seen.data["text"].startswith("first\n")
        await let_go(pipe)
        done = await events.until("turn.completed")
        assert statuses(done.data) == ["ok"]
        finished = next(event for event in events.seen if event.type == "tool.finished")
        assert finished.data["output"].endswith("through\nlast")
        assert key not in str([event.data for event in events.seen if event.type == "tool.output"])
    pipe.unlink()


async def test_a_command_that_uses_too_much_fails_with_its_reason_and_the_next_one_runs(
    server: LiveServer, conversation: str
) -> None:
    hogs = (bash("yes"), bash("bomb() { bomb | bomb & }; bomb; sleep 60"))
    result = await play(server, conversation, *hogs, bash("echo on"))
    assert statuses(result) == ["failed", "failed", "ok"]
    told = [tool["error"] for tool in result["tools"][:2]]
    ended = "The sandbox ended this command: it"
    assert f"{ended} wrote more than 8 MB of output." in told[0]
    assert f"{ended} started more than 512 processes and threads." in told[1]


async def test_an_interrupt_ends_the_command_and_the_next_one_runs(
    server: LiveServer, conversation: str
) -> None:
    pipe = server.make_pipe("never")
    steps = [bash("trap '' TERM; echo began; cat never; sleep 60"), {"text": "Done."}]
    async with (
        server.client() as client,
        client.stream(script(*steps), conversation) as events,
    ):
        await events.until("tool.output")
        await client.post(f"/conversations/{conversation}/interrupt", status=202)
        done = await events.until("turn.completed")
        assert done.data["outcome"] == "interrupted"
        assert ["cat", "never"] not in [
            one.info["cmdline"] for one in psutil.process_iter(["cmdline"])
        ]
        result = await client.ask(script(bash("true"), {"text": "Done."}), conversation)
        assert statuses(result) == ["ok"]
    pipe.unlink()


async def test_the_working_directory_goes_on_to_the_next_command(server: LiveServer) -> None:
    conversation = server.new_conversation()
    async with server.client() as client:
        steps = [bash("mkdir -p one/two && cd one/two"), bash("pwd; ls ..; false"), bash("pwd")]
        result = await client.ask(script(*steps, {"text": "Done."}), conversation)
        turn = f"/conversations/{conversation}/turns/{result['turn_id']}"
        outputs = [(await client.get(f"{turn}/tools/{index}"))["output"] for index in (2, 3)]
    assert outputs == ["Exit code 1\none/two\ntwo", "one/two"]


async def test_ready_says_where_commands_run(server: LiveServer) -> None:
    async with server.client() as client:
        part = (await client.get("/readyz"))["parts"]["sandbox"]
    assert part["shell"] == "sandboxed"
    assert part["message"].endswith(
        "Shell commands run in a box of their own (bubblewrap): they see the workspace and the "
        "system's programs, and have no network."
    )


async def test_what_a_command_changed_is_in_the_turn_s_changes(
    server: LiveServer, conversation: str
) -> None:
    async with server.client() as client:
        result = await client.ask(
            script(
                bash("echo one > changed.txt; mkdir -p new; echo two > new/two.txt"),
                {"text": "Done."},
            ),
            conversation,
        )
        changes = await client.get(
            f"/conversations/{conversation}/turns/{result['turn_id']}/changes"
        )
    assert {file["path"] for file in changes["files"]} >= {"changed.txt", "new/two.txt"}


def test_the_command_line_explains_what_would_run_in_a_box(tmp_path: Path) -> None:
    environ = environment(tmp_path, {"shell": "sandboxed"}, {})
    done = run_program(["policy", "explain", "make | tail -1"], environ)
    assert done.stdout.startswith("Allowed: make | tail -1\n  rule      bash_sandboxed\n")


async def test_a_server_without_a_box_does_not_start(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, app\n"
        "import gateway.engine.box.choice as choice\n"
        "choice.find_bubblewrap_blocking = lambda: None\n"
        "sys.exit(app.main(['demo']))\n",
        encoding="utf-8",
    )
    environ = environment(tmp_path, {"shell": "sandboxed"}, {})
    done = await anyio.to_thread.run_sync(lambda: run_program([], environ, program=program))
    assert (done.returncode, done.stdout) == (2, "")
    assert one_sentence(done.stderr).startswith(
        "CANDOR_SHELL=sandboxed cannot be kept: bubblewrap is not installed."
    )
