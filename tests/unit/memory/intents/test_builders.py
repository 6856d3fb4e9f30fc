"""Intents as the gateway builds them, and turns put together from them."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from memory.episodes.turn import ToolCall, read_turn
from memory.intents.builders import (
    Happening,
    intent_from_breaker,
    intent_from_conversation,
    intent_from_delivery,
    intent_from_llm_response,
    intent_from_memory_forgotten,
    intent_from_memory_injected,
    intent_from_turn_received,
)
from memory.intents.chronicle import SqlChronicle, scrub_blocking
from memory.intents.record import IntentRecorder
from memory.intents.registry import validate_intent_contract
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.episodes import make_turn
from tests.support.intents import AT, BUILT, HAPPENING, Builder, completed, received, tool_result


def test_no_two_happenings_share_an_id() -> None:
    others = [
        replace(HAPPENING, owner_id="bob"),
        replace(HAPPENING, conversation_id="cnv_2"),
        replace(HAPPENING, turn_id="trn_2"),
    ]
    for build in BUILT.values():
        assert len({build(entry).id for entry in (HAPPENING, *others)}) == 1 + len(others)
    ids = [build(HAPPENING).id for build in BUILT.values()]
    ids += [tool_result(tool_use_id=f"toolu_{n}").id for n in range(2, 30)]
    for n in range(2, 5):
        ids.append(intent_from_llm_response(HAPPENING, text="same", model="m", number=n).id)
    assert len(set(ids)) == len(ids)


def test_a_conversation_can_have_no_origin_and_arguments_are_a_copy() -> None:
    at = Happening(owner_id="ann", occurred_at=AT, conversation_id="cnv_2")
    validate_intent_contract(intent_from_conversation(at, change="started"))
    args = {"command": "ls"}
    intent = tool_result(args=args)
    args["command"] = "rm"
    assert intent.payload["args"] == {"command": "ls"}


def test_what_can_happen_again_outside_of_turns_is_told_apart() -> None:
    at = Happening(owner_id="ann", occurred_at=AT)
    later = replace(at, occurred_at=AT + timedelta(microseconds=1))
    builders: list[Builder] = [
        lambda when: intent_from_breaker(when, change="opened", backend="memu"),
        lambda when: intent_from_memory_forgotten(when, item_kind="note"),
        lambda when: intent_from_delivery(
            when, outcome="failed", backend="m", operation="put", item_id="epi_1", attempts=1
        ),
    ]
    for build in builders:
        assert build(at).id != build(later).id
        assert build(at).id == build(at).id
    forgotten = [
        intent_from_memory_forgotten(at, item_kind="note", item_id=name) for name in ("a", "b")
    ]
    assert forgotten[0].id != forgotten[1].id
    assert forgotten[0].payload == {"item_kind": "note"}, "not even the id is told"


def test_whatever_a_model_calls_has_a_key() -> None:
    names = {
        "Bash": "Bash",
        "mcp__tickets__search": "mcp__tickets__search",
        "tickets::search": "tickets::search",
        "查询": "查询",
        "": "_",
        "a b\n\u2028c\0": "a_b__c_",
        "x\ud800": "x_",
        "n" * 1_000: "n" * 128,
        "{tool_name}": "_tool_name_",
    }
    for name, kept in names.items():
        intent = tool_result(tool_name=name, status="blocked")
        assert intent.key == f"tool.{kept}.blocked"
        assert intent.payload["tool_name"] == kept
        assert validate_intent_contract(intent).key == "tool.{tool_name}.blocked"


STATUSES = {
    "ok": "ok",
    "error": "failed",
    "blocked": "denied",
    "interrupted": "interrupted",
    "not_begun": "interrupted",
}


async def test_a_turn_is_put_together_out_of_its_intents(database: Database) -> None:
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
    chronicle = SqlChronicle(database)
    await IntentRecorder(chronicle, mask_secrets).record_intents(intents)
    assert await chronicle.unremembered(10) == ["trn_1"]
    assert await read_turn(chronicle, "trn_1") == make_turn(
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


async def test_what_was_forgotten_is_no_part_of_a_turn(database: Database) -> None:
    chronicle = SqlChronicle(database)
    scrub = partial(scrub_blocking, now=AT, owner_id="ann")
    intents = [received("secret plan"), completed()]
    await IntentRecorder(chronicle, mask_secrets).record_intents(intents)
    await database.write(partial(scrub, intent_ids=[intents[0].id]))
    turn = await read_turn(chronicle, "trn_1")
    assert turn is not None
    assert turn.message == ""
    assert turn.intent_ids == (intents[1].id,)
    await database.write(partial(scrub, intent_ids=[intents[1].id]))
    assert await read_turn(chronicle, "trn_1") is None
    assert await read_turn(chronicle, "trn_9") is None
