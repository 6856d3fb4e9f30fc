"""Write the events of all turns: stored first, then shown to readers.

Each turn has one `TurnEvents` that numbers its events. One writer task commits in batches what was
emitted meanwhile; deltas of a turn that wait one after another are joined into one. Readers get an
event only when it is stored: what a client has seen is there after a crash.

If the store cannot be written it is tried again until it can. Meanwhile nothing is lost and nothing
is shown: events wait in order. What waits is bounded by what the running turns produce; new turns
are not accepted because storing them fails, and a turn that ends keeps its lane until it is stored.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import anyio

from gateway.conversations.feed import EventFeed, OnShown, Subscription
from gateway.conversations.model import COMPLETED, DELTAS, UNSYNCED, Turn, TurnEvent
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.turns import TurnStore
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text
from memory.errors import StoreConflict, StoreUnavailable

_log = logging.getLogger(__name__)

OnLost = Callable[[ConversationId], None]
"""Called with a conversation that another node owns now."""

_WINDOW = 1024
_BATCH = 512
_RETRY_S = 0.5
_PATIENCE_S = 20.0
"""How long a store may fail before waiting for a result ends with an error."""
_LAST_TRY_S = 5.0
"""When the log is stopped, waiting events get this long to be stored."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A queue entry: an event, a turn's ending, both, or a flush marker."""

    owner: "TurnEvents"
    event: TurnEvent | None
    ending: Turn | None = None
    is_synced: bool = True
    """False: a cut of the power may lose it until a synced entry is stored."""
    stored: anyio.Event | None = None
    """Set when it is stored, if a task waits for that."""
    more: list[str] = field(default_factory=list)
    """Texts of later deltas that were joined to this one."""
    sealed: bool = False
    """It was handed to the store, perhaps without success: it changes no more."""

    @property
    def conversation_id(self) -> ConversationId:
        return self.owner.conversation_id

    def give_up(self) -> None:
        """Wake the task that waits until it is stored."""
        if self.stored is not None:
            self.stored.set()

    def seal(self) -> TurnEvent | None:
        self.sealed = True
        if self.event is not None and self.more:
            data = json.loads(self.event.data)
            data["text"] = "".join([data["text"], *self.more])
            self.event = replace(self.event, data=json_text(data))
            self.more = []
        return self.event


