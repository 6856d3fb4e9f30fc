"""What a search for cases finds, whose, in which order, and what it says beside."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import CaseMetadata, RelatedCase, Vote
from memory.cases.item import to_item
from memory.cases.results import CaseRefused, sentence
from tests.support.found_cases import ANN, AT, FoundCases, caller, make_case, open_finder
from tests.support.recall import BrokenRetriever, GivingRetriever

POOL = "connection pool of checkout-api is exhausted"


def votes_for(case_id: str, count: int, **labels: Any) -> list[Vote]:
    return [
        Vote(case_id=case_id, voter=f"cnv_v{n}", helpful=True, at=AT, **labels)
        for n in range(count)
    ]


async def test_how_well_it_fits_decides_before_confidence(opened: FoundCases) -> None:
    """Defect 2: there what was found was ordered by confidence, whatever was asked."""
    sure = make_case("sure", "the pool of tables is sold out", confidence=1.0)
    await opened.put(*(replace(sure, case_id=f"cas_sure{n}") for n in range(4)))
    await opened.put(make_case("fits", POOL, confidence=0.5))
    assert (await opened.found("checkout-api connection pool exhausted"))[0] == "fits"


async def test_of_two_that_fit_alike_the_one_that_helped_comes_first(opened: FoundCases) -> None:
    draft, accepted = make_case("a", POOL), make_case("b", POOL)
    await opened.put(draft, accepted)
    assert await opened.found("pool exhausted") == ["a", "b"]
    accepted = replace(accepted, lifecycle="accepted", confidence=0.9)
    await opened.put(accepted)
    assert await opened.found("pool exhausted") == ["b", "a"]
    await opened.vote(draft, *votes_for("cas_a", 9))
    await opened.vote(accepted, *(replace(vote, helpful=False) for vote in votes_for("cas_b", 9)))
    assert await opened.found("pool exhausted") == ["a", "b"]


async def test_where_nothing_fits_the_answer_says_so_instead_of_weak_matches(
    tmp_path: Path,
) -> None:
    retriever = GivingRetriever.of(weak=["cas_weak"], name="vector")
    async with open_finder(tmp_path, retriever) as opened:
        await opened.put(make_case("weak", "orders come late", diagnosis="a wrong timetable"))
        answer = await opened.finder.find(caller(), "the kiln is cold")
        assert (answer.cases, answer.notes) == ([], (sentence("notes", "nothing_fits"),))
        fitting = await opened.finder.find(caller(), "orders come late")
        assert (len(fitting.cases), fitting.notes) == (1, ())


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("orders stuck", True),  # most of the question
        (
            "since Monday many people in Leeds and York say their orders hang somewhere in transit",
            False,
        ),
        ("since Monday many people in Leeds say that orders are stuck behind the timetable", True),
        ("昨晚开始南方几个门店的顾客抱怨支付页面打不开，重启后也没有恢复，怀疑证书", True),
        # the parts of a name count once
        ("app-west: nobody in Leeds, York or Hull sees any orders", False),
    ],
)
async def test_a_case_fits_by_most_of_the_question_or_by_words_enough(
    tmp_path: Path, query: str, *, fits: bool
) -> None:
    async with open_finder(tmp_path) as opened:
        await opened.put(*(make_case(f"{n}", f"orders of shop{n} fail") for n in range(20)))
        await opened.put(*(make_case(f"west{n}", "app-west is down") for n in range(10)))
        await opened.put(make_case("it", "orders stuck", diagnosis="a wrong timetable, 证书过期"))
        answer = await opened.finder.find(caller(), query)
        assert bool(answer.cases) == fits


async def test_a_weak_match_is_found_below_the_rest_and_called_one(tmp_path: Path) -> None:
    retriever = GivingRetriever.of(weak=["cas_weak", "cas_fits"], name="vector")
    async with open_finder(tmp_path, retriever) as opened:
        late = make_case("weak", "orders come late", diagnosis="a wrong timetable", confidence=1.0)
        await opened.put(late, make_case("fits", POOL))
        answer = await opened.finder.find(caller(), "pool exhausted")
        assert [case.case_id for case in answer.cases] == ["cas_fits", "cas_weak"]
        assert [case.why.startswith("weak match: ") for case in answer.cases] == [False, True]
        assert await opened.near(make_case("new", POOL).content) == ["fits", "weak"]


@pytest.mark.parametrize(
    ("asking", "expected"),
    [
        ({}, ["any", "bank", "prod", "shop"]),
        ({"app_code": "shop"}, ["any", "prod", "shop"]),
        ({"app_code": "bank"}, ["any", "bank"]),
        ({"app_code": "mail"}, ["any"]),
        ({"app_code": "shop", "environment": "test"}, ["any", "prod", "shop"]),
        ({"app_code": "shop", "environment": "test", "only_environment": True}, ["any", "shop"]),
        (
            {"app_code": "shop", "environment": "prod", "only_environment": True},
            ["any", "prod", "shop"],
        ),
        ({"owner_id": "bob"}, []),
        ({"owner_id": "bob", "app_code": "shop"}, []),
    ],
    ids=range(9),
)
async def test_an_apps_callers_find_what_is_its_or_nobodys(
    opened: FoundCases, asking: dict[str, Any], expected: list[str]
) -> None:
    shop = replace(ANN, app_code="shop")
    scopes = {
        "any": ANN,
        "shop": shop,
        "bank": replace(ANN, app_code="bank"),
        "prod": replace(shop, environment="prod"),
    }
    await opened.put(*(make_case(name, POOL, scope=one) for name, one in scopes.items()))
    assert sorted(await opened.found("pool exhausted", caller(**asking))) == expected
    found = sorted(await opened.near(make_case("new", POOL).content, caller(**asking).scope))
    if not asking.get("only_environment"):
        assert found == expected


async def test_what_is_rejected_stale_or_unsure_does_not_come_back(tmp_path: Path) -> None:
    """Defect 4: there a stale case was still found, and the vectors never let go of it."""
    async with open_finder(
        tmp_path, GivingRetriever.of("cas_r", "cas_s", "cas_u", name="vector")
    ) as opened:
        await opened.put(*(make_case(name, POOL) for name in "rsu"))
        assert sorted(await opened.found("pool exhausted")) == ["r", "s", "u"]
        # what is still in the index, as if its removal were not through yet
        for case in (
            make_case("r", POOL, lifecycle="rejected"),
            make_case("s", POOL, lifecycle="stale"),
            make_case("u", POOL, confidence=0.49),
        ):
            await opened.change(
                case, item=to_item(replace(case, lifecycle="draft", confidence=0.7))
            )
        assert await opened.found("pool exhausted") == []
        assert await opened.near(make_case("new", POOL).content) == []


async def test_no_more_than_asked_for_are_given_and_those_are_noted_as_shown(
    opened: FoundCases,
) -> None:
    await opened.put(*(make_case(f"{n}", f"{POOL} {n}") for n in range(8)))
    assert len(await opened.found("pool exhausted", top_k=3)) == 3
    ((conversation, shown),) = opened.store.shown
    assert conversation == "cnv_9"
    assert len(shown) == 3
    assert await opened.found("umbrella") == []
    await opened.found("pool", caller(conversation_id=None))
    assert len(opened.store.shown) == 1, "nothing was shown, and to nobody"


async def test_degraded_is_what_went_wrong_and_never_what_was_not_found(tmp_path: Path) -> None:
    """Defect 3: there an answer without hits of the vectors was called degraded, and errors were not."""
    async with open_finder(tmp_path / "whole", GivingRetriever(name="vector")) as opened:
        await opened.put(make_case("a", POOL))
        for query in ("pool", "umbrella"):
            assert (await opened.finder.find(caller(), query)).degraded == ()
    async with open_finder(tmp_path / "broken", BrokenRetriever()) as opened:
        await opened.put(make_case("a", POOL))
        answer = await opened.finder.find(caller(), "pool")
        assert [case.case_id for case in answer.cases] == ["cas_a"]
        assert answer.degraded == ("vector_error",)
        nearby = await opened.finder.candidates(make_case("b", POOL).content, ANN, 9)
        assert [case.case_id for case in nearby.cases] == ["cas_a"]
        assert nearby.degraded == ("vector_error",)


async def test_what_is_found_is_looked_up_in_the_vectors_afterwards(opened: FoundCases) -> None:
    await opened.put(make_case("a", POOL), make_case("b", "disk full"))
    await opened.found("pool")
    assert opened.backfill.item_ids == ["cas_a"]


async def test_old_words_on_a_tool_in_use_are_held_back_and_named(opened: FoundCases) -> None:
    told = "tool schema of get_order: the field mapping is order_id to id"
    await opened.put(
        make_case("old", "get_order schema", diagnosis=told, resolution=told),
        make_case("new", "get_order is slow"),
    )
    asking = caller(active_tools=("mcp__shop__get_order",))
    answer = await opened.finder.find(asking, "get_order")
    assert [case.case_id for case in answer.cases] == ["cas_new"]
    assert list(answer.held_back) == ["cas_old"]
    assert opened.store.shown == [("cnv_9", ["cas_new"])]


async def test_a_summary_counts_only_what_may_be_told_of_what_is_related(
    opened: FoundCases,
) -> None:
    anywhere = make_case("a", POOL)
    bank = make_case("bank", "disk full", scope=replace(ANN, app_code="bank"))
    shop = make_case("shop", "disk full", scope=replace(ANN, app_code="shop"))
    wrong = make_case("wrong", "disk full", lifecycle="rejected")
    await opened.put(bank, shop, wrong)
    relations = [
        RelatedCase(case_id=case.case_id, relation="same_root_cause", score=0.9)
        for case in (bank, shop, wrong)
    ]
    await opened.change(anywhere, relations=relations)
    counts = {}
    for app in ("shop", "other", None):
        (one,) = (await opened.finder.find(caller(app_code=app), "pool exhausted")).cases
        counts[app] = one.similar_count
    assert counts == {"shop": 1, "other": 0, None: 2}


async def test_a_question_is_words_and_top_k_a_whole_number_within_bounds(
    opened: FoundCases,
) -> None:
    queries = [(query, 5, "INVALID_QUERY") for query in ("", " \n", None, 7, ["pool"])]
    counts = [("pool", top_k, "INVALID_TOP_K") for top_k in (0, 21, -1, True, None, "5", 5.0)]
    for query, top_k, code in [*queries, *counts]:
        with pytest.raises(CaseRefused) as refused:
            await opened.finder.find(caller(), query, top_k)
        assert refused.value.code == code, (query, top_k)


async def test_any_of_symptom_diagnosis_and_root_cause_brings_a_candidate(
    opened: FoundCases,
) -> None:
    await opened.put(
        make_case("symptom", "lighthouse lamp flickers"),
        make_case("cause", "something", root_cause="ferry timetable was wrong"),
        make_case("diagnosis", "something else", diagnosis="harbour sensors were read"),
        make_case("none", "tunnel", metadata=CaseMetadata(tags=("giraffe",))),
    )
    content = make_case(
        "new",
        "the lighthouse lamp is flickering",
        root_cause="a wrong ferry timetable",
        diagnosis="read the harbour sensors",
    ).content
    assert {*await opened.near(content)} == {"symptom", "cause", "diagnosis"}
    assert len(await opened.near(content, limit=2)) == 2
    blank = replace(content, root_cause="", diagnosis="")
    assert await opened.near(blank) == ["symptom"]
