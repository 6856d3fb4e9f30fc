import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.intents.chronicle import Recording
from memory.intents.intent import MemoryIntent
from memory.intents.policy import MemoryPolicy, default_memory_policy
from memory.intents.record import IntentRecorder
from memory.intents.registry import IntentRefused, MemorySinkPolicy, UnknownIntent
from memory.intents.snapshot import PendingContext
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.episodes import open_memory
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
NOWHERE = MemorySinkPolicy(to_chronicle=False, to_runtime_log=False, to_llm_context=False)
mask = partial(mask_secrets, known=[KNOWN])


def recorder(chronicle: SqliteChronicle, policy: MemoryPolicy | None = None) -> IntentRecorder:
    return IntentRecorder(chronicle, mask, policy)


def ruled(**rules: MemorySinkPolicy) -> MemoryPolicy:
    policy = default_memory_policy()
    named = {key.replace("_", ".", 1): rule for key, rule in rules.items()}
    return replace(policy, rules={**policy.rules, **named})


async def everything(database: Database) -> str:
    names = await database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = [row["name"] for row in names]
    rows = [row for name in tables for row in await database.rows(f'SELECT * FROM "{name}"')]
    return "\n".join(repr(tuple(row)) for row in rows)


class Journal:
    """A log that says what it was told, and sees whether it is told last."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __call__(self, intent: MemoryIntent, text: str) -> None:
        self.lines.append((intent.id, text))


async def test_one_intent_goes_into_all_three_sinks_together(tmp_path: Path) -> None:
    policy = ruled(turn_received=MemorySinkPolicy(to_llm_context=True))
    journal, intent = Journal(), received("修复支付")
    async with open_chronicle(tmp_path) as chronicle:
        assert await recorder(chronicle, policy).record_intent(intent, runtime_log=journal)
        (record,) = (await chronicle.page("ann", limit=9)).records
        (waits,) = await chronicle.pending("cnv_1", "ann")
        words = "The person said: 修复支付"
        assert (record.text, waits.text, journal.lines) == (words, words, [(intent.id, words)])


@pytest.mark.parametrize("sink", ["to_chronicle", "to_runtime_log", "to_llm_context"])
async def test_each_sink_is_switched_by_itself(tmp_path: Path, sink: str) -> None:
    rules = {
        "to_chronicle": replace(NOWHERE, to_chronicle=True),
        "to_runtime_log": replace(NOWHERE, to_runtime_log=True),
        "to_llm_context": replace(NOWHERE, to_llm_context=True),
    }
    policy = ruled(turn_received=rules[sink])
    journal = Journal()
    async with open_chronicle(tmp_path) as chronicle:
        await recorder(chronicle, policy).record_intent(received("x"), runtime_log=journal)
        there = {
            "to_chronicle": len((await chronicle.page("ann", limit=9)).records),
            "to_llm_context": len(await chronicle.pending("cnv_1", "ann")),
            "to_runtime_log": len(journal.lines),
        }
        assert there == {**dict.fromkeys(rules, 0), sink: 1}


async def test_recording_again_changes_nothing_in_no_sink(tmp_path: Path) -> None:
    journal = Journal()
    intents = [build(HAPPENING) for build in BUILT.values()]
    async with open_memory(tmp_path) as database:
        chronicle = SqliteChronicle(database)
        told = partial(recorder(chronicle).record_intents, intents, runtime_log=journal)
        assert list(await told()) == [one.id for one in intents]
        before, lines = await everything(database), list(journal.lines)
        assert list(await told()) == []
        later = [replace(one, fallback_text="another") for one in intents]
        assert list(await recorder(chronicle).record_intents(later, runtime_log=journal)) == []
        assert await everything(database) == before
        assert journal.lines == lines
        assert not await recorder(chronicle).record_intent(intents[0])


async def test_a_turns_intents_are_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[object] = []
    async with open_memory(tmp_path) as database:
        write = database.write

        async def counted(work: Any) -> Any:
            writes.append(work)
            return await write(work)

        monkeypatch.setattr(database, "write", counted)
        intents = [build(HAPPENING) for build in BUILT.values()]
        await recorder(SqliteChronicle(database)).record_intents(intents)
    assert len(writes) == 1


async def test_the_same_twice_in_a_batch_is_told_once(tmp_path: Path) -> None:
    journal, one = Journal(), received("x")
    async with open_chronicle(tmp_path) as chronicle:
        batch = [one, cut_off(), one]
        new = await recorder(chronicle).record_intents(batch, runtime_log=journal)
        assert list(new) == [one.id, cut_off().id]
        assert [intent_id for intent_id, _ in journal.lines] == [one.id]


async def test_nothing_to_record_writes_nothing() -> None:
    assert list(await IntentRecorder(Broken(), mask).record_intents([])) == []


@pytest.mark.parametrize(
    "wrong",
    [
        replace(received("x"), key="turn.begun"),
        replace(received("x"), payload={}),
        replace(received("x"), payload={"message": "x", "extra": 1}),
        replace(tool_result(), key="tool.Read.ok"),
        replace(tool_result(), key="tool.Bash.error"),
        replace(received("x"), source_kind="llm"),
    ],
    ids=["key", "missing", "unknown", "name", "status", "source"],
)
async def test_what_is_refused_leaves_nothing_anywhere(tmp_path: Path, wrong: MemoryIntent) -> None:
    journal = Journal()
    async with open_memory(tmp_path) as database:
        empty = await everything(database)
        told = recorder(SqliteChronicle(database))
        with pytest.raises(IntentRefused) as refused:
            await told.record_intents([cut_off(), completed(), wrong], runtime_log=journal)
        assert str(refused.value).endswith(".")
        assert "\n" not in str(refused.value)
        for refuse in (told.recording, told.runtime_line):
            with pytest.raises(IntentRefused):
                refuse(wrong)
        assert await everything(database) == empty
        assert journal.lines == []


async def test_an_unregistered_key_is_not_registered_by_being_recorded(tmp_path: Path) -> None:
    wrong = replace(received("x"), key="turn.begun")
    async with open_chronicle(tmp_path) as chronicle:
        told = recorder(chronicle)
        for _ in range(2):
            with pytest.raises(UnknownIntent):
                await told.record_intent(wrong)


class Broken:
    """A chronicle that cannot be written; stands in for `Chronicle` where only that is asked."""

    async def record(self, recordings: Sequence[Recording]) -> Sequence[str]:
        del recordings
        raise StoreUnavailable("The database cannot be written: the disk is full.")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


async def test_what_cannot_be_written_is_not_told_in_the_log_either() -> None:
    journal = Journal()
    with pytest.raises(StoreUnavailable):
        await IntentRecorder(Broken(), mask).record_intent(received("x"), runtime_log=journal)
    assert journal.lines == []


async def test_the_log_is_told_last(tmp_path: Path) -> None:
    """What it fails on is recorded: the log is no reason to lose a turn."""

    def fails(intent: MemoryIntent, text: str) -> None:
        raise OSError(intent.id, text)

    async with open_chronicle(tmp_path) as chronicle:
        with pytest.raises(OSError, match="int_"):
            await recorder(chronicle).record_intent(received("x"), runtime_log=fails)
        assert len((await chronicle.page("ann", limit=9)).records) == 1


async def test_the_line_that_is_told_live_is_the_line_that_is_told_later(tmp_path: Path) -> None:
    journal = Journal()
    async with open_chronicle(tmp_path) as chronicle:
        told = recorder(chronicle)
        intents = [build(HAPPENING) for build in BUILT.values()]
        live = [(one.id, line) for one in intents if (line := told.runtime_line(one)) is not None]
        await told.record_intents(intents, runtime_log=journal)
        assert journal.lines == live
        assert 0 < len(live) < len(intents)


async def test_no_secret_reaches_a_table_whatever_field_it_stands_in(tmp_path: Path) -> None:
    """Known ones anywhere, field names and the tool's name included."""
    policy = default_memory_policy()
    rules = {key: replace(one, to_llm_context=True) for key, one in policy.rules.items()}
    journal = Journal()
    async with open_memory(tmp_path) as database:
        told = recorder(SqliteChronicle(database), replace(policy, rules=rules))
        intents = [poisoned(build(HAPPENING)) for build in BUILT.values()]
        intents += [
            tool_result(
                tool_name="Vq7geheim9xTzAbC",
                tool_use_id="named",
                args={"list": [{KNOWN: KNOWN}], "password": "my cat's name", "n": float("nan")},
                result=f"{'x' * 6_990}{KNOWN}{'y' * 30_000}",
            ),
            replace(received("x"), id="int_x", fallback_text=KNOWN),
        ]
        await told.record_intents(intents, runtime_log=journal)
        stored = await everything(database)
        for text in (stored, *[line for _, line in journal.lines]):
            for part in (KNOWN, "geheim/", "口令", "my cat", json.dumps(KNOWN)[1:-1]):
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


