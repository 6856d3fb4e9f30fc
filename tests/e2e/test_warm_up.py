"""A prewarmed client has run once, and nothing of it is left: for the model, the transcript, the cost."""

import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from gateway.engine import client as client_module
from gateway.engine.protocol import SessionOrigin
from gateway.engine.sdk import SdkEngine
from gateway.engine.warm_up import WarmUpFailed
from gateway.relay.supervisor import RelayProcess, open_relay
from gateway.relay.upstream import Target
from gateway.trust import TrustReport
from tests.support.engine_talk import Told, ask, bash, script
from tests.support.engine_world import MODEL, RealWorld, real_world
from tests.support.recording_model import RecordingModel, recording_model

pytestmark = pytest.mark.e2e

COLD = SessionOrigin()
WARM_UP = SessionOrigin(warm_up=True)
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|toolu_[0-9a-f]+")


@dataclass
class Bench:
    """Two engines on one model: one through the relay, one past it."""

    model: RecordingModel
    world: RealWorld
    relay: RelayProcess
    relayed: SdkEngine
    direct: SdkEngine

    def transcripts(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of each session's transcript."""
        assert self.world.setup.config_dir is not None
        files = self.world.setup.config_dir.glob("projects/*/*.jsonl")
        return {f.stem: [json.loads(row) for row in f.read_text().splitlines()] for f in files}


@asynccontextmanager
async def bench(root: Path) -> AsyncIterator[Bench]:
    async with (
        recording_model() as model,
        open_relay(Target(url=model.url), {}) as relay,
        real_world(root) as world,
    ):

        def engine(through: RelayProcess | None) -> SdkEngine:
            url = through.url if through else model.url
            env = {**world.setup.model_env, "ANTHROPIC_BASE_URL": url}
            return SdkEngine(replace(world.setup, relay=through, model_env=env), world.tasks)

        yield Bench(model, world, relay, engine(relay), engine(None))


def alike(body: bytes) -> str:
    """Return a request with its ids named alike, each by the order in which it first occurs."""
    return _ID.sub("{ID}", body.decode())


@dataclass
class Life:
    """What the model and the disk saw of one client's session."""

    requests: list[str]
    kinds: list[str]
    cost: float


async def live(bench: Bench, engine: SdkEngine, origin: SessionOrigin) -> Life:
    """Run two turns on a client, close it, resume the session and run another."""
    begin = len(bench.model.bodies)
    client = await engine.connect(MODEL, origin)
    assert len(bench.model.bodies) == begin, "the warm-up reached the model"
    told = [await ask(client, script(bash("ls"), {"text": "Done."}), context="What memory found.")]
    told.append(await ask(client, script({"text": "Done again."})))
    session = client.session_id
    await client.close()
    resumed = await engine.connect(MODEL, SessionOrigin(resume=session))
    told.append(await ask(resumed, script({"text": "Done once more."})))
    assert resumed.session_id == session
    await resumed.close()
    rows = (await anyio.to_thread.run_sync(bench.transcripts))[str(session)]
    assert "warm-up" not in json.dumps(rows)
    kinds = [row["type"] for row in rows if row["type"] in {"user", "assistant", "system"}]
    return Life(list(map(alike, bench.model.bodies[begin:])), kinds, sum(map(cost_of, told)))


def cost_of(told: Told) -> float:
    return told.finish.cost_usd


async def test_an_agent_that_looks_for_no_instructions_where_there_are_none_asks_the_same(
    tmp_path: Path,
) -> None:
    """It is told so, because preparing for them takes long; a prewarmed one is not: some may come."""
    async with bench(tmp_path) as on:
        looks = SdkEngine(
            on.direct._setup,  # noqa: SLF001
            on.world.tasks,
            review=lambda folder, _: TrustReport(workspace=folder, concerns=()),
        )
        told = []
        for engine, origin in ((on.direct, COLD), (looks, COLD), (on.direct, WARM_UP)):
            client = await engine.connect(MODEL, origin)
            assert client.pid is not None
            environ = psutil.Process(client.pid).environ()
            told.append(environ.get("CLAUDE_CODE_DISABLE_CLAUDE_MDS"))
            await ask(client, "hello")
            await client.close()
    assert told == ["1", None, None]
    assert len(set(map(alike, on.model.bodies))) == 1


async def test_nothing_of_it_is_seen_by_the_model_or_left_on_disk(tmp_path: Path) -> None:
    async with bench(tmp_path) as on:
        cold = await live(on, on.relayed, SessionOrigin())
        assert len(cold.requests) == 4
        for engine in (on.relayed, on.direct):
            warm = await live(on, engine, WARM_UP)
            assert warm.requests == cold.requests
            assert warm.kinds == cold.kinds
            assert warm.cost == pytest.approx(cold.cost)
        assert b"warm-up" not in on.model.heard
        assert len(await anyio.to_thread.run_sync(on.transcripts)) == 3


async def test_a_client_whose_rewinding_is_refused_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> bool:
        await anyio.lowlevel.checkpoint()
        return False

    monkeypatch.setattr(client_module, "rewind", refuse)
    async with bench(tmp_path) as on:
        for _ in range(3):
            with pytest.raises(WarmUpFailed):
                await on.relayed.connect(MODEL, WARM_UP)
            assert await on.relayed.end_orphans() == 0
        assert await anyio.to_thread.run_sync(on.transcripts) == {}
        client = await on.relayed.connect(MODEL, WARM_UP)  # as it is, from now on
        assert (await ask(client, script({"text": "Done."}))).text == "Done."


async def test_an_interrupted_warm_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = anyio.Event()

    async def hang(*_: object) -> bool:
        began.set()
        await anyio.sleep_forever()
        return False

    monkeypatch.setattr(client_module, "rewind", hang)
    async with bench(tmp_path) as on:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(on.relayed.connect, MODEL, WARM_UP)
            await began.wait()
            tasks.cancel_scope.cancel()
        assert await on.relayed.end_orphans() == 0
        assert await anyio.to_thread.run_sync(on.transcripts) == {}


async def test_a_relay_that_is_killed_in_a_warm_up_lets_none_of_it_through(tmp_path: Path) -> None:
    async with bench(tmp_path) as on:
        admit = on.relay.set_warm_up

        def admit_and_die(client_id: str, mark: str | None) -> None:
            admit(client_id, mark)
            if mark is not None:
                os.kill(on.relay.pid or 0, signal.SIGKILL)

        on.relay.set_warm_up = admit_and_die  # type: ignore[method-assign]
        client = await on.relayed.connect(MODEL, WARM_UP)
        assert on.model.bodies == []
        assert (await ask(client, script({"text": "Done."}))).text == "Done."
