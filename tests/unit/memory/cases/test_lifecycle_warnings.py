"""What warnings and `stale` make of a case, and what takes them back."""

from typing import Any

import pytest

from memory.cases.lifecycle import after_vote
from memory.cases.votes import with_vote
from tests.unit.memory.cases.judged import LATER, OWN, Life, accepted, make_vote


def test_one_voice_on_what_it_says_now_does_not_reject_what_was_accepted() -> None:
    """Beside it one on older words: together they take from the confidence, and are not two voices."""
    life = Life(stated_confidence=1.0)
    life.vote("cnv_a", helpful=False, signal="rollback")
    life.rewrite(OWN, resolution="A better way")
    life.vote("cnv_b", helpful=True)
    assert life.vote("cnv_c", helpful=True).lifecycle == "accepted"
    life.rewrite(OWN, resolution="A better way", stated=0.1)
    assert life.vote("cnv_d", signal="rollback").lifecycle == "accepted"
    assert life.vote("cnv_a", signal="rollback").lifecycle == "rejected"


def test_stale_takes_an_accepted_case_out_and_rejected_goes_before_stale() -> None:
    life = accepted()
    case = life.vote("cnv_c", signal="stale")
    assert case.lifecycle == "stale"
    assert not case.is_findable
    assert Life(stated_confidence=0.3).vote("c", helpful=False, signal="stale").lifecycle == (
        "rejected"
    )


def test_a_stale_case_comes_back_when_all_who_said_so_take_it_back() -> None:
    life = Life(stated_confidence=0.6)
    life.vote("cnv_b", signal="stale")
    life.vote("cnv_c", signal="stale")
    assert life.vote("cnv_b", signal="success").lifecycle == "stale"
    assert life.vote("cnv_d", helpful=True).lifecycle == "stale"
    warned = life.vote("cnv_c", signal="conflict")
    assert (warned.lifecycle, warned.review_reasons) == ("stale", ("conflict",)), (
        "and holds no more"
    )
    again = life.vote("cnv_c", helpful=True)
    assert (again.lifecycle, again.review_reasons) == ("accepted", ())


@pytest.mark.parametrize("judged", ["stale", "rollback"])
@pytest.mark.parametrize("warning", ["conflict", "high_risk"])
def test_who_warns_takes_back_no_judgement(judged: Any, warning: Any) -> None:
    life = Life(stated_confidence=0.55)
    before = life.vote("cnv_b", signal=judged)
    after = life.vote("cnv_b", signal=warning)
    assert not after.is_findable
    assert (after.lifecycle, after.confidence) == (before.lifecycle, before.confidence)
    assert after.review_reasons == (*before.review_reasons, warning)
    assert life.vote("cnv_c", helpful=True).review_reasons == after.review_reasons


def test_what_is_said_of_older_words_makes_no_new_ones_stale_or_accepted() -> None:
    life = Life(stated_confidence=0.8)
    old = life.case.content_revision
    life.rewrite(OWN, diagnosis="Looked again")
    for voter, said in (
        ("b", {"helpful": True}),
        ("c", {"helpful": True}),
        ("d", {"signal": "stale"}),
    ):
        vote = make_vote(voter, at=LATER, content_revision=old, **said)
        life.votes = with_vote(life.votes, vote)
        life.case = after_vote(life.case, life.votes, vote, LATER)
    assert (life.case.lifecycle, life.case.is_findable) == ("draft", True)


@pytest.mark.parametrize("found", [{"helpful": True}, {"signal": "success"}])
def test_a_person_whom_it_helped_clears_what_one_voice_called_stale(found: dict[str, Any]) -> None:
    life = accepted()
    life.vote("cnv_x", signal="stale")
    assert life.vote("cnv_y", **found).lifecycle == "stale", "no agent alone takes it back"
    assert life.vote("person:ann", by="person", **found).lifecycle == "accepted"
    draft = Life(stated_confidence=0.6)
    draft.vote("cnv_x", signal="stale")
    assert draft.vote("person:ann", by="person", helpful=False).lifecycle == "stale"
    assert draft.vote("person:ann", by="person", **found).lifecycle == "draft"
    assert draft.vote("cnv_x", signal="stale").lifecycle == "stale"


def test_review_is_asked_for_by_signal_and_by_low_confidence() -> None:
    life = Life(stated_confidence=0.5)
    assert life.vote("cnv_b", signal="high_risk").review_reasons == ("high_risk",)
    assert life.vote("cnv_c", signal="rollback").review_reasons == ("rollback", "high_risk")
    assert life.vote("cnv_d", helpful=False).review_reasons == (
        "low_confidence",
        "rollback",
        "high_risk",
    )
    assert life.vote("cnv_b", signal="success").review_reasons == ("low_confidence", "rollback")
    assert life.vote("cnv_e", helpful=True).review_reasons == ("rollback",)
    assert life.vote("cnv_c", helpful=True).review_reasons == (), "who rolled it back takes it back"


def test_a_person_whom_it_helped_has_looked_at_it() -> None:
    life = Life(stated_confidence=0.5)
    life.vote("cnv_b", signal="high_risk")
    life.vote("cnv_c", signal="conflict")
    by_hand = {"by": "person"}
    assert life.vote("person:ann", **by_hand, helpful=False).review_reasons == (
        "conflict",
        "high_risk",
    )
    risky = life.vote("person:ann", **by_hand, helpful=True, signal="high_risk")
    assert risky.review_reasons == ("high_risk",), "what is said just now stands"
    assert life.vote("person:ann", **by_hand, signal="success").review_reasons == ()
    assert life.vote("cnv_d", helpful=True).review_reasons == ()


def test_no_agents_rewriting_answers_what_review_was_asked_for() -> None:
    life = Life(stated_confidence=0.5)
    life.vote("cnv_b", signal="conflict")
    life.vote("cnv_c", helpful=False)
    assert life.case.review_reasons == ("conflict",)
    assert life.rewrite("cnv_b", stated=0.4).review_reasons == ("low_confidence", "conflict")
    again = life.rewrite("cnv_b", diagnosis="Looked again")
    assert again.review_reasons == ("low_confidence", "conflict"), "or it would change a sign"
    assert life.vote("cnv_d", helpful=True).review_reasons == ("conflict",)
    assert life.vote("cnv_b", helpful=True).review_reasons == (), "who warned takes it back"
    life.vote("cnv_b", signal="high_risk")
    by_hand = life.rewrite("person:ann", by="person", diagnosis="Looked myself")
    assert by_hand.review_reasons == ()
