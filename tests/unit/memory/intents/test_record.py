import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.intents.chronicle import SqlChronicle
from memory.intents.observe import observed_fields
from memory.intents.pending import read_pending
from memory.intents.policy import MemoryPolicy, default_memory_policy
from memory.intents.record import IntentRecorder
from memory.intents.registry import IntentRefused, MemoryIntent, MemorySinkPolicy, UnknownIntent
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.episodes import dump
from tests.support.intents import (
    BUILT,
    HAPPENING,
    completed,
    cut_off,
    open_chronicle,
    received,
    tool_result,
)

KNOWN = "Vq7-geheim/口令+x9Tz"
SINKS = ("to_chronicle", "to_runtime_log", "to_llm_context")
mask = partial(mask_secrets, known=[KNOWN])


def recorder(chronicle: SqlChronicle, policy: MemoryPolicy | None = None) -> IntentRecorder:
    return IntentRecorder(chronicle, mask, policy)


@pytest.mark.parametrize("sinks", [SINKS, *([sink] for sink in SINKS)], ids=str)
async def test_each_sink_is_switched_by_itself(tmp_path: Path, sinks: Sequence[str]) -> None:
    policy = default_memory_policy()
    switches: dict[str, Any] = {sink: sink in sinks for sink in SINKS}
    rule = MemorySinkPolicy(**switches)
    policy = replace(policy, rules={**policy.rules, "turn.received": rule})
    words = "The person said: 修复支付"
    async with open_chronicle(tmp_path) as chronicle:
        told = recorder(chronicle, policy)
        assert await told.record_intent(received("修复支付"))
        found = {
            "to_chronicle": [
                record.text for record in (await chronicle.page("ann", limit=9)).records
            ],
            "to_llm_context": [intent.text for intent in await chronicle.pending("cnv_1", "ann")],
            "to_runtime_log": [told.runtime_line(received("修复支付"))],
        }
    nothing = {"to_chronicle": [], "to_llm_context": [], "to_runtime_log": [None]}
    assert found == {sink: [words] if sink in sinks else nothing[sink] for sink in SINKS}


@pytest.mark.parametrize(
    ("intent", "on_loop"),
    [(received("short"), True), (received("long " * 2_000), False), (tool_result(), False)],
    ids=["short", "long", "call of a tool"],
)
async def test_only_short_texts_are_masked_on_the_loop(
    tmp_path: Path, *, intent: MemoryIntent, on_loop: bool
) -> None:
    threads = set()

    def watched(text: str) -> str:
        threads.add(threading.current_thread() is threading.main_thread())
        return text

    async with open_chronicle(tmp_path) as chronicle:
        assert await IntentRecorder(chronicle, watched).record_intent(intent)
    assert threads == {on_loop}


async def test_a_message_is_masked_once_for_the_log_and_the_chronicle(tmp_path: Path) -> None:
    read: list[str] = []

    def noted(text: str) -> str:
        read.append(text)
        return mask(text)

    intent = received(f"It is {KNOWN}")
    other = replace(received(f"Now it is {KNOWN}"), id=intent.id)
    async with open_chronicle(tmp_path) as chronicle:
        told = IntentRecorder(chronicle, noted)
        line = told.runtime_line(intent)
        await told.record_intents([intent])
        (record,) = (await chronicle.page("ann", limit=9)).records
        told.runtime_line(intent)
        changed = told.recording(other)
    assert record.text == line == f"The person said: {mask(intent.payload['message'])}"
    assert read.count(intent.payload["message"]) == 2, "once before each of the two lines"
    assert "Now it is" in str(changed.text), "not what an equal id had before"


async def test_a_turns_intents_are_one_transaction_and_recording_again_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[object] = []
    write = database.write

    async def counted(work: Any, **how: bool) -> Any:
        writes.append(work)
        return await write(work, **how)

    intents = [build(HAPPENING) for build in BUILT.values()]
    told = recorder(SqlChronicle(database))
    assert list(await told.record_intents([])) == []
    with monkeypatch.context() as patch:
        patch.setattr(database, "write", counted)
        recorded = await told.record_intents([*intents, *intents])
    assert list(recorded) == [intent.id for intent in intents]
    assert len(writes) == 1
    before = await dump(database)
    later = [replace(intent, fallback_text="another") for intent in intents]
    assert list(await told.record_intents(later)) == []
    assert not await told.record_intent(intents[0])
    assert await dump(database) == before


async def test_what_is_refused_leaves_nothing_anywhere(database: Database) -> None:
    refusals = {
        "key": replace(received("x"), key="turn.begun"),
        "missing": replace(received("x"), payload={}),
        "unknown": replace(received("x"), payload={"message": "x", "extra": 1}),
        "name": replace(tool_result(), key="tool.Read.ok"),
        "status": replace(tool_result(), key="tool.Bash.error"),
        "source": replace(received("x"), source_kind="llm"),
    }
    empty = await dump(database)
    told = recorder(SqlChronicle(database))
    for name, wrong in refusals.items():
        with pytest.raises(IntentRefused) as refused:
            await told.record_intents([cut_off(), completed(), wrong])
        assert str(refused.value).endswith(".")
        assert "\n" not in str(refused.value)
        for refuse in (told.recording, told.runtime_line):
            with pytest.raises(IntentRefused):
                refuse(wrong)
        assert await dump(database) == empty, name
    for _ in range(2):  # the key is not registered by being recorded
        with pytest.raises(UnknownIntent):
            await told.record_intent(refusals["key"])


