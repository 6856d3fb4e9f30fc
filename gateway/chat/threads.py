"""Find the conversation of a client that sends its whole history instead of our ids.

A turn is remembered under a hash of the person's messages up to it. The same messages with one more
go on behind that turn; where the turn is not the last of its conversation (an edited message, an
answer that is made again) a fork goes on, and the old turns stay as they were.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import loads
from typing import Final, Literal

import anyio.to_thread

from gateway.chat.conversations import Conversations
from gateway.chat.parts import ChatParts
from gateway.conversations.model import ClientTurn, Turn
from gateway.errors import NotFound
from gateway.ids import ConversationId, UserId
from gateway.jsonsafe import json_text
from gateway.turns.requests import Accepted

_MOST_ALIKE: Final = 20
"""Conversations that begin with the same messages, and are compared by their replies."""
_LOOKED_BACK: Final = 200
"""Turns of a conversation that a shortened history is compared with."""
_READ_AT_ONCE: Final = 500
"""Events of a turn."""
_READ_AT_ONCE_CHARS: Final = 65_536
"""Longer texts are hashed and compared in a thread, since streams would wait for it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a history; `tool` is the result of a tool of the client's own."""

    role: Literal["user", "assistant", "tool"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMessage:
    """A new message, with what the client says of its place."""

    text: str
    before: Sequence[Said]
    """The client's history, oldest first, without the new message."""
    thread: str = ""
    """The client's own name of the conversation, or one of our ids; empty if it gave none."""
    sends_whole: bool = True
    """False: the client may send the new message alone in a conversation that goes on."""

    @property
    def asked(self) -> list[str]:
        """The person's earlier messages."""
        return [said.text for said in self.before if said.role == "user"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message goes."""

    conversation_id: ConversationId | None
    """None: into a new conversation."""
    knows_history: bool = True
    """False: the conversation does not hold the client's earlier messages."""


class Threads:
    """Finds and remembers the conversations of clients by their histories."""

    def __init__(self, parts: ChatParts, conversations: Conversations) -> None:
        self._parts = parts
        self._conversations = conversations

    async def place(self, user_id: UserId, message: ClientMessage) -> Place:
        """Return where a message goes; forks a conversation if the history leaves its end.

        Raise `Conflict` if the turn that it goes on behind is not finished.
        """
        behind = await self.turn_before(user_id, message)
        if behind is not None:
            return Place(await self.go_on(user_id, behind))
        named = await self.named(user_id, message) if message.thread else None
        if named is not None and await self._may_append(user_id, named, message):
            return Place(named)
        return Place(None, knows_history=not message.before)

    async def note(self, user_id: UserId, message: ClientMessage, accepted: Accepted) -> None:
        """Remember the turn of a message, so that the next one finds it."""
        await self._parts.client_turns.add(
            ClientTurn(
                user_id=user_id,
                thread=message.thread,
                history=await _hash([*message.asked, message.text]),
                turn_id=accepted.turn_id,
                conversation_id=accepted.conversation_id,
            )
        )

    async def turn_before(self, user_id: UserId, message: ClientMessage) -> Turn | None:
        """Return the turn that answered the history, or the one before it if it was taken back;
        None if the history is empty or not known.
        """
        if not message.asked:
            return None
        found = await self._parts.client_turns.find(
            user_id, message.thread, await _hash(message.asked), limit=_MOST_ALIKE
        )
        told = await _last_reply(message.before)
        for known in found:
            turn = await self._parts.turns.get(known.turn_id)
            if turn is not None and (message.thread or await self._has_reply(turn, told)):
                return turn if turn.state != "withdrawn" else await self._kept_before(turn)
        return None

    async def _kept_before(self, turn: Turn) -> Turn | None:
        where = turn.conversation_id
        kept = await self._parts.turns.history(where, limit=1, before_seq=turn.seq)
        return kept[0] if kept else None

    async def _has_reply(self, turn: Turn, told: str) -> bool:
        """Return whether the last reply of a history is that of a turn, or a beginning of it: a
        stream that was cut off brought no more, and one of a turn that runs has not yet.
        """
        if turn.result is None or _plain(turn.result["reply"]).startswith(told):
            return True
        return await self._has_streamed(turn, told)  # which cannot take back text that is void

    async def _has_streamed(self, turn: Turn, told: str) -> bool:
        """Return whether the text that a turn streamed begins so; its events are read no further
        than that takes.
        """
        last_seq, at = 0, 0
        while at < len(told):
            events = await self._parts.events.after(
                turn.conversation_id, last_seq, limit=_READ_AT_ONCE, turn_id=turn.id
            )
            if not events:
                return False
            last_seq = events[-1].seq
            texts = (loads(event.data)["text"] for event in events if event.type == "text.delta")
            streamed = _plain("".join(texts))[: len(told) - at]
            if not told.startswith(streamed, at):
                return False
            at += len(streamed)
        return True

    async def go_on(self, user_id: UserId, behind: Turn) -> ConversationId:
        """Return the conversation that goes on behind a turn, or behind the one before it if it was
        taken back: that of the turn, or a fork if it is not the last one there.

        Raise `Conflict` if a fork is needed and the turn is not finished.
        """
        where = behind.conversation_id
        if behind.state == "withdrawn":
            behind = await self._kept_before(behind) or behind
        last = await self._parts.turns.history(where, limit=1)
        if not last or last[0].id == behind.id:
            return where
        return await self._conversations.fork(user_id, where, behind.id)

    async def named(self, user_id: UserId, message: ClientMessage) -> ConversationId | None:
        """Return the conversation that a name stands for."""
        known = await self._parts.client_turns.find(user_id, message.thread, None, limit=1)
        try:
            name = known[0].conversation_id if known else message.thread
            return (await self._conversations.get(user_id, name)).conversation.id
        except NotFound:
            return None

    async def _may_append(
        self, user_id: UserId, named: ConversationId, message: ClientMessage
    ) -> bool:
        """Return whether a message goes on at the end of its named conversation: the client sent
        it alone, or a history that begins later.
        """
        if not message.asked:
            return not message.sends_whole
        turns = await self._conversations.messages(
            user_id, named, limit=_LOOKED_BACK, before_seq=None
        )
        last = [turn.message for turn in turns][-len(message.asked) :]
        return len(last) == len(message.asked) and all(
            told.startswith(asked) for told, asked in zip(last, message.asked, strict=True)
        )


def _plain(text: str) -> str:
    """Return a text without white space, which clients change."""
    return "".join(text.split())


async def _last_reply(before: Sequence[Said]) -> str:
    """Return the reply at the end of a history as `_plain` does; empty if there is none."""
    text = before[-1].text if before[-1].role == "assistant" else ""
    if len(text) > _READ_AT_ONCE_CHARS:
        return await anyio.to_thread.run_sync(_plain, text)
    return _plain(text)


async def _hash(asked: Sequence[str]) -> str:
    if sum(map(len, asked)) > _READ_AT_ONCE_CHARS:
        return await anyio.to_thread.run_sync(_hash_blocking, asked)
    return _hash_blocking(asked)


def _hash_blocking(asked: Sequence[str]) -> str:
    return sha256(json_text(list(asked)).encode()).hexdigest()
