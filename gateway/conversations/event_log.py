"""The events of all turns: stored first, then shown, read from the log by any number of readers.

Each turn has one `TurnEvents` that numbers its events. Whatever was emitted meanwhile is committed
together by one writer task, and deltas that follow a delta wait some milliseconds for more, so
durability costs a commit a batch and not one a word. Readers get
an event only when it is stored: what a client has seen is there after a crash. Each conversation
that is being read keeps a window of its last events in memory; a reader that is further behind
reads the store.

A store that cannot be written is tried again until it can. Meanwhile nothing is lost and nothing
shown: events wait in order, and from `_MERGE_FROM` on the deltas of a turn are joined into one. So
what waits is bounded by what the running turns said and did; new ones are not accepted, because
writing them down fails, and a turn that ends keeps its conversation's lane until it is stored.
"""

import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Self, TypeVar

import anyio

from gateway.conversations.channel import Channel
from gateway.conversations.model import COMPLETED, Turn, TurnEvent
from gateway.conversations.store import EventStore, TurnStore
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text
from memory.errors import StoreConflict, StoreUnavailable

_log = logging.getLogger(__name__)

T = TypeVar("T")

_WINDOW = 1024
_BATCH = 512
_FIRST_READ = 16
_READ_CHARS = 65_536
"""A reader is given no more at once, unless one event is larger: it keeps that while its client does not read."""
_MERGE_FROM = 4096
"""Events that wait before deltas are joined: more than a minute's at a full load."""
_LINGER_S = 0.02
"""How long deltas that follow another delta wait for more, so that they share a commit."""
_RETRY_S = 0.5
_PATIENCE_S = 20.0
"""So long a store may fail before whoever waits for an answer is told."""
_LAST_TRY_S = 5.0
"""When the log is stopped, what still waits gets so long to be stored."""
_DELTAS = frozenset({"text.delta", "thinking.delta"})


class _Waiting:
    """An event that waits to be stored, or how a turn ended, or both; or a mark alone: what was before it."""

    __slots__ = ("ending", "event", "is_urgent", "more", "sealed", "stored")

    def __init__(
        self, event: TurnEvent | None, ending: Turn | None = None, *, is_urgent: bool = True
    ) -> None:
        self.event = event
        self.ending = ending
        self.is_urgent = is_urgent
        """Whether it is stored at once; others wait a little for more to be stored with."""
        self.stored = None if event is not None and ending is None else anyio.Event()
        """Set when it is; None where nobody waits for that."""
        self.more: list[str] = []
        """Texts of later deltas that were joined to this one."""
        self.sealed = False
        """It was, or may have been, handed to the store: it changes no more."""

    def seal(self) -> TurnEvent | None:
        self.sealed = True
        if self.event is not None and self.more:
            data = json.loads(self.event.data)
            data["text"] = "".join([data["text"], *self.more])
            self.event = replace(self.event, data=json_text(data))
            self.more = []
        return self.event


