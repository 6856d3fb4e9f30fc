"""What every store of cases must do.

`CaseStoreSuite` holds one test for each contract of `memory.cases.store`: here of what belongs to a
case, in `case_storage` of the case itself. A subclass supplies the fixture `opens` and nothing
else. Needs pytest and pytest-asyncio; nothing that serves imports it.
"""

from dataclasses import replace
from typing import Any

from memory.cases.case_writes import MAX_KEPT_JUDGEMENTS, MAX_KEPT_RELATIONS
from tests.conformance.suites.case_storage import CaseKeepingSuite
from tests.conformance.suites.case_values import (
    ANN,
    BOB,
    OpenCases,
    case,
    entry,
    later,
    new,
    next_of,
    related,
    vote,
)


class CaseStoreSuite(CaseKeepingSuite):
    """The contracts of `SqlCaseStore`."""

    async def test_a_voter_has_one_vote_and_the_last_counts(self, opened: OpenCases) -> None:
        one = case()
        votes = [
            vote(one, "cnv_2", helpful=True, app_code="shop", environment="staging"),
            vote(one, "cnv_1", signal="success", at=later(1), content_revision=1),
            vote(one, "cnv_2", helpful=False, signal="stale", at=later(2), content_revision=2),
        ]
        await opened.store.apply(new(one))
        await opened.store.apply(new(case("2")))
        for given in votes:
            await opened.store.apply(next_of(one, vote=given))
            one = replace(one, revision=one.revision + 1)
        found = await opened.store.votes(["cas_1", "cas_2", "cas_none"])
        assert found == {"cas_1": votes[1:], "cas_2": [], "cas_none": []}

    async def test_both_ends_know_of_a_relation_the_nearest_first(self, opened: OpenCases) -> None:
        for name in ("1", "3"):
            await opened.store.apply(new(case(name)))
        near, far = related("3", 0.7), related("1", 0.9, "similar_diagnosis")
        await opened.store.apply(new(case("2"), relations=[far, near]))
        found = await opened.store.related(["cas_1", "cas_2", "cas_3", "cas_none"])
        assert found == {
            "cas_1": [replace(far, case_id="cas_2")],
            "cas_2": [near, far],
            "cas_3": [replace(near, case_id="cas_2")],
            "cas_none": [],
        }

    async def test_of_one_relation_the_higher_score_is_nearer_then_the_lesser_id(
        self, opened: OpenCases
    ) -> None:
        relations = [related("1", 0.9), related("3", 0.9), related("4", 0.8)]
        relations += [related("5", 0.9, "similar_diagnosis"), related("6", 1.0, "surface_similar")]
        for name in "13456":
            await opened.store.apply(new(case(name)))
        await opened.store.apply(new(case("2"), relations=relations[::-1]))
        assert (await opened.store.related(["cas_2"]))["cas_2"] == relations
        assert sorted(relations, key=lambda relation: relation.distance) == relations

    async def test_only_relations_that_may_be_told_are_counted_at_either_end(
        self, opened: OpenCases
    ) -> None:
        kinds: list[dict[str, Any]] = [
            {"scope": ANN, "lifecycle": "accepted"},
            {"scope": replace(ANN, app_code=None)},
            {"scope": replace(ANN, app_code="bank")},
            {"scope": ANN, "lifecycle": "rejected"},
            {"scope": ANN, "lifecycle": "stale"},
        ]
        count = opened.store.count_related
        for n, kind in enumerate(kinds):
            await opened.store.apply(new(case(f"{2 * n}", **kind)))
        relations = [related(f"{2 * n}", 0.9) for n in range(len(kinds))]
        await opened.store.apply(new(case("5"), relations=relations))
        asked = ["cas_5", "cas_0", "cas_none"]
        assert await count(asked, app_code="shop") == {"cas_5": 2, "cas_0": 1, "cas_none": 0}
        assert await count(asked, app_code="bank") == {"cas_5": 2, "cas_0": 0, "cas_none": 0}
        assert await count(asked, app_code=None) == {"cas_5": 3, "cas_0": 1, "cas_none": 0}

    async def test_new_relations_take_the_place_of_all_that_there_were(
        self, opened: OpenCases
    ) -> None:
        for name in ("1", "2"):
            await opened.store.apply(new(case(name)))
        await opened.store.apply(new(case("3"), relations=[related("1", 0.9)]))
        await opened.store.apply(next_of(case("1"), relations=[related("2", 0.8)]))
        found = await opened.store.related(["cas_1", "cas_2", "cas_3"])
        assert [hit.case_id for hit in found["cas_1"]] == ["cas_2"]
        assert found["cas_3"] == []
        await opened.store.apply(next_of(case("2"), relations=None))
        assert await opened.store.related(["cas_1", "cas_2", "cas_3"]) == found

    async def test_a_relation_to_what_is_not_the_owners_or_gone_is_left_out(
        self, opened: OpenCases
    ) -> None:
        await opened.store.apply(new(case("1", scope=BOB)))
        relations = [related(name, 0.9) for name in ("1", "none", "2")]
        await opened.store.apply(new(case("2"), relations=relations))
        assert await opened.store.related(["cas_1", "cas_2"]) == {"cas_1": [], "cas_2": []}

    async def test_the_newest_changes_come_oldest_first(self, opened: OpenCases) -> None:
        told = [
            entry("created", by="person", conversation_id="cnv_1"),
            entry("feedback", at=later(1), details={"helpful": None, "为": ["x", 1, 0.5]}),
            entry("lifecycle", at=later(1), details={"from": "draft", "to": "accepted"}),
        ]
        await opened.store.apply(new(case(), history=told[:1]))
        await opened.store.apply(new(case("2")))  # has a history of its own
        await opened.store.apply(next_of(case(), history=told[1:]))
        assert await opened.store.history("cas_1", limit=9) == told
        assert await opened.store.history("cas_1", limit=2) == [told[0], told[2]]
        assert await opened.store.history("cas_1", limit=0) == []
        assert await opened.store.history("cas_none", limit=9) == []

    async def test_how_it_began_and_what_was_rewritten_stays_before_what_is_newest(
        self, opened: OpenCases
    ) -> None:
        one = case()
        events = ["created", "feedback", "updated", "merged", "lifecycle", "merged", "updated"]
        told = [
            entry(event, at=later(n), conversation_id=f"cnv_{n}") for n, event in enumerate(events)
        ]
        await opened.store.apply(new(one, history=told[:1]))
        await opened.store.apply(next_of(one, history=told[1:]))
        for limit, shown in ((1, [0]), (3, [0, 4, 6]), (4, [0, 2, 4, 6]), (5, [0, 2, 4, 5, 6])):
            found = await opened.store.history("cas_1", limit=limit)
            assert found == [told[n] for n in shown]

    async def test_of_very_many_votes_the_newest_stay_in_the_history(
        self, opened: OpenCases
    ) -> None:
        first = [entry("created"), entry("updated", at=later(1))]
        told = [entry("feedback", at=later(2 + n)) for n in range(MAX_KEPT_JUDGEMENTS + 2)]
        await opened.store.apply(new(case("2"), history=told[:1]))
        await opened.store.apply(new(case(), history=[*first, *told]))
        found = await opened.store.history("cas_1", limit=MAX_KEPT_JUDGEMENTS + 9)
        assert found == [*first, *told[2:]]
        assert await opened.store.history("cas_2", limit=9) == told[:1]

    async def test_of_very_many_relations_the_nearest_stay_everywhere(
        self, opened: OpenCases
    ) -> None:
        await opened.store.apply(new(case("hub")))
        for n in range(MAX_KEPT_RELATIONS + 2):
            far = related("hub", (n + 1) / 100)
            await opened.store.apply(new(case(f"{n:02d}"), relations=[far]))
        found = await opened.store.related(["cas_hub", "cas_00", "cas_01", "cas_02"])
        kept = [f"cas_{n:02d}" for n in range(MAX_KEPT_RELATIONS + 1, 1, -1)]
        assert [hit.case_id for hit in found["cas_hub"]] == kept
        assert found["cas_00"] == found["cas_01"] == []
        assert len(found["cas_02"]) == 1
        many = [
            related(f"{n:02d}", 0.9, "surface_similar" if n else "same_root_cause")
            for n in range(MAX_KEPT_RELATIONS + 2)
        ]
        one_cause = replace(many[0], score=0.6)
        await opened.store.apply(next_of(case("hub"), relations=[one_cause, *many[1:]]))
        known = (await opened.store.related(["cas_hub"]))["cas_hub"]
        assert len(known) == MAX_KEPT_RELATIONS
        assert known[0] == one_cause, "no number of mere likenesses crowds it out"

    async def test_what_was_shown_and_not_judged_is_listed_the_last_first(
        self, opened: OpenCases
    ) -> None:
        for name in ("1", "2", "3", "4"):
            await opened.store.apply(new(case(name)))
        await opened.store.note_shown("cnv_9", ["cas_1", "cas_none", "\ud800"])
        await opened.store.note_shown("cnv_9", ["cas_2", "cas_3"])
        await opened.store.note_shown("cnv_9", ["cas_1"])
        await opened.store.note_shown("cnv_8", ["cas_4"])
        await opened.store.note_shown("cnv_9", [])
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == [
            *("cas_2", "cas_3", "cas_1")
        ]
        assert await opened.store.unreviewed("cnv_9", "ann", limit=1) == ["cas_2"]
        assert await opened.store.unreviewed("cnv_8", "ann", limit=9) == ["cas_4"]
        judged = vote(case("2"), "cnv_9", signal="high_risk")
        await opened.store.apply(next_of(case("2"), vote=judged))
        by_another = vote(case("3"), "cnv_8", helpful=True)
        await opened.store.apply(next_of(case("3"), vote=by_another))
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == ["cas_3", "cas_1"]

    async def test_what_a_conversation_wrote_itself_is_not_for_it_to_judge(
        self, opened: OpenCases
    ) -> None:
        await opened.store.apply(new(case("1"), shown_to="cnv_9"))
        await opened.store.apply(new(case("2")))
        await opened.store.note_shown("cnv_9", ["cas_1", "cas_2"])
        await opened.store.note_shown("cnv_8", ["cas_1"])
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == ["cas_2"]
        assert await opened.store.unreviewed("cnv_8", "ann", limit=9) == ["cas_1"]
        await opened.store.apply(next_of(case("2"), shown_to="cnv_9"))
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == []

    async def test_a_case_that_was_rewritten_since_is_to_be_judged_again(
        self, opened: OpenCases
    ) -> None:
        one = case("1")
        await opened.store.apply(new(one))
        await opened.store.note_shown("cnv_9", ["cas_1"])
        await opened.store.apply(next_of(one, vote=vote(one, "cnv_9", helpful=True)))
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == []
        one = replace(one, revision=2)
        await opened.store.apply(next_of(one, case_fields={"content_revision": 3}))
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == ["cas_1"]
        one = replace(one, revision=3, content_revision=3)
        warned = vote(one, "cnv_9", signal="conflict", content_revision=3)
        await opened.store.apply(next_of(one, vote=warned))
        assert (await opened.store.votes(["cas_1"]))["cas_1"] == [warned]
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == []

    async def test_where_an_app_is_named_other_apps_cases_need_no_judgement(
        self, opened: OpenCases
    ) -> None:
        for name, scope in (
            ("1", ANN),
            ("2", replace(ANN, app_code=None)),
            ("3", replace(ANN, app_code="bank")),
        ):
            await opened.store.apply(new(case(name, scope=scope)))
        await opened.store.note_shown("cnv_9", ["cas_1", "cas_2", "cas_3"])
        shop = await opened.store.unreviewed("cnv_9", "ann", app_code="shop", limit=9)
        assert shop == ["cas_1", "cas_2"]
        bank = await opened.store.unreviewed("cnv_9", "ann", app_code="bank", limit=9)
        assert bank == ["cas_2", "cas_3"]
        assert len(await opened.store.unreviewed("cnv_9", "ann", limit=9)) == 3

    async def test_what_became_wrong_stale_or_forgotten_needs_no_judgement(
        self, opened: OpenCases
    ) -> None:
        for name in ("1", "2", "3"):
            await opened.store.apply(new(case(name)))
        await opened.store.note_shown("cnv_9", ["cas_1", "cas_2", "cas_3"])
        for name, lifecycle in (("1", "rejected"), ("2", "stale")):
            fields = {"lifecycle": lifecycle}
            await opened.store.apply(next_of(case(name), case_fields=fields, item=None))
        await opened.forget("cas_3")
        assert await opened.store.unreviewed("cnv_9", "ann", limit=9) == []

    async def test_with_a_case_goes_all_that_belongs_to_it(self, opened: OpenCases) -> None:
        await opened.store.apply(new(case("2")))
        one = case()
        await opened.store.apply(new(one, relations=[related("2", 0.9)], shown_to="cnv_1"))
        await opened.store.apply(next_of(one, vote=vote(one, "cnv_2", helpful=True)))
        assert await opened.forget("cas_1")
        assert not await opened.forget("cas_1")
        assert await opened.store.get(["cas_1", "cas_2"], "ann") == [case("2")]
        assert await opened.store.related(["cas_1", "cas_2"]) == {"cas_1": [], "cas_2": []}
        assert await opened.store.votes(["cas_1"]) == {"cas_1": []}
        assert await opened.store.history("cas_1", limit=9) == []
