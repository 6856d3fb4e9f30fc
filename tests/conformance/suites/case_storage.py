"""What a store of cases must do with a case itself: written whole or not at all, seen by its owner."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from memory.cases.case_writes import CaseChange
from memory.cases.fingerprint import fingerprint_of
from memory.cases.item import to_item
from memory.errors import StoreConflict
from memory.items.scope import Scope
from tests.conformance.suites.cancellation import Cut, both_cuts, cut_everywhere
from tests.conformance.suites.case_values import (
    ANN,
    BOB,
    TEXTS,
    OpenCases,
    Opening,
    case,
    entry,
    later,
    new,
    next_of,
    related,
    vote,
)
from tests.conformance.suites.opened import OpenedSuite


class CaseKeepingSuite(OpenedSuite):
    """The contracts on a case and its item."""

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    async def test_a_case_comes_back_as_it_was_written(self, opens: Opening, text: str) -> None:
        whole = case(
            text=text,
            lifecycle="accepted",
            source_conversation_id="cnv_1",
            authors=("cnv_1", "cnv_2"),
            content_revision=3,
            review_reasons=("low_confidence", "rollback"),
            last_signal="rollback",
            last_feedback_at=later(5),
            updated_at=later(6),
        )
        async with opens() as opened:
            await opened.store.apply(new(whole))
        async with opens() as opened:
            assert await opened.store.get(["cas_1"], "ann") == [whole]

    async def test_cases_come_in_the_order_of_the_ids_and_what_is_not_there_is_left_out(
        self, opened: OpenCases
    ) -> None:
        for name in ("1", "2", "3"):
            await opened.store.apply(new(case(name)))
        wanted = ["cas_3", "cas_none", "cas_1", "cas_3", "half a letter \ud800"]
        found = await opened.store.get(wanted, "ann")
        assert [hit.case_id for hit in found] == ["cas_3", "cas_1"]
        assert await opened.store.get([], "ann") == []

    async def test_nothing_is_seen_or_changed_across_owners(self, opened: OpenCases) -> None:
        mine = case()
        await opened.store.apply(new(mine, shown_to=None))
        await opened.store.note_shown("cnv_9", ["cas_1"])
        assert await opened.store.get(["cas_1"], "bob") == []
        fingerprint = fingerprint_of(mine.content, mine.scope)
        assert await opened.store.by_fingerprint(fingerprint, "bob") == []
        assert await opened.store.unreviewed("cnv_9", "bob", limit=9) == []
        theirs = replace(mine, scope=BOB)
        with pytest.raises(StoreConflict):
            await opened.store.apply(next_of(theirs))
        with pytest.raises(StoreConflict):
            await opened.store.apply(new(theirs))
        assert await opened.store.get(["cas_1"], "ann") == [mine]

    async def test_equal_content_is_found_oldest_first(self, opened: OpenCases) -> None:
        first, second = case("2", "same"), case("1", "same", created_at=later(1))
        second = replace(second, content=first.content)
        fingerprint = fingerprint_of(first.content, ANN)
        for one in (second, first, case("3")):
            await opened.store.apply(new(one))
        assert await opened.store.by_fingerprint(fingerprint, "ann") == [first, second]
        changed = next_of(first, case_fields={"content": case("4").content})
        await opened.store.apply(changed)
        assert await opened.store.by_fingerprint(fingerprint, "ann") == [second]

    async def test_a_decision_on_an_older_state_is_refused_whole(self, opened: OpenCases) -> None:
        one = case()
        await opened.store.apply(new(one))
        await opened.store.apply(next_of(one, case_fields={"confidence": 0.9}))
        late = next_of(
            one,
            case_fields={"confidence": 0.1},
            vote=vote(one, "cnv_2", helpful=False),
            history=[entry("feedback")],
            item=None,
        )
        for change in (late, new(one), next_of(case("none"))):
            with pytest.raises(StoreConflict):
                await opened.store.apply(change)
        (there,) = await opened.store.get(["cas_1"], "ann")
        assert (there.confidence, there.revision) == (0.9, 2)
        assert await opened.store.votes(["cas_1"]) == {"cas_1": []}
        assert len(await opened.store.history("cas_1", limit=9)) == 2
        assert await opened.item("cas_1") is not None

    @pytest.mark.parametrize(
        "other",
        [replace(ANN, app_code="bank"), replace(ANN, environment=None), replace(ANN, user_id="u")],
        ids=range(3),
    )
    async def test_the_scope_of_a_case_never_changes(self, opened: OpenCases, other: Scope) -> None:
        one = case()
        await opened.store.apply(new(one))
        with pytest.raises(StoreConflict):
            await opened.store.apply(next_of(one, case_fields={"scope": other}))
        assert await opened.store.get(["cas_1"], "ann") == [one]

    async def test_of_two_decisions_on_one_state_one_is_written(self, opened: OpenCases) -> None:
        one = case()
        await opened.store.apply(new(one))
        refused: list[str] = []

        async def judge(voter: str) -> None:
            change = next_of(one, vote=vote(one, voter, helpful=True))
            try:
                await opened.store.apply(change)
            except StoreConflict:
                refused.append(voter)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for voter in "abcd":
                    group.start_soon(judge, voter)
        votes = (await opened.store.votes(["cas_1"]))["cas_1"]
        assert len(votes) == 1
        assert sorted([*refused, votes[0].voter]) == ["a", "b", "c", "d"]

    async def test_its_item_and_deliveries_are_written_with_it(self, opened: OpenCases) -> None:
        one = case()
        await opened.store.apply(new(one))
        assert await opened.item("cas_1") == to_item(one)
        assert list(await opened.deliveries("cas_1")) == [
            "memu:put:cas_1:1",
            "vector:put:cas_1:1",
        ]
        changed = next_of(one, case_fields={"content": case("2").content})
        await opened.store.apply(changed)
        assert await opened.item("cas_1") == to_item(changed.case)
        assert list(await opened.deliveries("cas_1")) == [
            "memu:put:cas_1:2",
            "vector:put:cas_1:2",
        ]

    async def test_what_changes_nothing_of_what_is_searched_is_not_delivered_again(
        self, opened: OpenCases
    ) -> None:
        one = case()
        await opened.store.apply(new(one))
        await opened.store.apply(next_of(one, vote=vote(one, "cnv_2", helpful=True)))
        assert await opened.item("cas_1") == to_item(one)
        assert all(key.endswith(":1") for key in await opened.deliveries("cas_1"))

    async def test_a_case_that_search_must_not_find_has_no_item_and_is_forgotten_elsewhere(
        self, opened: OpenCases
    ) -> None:
        one = case()
        await opened.store.apply(new(one))
        rejected = next_of(one, case_fields={"lifecycle": "rejected"}, item=None)
        await opened.store.apply(rejected)
        assert await opened.item("cas_1") is None
        forgets = ["memu:forget:cas_1:2", "vector:forget:cas_1:2"]
        assert list(await opened.deliveries("cas_1")) == forgets
        still = next_of(rejected.case, item=None)
        await opened.store.apply(still)
        assert list(await opened.deliveries("cas_1")) == forgets, "nobody has it any more"
        back = next_of(still.case, case_fields={"lifecycle": "draft"})
        await opened.store.apply(replace(back, item=to_item(back.case)))
        assert await opened.item("cas_1") == to_item(back.case)
        assert "vector:put:cas_1:4" in await opened.deliveries("cas_1")
        assert await opened.store.get(["cas_1"], "ann") == [back.case]

    async def test_a_case_that_was_never_to_be_found_is_told_to_nobody(
        self, opened: OpenCases
    ) -> None:
        unsure = case(confidence=0.2)
        await opened.store.apply(new(unsure))
        assert await opened.item("cas_1") is None
        assert await opened.deliveries("cas_1") == []
        assert await opened.store.get(["cas_1"], "ann") == [unsure]

    @both_cuts
    async def test_a_change_that_is_cancelled_anywhere_is_whole_or_absent(
        self, opened: OpenCases, cut: Cut
    ) -> None:
        await opened.store.apply(new(case("other")))

        async def cut_at(step: int) -> bool:
            one = case(str(step))
            change = new(
                one,
                relations=[related("other", 0.9)],
                vote=vote(one, "cnv_2", helpful=True),
            )
            was_cut = await cut(opened.store.apply(change), step)
            assert len(await _parts_of(opened, change)) == 1, "half of it was written"
            await opened.store.apply(new(case(f"{step}x")))
            return was_cut

        await cut_everywhere(cut_at)

    @pytest.mark.parametrize("broken", ["history", "vote", "relations", "item"])
    async def test_what_fails_leaves_nothing_behind(self, opened: OpenCases, broken: str) -> None:
        """Half a letter cannot be written: neither can what goes with it."""
        one, half = case(), "half a letter \ud800"
        item = to_item(one)
        assert item is not None
        parts: dict[str, Any] = {
            "history": [entry(conversation_id=half)],
            "vote": vote(one, half),
            "relations": [related("other", 0.9, half)],
            "item": replace(item, body=half),
        }
        await opened.store.apply(new(case("other")))
        with pytest.raises(Exception):  # noqa: B017, PT011  whatever a store says to that
            await opened.store.apply(new(one, **{broken: parts[broken]}))
        assert await _parts_of(opened, new(one)) == {False}
        await opened.store.apply(new(one))


async def _parts_of(opened: OpenCases, change: CaseChange) -> set[bool]:
    """Return for each part of a new case whether it is there."""
    name = change.case.case_id
    there = {
        bool(await opened.store.get([name], "ann")),
        await opened.item(name) is not None,
        bool(await opened.deliveries(name)),
        bool(await opened.store.history(name, limit=9)),
    }
    if change.vote is not None:
        there.add(bool((await opened.store.votes([name]))[name]))
    if change.relations is not None:
        there.add(bool((await opened.store.related([name]))[name]))
    return there
