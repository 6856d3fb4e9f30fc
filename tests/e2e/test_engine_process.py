"""What only the real agent process shows: its options in force, its processes, its bill."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from claude_agent_sdk import Message, ResultMessage

from gateway.engine import sdk as engine_sdk
from gateway.engine.client import SdkClient
from gateway.engine.events import (
    EntryRecorded,
    Observed,
    SessionReady,
    ToolCalled,
    ToolReturned,
)
from gateway.engine.protocol import SessionOrigin
from tests.support.engine_processes import is_active, marked, wait_running
from tests.support.engine_talk import LONG_S, Gate, Told, ask, bash, prompt, read, script
from tests.support.engine_world import FRESH, MODEL, TOOLS, real_world, write

pytestmark = pytest.mark.e2e

SLOW = script({"text": "word " * 400, "delta_delay_ms": 20})


def total_of(told: Told) -> float:
    """Read what the agent program says that the session has cost in all."""
    (total,) = [
        event.message.total_cost_usd
        for event in told.all(Observed)
        if isinstance(event.message, ResultMessage)
    ]
    assert total is not None
    return total


async def test_the_agent_is_offered_the_tools_and_skills_that_were_meant(tmp_path: Path) -> None:
    skill = "---\nname: heron\ndescription: Knows all about herons.\n---\nLook at the water."
    write(tmp_path / "ws" / ".claude" / "skills" / "heron" / "SKILL.md", skill)
    async with real_world(tmp_path) as world:
        await world.approve()
        client = await world.connect()
        told = await ask(client, script({"echo": "messages"}))
        ready = told.only(SessionReady)
        assert set(ready.tools) == set(TOOLS)
        assert "heron" in ready.skills
        assert "heron" in ready.slash_commands
        assert "Knows all about herons." in told.text
        # A person who types the skill's command is not obeyed past the gate; the model reads it.
        told = await ask(client, "/heron now\n" + script({"echo": "prompt"}))
        assert told.text.startswith("/heron now")
        assert not told.all(ToolCalled)


async def test_a_run_costs_its_own_also_after_waking_and_branching_off(tmp_path: Path) -> None:
    """A resumed agent counts on from what the session had cost before."""
    async with real_world(tmp_path) as world:
        client = await world.connect()
        runs = [await ask(client, script({"text": "one"})) for _ in range(2)]
        await client.close()
        woken = await world.connect(SessionOrigin(resume=client.session_id))
        runs.append(await ask(woken, script({"text": "two"})))
        await woken.close()
        entry = runs[-1].all(EntryRecorded)[-1].entry_id
        branch = await world.connect(SessionOrigin(resume=client.session_id, fork_at=entry))
        runs.append(await ask(branch, script({"text": "three"})))
        costs = [run.finish.cost_usd for run in runs]
        assert all(cost > 0 for cost in costs)
        assert sum(costs) == pytest.approx(total_of(runs[-1]))


async def test_a_fork_does_not_carry_the_cost_that_its_original_writes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that ends in order writes what its session has cost; a fork that starts then reads it."""
    read_cost = engine_sdk.spent_usd_blocking
    async with real_world(tmp_path) as world:
        client = await world.connect()
        first = await ask(client, script({"text": "one"}))
        await client.close()
        written: list[Path] = []

        def write_meanwhile(config_dir: Path, session_id: str) -> float:
            spent = read_cost(config_dir, session_id)
            if not written:
                (transcript,) = config_dir.glob(f"projects/*/{session_id}.jsonl")
                lines = transcript.read_text(encoding="utf-8").splitlines()
                last = next(line for line in reversed(lines) if '"cost-state"' in line)
                ended = json.dumps({**json.loads(last), "totalCostUSD": spent + 1})
                with transcript.open("a", encoding="utf-8") as file:
                    file.write(f"{ended}\n")
                written.append(transcript)
            return spent

        monkeypatch.setattr(engine_sdk, "spent_usd_blocking", write_meanwhile)
        entry = first.all(EntryRecorded)[-1].entry_id
        branch = await world.connect(SessionOrigin(resume=client.session_id, fork_at=entry))
        told = await ask(branch, script({"text": "two"}))
    assert written
    assert total_of(told) > 1
    assert 0 < told.finish.cost_usd < 1