class TurnEvents:
    """The writing end of one turn's events. One writer; made by `EventLog.open_turn`.

    What is emitted before the turn is stored waits for that, and is dropped if the turn is refused.
    So is everything once another node owns the conversation.
    """

    def __init__(self, log: "EventLog", turn: Turn, last_n: int) -> None:
        self._log = log
        self._turn = turn
        self.conversation_id = turn.conversation_id
        self.epoch = turn.epoch
        """Of the lease under which this writes."""
        self._entry = partial(_Entry, self)
        self._n = last_n
        self._held: list[_Entry] | None = None
        self._decided: anyio.Event | None = None
        self.is_lost = False
        """True if another node owns the conversation now."""
        self.is_refused = False
        """True if it is lost, or the turn could not be stored: it must not go on."""
        self._last: _Entry | None = None
        self._completed: anyio.Event | None = None

    def emit(self, kind: str, **fields: Any) -> None:
        """Add an event; it is stored and shown soon, in order. Never blocks, never raises.

        The fields are copied. After `complete` nothing is added.
        """
        if self._completed is not None:
            _log.error("event_after_end", extra={"turn_id": self._turn.id, "type": kind})
            return
        if kind in DELTAS and self._join(kind, fields):
            return
        self._last = self._entry(self.make_event(kind, fields), is_synced=kind not in UNSYNCED)
        self._enqueue(self._last)

    def _enqueue(self, entry: _Entry) -> None:
        if self.is_refused:
            entry.give_up()
        elif self._held is None:
            self._log.enqueue(entry)
        else:
            self._held.append(entry)

    def hold(self) -> None:
        """Keep what is emitted until `release` or `refuse`."""
        self._held, self._decided = [], anyio.Event()

    def release(self, stored: Turn, *first: _Entry) -> None:
        """Store `first` and what was kept: the turn is stored, under its epoch."""
        assert self._decided is not None, "hold first"
        self.epoch = stored.epoch
        kept, self._held = self._held or [], None
        for entry in (*first, *kept):
            self._enqueue(entry)
        self._decided.set()

    def refuse(self) -> None:
        """Store nothing, now and later: the turn could not be stored."""
        assert self._decided is not None, "hold first"
        self._refuse()

    def lose(self) -> None:
        """Store nothing more: another node owns the conversation. Whoever waits goes on."""
        self.is_lost = True
        self._refuse()

    def _refuse(self) -> None:
        self.is_refused = True
        for entry in self._held or ():
            entry.give_up()
        if self._decided is not None:
            self._decided.set()

    async def wait_decided(self) -> bool:
        """Wait until the turn is stored or refused; return whether it is stored."""
        if self._decided is not None:
            await self._decided.wait()
        return not self.is_refused

    def _join(self, kind: str, fields: dict[str, Any]) -> bool:
        last = self._last
        if (
            last is None
            or last.event is None
            or last.event.type != kind
            or last.sealed
            or fields.keys() != {"text"}
        ):
            return False
        last.more.append(fields["text"])
        return True

    async def flush(self) -> None:
        """Wait until everything emitted is stored, however long the store cannot be written.

        Returns also if nothing is stored because the turn `is_refused`, as the other waits do.
        """
        await self._store(self._entry(None))

    async def note_ending(self, turn: Turn) -> None:
        """Store how the turn ended, still as running, before `complete`.

        Recovery after a crash in between completes the turn with this ending, so `complete` with
        the same one need not be synced. Waits as `complete` does.
        """
        await self._store(self._entry(None, replace(turn, state="running")))

    async def _store(self, entry: _Entry) -> None:
        entry.stored = anyio.Event()
        self._enqueue(entry)
        await entry.stored.wait()

    async def complete(self, turn: Turn, fields: dict[str, Any], *, is_synced: bool = True) -> None:
        """Store how the turn ended together with its last event, after everything emitted.

        Waits until it is stored, however long the store cannot be written; cancelling the wait
        does not take it back. A second call waits for the first one's.
        """
        if self._completed is None:
            self._completed = anyio.Event()
            event = self.make_event(COMPLETED, fields)
            self._enqueue(self._entry(event, turn, is_synced, self._completed))
        else:
            _log.error("turn_completed_twice", extra={"turn_id": self._turn.id})
        await self._completed.wait()

    def make_event(self, kind: str, fields: dict[str, Any]) -> TurnEvent:
        """Return the turn's next event, without its `seq`."""
        self._n += 1
        data = {
            **fields,
            "turn_id": self._turn.id,
            "conversation_id": self._turn.conversation_id,
        }
        return TurnEvent(
            seq=0,
            conversation_id=self._turn.conversation_id,
            turn_id=self._turn.id,
            n=self._n,
            type=kind,
            data=json_text(data),
        )


