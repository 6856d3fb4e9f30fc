"""A question to a small model holds nobody up once its time is over."""

from pathlib import Path

import pytest

from gateway.engine.side_query import SideQuery
from memory.remote.small_model import ModelUnavailable
from tests.support.scripted_engine import ScriptedClient, ScriptedEngine
from tests.support.services import script


async def test_a_process_that_is_late_is_ended_without_waiting_for_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close(_: ScriptedClient) -> None:  # noqa: RUF029  as the client has it
        raise AssertionError("an agent that is closed waits for its model for some seconds")

    monkeypatch.setattr(ScriptedClient, "close", close)
    ask = SideQuery(lambda tasks: ScriptedEngine(tmp_path, tasks), "small")
    with pytest.raises(ModelUnavailable, match="in time"):
        await ask(system="Answer.", prompt=script({"hang": True}), timeout_s=0.01)