async def test_a_forgotten_session_leaves_no_word_of_it(tmp_path: Path) -> None:
    write(tmp_path / "ws" / "a.txt", "The heron is grey.")
    call = {"tool": "Write", "input": {"file_path": f"{tmp_path}/ws/b.txt", "content": "heron"}}
    async with real_world(tmp_path) as world:
        client = await world.connect()
        steps = script({"text": "A heron."}, call, bash("cat a.txt"), {"text": "heron"})
        await ask(client, "heron\n" + steps, context="heron")
        await client.close()
        assert client.session_id is not None
        kept = tmp_path / "data" / "sessions"

        def mentions() -> list[Path]:
            files = [path for path in kept.rglob("*") if path.is_file()]
            return [file for file in files if b"heron" in file.read_bytes()]

        assert await anyio.to_thread.run_sync(mentions)
        await world.engine.forget_session(client.session_id)
        assert not await anyio.to_thread.run_sync(mentions)


async def test_ordinary_runs_have_no_unsolicited_messages_and_may_have_long_lines(
    tmp_path: Path,
) -> None:
    """The SDK's own limit of 1 MiB a line breaks the session (SDK #58)."""
    content = "x" * 1_200_000
    call = {"tool": "Write", "input": {"file_path": f"{tmp_path}/ws/long.txt", "content": content}}
    async with real_world(tmp_path) as world:
        client = await world.connect()
        unsolicited: list[Message] = []
        client.session.on_unsolicited = unsolicited.append
        pid = _pid(client)
        assert os.getsid(pid) == pid, "Ctrl-C at the server's terminal must not reach the agent"
        (agent,) = await marked(world.setup.owner)
        assert agent.pid == pid
        assert await anyio.to_thread.run_sync(client.memory_bytes_blocking) > 10_000_000
        told = await ask(client, script(call, {"text": "written"}))
        assert (told.text, told.only(ToolReturned).is_error) == ("written", False)
        run = await client.start_run(prompt(SLOW))
        await run.interrupt()
        await read(run)
        told = await ask(client, script({"text": "two"}))
        assert told.text == "two"
        assert all(event.solicited for event in told.all(Observed))
        kinds = {
            (type(message).__name__, getattr(message, "subtype", None)) for message in unsolicited
        }
        assert kinds <= {("SystemMessage", "status")}


class Watching(Gate):
    """Looks at each call's end whether its command still reads a pipe."""

    def __init__(self, pipe: Path) -> None:
        super().__init__()
        self.left = 0
        self._pipe = pipe

    def look(self) -> None:
        with suppress(OSError):  # nobody reads it
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
            self.left += 1

    def returned(self, index: int) -> None:
        super().returned(index)
        self.look()


async def test_a_change_that_is_cut_off_is_over_when_its_end_is_told(tmp_path: Path) -> None:
    """The agent program tells it first and ends the command then."""
    command = f"cp pipe-{os.getpid()} made"
    gate = Watching(tmp_path / "ws" / f"pipe-{os.getpid()}")
    late = {"tool": "Bash", "input": {"command": command, "timeout": 200}}
    async with real_world(tmp_path) as world:
        os.mkfifo(tmp_path / "ws" / f"pipe-{os.getpid()}")
        client = await world.connect()
        told = await ask(client, script(*[late] * 6, {"text": "done"}), gate)
        assert [event.is_error for event in told.all(ToolReturned)] == [True] * 6
        run = await client.start_run(prompt(script(bash(command)), gate))
        await wait_running(command.split())
        await run.interrupt()
        await read(run)
        gate.look()
    assert len(gate.returns) >= 6
    assert gate.left == 0


@pytest.mark.parametrize("ending", ["close", "kill", "crash"])
async def test_the_whole_tree_is_ended_a_detached_child_too(tmp_path: Path, ending: str) -> None:
    """The SDK ends its child alone (SDK #729, #916, #1082); a crash leaves all the others."""
    detached, bare = ("sleep", f"9876{os.getpid()}"), ("sleep", f"9877{os.getpid()}")
    command = f"setsid -f {' '.join(detached)}; env -i {' '.join(bare)}"
    async with real_world(tmp_path) as world:
        client = await world.connect()
        await client.start_run(prompt(script(bash(command))))
        started = [*await wait_running(detached), *await wait_running(bare)]
        with anyio.fail_after(LONG_S):
            if ending == "crash":  # what carries no mark is lost with its parent
                os.kill(_pid(client), signal.SIGKILL)
                started = await wait_running(detached)
            await (client.kill() if ending == "kill" else client.close())
        assert not any(map(is_active, started))
        assert not await marked(world.setup.owner)


async def test_a_connect_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        for delay_s in (0.0, 0.05, 0.2):
            client = None
            with anyio.fail_after(LONG_S), anyio.move_on_after(delay_s):
                client = await world.engine.connect(MODEL, FRESH)
            if client is not None:  # it was quicker
                await client.close()
            assert not await marked(world.setup.owner)


def _pid(client: SdkClient) -> int:
    assert client.pid is not None
    return client.pid
