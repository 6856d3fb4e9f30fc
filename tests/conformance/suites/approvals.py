"""What every store of approvals must do."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.conversations.leases import Node
from gateway.conversations.model import Approval, ApprovalAnswer, Turn
from gateway.ids import ApprovalId, ConversationId, NodeId, TurnId, UserId
from memory.errors import StoreConflict
from tests.conformance.suites.cancellation import Cut, both_cuts, cut_everywhere
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    BOB,
    TEXTS,
    Stores,
    StoresSuite,
    at,
    conversation,
    ended,
    turn,
)


def approval(name: str, one: Turn, **fields: Any) -> Approval:
    """Make an open approval with the id `apr_<name>` for a call of a turn."""
    blank = Approval(
        id=ApprovalId(f"apr_{name}"),
        user_id=one.user_id,
        conversation_id=one.conversation_id,
        turn_id=one.id,
        call_index=1,
        tool_use_id=f"toolu_{name}",
        name="Bash",
        summary=f"rm {name}",
        language="en",
        input={"command": f"rm {name}"},
        hidden=[{"path": "command", "chars": 3}],
        fingerprint=f"rm {name}",
        created_at=AT,
    )
    return replace(blank, **fields)


def answer_to(asked: Approval, **fields: Any) -> ApprovalAnswer:
    """Make an answer that allows the call."""
    blank = ApprovalAnswer(
        approval_id=asked.id, decision="allow", message="Go on.", answers={"Why?": "So."}, at=at(5)
    )
    return replace(blank, **fields)


def emptied(asked: Approval, **fields: Any) -> Approval:
    """Return what is left of an approval whose input is no longer needed."""
    return replace(asked, input={}, hidden=[], **fields)


def answered(asked: Approval, answer: ApprovalAnswer) -> Approval:
    """Return an approval after its answer."""
    return replace(
        asked if answer.keeps_input else emptied(asked),
        state="answered",
        decision=answer.decision,
        message=answer.message,
        answers=answer.answers,
        ended_at=answer.at,
    )


async def asked_in(stores: Stores, name: str, one: Turn, **fields: Any) -> Approval:
    """Store an open approval."""
    asked = approval(name, one, **fields)
    await stores.approvals.add(asked)
    return asked


async def now_of(stores: Stores, asked: Approval) -> Approval | None:
    """Read an approval again."""
    return await stores.approvals.get(asked.id, asked.user_id)


async def one_in_each_state(stores: Stores, one: Turn, later: Turn) -> dict[str, Approval]:
    """Store an approval in each state, all of the first of two turns of a conversation."""
    made = {
        state: await asked_in(stores, state, one)
        for state in ("open", "answered", "withdrawn", "lost")
    }
    await stores.approvals.answer(answer_to(made["answered"]))
    await stores.approvals.withdraw(made["withdrawn"].id, at(6))
    fingerprint = made["lost"].fingerprint
    await asked_in(stores, "again", later, fingerprint=fingerprint, created_at=at(7))
    found = {state: await now_of(stores, asked) for state, asked in made.items()}
    states = {state: asked and asked.state for state, asked in found.items()}
    assert states == {state: state for state in made}
    return {state: asked for state, asked in found.items() if asked}


class ApprovalStoreSuite(StoresSuite):
    """The contracts of `ApprovalStore`."""

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:6])
    async def test_an_approval_comes_back_as_it_was_written(
        self, stores: Stores, text: str
    ) -> None:
        one = await first_turn(stores)
        asked = await asked_in(
            stores, "1", one, summary=text, input={"深": [text, None, 1.5]}, hidden=[{"path": text}]
        )
        assert await now_of(stores, asked) == asked
        answer = answer_to(asked, message=text, answers={text: text})
        assert await stores.approvals.answer(answer)
        assert await now_of(stores, asked) == answered(asked, answer)

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:6])
    async def test_its_question_is_kept_and_replaced_while_it_is_open(
        self, stores: Stores, text: str
    ) -> None:
        one, later = await two_turns(stores)
        asked = await asked_in(stores, "1", one, question={"深": [text, None]})
        assert await now_of(stores, asked) == asked
        await stores.approvals.extend(asked.id, {"why": text})
        asked = replace(asked, question={"why": text})
        assert await now_of(stores, asked) == asked
        known = await one_in_each_state(stores, one, later)
        for ended_one in (known["answered"], known["withdrawn"], known["lost"]):
            await stores.approvals.extend(ended_one.id, {"why": text})
            assert await now_of(stores, ended_one) == ended_one

    async def test_only_an_open_approval_has_a_question(self, stores: Stores) -> None:
        one, later = await two_turns(stores)
        question = {"why": "So."}
        said, gone, lost = [await asked_in(stores, name, one, question=question) for name in "123"]
        answer = answer_to(said)
        assert await stores.approvals.answer(answer)
        await stores.approvals.withdraw(gone.id, at(6))
        await asked_in(stores, "again", later, fingerprint=lost.fingerprint, created_at=at(7))
        assert await now_of(stores, said) == replace(answered(said, answer), question=None)
        for asked in (gone, lost):
            found = await now_of(stores, asked)
            assert found is not None
            assert (found.input, found.question) == ({}, None)

    async def test_those_are_found_that_run_at_other_nodes(self, stores: Stores) -> None:
        here, there = (Node(id=NodeId(name), incarnation=name) for name in ("here", "there"))
        for node in (here, there):
            await stores.leases.join(node, ttl_ms=3_600_000)
        running: dict[str, Any] = {"state": "running", "started_at": AT}
        kinds = {"mine": here, "theirs": there, "said": there, "queued": there, "nobodys": None}
        for name, holder in kinds.items():
            one = await first_turn(stores, name, **({} if name == "queued" else running))
            await asked_in(stores, name, one)
            if holder is not None:
                assert await stores.leases.take(holder, one.conversation_id)
        await stores.approvals.answer(answer_to(approval("said", turn())))
        bobs = await first_turn(stores, "bobs", BOB, **running)
        await asked_in(stores, "bobs", bobs)
        assert await stores.leases.take(there, bobs.conversation_id)
        assert set(await stores.approvals.asked_elsewhere(ANN, here)) == {"apr_theirs"}
        assert set(await stores.approvals.asked_elsewhere(ANN, there)) == {"apr_mine"}
        assert set(await stores.approvals.asked_elsewhere(BOB, here)) == {"apr_bobs"}

    async def test_another_users_approval_is_not_found(self, stores: Stores) -> None:
        asked = await asked_in(stores, "1", await first_turn(stores))
        assert await stores.approvals.get(asked.id, BOB) is None
        assert await stores.approvals.get(ApprovalId("apr_none"), ANN) is None

    async def test_only_an_open_approval_takes_an_answer(self, stores: Stores) -> None:
        one, later = await two_turns(stores)
        known = await one_in_each_state(stores, one, later)
        for state in ("answered", "withdrawn", "lost"):
            other = answer_to(known[state], decision="deny", message="No.", at=at(9))
            assert not await stores.approvals.answer(other)
            assert await now_of(stores, known[state]) == known[state]
        assert not await stores.approvals.answer(answer_to(approval("none", one)))
        denial = answer_to(known["open"], decision="deny", answers=None, keeps_input=False)
        assert await stores.approvals.answer(denial)
        assert await now_of(stores, known["open"]) == answered(known["open"], denial)

    async def test_only_an_open_approval_is_withdrawn(self, stores: Stores) -> None:
        one, later = await two_turns(stores)
        known = await one_in_each_state(stores, one, later)
        for asked in known.values():
            await stores.approvals.withdraw(asked.id, at(9))
        await stores.approvals.withdraw(ApprovalId("apr_none"), at(9))
        gone = emptied(known.pop("open"), state="withdrawn", ended_at=at(9))
        for asked in (gone, *known.values()):
            assert await now_of(stores, asked) == asked

    async def test_only_an_answer_is_taken_back(self, stores: Stores) -> None:
        one, later = await two_turns(stores)
        known = await one_in_each_state(stores, one, later)
        for asked in known.values():
            await stores.approvals.reopen(asked.id)
        await stores.approvals.reopen(ApprovalId("apr_none"))
        known["answered"] = approval("answered", one)
        for asked in known.values():
            assert await now_of(stores, asked) == asked

    async def test_asking_about_the_same_call_again_loses_the_open_one_before(
        self, stores: Stores
    ) -> None:
        """Of an earlier turn of the same conversation; not an answered one, and none that does something else."""
        one, later = await two_turns(stores)
        elsewhere = await first_turn(stores, "b")
        same = {"fingerprint": "rm x"}
        said = await asked_in(stores, "answered", one, **same)
        assert await stores.approvals.answer(answer_to(said))
        lost = await asked_in(stores, "lost", one, **same)
        kept = [
            answered(said, answer_to(said)),
            await asked_in(stores, "other", one),
            await asked_in(stores, "elsewhere", elsewhere, **same),
            await asked_in(stores, "same_turn", later, **same),
        ]
        again = await asked_in(stores, "again", later, **same, created_at=at(3))
        assert await now_of(stores, lost) == emptied(lost, state="lost", ended_at=AT)
        for asked in (*kept, again):
            assert await now_of(stores, asked) == asked

    async def test_open_ones_and_those_lost_of_late_are_listed_oldest_first(
        self, stores: Stores
    ) -> None:
        one, later = await two_turns(stores)
        elsewhere = await first_turn(stores, "b")
        bobs = await first_turn(stores, "c", BOB)
        known = await one_in_each_state(stores, one, later)  # one is lost at 7
        await asked_in(stores, "bobs", bobs)
        await asked_in(stores, "young", one, created_at=at(8))
        await asked_in(stores, "other", elsewhere, created_at=at(2))
        await asked_in(stores, "old", one, created_at=at(-1))

        async def listed(
            since: float, of: ConversationId | None = None, user: UserId = ANN
        ) -> list[str]:
            found = await stores.approvals.listed(user, of, lost_since=at(since))
            return [asked.id.removeprefix("apr_") for asked in found]

        assert await listed(7) == ["old", "open", "other", "again", "young"]
        assert await listed(6.9) == ["old", "lost", "open", "other", "again", "young"]
        assert await listed(7, elsewhere.conversation_id) == ["other"]
        assert await listed(7, elsewhere.conversation_id, BOB) == []
        assert await listed(7, user=BOB) == ["bobs"]
        found = await stores.approvals.listed(ANN, one.conversation_id, lost_since=at(6))
        assert known["lost"] in found

    async def test_a_turns_approvals_are_listed_in_every_state_oldest_first(
        self, stores: Stores
    ) -> None:
        one, later = await two_turns(stores)
        known = await one_in_each_state(stores, one, later)
        first = await asked_in(stores, "z_first", one, created_at=at(-1))
        found = list(await stores.approvals.of_turn(one.id))
        assert found[0] == first
        assert sorted(found[1:], key=lambda asked: asked.id) == sorted(
            known.values(), key=lambda asked: asked.id
        )
        assert [asked.id for asked in await stores.approvals.of_turn(later.id)] == ["apr_again"]
        assert await stores.approvals.of_turn(TurnId("trn_none")) == []

    async def test_what_would_run_is_dropped_when_its_turn_has_ended(self, stores: Stores) -> None:
        """It stays while the approval is open, which then outlives its turn."""
        one, later = await two_turns(stores)
        waiting = await asked_in(stores, "waiting", one)
        said = await asked_in(stores, "said", one)
        await stores.approvals.answer(answer_to(said))
        await stores.turns.finish([ended(one)], [])
        assert await now_of(stores, waiting) == waiting
        assert await now_of(stores, said) == answered(emptied(said), answer_to(said))
        answer = answer_to(waiting)
        run = replace(turn("a3"), approval_id=waiting.id)
        run = await stores.turns.accept(run, answer=answer)
        await stores.turns.finish([ended(later)], [])
        assert await now_of(stores, waiting) == answered(waiting, answer)
        await stores.turns.finish([ended(run)], [])
        assert await now_of(stores, waiting) == answered(emptied(waiting), answer)

    async def test_an_answer_that_starts_a_turn_is_stored_with_it_or_not_at_all(
        self, stores: Stores
    ) -> None:
        one = await first_turn(stores)
        asked = await asked_in(stores, "1", one)
        run = replace(turn("a2"), approval_id=asked.id)
        accepted = await stores.turns.accept(run, answer=answer_to(asked))
        assert await now_of(stores, asked) == answered(asked, answer_to(asked))
        with pytest.raises(StoreConflict):
            await stores.turns.accept(replace(run, id=TurnId("trn_a3")), answer=answer_to(asked))
        assert await stores.turns.get(TurnId("trn_a3")) is None
        await stores.turns.finish([replace(accepted, state="withdrawn", finished_at=at(6))], [])
        assert await now_of(stores, asked) == asked, "a run that was withdrawn used up nothing"

    async def test_an_approval_goes_with_its_conversation(self, stores: Stores) -> None:
        asked = await asked_in(stores, "1", await first_turn(stores))
        kept = await asked_in(stores, "2", await first_turn(stores, "b"))
        await stores.conversations.delete(asked.conversation_id, at(9))
        assert await now_of(stores, asked) is None
        assert list(await stores.approvals.listed(ANN, None, lost_since=AT)) == [kept]

    @both_cuts
    async def test_asking_that_is_cancelled_anywhere_is_whole_or_absent(
        self, stores: Stores, cut: Cut
    ) -> None:
        async def cut_at(step: int) -> bool:
            one, later = await two_turns(stores, f"c{step}")
            before = await asked_in(stores, f"before{step}", one, fingerprint="rm x")
            again = approval(f"again{step}", later, fingerprint="rm x")
            was_cut = await cut(stores.approvals.add(again), step)
            found = await now_of(stores, before), await now_of(stores, again)
            lost = emptied(before, state="lost", ended_at=again.created_at)
            assert found in ((before, None), (lost, again))
            return was_cut

        await cut_everywhere(cut_at)


async def first_turn(stores: Stores, of: str = "a", user_id: UserId = ANN, **fields: Any) -> Turn:
    """Store a conversation with one turn."""
    one = turn(f"{of}1", of, user_id, **fields)
    return await stores.turns.accept(one, create=conversation(of, user_id))


async def two_turns(stores: Stores, of: str = "a") -> tuple[Turn, Turn]:
    """Store a conversation with two turns."""
    one = await first_turn(stores, of)
    return one, await stores.turns.accept(turn(f"{of}2", of))
