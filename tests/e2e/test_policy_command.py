"""`python app.py policy` as a process, the known cases through it, and the same verdicts from the real hook."""

import json
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import pytest
from claude_agent_sdk import (
    HookContext,
    HookInput,
    PermissionResultAllow,
    ToolPermissionContext,
)

from gateway.engine.hooks import RunHooks
from policies.calls import ToolCall
from policies.check import Checker
from policies.rules import shipped_rules
from policies.verdict import Allow, Ask, Deny, Verdict
from tests.support.engine_talk import prompt, unheard_calls
from tests.support.live_server import LiveServer, script, started_server
from tests.support.policy_cases import File, ReadyCase, ready_cases
from tests.support.program import ROOT, environment, run_app, run_code
from tests.unit.policies.corpus import build_workspace

pytestmark = pytest.mark.e2e

READ = json.dumps({"id": 1, "tool": "Read", "input": {"file_path": "a.txt"}}).encode()


@contextmanager
def policy_check(directory: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "app.py"), "policy", "check", *args],
        cwd=directory,
        env=environment(directory, {}, {"PYTHONUNBUFFERED": ""}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def check(directory: Path, sent: bytes, **more: Any) -> list[dict[str, Any]]:
    """Judge lines in one process, which must exit with 0."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py"), "policy", "check"],
        cwd=directory,
        env=environment(directory, more, {}),
        input=sent,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def answer_all(cases: list[ReadyCase], directory: Path) -> dict[str, dict[str, Any]]:
    answers = check(directory, "\n".join(case.line for case in cases).encode())
    assert [answer["id"] for answer in answers] == [case.id for case in cases]
    return {str(answer["id"]): answer for answer in answers}


class Gatekeeper:
    """The policy alone, as the turn's gate asks it; nobody is there to ask."""

    def __init__(self, checker: Checker, told: Mapping[str, Any]) -> None:
        self._checker = checker
        self._told = told

    async def judge(self, call: ToolCall) -> Verdict:
        told = {**self._told, "tool": call.name, "input": call.input, "hook_cwd": call.cwd}
        return await anyio.to_thread.run_sync(self._judge_blocking, told)

    def _judge_blocking(self, told: Mapping[str, Any]) -> Verdict:
        return self._checker.judge(self._checker.read(told))

    async def decide(self, call: ToolCall) -> Allow | Deny:
        verdict = await self.judge(call)
        return Deny(verdict.rule, verdict.reason) if isinstance(verdict, Ask) else verdict

    def returned(self, index: int) -> None:
        """Do nothing: no call runs."""


async def ask_the_hooks(checker: Checker, case: ReadyCase) -> tuple[str, object]:
    """Return the verdict that reaches the agent's process, and the command that it runs instead."""
    hooks = RunHooks()
    hooks.begin(prompt("hello", Gatekeeper(checker, case.told)), unheard_calls())
    (matcher,) = hooks.matchers()["PreToolUse"]
    told = {
        "tool_name": case.told["tool"],
        "tool_input": case.told["input"],
        "cwd": case.told.get("hook_cwd", case.told["workspace"]),
    }
    first = cast(
        "dict[str, Any]",
        await matcher.hooks[0](cast("HookInput", told), "t", cast("HookContext", {"signal": None})),
    )
    context = ToolPermissionContext(tool_use_id="t")
    last = await hooks.can_use_tool(told["tool_name"], told["tool_input"], context)
    if isinstance(last, PermissionResultAllow):
        assert first == {}
        return "allow", (last.updated_input or {}).get("command")
    return "deny", None


VERDICTS: Mapping[File, str] = {"policy-deny.jsonl": "deny", "policy-allow.jsonl": "allow"}


@pytest.mark.parametrize("file", VERDICTS)
async def test_the_command_and_the_real_hook_judge_the_corpus_alike(
    tmp_path: Path, file: File
) -> None:
    cases = ready_cases(file, tmp_path)
    answers = answer_all(cases, tmp_path)
    assert [name for name, one in answers.items() if one["verdict"] != VERDICTS[file]] == []
    assert not {"policy_error", "bad_call"} & {one["rule"] for one in answers.values()}
    checker = Checker(shipped_rules(), tmp_path)
    for case in cases:
        expected = (answers[case.id]["verdict"], answers[case.id]["runs"])
        assert await ask_the_hooks(checker, case) == expected, case.id


def sample(directory: Path) -> list[ReadyCase]:
    """Take shell commands that change nothing the others need, of many classes, for one conversation."""

    def fits(case: ReadyCase) -> bool:
        command = case.told["input"].get("command") if case.told["tool"] == "Bash" else None
        posix = case.told.get("platform", "posix") == "posix" and "hook_cwd" not in case.told
        strict = set(case.told["input"]) == {"command"} and "config" not in case.told
        if not isinstance(command, str) or len(command) > 500 or not command.isprintable():
            return False
        spelled = "\\u" in command  # the agent's program takes that for the character itself
        return posix and not case.prepared and not spelled and strict

    honest = [c for c in ready_cases("policy-allow.jsonl", directory / "a") if fits(c)]
    bad = [c for c in ready_cases("policy-deny.jsonl", directory / "d") if fits(c)]
    reading = [case for case in honest if case.cls in {"ls", "cat"}]
    by_class = {case.cls: case for case in bad if case.cls != "workspace_root"}
    return [*reading[:12], *list(by_class.values())[:20]]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveServer]:
    with started_server(
        tmp_path / "server", workspace=build_workspace(tmp_path / "live")
    ) as server:
        yield server


