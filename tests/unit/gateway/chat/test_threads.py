"""Which conversation a history goes on in, with real stores."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.chat.parts import ChatParts
from gateway.chat.threads import ClientMessage, Said, Threads
from gateway.conversations.model import TurnEvent
from gateway.conversations.sql.events import EventStore
from gateway.turns.requests import Accepted
from tests.conformance.suites.conversation_values import ANN, conversation, ended, event, turn
from tests.support.stores import open_file, stores_on

FIRST = ClientMessage(text="继续", before=[])
PIECES = ["void ", "一二", "三 ", "four"]
REPLY = "一二三 four"


def behind(reply: str) -> ClientMessage:
    return ClientMessage(text="more", before=[Said("user", FIRST.text), Said("assistant", reply)])


@pytest.mark.parametrize(
    ("reply", "is_known", "most"),
    [
        (REPLY, True, 0),
        ("void 一二", True, 500),
        ("void 一二三 four", True, 10_000),
        ("void 一二三 four, and more", False, 10_000),
        ("another one", False, 500),
    ],
)
async def test_what_a_turn_streamed_is_read_no_further_than_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str, most: int, *, is_known: bool
) -> None:
    """Between its first words and its last ones the turn has thousands of other events."""
    after, read = EventStore.after, 0

    async def counted(self: EventStore, *words: Any, **more: Any) -> Sequence[TurnEvent]:
        nonlocal read
        events = await after(self, *words, **more)
        read += len(events)
        assert len(events) <= 500
        return events

    monkeypatch.setattr(EventStore, "after", counted)
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        one = await stores.turns.accept(turn(message=FIRST.text), create=conversation())
        texts = [*PIECES[:2], *[None] * 3_000, *PIECES[2:]]
        events = [
            event(n, one, n, type="tool.output")
            if text is None
            else event(n, one, n, data=json.dumps({"text": text}))
            for n, text in enumerate(texts, 1)
        ]
        await stores.turns.finish([ended(one, result={"reply": REPLY})], events)
        parts = SimpleNamespace(
            client_turns=stores.client_turns, turns=stores.turns, events=stores.events
        )
        threads = Threads(cast("ChatParts", parts), cast("Any", None))
        await threads.note(
            ANN, FIRST, Accepted(conversation_id=one.conversation_id, turn_id=one.id)
        )
        found = await threads.turn_before(ANN, behind(reply))
    assert (found is not None) is is_known
    assert read <= most
