"""Messages whose storing got no answer: they are stored, or not, and run once or not at all."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import Turn
from gateway.conversations.sql.turns import TurnStore
from memory.errors import CommitUnknown, StoreUnavailable
from tests.support.services import HANG, kinds, running_services, script

_ACCEPT, _GET = TurnStore.accept, TurnStore.get


def lose_answer(monkeypatch: pytest.MonkeyPatch, *, is_stored: bool) -> None:
    """Lose the answer to the storing of the next turn."""

    lost: list[Turn] = []

    async def accept(store: TurnStore, turn: Turn, **more: Any) -> Turn:
        if lost:
            return await _ACCEPT(store, turn, **more)
        lost.append(turn)
        if is_stored:
            await _ACCEPT(store, turn, **more)
        raise CommitUnknown("The database's answer was lost.")

    monkeypatch.setattr(TurnStore, "accept", accept)


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("where", ["new", "free", "busy"])
@pytest.mark.parametrize("max_user_running_turns", [None, 2])
async def test_a_message_whose_storing_got_no_answer_is_answered_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    *,
    is_stored: bool,
    max_user_running_turns: int | None,
) -> None:
    async with running_services(
        tmp_path, max_user_running_turns=max_user_running_turns
    ) as services:
        begun = None
        if where == "free":
            begun = (await services.ask("hello"))["conversation_id"]
        elif where == "busy":
            begun = (await services.begin()).conversation_id
        lose_answer(monkeypatch, is_stored=is_stored)
        accepted = await services.send(script({"text": "Once."}), begun)
        if where == "busy":
            await services.interrupt(accepted.conversation_id)
        assert (await services.result_of(accepted))["reply"] == "Once."
        turns = await services.messages_of(accepted.conversation_id)
        assert [turn.id for turn in turns].count(accepted.turn_id) == 1
        assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
        assert len(turns) == (1 if begun is None else 2)
        events = await services.events_of(accepted)
        assert kinds(events).count("turn.started") == 1
        assert [event.n for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("where", ["new", "free", "busy"])
async def test_a_message_that_may_be_stored_ends_when_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It would be running without an end, and who sends it again would wait for that."""
    monkeypatch.setattr("gateway.chat.intake._IN_DOUBT_S", 0)

    async def away(*_: object) -> None:  # noqa: RUF029  as `get`
        raise StoreUnavailable("The database cannot be read.")

    async with running_services(tmp_path) as services:
        begun = None
        if where == "free":
            begun = (await services.ask("hello"))["conversation_id"]
        elif where == "busy":
            begun = (await services.begin(HANG)).conversation_id
        lose_answer(monkeypatch, is_stored=True)
        monkeypatch.setattr(TurnStore, "get", away)
        with pytest.raises(CommitUnknown):
            await services.send("hello", begun, idempotency_key="k")
        monkeypatch.setattr(TurnStore, "get", _GET)
        await services.ownership.beat()
        with anyio.fail_after(30):
            again = await services.ask("hello", begun, idempotency_key="k")
        turns = await services.messages_of(again["conversation_id"])
        assert [turn.state for turn in turns] == ["completed"] * len(turns)
        assert len(turns) == (1 if begun is None else 2)
        if where == "busy":  # it had not begun, and runs when the turn before it has ended
            assert again["outcome"] == "answered"
            assert turns[0].result is not None
            assert turns[0].result["cause"] == "database_lost"
        else:
            assert again["cause"] == "database_lost"