async def test_a_tool_that_is_named_like_a_secret_is_not_named(tmp_path: Path) -> None:
    secret = "Vq7geheim9xTzAbC"
    async with open_memory(tmp_path) as database:
        told = IntentRecorder(SqliteChronicle(database), partial(mask_secrets, known=[secret]))
        await told.record_intent(tool_result(tool_name=secret, status="blocked"))
        assert secret not in await everything(database)


async def test_the_fields_are_observed_and_their_values_are_not(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as database:
        chronicle = SqliteChronicle(database)
        calls = [
            tool_result(tool_use_id="1", args={"path": "/a", "limit": 5, "deep": {"x": 1}}),
            tool_result(tool_use_id="2", args={"path": ["/a"]}, duration_ms=None),
        ]
        await recorder(chronicle).record_intents(calls)
        observed = await chronicle.observed_fields("tool.{tool_name}.ok")
        assert {(one.name, one.type): one.seen for one in observed} == {
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
        rows = await database.rows("SELECT * FROM intent_fields")
        assert "/a" not in repr([tuple(row) for row in rows])


async def test_a_huge_call_makes_a_small_row(tmp_path: Path) -> None:
    call = tool_result(
        args={str(n): "长" * 90_000 for n in range(300)}, result="first " + "x" * 5_000_000 + " end"
    )
    async with open_memory(tmp_path) as database:
        chronicle = SqliteChronicle(database)
        with anyio.fail_after(60):
            await recorder(chronicle).record_intent(call)
        (row,) = await database.rows("SELECT length(payload) AS p, length(text) AS t FROM intents")
        assert row["p"] < 40_000
        assert row["t"] <= 2_000


async def test_what_waits_goes_into_a_prompt_by_one_door(tmp_path: Path) -> None:
    async with open_chronicle(tmp_path) as chronicle:
        context = PendingContext(chronicle)
        assert (await context.pending("cnv_1", "ann", limit_chars=2_000)).text == ""
        call = tool_result(status="interrupted", args={"command": f"deploy {KNOWN}"}, result="")
        await recorder(chronicle).record_intents(
            [received("deploy"), call, tool_result(tool_use_id="2", status="error"), cut_off()]
        )
        told = await context.pending("cnv_1", "ann", limit_chars=2_000)
        assert told.intent_ids == (call.id, cut_off().id)
        assert "Bash was interrupted, what it did is not certain" in told.text
        assert "The turn before was cut off (interrupted, user_interrupt)" in told.text
        assert "geheim" not in told.text
        assert (await context.pending("cnv_1", "bob", limit_chars=2_000)).text == ""
        await chronicle.consumed(told.intent_ids, "trn_2")
        assert (await context.pending("cnv_1", "ann", limit_chars=2_000)).text == ""
