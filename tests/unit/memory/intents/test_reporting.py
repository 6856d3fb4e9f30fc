"""The example of the intent guide, line by line, and what it must not do."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path

import anyio
import pytest

from memory.intents.builders import Happening, intent_from_tool_result
from memory.intents.chronicle import SqlChronicle
from memory.intents.queue import IntentQueue
from memory.intents.record import IntentRecorder
from memory.intents.registry import IntentRefused, MemoryIntent
from memory.intents.reporting import record_intent, reporting
from policies.secrets import mask_secrets
from tests.support.intents import HAPPENING, open_chronicle, tool_result


def run_example(project_id: str, agent_id: str) -> MemoryIntent:
    """Run what stands in the guide."""
    intent = intent_from_tool_result(
        project_id=project_id,
        agent_id=agent_id,
        tool_name="list_dir",
        status="ok",
        args={"path": "."},
        result="[DIR] done",
    )
    record_intent(intent)
    return intent


@contextmanager
def anns_block(chronicle: SqlChronicle) -> Iterator[IntentQueue]:
    """Report for Ann, each intent a second after the one before."""
    queue, seconds = IntentQueue(IntentRecorder(chronicle, mask_secrets)), count()

    def happening() -> Happening:
        moment = HAPPENING.occurred_at + timedelta(seconds=next(seconds))
        return replace(HAPPENING, occurred_at=moment)

    with reporting(happening, queue):
        yield queue


async def write_all(queue: IntentQueue) -> None:
    """Record what waits; the queue does so when it is cancelled."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.run)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_the_guides_example_is_recorded_for_whom_the_block_is(tmp_path: Path) -> None:
    async with open_chronicle(tmp_path) as chronicle:
        with anns_block(chronicle) as queue:
            first = run_example("shop", "planner")
            second = run_example("shop", "planner")
        await write_all(queue)
        assert (first.key, first.owner_id) == ("tool.list_dir.ok", "ann")
        assert first.id != second.id
        assert (first.turn_id, first.payload["tool_name"]) == (HAPPENING.turn_id, "list_dir")
        labels = {name: first.payload[name] for name in ("x_project_id", "x_agent_id")}
        assert labels == {"x_project_id": "shop", "x_agent_id": "planner"}
        recorder = IntentRecorder(chronicle, mask_secrets)
        assert await recorder.record_intents([first, second]) == [], "both are there"
        assert queue.dropped == 0


async def test_outside_of_a_block_nothing_is_built_or_recorded(tmp_path: Path) -> None:
    async with open_chronicle(tmp_path) as chronicle:
        with anns_block(chronicle):
            run_example("shop", "planner")
        with pytest.raises(IntentRefused, match="reporting"):
            run_example("shop", "planner")
        with pytest.raises(IntentRefused, match="reporting"):
            record_intent(tool_result())


async def test_an_intent_that_does_not_match_the_registry_is_refused_at_once(
    tmp_path: Path,
) -> None:
    async with open_chronicle(tmp_path) as chronicle:
        with anns_block(chronicle) as queue:
            wrong = replace(tool_result(), key="tool.Bash.error")
            with pytest.raises(IntentRefused, match="status"):
                record_intent(wrong)
        await write_all(queue)
        recorder = IntentRecorder(chronicle, mask_secrets)
        assert await recorder.record_intent(replace(wrong, key="tool.Bash.ok")), "nothing is there"