class EventLog:
    """All turns' events. `run` must be running; made by `open_event_log`.

    A conversation's window holds `window` events; at most `batch` are stored or read at once.
    """

    def __init__(
        self,
        events: EventStore,
        turns: TurnStore,
        *,
        window: int = _WINDOW,
        batch: int = _BATCH,
        retry_s: float = _RETRY_S,
        patience_s: float = _PATIENCE_S,
        on_shown: OnShown = lambda _: None,
        on_lost: OnLost = lambda _: None,
    ) -> None:
        self._events = events
        self._turns = turns
        self.feed = EventFeed(events, window=window, batch=batch, on_shown=on_shown)
        self._batch = batch
        self._retry_s = retry_s
        self._patience_s = patience_s
        self._queue: deque[_Entry] = deque()
        self._work = asyncio.Event()
        self._storing = anyio.Lock()
        """Held from the choice of `seq` numbers until what carries them is stored."""
        self._on_lost = on_lost
        self._failing_since: float | None = None
        self._stuck = anyio.Event()

    @property
    def backlog(self) -> int:
        """Number of events that wait to be stored."""
        return len(self._queue)

    async def open_turn(self, turn: Turn) -> TurnEvents:
        """Return the writing end of a turn that may have events already."""
        return TurnEvents(self, turn, await self._events.last_n(turn.id))

    def open_new_turn(self, turn: Turn) -> TurnEvents:
        """Return the writing end of a turn without events."""
        return TurnEvents(self, turn, 0)

    async def begin_turn(
        self,
        events: TurnEvents,
        kind: str,
        fields: dict[str, Any],
        store: Callable[[Sequence[TurnEvent]], Awaitable[Turn]],
    ) -> None:
        """Store a new turn's first event in the transaction of `store`, which gets it, and show it.

        Meanwhile what is emitted is kept. While events cannot be stored `store` gets none, and the
        event is stored later like any other. If `store` raises, the turn is refused and not shown.
        """
        events.hold()
        first = events.make_event(kind, fields)
        try:
            async with self._storing:
                if self._failing_since is None:
                    (first,) = await self._placed([first])
                    events.release(await self._store_first(first, store))
                    return
            stored = await store([])
        except BaseException:
            events.refuse()
            raise
        events.release(stored, _Entry(events, first))

    async def _store_first(
        self, event: TurnEvent, store: Callable[[Sequence[TurnEvent]], Awaitable[Turn]]
    ) -> Turn:
        try:
            turn = await store([event])
        except StoreConflict:
            self.feed.forget(event.conversation_id)
            raise
        self.feed.show([event])
        return turn

    def enqueue(self, entry: _Entry) -> None:
        """Add an entry to the queue."""
        self._queue.append(entry)
        self._work.set()

    async def run(self) -> None:
        """Store queued events in order until cancelled; then store what waits first."""
        if self._queue:  # left by a run that failed
            self._work.set()
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                while not await self._store_queued():  # noqa: ASYNC110  a disk signals nothing
                    await anyio.sleep(self._retry_s)
        finally:
            with anyio.move_on_after(_LAST_TRY_S, shield=True):
                while self._queue and await self._store_queued():
                    pass

    async def _store_queued(self) -> bool:
        """Store everything queued; return False as soon as the store cannot be written."""
        while self._queue:
            for batch in filter(None, self._next_batches()):
                try:
                    async with self._storing:
                        await self._store_apart(batch)
                except StoreUnavailable:
                    self._note_failure()
                    return False
                for entry in batch:
                    self._queue.popleft()
                    entry.give_up()
                if self._failing_since is not None:
                    self._failing_since = None
                    if self._stuck.is_set():
                        self._stuck = anyio.Event()
                    _log.warning("events_stored_again", extra={"waiting": len(self._queue)})
        return True

    def _next_batches(self) -> list[list[_Entry]]:
        """Return what to store next: the head of the queue in two batches; either may be empty.

        If several turns end, what other turns do goes ahead and each ending is stored by itself: it
        takes milliseconds. What was handed to the store before stays first, with its numbers.
        """
        if sum(entry.ending is not None for entry in self._queue) <= 1:
            return [list(islice(self._queue, self._batch))]
        early: list[_Entry] = []
        late: list[_Entry] = []
        waiting: set[ConversationId] = set()
        for entry in self._queue:
            if entry.ending and not entry.sealed:
                waiting.add(entry.conversation_id)
            (late if entry.conversation_id in waiting else early).append(entry)
        self._queue = deque([*early, *late])
        if len(early) > self._batch:
            return [early[: self._batch]]
        return [early, late[:1]]

    def _note_failure(self) -> None:
        now = anyio.current_time()
        if self._failing_since is None:  # the log may be on the same full disk: only once
            self._failing_since = now
            _log.exception("events_not_stored", extra={"waiting": len(self._queue)})
        if now - self._failing_since >= self._patience_s:
            self._stuck.set()

    async def ping(self) -> str | None:
        """Return None, or a sentence while events cannot be stored."""
        if self._failing_since is None:
            return None
        return "Events cannot be stored now; they wait in memory, and the server keeps trying."

    async def until_stuck(self) -> None:
        """Wait until nothing could be stored for `patience_s` seconds."""
        await self._stuck.wait()

    async def _store_apart(self, batch: list[_Entry]) -> None:
        """Store a batch; if the store refuses it, each entry by itself.

        A fault in one turn's events must not stop the others'.
        """
        try:
            await self._store(batch)
        except StoreConflict:
            for entry in batch:
                self.feed.forget(entry.conversation_id)
            for entry in batch:
                try:
                    await self._store([entry])
                except StoreConflict:
                    event_id = entry.event and entry.event.id
                    _log.exception("event_refused", extra={"event_id": event_id})

    async def _placed(self, events: Sequence[TurnEvent]) -> list[TurnEvent]:
        """Put events behind the last ones of their conversations; until they are shown, another
        call gives them the same places.
        """
        last: dict[ConversationId, int] = {}
        placed = []
        for event in events:
            where = event.conversation_id
            if where not in last:
                last[where] = await self.feed.last_own_seq(where)
            last[where] += 1
            placed.append(replace(event, seq=last[where]))
        return placed

    async def _store(self, batch: list[_Entry]) -> None:
        """Store a batch and show it. A retry uses the same numbers.

        Raise `StoreUnavailable` if, as far as can be known, it is not stored.
        """
        epochs = _latest_epochs(batch)
        kept = [entry for entry in batch if not entry.owner.is_refused]
        sealed = [event for entry in kept if (event := entry.seal()) is not None]
        events = await self._placed(sealed)
        endings = [entry.ending for entry in kept if entry.ending is not None]
        is_synced = any(entry.is_synced for entry in kept)
        lost: Collection[ConversationId] = ()
        if endings:
            lost = await self._turns.finish(endings, events, epochs=epochs, is_synced=is_synced)
        elif events:
            lost = await self._events.append(events, epochs=epochs, is_synced=is_synced)
        if lost:
            self._lose(kept, lost)
            events = [event for event in events if event.conversation_id not in lost]
        if events:
            self.feed.show(events)

    def _lose(self, batch: Sequence[_Entry], lost: Collection[ConversationId]) -> None:
        for entry in batch:
            if entry.conversation_id in lost:
                entry.owner.lose()
        for conversation_id in lost:
            _log.warning("conversation_lost", extra={"conversation_id": conversation_id})
            self.feed.lose(conversation_id)
            self._on_lost(conversation_id)

    def subscribe(
        self, conversation_id: ConversationId, after_seq: int, *, turn_id: TurnId | None = None
    ) -> Subscription:
        """Read a conversation's events after a `seq`, or one turn's alone; `async with` it."""
        return Subscription(self.feed, conversation_id, after_seq, turn_id)


def _latest_epochs(batch: Sequence[_Entry]) -> Mapping[ConversationId, int]:
    """Return the epoch of each conversation; what is of an earlier one is lost."""
    epochs: dict[ConversationId, int] = {}
    for entry in batch:
        latest = max(epochs.get(entry.conversation_id, 0), entry.owner.epoch)
        epochs[entry.conversation_id] = latest
    for entry in batch:
        if entry.owner.epoch < epochs[entry.conversation_id]:
            entry.owner.lose()
    return epochs


async def open_event_log(
    events: EventStore,
    turns: TurnStore,
    on_shown: OnShown = lambda _: None,
    on_lost: OnLost = lambda _: None,
) -> EventLog:
    """Return the log; damage that would keep it from storing events is out of the way.

    `on_shown` is called with events that were stored, on the loop; it must be quick and not raise.
    So must `on_lost`, with a conversation that another node owns now.
    """
    await events.set_aside()
    return EventLog(events, turns, on_shown=on_shown, on_lost=on_lost)