class TurnEvents:
    """The writing end of one turn's events. One writer; made by `EventLog.open_turn`."""

    def __init__(self, log: "EventLog", turn: Turn, last_n: int) -> None:
        self._log = log
        self._turn = turn
        self._n = last_n
        self._last: _Waiting | None = None
        self._ending: _Waiting | None = None

    def emit(self, kind: str, **fields: Any) -> None:
        """Add an event; it is stored and shown soon, in order. Never blocks, never raises.

        The fields are taken as they are now. After `complete` nothing is added.
        """
        if self._ending is not None:
            _log.error("event_after_end", extra={"turn_id": self._turn.id, "type": kind})
            return
        if kind in _DELTAS and self._join(kind, fields):
            return
        before = self._last.event if self._last is not None else None
        goes_on = kind in _DELTAS and before is not None and before.type in _DELTAS
        self._last = _Waiting(self._make(kind, fields), is_urgent=not goes_on)
        self._log.enqueue(self._last)

    def _join(self, kind: str, fields: dict[str, Any]) -> bool:
        last = self._last
        joins = (
            last is not None
            and last.event is not None
            and last.event.type == kind
            and not last.sealed
            and self._log.is_far_behind
            and fields.keys() == {"text"}
        )
        if joins and last is not None:
            last.more.append(fields["text"])
        return joins

    async def flush(self) -> None:
        """Wait until all that was emitted is stored, however long the store cannot be written."""
        await self._until_stored(_Waiting(None))

    async def note_ending(self, turn: Turn) -> None:
        """Store how the turn ended, still running, after all that was emitted and before `complete`.

        A crash in between finds it, so that nothing else is told of the turn than what was told of it
        elsewhere meanwhile. Waits as `complete` does.
        """
        await self._until_stored(_Waiting(None, replace(turn, state="running")))

    async def _until_stored(self, waiting: _Waiting) -> None:
        self._log.enqueue(waiting)
        assert waiting.stored is not None, "nobody waits for a mere event"
        await waiting.stored.wait()

    async def complete(self, turn: Turn, fields: dict[str, Any]) -> None:
        """Store how the turn ended together with its last event, after all that were emitted.

        Waits until it is stored, however long the store cannot be written; cancelling the wait
        does not take it back. A second call waits for the first one's.
        """
        if self._ending is None:
            self._ending = _Waiting(self._make(COMPLETED, fields), turn)
            self._log.enqueue(self._ending)
        else:
            _log.error("turn_completed_twice", extra={"turn_id": self._turn.id})
        assert self._ending.stored is not None, "an ending has one"
        await self._ending.stored.wait()

    def _make(self, kind: str, fields: dict[str, Any]) -> TurnEvent:
        self._n += 1
        data = {
            "turn_id": self._turn.id,
            "conversation_id": self._turn.conversation_id,
            **fields,
        }
        return TurnEvent(
            seq=0,  # its place is given when it is stored
            conversation_id=self._turn.conversation_id,
            turn_id=self._turn.id,
            n=self._n,
            type=kind,
            data=json_text(data),
        )


