"""What every chronicle must do.

`ChronicleSuite` holds one test for each contract of `memory.intents.chronicle`. A subclass supplies
the fixture `opens` and nothing else. Needs pytest and pytest-asyncio; nothing that serves imports
it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.intents.chronicle import IntentRecord, Recording, SqlChronicle
from tests.conformance.suites.cancellation import Cut, both_cuts, cut_everywhere
from tests.conformance.suites.opened import OpenedSuite

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WAIT_S = 30
TEXTS = (
    "plain words",
    "你好，世界：支付失败",
    "🧑‍🚀 e\u0301 \u202e right to left",
    "'; DROP TABLE intents; --\n\t\\",
    "长" * 16_000,
)
STRANGE_CURSORS = ("", "x", "-1", "1.5", "²", "9" * 100, "1 OR 1=1")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChronicle:
    """An open chronicle, and what is done to it within other transactions."""

    chronicle: SqlChronicle
    mark_remembered: Callable[[str], Awaitable[None]]
    scrub: Callable[[Sequence[str]], Awaitable[None]]


Opening = Callable[[], AbstractAsyncContextManager[OpenChronicle]]


def recording(name: str = "1", *, told: bool = True, **fields: Any) -> Recording:
    """Make what the intent `int_<name>` of Ann's leaves; `told`: it goes into the chronicle."""
    one = Recording(
        intent_id=f"int_{name}",
        key="turn.received",
        source_kind="turn",
        owner_id="ann",
        conversation_id="cnv_1",
        turn_id="trn_1",
        occurred_at=AT,
        text=f"text of {name}" if told else None,
        payload={"message": f"payload of {name}"},
        context=None,
    )
    return replace(one, **fields)


def recorded(one: Recording) -> IntentRecord:
    """Return what the chronicle holds of a recording."""
    assert one.text is not None
    return IntentRecord(
        id=one.intent_id,
        key=one.key,
        source_kind=one.source_kind,
        owner_id=one.owner_id,
        conversation_id=one.conversation_id,
        turn_id=one.turn_id,
        text=one.text,
        payload=one.payload,
        occurred_at=one.occurred_at,
    )


def ended(turn: str, **fields: Any) -> Recording:
    """Make what the end of the turn `trn_<turn>` leaves."""
    made = {"key": "turn.completed", "turn_id": f"trn_{turn}"}
    return recording(f"end_{turn}", **{**made, **fields})


def waiting(name: str, **fields: Any) -> Recording:
    """Make what waits for the conversation's next prompt."""
    return recording(name, **{"context": f"context of {name}", **fields})


async def ids(opened: OpenChronicle, owner_id: str = "ann", **query: Any) -> list[str]:
    """List an owner's intents by their ids."""
    page = await opened.chronicle.page(owner_id, **{"limit": 100, **query})
    return [record.id for record in page.records]


async def pending(
    opened: OpenChronicle, conversation_id: str = "cnv_1", owner_id: str = "ann"
) -> list[str]:
    """List what waits by its ids."""
    return [entry.intent_id for entry in await opened.chronicle.pending(conversation_id, owner_id)]


def _refuse(_: Any) -> None:
    raise StoreUnavailable("Another server has it.")


