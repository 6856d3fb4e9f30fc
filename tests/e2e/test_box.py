"""`CANDOR_SHELL=sandboxed` with the real agent process: work gets done in the box, and stays in it."""

import subprocess
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from tests.support.engine_talk import step
from tests.support.live_server import LiveServer, bash, script, started_server
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
    root = tmp_path_factory.mktemp("boxed")
    workspace = root / "ws"
    workspace.mkdir()
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    (workspace / ".env").write_text(SECRET, encoding="utf-8")
    (workspace / ".gitignore").write_text(".env\n", encoding="utf-8")
    with started_server(root, shell="sandboxed", workspace=workspace, demo_cadence_ms=0) as server:
        yield server


async def play(server: LiveServer, *steps: dict[str, Any]) -> Any:
    async with server.client() as client:
        return await client.ask(script(*steps, {"text": "Done."}), server.new_conversation())


def statuses(result: Any) -> list[str]:
    return [tool["status"] for tool in result["tools"]]


async def test_a_program_is_written_tested_mended_and_committed_in_two_languages(
    server: LiveServer,
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