class EventLog:
    """All turns' events. `run` must be running; made by `open_event_log`.

    A conversation's window holds `window` events; `batch` are stored or read at once at most.
    """

    def __init__(
        self,
        events: EventStore,
        turns: TurnStore,
        last_seq: int,
        *,
        window: int = _WINDOW,
        batch: int = _BATCH,
        merge_from: int = _MERGE_FROM,
        retry_s: float = _RETRY_S,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._events = events
        self._turns = turns
        self._stored_seq = last_seq
        self._window = window
        self._batch = batch
        self._merge_from = merge_from
        self._retry_s = retry_s
        self._pending: deque[_Waiting] = deque()
        self._work = anyio.Event()
        self._urgent = anyio.Event()
        self._storing = anyio.Lock()
        """Held from the choice of `seq` numbers until what carries them is stored."""
        self._patience_s = patience_s
        self._failing_since: float | None = None
        self._stuck = anyio.Event()
        self._channels: dict[ConversationId, Channel] = {}

    @property
    def backlog(self) -> int:
        """How many events wait to be stored."""
        return len(self._pending)

    @property
    def is_far_behind(self) -> bool:
        """Whether so many wait that deltas are joined."""
        return len(self._pending) >= self._merge_from

    async def open_turn(self, turn: Turn) -> TurnEvents:
        """Begin (or, after a crash, go on) writing a turn's events."""
        return TurnEvents(self, turn, await self._events.last_n(turn.id))

    def open_new_turn(self, turn: Turn) -> TurnEvents:
        """Begin writing the events of a turn that has none yet."""
        return TurnEvents(self, turn, 0)

    async def begin_turn(
        self,
        turn: Turn,
        kind: str,
        fields: dict[str, Any],
        store: Callable[[Sequence[TurnEvent]], Awaitable[T]],
    ) -> tuple[T, TurnEvents]:
        """Store a new turn's first event in the transaction of `store`, which is given it, and show it.

        While events cannot be stored `store` gets none, and the event is stored later like any other.
        What `store` raises is raised, and nothing is shown.
        """
        events = self.open_new_turn(turn)
        async with self._storing:
            if self._failing_since is None:
                made = events._make(kind, fields)
                first = replace(made, seq=self._stored_seq + 1)
                try:
                    stored = await store([first])
                except StoreConflict:
                    self._stored_seq = max(self._stored_seq, await self._events.last_seq())
                    raise
                self._show([first])
                return stored, events
        stored = await store([])
        events.emit(kind, **fields)
        return stored, events

    def enqueue(self, waiting: _Waiting) -> None:
        """Take an event for storing."""
        self._pending.append(waiting)
        self._work.set()
        if waiting.is_urgent:
            self._urgent.set()

    async def run(self) -> None:
        """Store what is emitted, in order, for ever; when cancelled, what waits is stored first."""
        if self._pending:  # left by a run that failed
            self._work.set()
        try:
            while True:
                await self._work.wait()
                with anyio.move_on_after(_LINGER_S):
                    await self._urgent.wait()
                self._work, self._urgent = anyio.Event(), anyio.Event()
                while not await self._store_pending():  # noqa: ASYNC110  a disk tells nobody
                    await anyio.sleep(self._retry_s)
        finally:
            with anyio.move_on_after(_LAST_TRY_S, shield=True):
                while self._pending and await self._store_pending():
                    pass

    async def _store_pending(self) -> bool:
        """Store all that waits now; False as soon as the store cannot be written."""
        count = len(self._pending)
        while count > 0:
            batch = list(islice(self._pending, min(count, self._batch)))
            count -= len(batch)
            try:
                async with self._storing:
                    await self._store_apart(batch)
            except StoreUnavailable:
                self._note_failure()
                return False
            for waiting in batch:
                self._pending.popleft()
                if waiting.stored is not None:
                    waiting.stored.set()
            if self._failing_since is not None:
                self._failing_since = None
                if self._stuck.is_set():
                    self._stuck = anyio.Event()
                _log.warning("events_stored_again", extra={"waiting": len(self._pending)})
        return True

    def _note_failure(self) -> None:
        now = anyio.current_time()
        if (
            self._failing_since is None
        ):  # a full disk's log is full too: tell the first failure only
            self._failing_since = now
            _log.exception("events_not_stored", extra={"waiting": len(self._pending)})
        if now - self._failing_since >= self._patience_s:
            self._stuck.set()

    async def until_stuck(self) -> None:
        """Wait until nothing could be stored for longer than anybody should wait for an answer."""
        await self._stuck.wait()

    async def _store_apart(self, batch: list[_Waiting]) -> None:
        """Store a batch; where the store refuses it, whatever of it the store takes.

        A fault in one turn's events must not stop the others'.
        """
        try:
            await self._store(batch)
        except StoreConflict:
            self._stored_seq = max(self._stored_seq, await self._events.last_seq())
            for waiting in batch:
                try:
                    await self._store([waiting])
                except StoreConflict:
                    event_id = waiting.event and waiting.event.id
                    _log.exception("event_refused", extra={"event_id": event_id})

    async def _store(self, batch: list[_Waiting]) -> None:
        """Store a batch and show it; tried again it has the same numbers.

        Raises:
            StoreUnavailable: as far as can be known, it is not stored.
        """
        sealed = [event for waiting in batch if (event := waiting.seal()) is not None]
        events = [replace(one, seq=seq) for seq, one in enumerate(sealed, self._stored_seq + 1)]
        endings = [waiting.ending for waiting in batch if waiting.ending is not None]
        if endings:
            await self._turns.finish(endings, events)
        elif events:
            await self._events.append(events)
        if events:
            self._show(events)

    def _show(self, events: Sequence[TurnEvent]) -> None:
        self._stored_seq = events[-1].seq
        touched: dict[ConversationId, list[TurnEvent]] = {}
        for one in events:
            if one.conversation_id in self._channels:
                touched.setdefault(one.conversation_id, []).append(one)
        for conversation_id, own in touched.items():
            self._channels[conversation_id].show(own)

    def end_conversation(self, conversation_id: ConversationId) -> None:
        """Wake the readers of a conversation that was deleted."""
        channel = self._channels.get(conversation_id)
        if channel is not None:
            channel.call()

    @property
    def stored_seq(self) -> int:
        """The place of the last event that is stored; what comes after it is live."""
        return self._stored_seq

    def subscribe(
        self, conversation_id: ConversationId, after_seq: int, *, turn_id: TurnId | None = None
    ) -> "Subscription":
        """Read a conversation's events after one place, or one turn's alone; `async with` it."""
        return Subscription(self, conversation_id, after_seq, turn_id)

    def _enter(self, conversation_id: ConversationId) -> Channel:
        channel = self._channels.get(conversation_id)
        if channel is None:
            channel = self._channels[conversation_id] = Channel(self._stored_seq, self._window)
        channel.users += 1
        return channel

    def _leave(self, conversation_id: ConversationId) -> None:
        channel = self._channels[conversation_id]
        channel.users -= 1
        if channel.users == 0:
            del self._channels[conversation_id]

    async def _read(
        self, conversation_id: ConversationId, seq: int, turn_id: TurnId | None, limit: int
    ) -> Sequence[TurnEvent]:
        limit = min(self._batch, limit)
        return await self._events.after(conversation_id, seq, limit=limit, turn_id=turn_id)


class Subscription:
    """A reader of events: all after a place, each once, in order, then live."""

    def __init__(
        self,
        log: EventLog,
        conversation_id: ConversationId,
        after_seq: int,
        turn_id: TurnId | None,
    ) -> None:
        self._log = log
        self._conversation_id = conversation_id
        self._turn_id = turn_id
        self._seq = after_seq
        self._channel: Channel | None = None
        self._calls = 0
        self._read_limit = _FIRST_READ
        """How many events to read from the store: about `_READ_CHARS` of them, as large as the last ones."""

    async def __aenter__(self) -> Self:
        self._channel = self._log._enter(self._conversation_id)  # noqa: SLF001  two halves of one
        self._calls = self._channel.calls
        return self

    async def __aexit__(self, *_: object) -> None:
        self._channel = None
        self._log._leave(self._conversation_id)  # noqa: SLF001

    async def next(self, wait_s: float) -> list[TurnEvent]:
        """Give the next events; empty when none came within `wait_s` seconds.

        Empty at once, and once, when the conversation was deleted. With `wait_s` 0 it still gives
        what is there. A call that is cancelled takes nothing.
        """
        channel = self._channel
        assert channel is not None, "enter the subscription first"
        alarm = channel.alarm
        found = await self._take(channel)
        with anyio.move_on_after(wait_s):
            while not found and self._calls == channel.calls:
                await alarm.wait()
                alarm = channel.alarm
                found = await self._take(channel)
        self._calls = channel.calls
        return found

    async def _take(self, channel: Channel) -> list[TurnEvent]:
        while True:
            floor = channel.floor  # what is shown while the store is read moves it
            if self._seq >= floor:
                batch: Sequence[TurnEvent] = channel.after(self._seq)
                if not batch:
                    return []
            else:
                batch = await self._read()
                if not batch:
                    self._seq = floor
                    continue
            batch = _first_chars(batch)
            self._seq = batch[-1].seq
            mine = [one for one in batch if self._turn_id in {None, one.turn_id}]
            if mine:
                return mine

    async def _read(self) -> Sequence[TurnEvent]:
        found = await self._log._read(  # noqa: SLF001
            self._conversation_id, self._seq, self._turn_id, self._read_limit
        )
        chars = sum(len(event.data) for event in found)
        self._read_limit = max(1, _READ_CHARS * len(found) // max(1, chars))
        return found

    async def until_completed(self, wait_s: float) -> AsyncIterator[list[TurnEvent]]:
        """Give one turn's events up to its last; an empty list for each `wait_s` of silence."""
        while True:
            events = await self.next(wait_s)
            yield events
            if any(one.type == COMPLETED for one in events):
                return


def _first_chars(events: Sequence[TurnEvent]) -> Sequence[TurnEvent]:
    """Return the first events with at most `_READ_CHARS` of data together, and at least one."""
    chars = 0
    for count, event in enumerate(events):
        chars += len(event.data)
        if count and chars > _READ_CHARS:
            return events[:count]
    return events


async def open_event_log(events: EventStore, turns: TurnStore) -> EventLog:
    """Make the log, going on where the store ends."""
    return EventLog(events, turns, await events.last_seq())
