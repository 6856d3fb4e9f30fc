"""The lifecycle of a case: drafts, acceptance, rejection, and warnings."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import SIGNALS
from memory.cases.votes import is_helpful
from tests.support.tables import read_table_text
from tests.unit.memory.cases.judged import LATER, OWN, Life, make_case

LIVES = read_table_text("case-lives")
"""The stated confidence and the state it begins in, then who does what, and what the case is then.

`+` and `-`: helpful or not; `~`: rewrites it, `=`: states the confidence alone; `b:` votes on the
first words.
"""
SAID: dict[str, dict[str, Any]] = {
    "+": {"helpful": True},
    "-": {"helpful": False},
    "ok": {"signal": "success"},
    "back": {"signal": "rollback"},
    "warn": {"signal": "conflict"},
    "risk": {"signal": "high_risk"},
    "stale": {"signal": "stale"},
    "": {},
}


REASONS = {"low_confidence", "rollback", "conflict", "high_risk"}


def take(life: Life, number: int, step: str) -> None:
    who, act = step.split()
    by = "person" if who == "ann" else "agent"
    voter = "person:ann" if who == "ann" else OWN if who == "own" else f"cnv_{who.rstrip(':')}"
    if act[0] in "~=":
        content = life.case.content
        if act[0] == "~":
            content = replace(content, diagnosis=f"Looked {number} times")
        stated = float(act[1:]) if act[1:] else life.case.stated_confidence
        life.rewrite(voter, by=by, stated=stated, content=content)
    else:
        sign = act[0] if act[0] in "+-" else ""
        said = SAID[sign] | SAID[act.removeprefix(sign)]
        life.vote(voter, by=by, on_first=who.endswith(":"), **said)


def test_a_case_lives_as_it_is_judged() -> None:
    misses = []
    for line in LIVES.strip().splitlines():
        start, _, steps = line.partition(": ")
        if start.startswith("#"):
            continue
        stated, *state = start.split()
        life = Life(stated_confidence=float(stated), **({"lifecycle": state[0]} if state else {}))
        for number, step in enumerate(steps.split(" | ")):
            act, _, expected = step.partition(" > ")
            take(life, number, act)
            wanted = expected.split()
            reasons = tuple(word for word in wanted[1:] if word in REASONS)
            case = life.case
            holds = {
                "hidden": not case.is_findable,
                "found": case.is_findable,
                "none": case.review_reasons == (),
                str(case.confidence): True,
                case.lifecycle: True,
                ".": True,
            }
            is_so = all(holds.get(word, word in reasons) for word in wanted)
            if not is_so or (reasons and reasons != case.review_reasons):
                misses.append((line, step, case.lifecycle, case.confidence, case.review_reasons))
    assert misses == []


def test_a_vote_moves_the_case_to_its_next_revision_and_says_when() -> None:
    life = Life(stated_confidence=0.5)
    case = life.vote("cnv_b", helpful=True, signal="success")
    assert case == make_case(
        stated_confidence=0.5,
        confidence=0.65,
        revision=2,
        last_signal="success",
        last_feedback_at=LATER,
        updated_at=LATER,
    )


def test_only_a_vote_for_it_accepts() -> None:
    life = Life(stated_confidence=0.7)
    life.vote("cnv_b", helpful=True)
    life.vote("cnv_c", helpful=True)
    life.case = make_case(stated_confidence=0.9, confidence=1.0)
    assert life.vote("cnv_d", signal="conflict").lifecycle == "draft"
    assert life.vote("cnv_d", signal="success").lifecycle == "accepted"


steps = st.lists(
    st.tuples(
        st.sampled_from([OWN, "cnv_b", "cnv_c"]),
        st.sampled_from([None, True, False, "rewrite"]),
        st.sampled_from([None, *SIGNALS]),
    ),
    max_size=12,
)


@given(steps, st.floats(0, 1))
def test_whatever_happens_an_accepted_case_was_confirmed_by_one_who_did_not_write_it(
    happened: list[tuple[str, Any, Any]], stated: float
) -> None:
    life = Life(stated_confidence=stated)
    for number, (voter, helpful, signal) in enumerate(happened):
        before = life.case
        if helpful == "rewrite":
            life.rewrite(voter, diagnosis=f"Looked {number} times")
        else:
            life.vote(voter, helpful=helpful, signal=signal)
        assert 0 <= life.case.confidence <= 1
        assert life.case.revision == before.revision + 1
        if life.case.lifecycle == "accepted" != before.lifecycle:
            helpful_votes = {
                vote.voter
                for vote in life.votes
                if is_helpful(vote) and vote.content_revision == life.case.content_revision
            }
            assert len(helpful_votes) >= 2
            assert life.case.confidence >= 0.8
            assert helpful_votes - {*life.case.authors}