async def test_no_secret_reaches_a_table_or_the_log_whatever_field_it_stands_in(
    database: Database,
) -> None:
    """Known ones anywhere, field names and the tool's name included."""
    policy = default_memory_policy()
    rules = {key: replace(rule, to_llm_context=True) for key, rule in policy.rules.items()}
    named = "Vq7geheim9xTzAbC"
    told = IntentRecorder(
        SqlChronicle(database),
        partial(mask_secrets, known=[KNOWN, named]),
        replace(policy, rules=rules),
    )
    intents = [poisoned(build(HAPPENING)) for build in BUILT.values()]
    intents += [
        tool_result(
            tool_name=named,
            tool_use_id="named",
            args={"list": [{KNOWN: KNOWN}], "password": "my cat's name", "n": float("nan")},
            result=f"{'x' * 6_990}{KNOWN}{'y' * 30_000}",
        ),
        replace(received("x"), id="int_x", fallback_text=KNOWN),
    ]
    await told.record_intents(intents)
    stored = await dump(database)
    for text in (stored, *map(str, map(told.runtime_line, intents))):
        for part in (KNOWN, "geheim", "口令", "my cat", json.dumps(KNOWN)[1:-1]):
            assert part not in text
    assert "[masked]" in stored


def poisoned(intent: MemoryIntent) -> MemoryIntent:
    """Put a secret into every text that neither the key nor an id is made of."""
    keys = {"tool_name", "status"} if intent.source_kind == "tool" else set()
    payload = {
        name: f"before {KNOWN} after" if isinstance(value, str) and name not in keys else value
        for name, value in intent.payload.items()
    }
    for name, value in payload.items():
        if isinstance(value, dict):
            payload[name] = {KNOWN: KNOWN, "in": {"deep": [KNOWN]}}
        elif isinstance(value, list):
            payload[name] = [KNOWN, f"x{KNOWN}"]
    return replace(intent, payload=payload)


async def test_the_fields_are_observed_and_their_values_are_not(database: Database) -> None:
    chronicle = SqlChronicle(database)
    calls = [
        tool_result(tool_use_id="1", args={"path": "/a", "limit": 5, "deep": {"x": 1}}),
        tool_result(tool_use_id="2", args={"path": ["/a"]}, duration_ms=None),
    ]
    await recorder(chronicle).record_intents(calls)
    owner_id = calls[0].owner_id
    observed = await observed_fields(chronicle, owner_id, "tool.{tool_name}.ok")
    assert {(name, kind): seen for name, kind, seen in observed} == {
        ("args", "object"): 2,
        ("args.deep", "object"): 1,
        ("args.limit", "number"): 1,
        ("args.path", "list"): 1,
        ("args.path", "text"): 1,
        ("duration_ms", "null"): 1,
        ("duration_ms", "number"): 1,
        ("result", "text"): 2,
        ("status", "text"): 2,
        ("tool_name", "text"): 2,
        ("tool_use_id", "text"): 2,
    }
    assert "/a" not in repr(observed)


async def test_a_huge_call_makes_a_small_row(database: Database) -> None:
    call = tool_result(
        args={str(n): "长" * 90_000 for n in range(300)}, result="first " + "x" * 5_000_000 + " end"
    )
    with anyio.fail_after(60):
        await recorder(SqlChronicle(database)).record_intent(call)
    (row,) = await database.rows("SELECT length(payload) AS p, length(text) AS t FROM intents")
    assert row["p"] < 40_000
    assert row["t"] <= 2_000


async def test_what_waits_goes_into_a_prompt_by_one_door(tmp_path: Path) -> None:
    async with open_chronicle(tmp_path) as chronicle:
        call = tool_result(status="interrupted", args={"command": f"deploy {KNOWN}"}, result="")
        await recorder(chronicle).record_intents(
            [received("deploy"), call, tool_result(tool_use_id="2", status="error"), cut_off()]
        )
        told = await read_pending(chronicle, "cnv_1", "ann", 2_000)
        assert told.intent_ids == (call.id, cut_off().id)
        assert "Bash was interrupted, what it did is not certain" in told.text
        assert "The turn before was cut off (interrupted, user_interrupt)" in told.text
        assert "geheim" not in told.text
        assert (await read_pending(chronicle, "cnv_1", "bob", 2_000)).text == ""
        await chronicle.consumed(told.intent_ids, "trn_2")
        assert (await read_pending(chronicle, "cnv_1", "ann", 2_000)).text == ""
