from dataclasses import replace
from functools import partial
from pathlib import Path

from memory.episodes.turn import ToolCall, Turn
from memory.intents.builders import (
    intent_from_llm_response,
    intent_from_memory_injected,
    intent_from_turn_received,
)
from memory.intents.record import IntentRecorder
from memory.intents.turns import ChronicleTurns
from memory.stores.sqlite.chronicle import SqliteChronicle, scrub_blocking
from policies.secrets import mask_secrets
from tests.support.episodes import open_memory
from tests.support.intents import AT, HAPPENING, completed, received, tool_result

STATUSES = {
    "ok": "ok",
    "error": "failed",
    "blocked": "denied",
    "interrupted": "interrupted",
}


async def test_a_turn_is_put_together_out_of_its_intents(tmp_path: Path) -> None:
    calls = [
        tool_result(status=status, tool_use_id=status, args={"n": n}, result=f"r{n}")
        for n, status in enumerate(STATUSES)
    ]
    intents = [
        intent_from_turn_received(HAPPENING, message="修复", labels={"project_id": "p", "x": "y"}),
        intent_from_memory_injected(HAPPENING, ids=["epi_1", "not_1"], titles=["a", "b"]),
        *calls,
        intent_from_llm_response(HAPPENING, text="好", model="m"),
        completed(),
    ]
    async with open_memory(tmp_path) as database:
        chronicle = SqliteChronicle(database)
        turns = ChronicleTurns(chronicle)
        await IntentRecorder(chronicle, mask_secrets).record_intents(intents)
        assert await turns.unremembered(10) == ["trn_1"]
        assert await turns.turn("trn_1") == Turn(
            turn_id="trn_1",
            conversation_id="cnv_1",
            owner_id="ann",
            occurred_at=AT,
            message="修复",
            reply="好",
            calls=tuple(
                ToolCall(name="Bash", status=status, input={"n": n}, output=f"r{n}")  # type: ignore[arg-type]
                for n, status in enumerate(STATUSES.values())
            ),
            intent_ids=tuple(intent.id for intent in intents),
            recalled_ids=("epi_1", "not_1"),
            labels={"project_id": "p"},
        )


async def test_what_was_forgotten_is_no_part_of_a_turn(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as database:
        chronicle = SqliteChronicle(database)
        turns = ChronicleTurns(chronicle)
        intents = [received("secret plan"), completed()]
        await IntentRecorder(chronicle, mask_secrets).record_intents(intents)
        await database.write(
            partial(scrub_blocking, intent_ids=[intents[0].id], now=AT, owner_id="ann")
        )
        turn = await turns.turn("trn_1")
        assert turn is not None
        assert turn.message == ""
        assert turn.intent_ids == (intents[1].id,)
        await database.write(
            partial(scrub_blocking, intent_ids=[intents[1].id], now=AT, owner_id="ann")
        )
        assert await turns.turn("trn_1") is None
        assert await turns.turn("trn_9") is None


async def test_a_turn_of_bad_rows_is_still_a_turn(tmp_path: Path) -> None:
    """A policy may keep the message out of the chronicle; the rest is remembered."""
    async with open_memory(tmp_path) as database:
        chronicle = SqliteChronicle(database)
        intents = [tool_result(), completed(replace(HAPPENING))]
        await IntentRecorder(chronicle, mask_secrets).record_intents(intents)
        turn = await ChronicleTurns(chronicle).turn("trn_1")
        assert turn is not None
        assert (turn.message, turn.reply, len(turn.calls)) == ("", "", 1)
