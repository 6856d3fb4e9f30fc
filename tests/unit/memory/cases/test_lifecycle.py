"""The lifecycle of a case: drafts, acceptance, rejection, and warnings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import SIGNALS, CaseMetadata
from memory.cases.lifecycle import (
    after_vote,
    is_found_right,
    restated,
)
from memory.cases.votes import is_helpful, with_vote
from tests.unit.memory.cases.judged import LATER, OWN, Life, accepted, make_case, make_vote


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


@pytest.mark.parametrize(
    ("stated", "lifecycle"), [(0.6, "accepted"), (0.599, "draft"), (0.5, "draft")]
)
def test_a_case_that_few_are_sure_of_is_not_accepted(stated: float, lifecycle: str) -> None:
    life = Life(stated_confidence=stated)
    life.vote(OWN, helpful=True)
    assert life.vote("cnv_b", helpful=True).lifecycle == lifecycle


def test_only_a_vote_for_it_accepts() -> None:
    life = Life(stated_confidence=0.7)
    life.vote("cnv_b", helpful=True)
    life.vote("cnv_c", helpful=True)
    life.case = make_case(stated_confidence=0.9, confidence=1.0)
    assert life.vote("cnv_d", signal="conflict").lifecycle == "draft"
    assert life.vote("cnv_d", signal="success").lifecycle == "accepted"


def test_one_voice_does_not_reject_what_was_accepted_or_what_two_found_helpful() -> None:
    life = accepted()
    life.rewrite(OWN, stated=0.2)
    alone = life.vote("cnv_b", helpful=False)
    assert (alone.confidence, alone.lifecycle) == (0.1, "accepted"), (
        "one of the two changed its mind"
    )
    assert life.vote("cnv_c", signal="rollback").lifecycle == "rejected"
    draft = accepted()
    draft.rewrite(OWN, diagnosis="Looked again", stated=0.0)
    assert draft.case.lifecycle == "draft"
    assert draft.vote("cnv_c", helpful=False).lifecycle == "rejected", (
        "nobody found these words right"
    )


def test_what_was_rejected_stays_rejected_whatever_is_voted() -> None:
    life = Life(stated_confidence=0.9, lifecycle="rejected")
    for voter in ("cnv_b", "cnv_c", "cnv_d"):
        assert life.vote(voter, helpful=True).lifecycle == "rejected"
    assert life.vote("cnv_e", signal="stale").lifecycle == "rejected"


@pytest.mark.parametrize(
    ("lifecycle", "votes", "writer", "found_right"),
    [
        ("accepted", [], "cnv_evil", True),
        ("draft", ["cnv_b", "cnv_c"], "cnv_evil", True),
        ("draft", ["cnv_b", "cnv_evil"], "cnv_evil", False),
        ("rejected", ["cnv_b", "cnv_c"], "cnv_evil", True),
        ("stale", ["cnv_b", "cnv_c", "!cnv_evil"], "cnv_evil", True),
        ("stale", ["cnv_b", "cnv_c", "!cnv_x"], "cnv_evil", False),
        ("draft", ["cnv_b"], "cnv_evil", False),
    ],
)
def test_what_others_found_right_is_not_for_one_voice_to_do_away_with(
    lifecycle: Any, votes: list[str], writer: str, found_right: Any
) -> None:
    cast = [
        make_vote(
            vote.lstrip("!"), **({"signal": "stale"} if vote[0] == "!" else {"helpful": True})
        )
        for vote in votes
    ]
    case = make_case(lifecycle=lifecycle)
    assert is_found_right(case, cast, but=writer) is found_right
    assert is_found_right(make_case(content_revision=2), cast, but=writer) is False


@pytest.mark.parametrize("field", ["symptom_summary", "diagnosis", "root_cause", "resolution"])
def test_rewriting_an_accepted_case_makes_it_a_draft_of_one_more_author(field: str) -> None:
    life = accepted()
    revision = life.case.revision
    case = life.rewrite("cnv_c", **{field: "Something else was the matter"})
    assert case.lifecycle == "draft"
    assert case.authors == (OWN, "cnv_c")
    assert (case.revision, case.content_revision) == (revision + 1, revision + 1)
    assert (case.confidence, case.updated_at) == (0.8, LATER), "as its author said it"


def test_a_rewritten_case_needs_somebody_who_did_not_write_it_and_judged_the_new_words() -> None:
    life = accepted()
    life.rewrite("cnv_c", resolution="Deleted the disk")
    assert life.vote("cnv_c", helpful=True).lifecycle == "draft"
    assert life.vote(OWN, helpful=True).lifecycle == "draft"
    assert life.vote("cnv_b", signal="conflict").lifecycle == "draft"
    assert life.vote("cnv_b", helpful=True).lifecycle == "accepted"


def test_metadata_and_stated_confidence_alone_change_neither_lifecycle_nor_authors() -> None:
    life = accepted()
    before = life.case
    tagged = life.rewrite("cnv_c", metadata=CaseMetadata(tags=("disk",)))
    assert (tagged.revision, tagged.content_revision) == (before.revision + 1, 1)
    assert (tagged.lifecycle, tagged.authors) == ("accepted", (OWN,))
    surer = life.rewrite("cnv_c", metadata=tagged.content.metadata, stated=0.5)
    assert (surer.lifecycle, surer.stated_confidence, surer.confidence) == ("accepted", 0.5, 0.7)


@pytest.mark.parametrize(
    ("voted", "stated", "writer", "by", "taken"),
    [
        (False, 0.9, OWN, "agent", 0.9),
        (False, 0.0, OWN, "agent", 0.0),
        (False, 0.9, "cnv_b", "agent", None),
        (False, 0.0, "cnv_b", "agent", None),
        (False, 0.0, "cnv_late", "agent", None),
        (True, 0.0, "cnv_late", "agent", None),
        (False, None, OWN, "agent", None),
        (True, 0.9, OWN, "agent", None),
        (True, 0.7, OWN, "agent", 0.7),
        (True, 0.5, OWN, "agent", 0.5),
        (True, 0.9, "person:ann", "person", 0.9),
        (True, 0.1, "person:ann", "person", 0.1),
    ],
)
def test_who_may_state_a_confidence_anew(
    voted: Any, stated: float | None, writer: str, by: Any, taken: float | None
) -> None:
    votes = [make_vote(helpful=False)] if voted else []
    case = make_case(authors=(OWN, "cnv_late"))
    assert restated(case, votes, stated, writer=writer, by=by) == taken


@pytest.mark.parametrize(
    ("lifecycle", "by", "then"),
    [
        ("stale", "agent", "draft"),
        ("draft", "agent", "draft"),
        ("rejected", "agent", "rejected"),
        ("rejected", "person", "draft"),
    ],
)
def test_what_rewriting_brings_back(lifecycle: Any, by: Any, then: str) -> None:
    life = Life(lifecycle=lifecycle)
    assert life.rewrite("cnv_b", by=by, diagnosis="Looked again").lifecycle == then


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