@pytest.fixture
def calls(tmp_path: Path, live: LiveServer) -> list[dict[str, Any]]:
    """Return the sampled calls, all in the server's workspace."""
    cases = sample(tmp_path / "cases")
    lines = [c.line.replace(str(c.told["workspace"]), str(live.workspace)) for c in cases]
    return [json.loads(line) for line in lines]


@pytest.fixture
def expected(tmp_path: Path, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return check(tmp_path, "\n".join(map(json.dumps, calls)).encode())


async def test_the_real_agent_gets_the_same_verdicts(
    live: LiveServer, calls: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    """One conversation, one call after the other; what the journal says of each is what `check` says."""
    assert len(calls) >= 28
    steps = [{"tool": call["tool"], "input": call["input"]} for call in calls]
    async with live.client() as client:
        result = await client.ask(script(*steps, {"text": "Done."}))
    journal = [line for line in live.journal(result) if line["kind"] == "permission"]

    def shown(command: str | None) -> str | None:
        """The journal shows the workspace's paths relative to it."""
        return command and command.replace(f"{live.workspace}/", "")

    asked = [shown(call["input"]["command"]) for call in calls]
    assert [item["input"]["command"] for item in journal] == asked
    seen = [
        (item["verdict"], item["rule"], (item.get("runs") or {}).get("command")) for item in journal
    ]
    assert seen == [(item["verdict"], item["rule"], shown(item["runs"])) for item in expected]
    assert {item["verdict"] for item in expected} == {"allow", "deny"}


def test_a_line_is_answered_before_the_next_is_written(tmp_path: Path) -> None:
    with policy_check(tmp_path, "--workspace", str(build_workspace(tmp_path / "p"))) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(READ + b"\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], 60)
            assert ready
            assert json.loads(process.stdout.readline())["verdict"] == "allow"
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path) -> None:
    with policy_check(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(READ + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write((READ + b"\n") * 10)
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_ctrl_c_ends_it_without_a_trace(tmp_path: Path) -> None:
    with policy_check(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(READ + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_nothing_to_read_is_nothing_to_say(tmp_path: Path) -> None:
    assert check(tmp_path, b"") == []
    assert check(tmp_path, b"\n \n") == []
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$@" <&-', sys.executable, "app.py", "policy", "check"],
        cwd=ROOT,
        env=environment(tmp_path, {}, {}),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_it_starts_without_the_agent_and_the_server(tmp_path: Path) -> None:
    """What is asked thousands of times a day from other programs must not load a megabyte of them."""
    code = (
        "import sys, app; code = app.main(['policy', 'explain', 'rm -rf build']);"
        "heavy = {'claude_agent_sdk', 'anyio', 'fastapi', 'starlette', 'uvicorn'} & "
        "set(sys.modules);"
        "sys.exit(code or ', '.join(heavy) or 0)"
    )
    done = run_code(code, environment(tmp_path, {}, {}))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Allowed: rm -rf build\n")


ACTING = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "id"}]}]}}'


def trust(directory: Path, answer: str, *args: str) -> subprocess.CompletedProcess[str]:
    return run_app("policy", "trust", *args, directory=directory, given=answer)


def test_configuration_that_acts_is_shown_and_approved_after_a_yes(tmp_path: Path) -> None:
    file = tmp_path / "workspace" / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(ACTING, encoding="utf-8")
    for answer in ("n\n", "", "\n", "maybe\n"):
        done = trust(tmp_path, answer)
        assert (done.returncode, done.stderr) == (1, "")
        assert ".claude/settings.json: acts: " in done.stdout
        assert "hooks" in done.stdout
        assert "Nothing was approved." in done.stdout
    done = trust(tmp_path, "y\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Approved as it stands" in done.stdout
    done = trust(tmp_path, "")
    assert (done.returncode, done.stdout.count("[y/N]")) == (0, 0)
    assert ".claude/settings.json: approved\n" in done.stdout
    file.write_text(ACTING.replace("id", "whoami"), encoding="utf-8")
    assert trust(tmp_path, "n\n").returncode == 1
    assert trust(tmp_path, "", "--yes").returncode == 0
    assert trust(tmp_path, "").returncode == 0


def test_what_cannot_be_approved_has_to_go(tmp_path: Path) -> None:
    folder = tmp_path / "workspace" / ".claude"
    folder.mkdir(parents=True)
    (folder / "settings.json").symlink_to("/etc/hostname")
    for answer in ("", "--yes"):
        done = trust(tmp_path, "", *filter(None, [answer]))
        assert (done.returncode, done.stderr) == (1, "")
        assert "No approval helps" in done.stdout
        assert "[y/N]" not in done.stdout
        assert "while this stands: .claude/settings.json.\n" in done.stdout
    (tmp_path / "workspace" / ".mcp.json").write_text('{"mcpServers": {"a": {}}}', "utf-8")
    done = trust(tmp_path, "", "--yes")
    assert done.returncode == 1
    assert "The rest is approved, but no agent" in done.stdout


def test_a_hostile_name_does_not_reach_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "workspace" / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "\x1b[2Jx.sh").write_text("id", encoding="utf-8")
    done = trust(tmp_path, "n\n")
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "\\x1b[2Jx.sh" in done.stdout


def test_nothing_that_acts_needs_no_approval(tmp_path: Path) -> None:
    done = trust(tmp_path, "")
    assert (done.returncode, done.stderr) == (0, "")
    assert "waits for approval" in done.stdout
