"""What votes come to: one voice a conversation, heard where it was cast."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import SIGNALS, Vote
from memory.cases.results import FeedbackTally
from memory.cases.votes import (
    ScopedTally,
    cast,
    confidence_of,
    is_helpful,
    tally,
    tally_for,
    with_vote,
)
from memory.scope import Scope
from tests.unit.memory.cases.judged import OWN, make_case, make_vote

BOTH = {"helpful": True, "signal": "success"}
JUDGING = ("stale", "rollback", "success")


@pytest.mark.parametrize(
    ("fields", "delta"),
    [
        ({}, 0.0),
        ({"helpful": True}, 0.1),
        ({"helpful": False}, -0.2),
        ({"signal": "stale"}, -0.1),
        ({"signal": "success"}, 0.05),
        ({"signal": "rollback"}, -0.1),
        ({"signal": "conflict"}, 0.0),
        ({"signal": "high_risk"}, 0.0),
        ({"helpful": True, "signal": "success"}, 0.15),
        ({"helpful": False, "signal": "rollback"}, -0.3),
        ({"helpful": False, "signal": "success"}, -0.2),
        ({"helpful": True, "signal": "stale"}, -0.1),
    ],
)
def test_each_vote_moves_the_confidence_by_its_delta(fields: dict[str, Any], delta: float) -> None:
    moved = confidence_of(make_case(stated_confidence=0.5), [make_vote(**fields)])
    assert moved == pytest.approx(0.5 + delta)


def test_what_a_later_vote_leaves_open_stays_as_it_was() -> None:
    earlier = make_vote(helpful=True, signal="conflict", app_code="a")
    assert cast([earlier], make_vote(signal="success", app_code="b")) == make_vote(
        helpful=True, signal="success", app_code="b"
    )
    assert cast([earlier], make_vote(helpful=False)) == make_vote(
        helpful=False, warning="conflict", warned_on=1
    )
    assert cast([make_vote("cnv_b", helpful=True)], make_vote()) == make_vote()


@pytest.mark.parametrize(
    ("earlier", "later", "now"),
    [
        ({"signal": "stale"}, {"helpful": True}, {"helpful": True}),
        ({"helpful": False, "signal": "rollback"}, {"helpful": True}, {"helpful": True}),
        ({"helpful": False}, {"signal": "success"}, {"signal": "success"}),
        ({"helpful": True}, {"signal": "stale"}, {"signal": "stale"}),
        ({"helpful": True, "signal": "success"}, {"helpful": False}, {"helpful": False}),
        ({"helpful": False}, {"signal": "rollback"}, {"helpful": False, "signal": "rollback"}),
        ({"signal": "conflict"}, {"helpful": True}, {"helpful": True}),
        ({"helpful": True, "signal": "high_risk"}, {"signal": "success"}, BOTH),
    ],
)
def test_a_later_word_takes_back_what_was_said_for_the_other_side(
    earlier: dict[str, Any], later: dict[str, Any], now: dict[str, Any]
) -> None:
    assert cast([make_vote(**earlier)], make_vote(**later)) == make_vote(**now)


@pytest.mark.parametrize(
    "judged",
    [{"helpful": True}, {"helpful": False}, *({"signal": vote} for vote in JUDGING), BOTH, {}],
)
@pytest.mark.parametrize("warning", ["conflict", "high_risk"])
def test_a_warning_stands_beside_what_its_voter_judged(judged: Any, warning: Any) -> None:
    earlier = make_vote(**judged, content_revision=2)
    later = cast([earlier], make_vote(signal=warning, content_revision=3))
    assert later == make_vote(**judged, content_revision=2, warning=warning, warned_on=3)
    assert cast([later], make_vote(helpful=False, content_revision=3)).warning == warning
    assert cast([later], make_vote(helpful=True, content_revision=3)).warning is None


def test_votes_on_older_words_vouch_for_no_new_ones() -> None:
    case = make_case(content_revision=3)
    for_it = [make_vote(f"cnv_{number}", helpful=True) for number in range(10)]
    assert confidence_of(case, for_it) == 0.7
    assert tally(case, for_it) == FeedbackTally()
    assert tally_for(case, for_it, case.scope).level == "prior"
    now = make_vote("cnv_now", helpful=True, content_revision=3)
    assert confidence_of(case, [*for_it, now]) == 0.8
    assert tally(case, [*for_it, now]) == FeedbackTally(helpful=1, conversations=1)


def test_votes_against_older_words_still_take_from_the_confidence_what_others_do_not_make_good() -> (
    None
):
    case = make_case(content_revision=3)
    against = make_vote("cnv_a", helpful=False)
    assert confidence_of(case, [against]) == 0.5
    assert confidence_of(case, [against, make_vote("cnv_b", helpful=True)]) == 0.6
    made_good = [make_vote(f"cnv_{number}", helpful=True) for number in range(5)]
    assert confidence_of(case, [against, *made_good]) == 0.7
    assert tally(case, [against]).unhelpful == 0, "nobody judged what it says now"


FOR_IT: list[dict[str, Any]] = [
    {"helpful": True},
    {"helpful": True, "signal": "high_risk"},
    {"signal": "success"},
]
NOT_FOR_IT: list[dict[str, Any]] = [
    {"helpful": False, "signal": "success"},
    {"helpful": True, "signal": "rollback"},
    {"helpful": True, "signal": "stale"},
    {"signal": "conflict"},
    {},
]


def test_what_speaks_against_a_case_in_any_way_does_not_speak_for_it() -> None:
    assert [fields for fields in FOR_IT if not is_helpful(make_vote(**fields))] == []
    assert [fields for fields in NOT_FOR_IT if is_helpful(make_vote(**fields))] == []


def test_the_tally_counts_voters_and_apart_those_that_did_not_write_it() -> None:
    votes = [
        make_vote(OWN, helpful=True),
        make_vote("cnv_b", signal="success"),
        make_vote("cnv_c", helpful=False, signal="success"),
        make_vote("cnv_d", signal="stale"),
    ]
    assert tally(make_case(), votes) == FeedbackTally(helpful=2, unhelpful=1, conversations=1)


def votes_of(app: str | None, environment: str | None, marks: str) -> list[Vote]:
    """Return a vote for each mark: + for helpful, - for not."""
    return [
        make_vote(
            f"{app}-{environment}-{number}",
            helpful=one == "+",
            app_code=app,
            environment=environment,
        )
        for number, one in enumerate(marks)
    ]


HERE = Scope(owner_id="ann", app_code="pay", environment="prod")


def test_votes_of_the_app_and_environment_tell_most_then_the_apps_then_all() -> None:
    case = make_case()
    here = votes_of("pay", "prod", "++-")
    app = votes_of("pay", "test", "-")
    other = votes_of("shop", "prod", "+")

    def level(votes: list[Vote], scope: Scope = HERE) -> tuple[str, int, int]:
        found = tally_for(case, votes, scope)
        return found.level, found.tally.helpful, found.tally.unhelpful

    assert level([*here, *app, *other]) == ("app_environment", 2, 1)
    assert level([*here[:2], *app, *other]) == ("app", 2, 1)
    assert level([*here[:2], *other]) == ("global", 3, 0)
    assert level(other) == ("global", 1, 0)
    assert level([]) == ("prior", 0, 0)
    assert level([make_vote(signal="conflict")]) == ("prior", 0, 0)


def test_a_searcher_without_app_hears_all_votes_and_one_without_environment_those_of_the_app() -> (
    None
):
    votes = [*votes_of("pay", "prod", "+++"), *votes_of(None, None, "---")]
    nobody = Scope(owner_id="ann")
    assert tally_for(make_case(), votes, nobody) == ScopedTally(
        tally=FeedbackTally(helpful=3, unhelpful=3, conversations=3), level="global"
    )
    app = tally_for(make_case(), votes, Scope(owner_id="ann", app_code="pay"))
    assert (app.level, app.tally.unhelpful) == ("app", 0)
    only_environment = tally_for(make_case(), votes, Scope(owner_id="ann", environment="prod"))
    assert only_environment.level == "global"


one_vote = st.builds(
    make_vote,
    st.sampled_from(["cnv_a", "cnv_b", OWN]),
    helpful=st.sampled_from([None, True, False]),
    signal=st.sampled_from([None, *SIGNALS]),
)


@given(st.lists(one_vote, max_size=8), st.floats(0, 1), st.randoms())
def test_however_often_is_voted_each_voter_counts_once_and_in_any_order(
    said: list[Vote], stated: float, chance: Any
) -> None:
    votes: list[Vote] = []
    for vote in said:
        votes = with_vote(votes, vote)
    assert len({vote.voter for vote in votes}) == len(votes)
    again = votes
    for vote in votes:
        again = with_vote(again, vote)
    mixed = [*votes]
    chance.shuffle(mixed)
    case = make_case(stated_confidence=stated)
    assert confidence_of(case, votes) == confidence_of(case, again) == confidence_of(case, mixed)
    counted = tally(make_case(), votes)
    assert counted.conversations <= counted.helpful <= len(votes)
    assert counted.helpful + counted.unhelpful <= len(votes)