class ChronicleSuite(OpenedSuite):
    """The contracts of `SqlChronicle`."""

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:6])
    async def test_an_intent_comes_back_as_it_was_recorded(
        self, opened: OpenChronicle, text: str
    ) -> None:
        payload = {"message": text, "args": {text[:9]: [1, 2.5, None, True, {"深": text}]}}
        one = recording(text=text, payload=payload, occurred_at=AT + timedelta(milliseconds=7))
        assert list(await opened.chronicle.record([one])) == ["int_1"]
        page = await opened.chronicle.page("ann", limit=1)
        assert list(page.records) == [recorded(one)]
        assert page.next_cursor is None
        assert list(await opened.chronicle.intents_of_turn("trn_1")) == [recorded(one)]

    async def test_what_belongs_to_no_turn_and_no_conversation_is_kept(
        self, opened: OpenChronicle
    ) -> None:
        one = recording(conversation_id=None, turn_id=None, context="nowhere to wait")
        await opened.chronicle.record([one])
        assert (await opened.chronicle.page("ann", limit=1)).records[0] == recorded(one)
        assert list(await opened.chronicle.unremembered(9)) == []

    async def test_recording_again_changes_nothing_in_no_sink(self, opened: OpenChronicle) -> None:
        first = [waiting("1"), ended("1")]
        await opened.chronicle.record(first)
        await opened.chronicle.consumed(["int_1"], "trn_2")
        await opened.mark_remembered("trn_1")
        other = [
            waiting("1", text="other", context="other"),
            ended("1", text="other"),
            waiting("2"),
        ]
        assert list(await opened.chronicle.record(other)) == ["int_2"]
        assert list(await opened.chronicle.record(other)) == []
        turn = await opened.chronicle.intents_of_turn("trn_1")
        assert [entry.text for entry in turn] == ["text of 1", "text of end_1", "text of 2"]
        assert await pending(opened) == ["int_2"]
        assert list(await opened.chronicle.unremembered(9)) == []

    async def test_the_same_twice_at_once_is_recorded_once(self, opened: OpenChronicle) -> None:
        new: list[str] = []

        async def record(times: int) -> None:
            for n in range(times):
                new.extend(await opened.chronicle.record([waiting(str(n))]))

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(record, 10)
        assert sorted(new) == sorted(f"int_{n}" for n in range(10))
        assert sorted(await ids(opened)) == sorted(new)
        assert list(await opened.chronicle.record([waiting("a"), waiting("a")])) == ["int_a"]

    async def test_the_order_is_that_of_recording_whatever_the_clock_says(
        self, opened: OpenChronicle
    ) -> None:
        moments = [AT, AT - timedelta(days=1), AT + timedelta(days=1), AT]
        given = [waiting(str(n), occurred_at=moment) for n, moment in enumerate(moments)]
        await opened.chronicle.record(given[:2])
        await opened.chronicle.record(given[2:])
        names = [f"int_{n}" for n in range(4)]
        assert await ids(opened) == names[::-1]
        assert [entry.id for entry in await opened.chronicle.intents_of_turn("trn_1")] == names
        assert await pending(opened) == names

    async def test_nobody_sees_what_is_anothers(self, opened: OpenChronicle) -> None:
        await opened.chronicle.record(
            [waiting("1"), waiting("2", owner_id="bob"), waiting("3", owner_id="*workspace")]
        )
        assert await ids(opened) == ["int_1"]
        assert await ids(opened, "bob") == ["int_2"]
        assert await ids(opened, "bob", conversation_id="cnv_1") == ["int_2"]
        assert await ids(opened, "eve") == []
        assert await pending(opened) == ["int_1"]
        assert await pending(opened, owner_id="bob") == ["int_2"]
        assert await pending(opened, owner_id="eve") == []

    async def test_a_page_can_be_asked_for_a_key_its_beginning_or_a_conversation(
        self, opened: OpenChronicle
    ) -> None:
        keys = ["tool.Bash.ok", "tool.Bash.error", "tool.BashX.ok", "tools.x", "turn.received"]
        given = [
            recording(str(n), key=key, conversation_id=f"cnv_{n % 2}") for n, key in enumerate(keys)
        ]
        await opened.chronicle.record(given)
        assert await ids(opened, key="tool.") == ["int_2", "int_1", "int_0"]
        assert await ids(opened, key="tool.Bash.") == ["int_1", "int_0"]
        assert await ids(opened, key="tool.Bash.ok") == ["int_0"]
        assert await ids(opened, key="turn.received") == ["int_4"]
        assert await ids(opened, conversation_id="cnv_1") == ["int_3", "int_1"]
        assert await ids(opened, key="tool.", conversation_id="cnv_0") == ["int_2", "int_0"]
        for none in ("tool", "TOOL.", "%.", "t_ol.", "tool.*", "", "."):
            assert await ids(opened, key=none) == [], none

    async def test_pages_follow_each_other_without_gap_while_more_is_recorded(
        self, opened: OpenChronicle
    ) -> None:
        await opened.chronicle.record([recording(str(n)) for n in range(7)])
        await opened.chronicle.record([recording("bob", owner_id="bob")])
        seen: list[str] = []
        cursor, pages = None, 0
        while True:
            page = await opened.chronicle.page("ann", limit=3, cursor=cursor)
            seen += [record.id for record in page.records]
            pages += 1
            await opened.chronicle.record([recording(f"late_{pages}")])
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [f"int_{n}" for n in reversed(range(7))]
        assert pages == 3

    @pytest.mark.parametrize("cursor", STRANGE_CURSORS, ids=repr)
    async def test_a_cursor_that_was_not_given_out_is_refused(
        self, opened: OpenChronicle, cursor: str
    ) -> None:
        with pytest.raises(ValueError, match="cursor"):
            await opened.chronicle.page("ann", limit=3, cursor=cursor)

    async def test_what_the_policy_keeps_out_is_not_shown_and_still_taken_once(
        self, opened: OpenChronicle
    ) -> None:
        hidden = waiting("1", told=False)
        assert list(await opened.chronicle.record([hidden])) == ["int_1"]
        assert await ids(opened) == []
        assert list(await opened.chronicle.intents_of_turn("trn_1")) == []
        assert await pending(opened) == ["int_1"]
        await opened.chronicle.consumed(["int_1"], "trn_2")
        assert list(await opened.chronicle.record([hidden])) == []
        assert await pending(opened) == []
        await opened.scrub(["int_1"])
        assert await ids(opened) == []

    async def test_an_ended_turn_waits_to_be_remembered_oldest_first_until_it_is_marked(
        self, opened: OpenChronicle
    ) -> None:
        await opened.chronicle.record([recording("1", turn_id="trn_0")])
        given = [ended(name, owner_id=name, told=name != "c") for name in "cab"]
        await opened.chronicle.record(given)
        assert list(await opened.chronicle.unremembered(9)) == ["trn_c", "trn_a", "trn_b"]
        assert list(await opened.chronicle.unremembered(2)) == ["trn_c", "trn_a"]
        await opened.mark_remembered("trn_c")
        await opened.mark_remembered("trn_c")
        await opened.mark_remembered("trn_unknown")
        assert list(await opened.chronicle.unremembered(9)) == ["trn_a", "trn_b"]

    async def test_what_waits_is_consumed_once(self, opened: OpenChronicle) -> None:
        await opened.chronicle.record([waiting("1"), recording("2"), waiting("3")])
        (first, second) = await opened.chronicle.pending("cnv_1", "ann")
        assert (first.intent_id, first.text, first.occurred_at) == (
            "int_1",
            "context of 1",
            AT,
        )
        await opened.chronicle.consumed([first.intent_id, "int_2", "int_unknown"], "trn_2")
        assert list(await opened.chronicle.pending("cnv_1", "ann")) == [second]
        await opened.chronicle.consumed([], "trn_2")
        await opened.chronicle.consumed([first.intent_id, second.intent_id], "trn_3")
        assert await pending(opened) == []
        assert await ids(opened) == ["int_3", "int_2", "int_1"]

    async def test_a_conversation_that_is_left_leaves_nothing_waiting(
        self, opened: OpenChronicle
    ) -> None:
        given = [waiting("1"), waiting("2", conversation_id="cnv_2")]
        await opened.chronicle.record(given)
        await opened.chronicle.delete_conversation_context("cnv_1")
        await opened.chronicle.delete_conversation_context("cnv_unknown")
        assert await pending(opened) == []
        assert await pending(opened, "cnv_2") == ["int_2"]
        assert list(await opened.chronicle.record(given)) == []
        assert await pending(opened) == [], "it came back"
        assert await ids(opened) == ["int_2", "int_1"]

    async def test_what_is_scrubbed_tells_nothing_but_that_it_was(
        self, opened: OpenChronicle
    ) -> None:
        given = [waiting("1"), ended("1"), waiting("2")]
        await opened.chronicle.record(given)
        await opened.scrub(["int_1", "int_end_1", "int_unknown"])
        await opened.scrub(["int_1"])
        turn = await opened.chronicle.intents_of_turn("trn_1")
        kept = [recorded(recording) for recording in given]
        assert list(turn) == [
            replace(kept[0], text="", payload={}, forgotten=True),
            replace(kept[1], text="", payload={}, forgotten=True),
            kept[2],
        ]
        assert await ids(opened) == ["int_2", "int_end_1", "int_1"]
        assert await pending(opened) == ["int_2"]
        assert list(await opened.chronicle.record(given)) == []
        assert [entry.forgotten for entry in await opened.chronicle.intents_of_turn("trn_1")] == [
            True,
            True,
            False,
        ], "it came back"

    async def test_what_fails_leaves_nothing_behind(self, opened: OpenChronicle) -> None:
        """The last of a batch is not writable: the ones before it are not there either."""
        broken = waiting("3", text="half a letter \ud800")
        with pytest.raises(Exception):  # noqa: B017, PT011  whatever a store says to that
            await opened.chronicle.record([waiting("1"), ended("1"), broken])
        assert await ids(opened) == []
        assert await pending(opened) == []
        assert list(await opened.chronicle.unremembered(9)) == []
        assert list(await opened.chronicle.record([waiting("1")])) == ["int_1"]

    async def test_what_a_guard_refuses_is_not_written(self, opened: OpenChronicle) -> None:
        await opened.chronicle.record([waiting("1")])
        with pytest.raises(StoreUnavailable):
            await opened.chronicle.record([waiting("2"), ended("1")], _refuse)
        with pytest.raises(StoreUnavailable):
            await opened.chronicle.consumed(["int_1"], "trn_1", _refuse)
        assert await ids(opened) == await pending(opened) == ["int_1"]
        assert list(await opened.chronicle.unremembered(9)) == []

    async def test_a_guard_reads_what_the_write_reads(self, opened: OpenChronicle) -> None:
        """It is called in the same transaction: what that takes back, it takes back for both."""
        await opened.chronicle.record([recording("1")])
        broken = recording("2", text="half a letter \ud800")
        with pytest.raises(Exception):  # noqa: B017, PT011  whatever a store says to that
            await opened.chronicle.record(
                [broken], lambda writer: writer.execute("DELETE FROM intents")
            )
        assert await ids(opened) == ["int_1"]

    @both_cuts
    async def test_a_recording_that_is_cancelled_anywhere_is_whole_or_absent(
        self, opened: OpenChronicle, cut: Cut
    ) -> None:
        async def record(chronicle: SqlChronicle, name: str) -> None:
            await chronicle.record([waiting(name, turn_id=f"trn_{name}"), ended(name)])

        async def cut_at(step: int) -> bool:
            name = str(step)
            was_cut = await cut(record(opened.chronicle, name), step)
            there = {
                len(await opened.chronicle.intents_of_turn(f"trn_{name}")) == 2,
                f"int_{name}" in await pending(opened),
                f"trn_{name}" in await opened.chronicle.unremembered(1_000),
            }
            assert len(there) == 1, "half of it was written"
            await record(opened.chronicle, f"{name}x")
            return was_cut

        await cut_everywhere(cut_at)

    async def test_it_is_all_there_after_closing_and_opening_again(self, opens: Opening) -> None:
        async with opens() as opened:
            await opened.chronicle.record([waiting("1"), waiting("2"), ended("1"), ended("2")])
            await opened.chronicle.consumed(["int_1"], "trn_9")
            await opened.mark_remembered("trn_1")
        async with opens() as opened:
            assert await ids(opened) == ["int_end_2", "int_end_1", "int_2", "int_1"]
            assert await pending(opened) == ["int_2"]
            assert list(await opened.chronicle.unremembered(9)) == ["trn_2"]
            await opened.chronicle.record([recording("3")])
            assert (await ids(opened))[0] == "int_3"

    async def test_what_was_read_is_a_copy(self, opened: OpenChronicle) -> None:
        payload: dict[str, Any] = {"list": []}
        await opened.chronicle.record([recording(payload=payload)])
        payload["list"].append("mine")
        for _ in range(2):
            (read,) = await opened.chronicle.intents_of_turn("trn_1")
            assert read.payload == {"list": []}
            read.payload["list"].append("mine")
