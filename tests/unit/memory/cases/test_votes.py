"""What votes come to: one voice a conversation, heard where it was cast."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import SIGNALS, Vote
from memory.cases.votes import confidence_of, is_helpful, tally, tally_for, with_vote
from memory.items.scope import Scope
from tests.unit.memory.cases.judged import OWN, make_case, make_vote


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


def test_a_later_vote_takes_the_place_of_its_voters_earlier_one() -> None:
    other = make_vote("cnv_b", helpful=True)
    earlier, later = make_vote(helpful=True, signal="conflict"), make_vote(helpful=False)
    assert with_vote([other, earlier], later) == [other, later]


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


def votes_of(app: str | None, environment: str | None, marks: str) -> list[Vote]:
    """Return a vote for each mark: + for helpful, - for not."""
    place = {"app_code": app, "environment": environment}
    return [
        make_vote(f"{app}-{environment}-{number}", helpful=mark == "+", **place)
        for number, mark in enumerate(marks)
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
