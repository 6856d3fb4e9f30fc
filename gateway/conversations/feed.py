"""Stored events for readers: from the store as far as they are behind, then from memory, live.

Each conversation that is being read has a channel with a window of its last events. What another
server stores is brought into it by `FeedFollower`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from typing import Self

from gateway.conversations.doorbell import Doorbell
from gateway.conversations.model import CHANGED, COMPLETED, TurnEvent
from gateway.conversations.sql.events import EventStore
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text

OnShown = Callable[[Sequence[TurnEvent]], None]
"""Called with events that were stored."""

_MAX_NEWS = 32
_MAX_KNOWN = 10_000
"""Conversations whose last event is known without asking the store."""
_WINDOW_CHARS = 1_000_000
_FIRST_READ = 16
_READ_CHARS = 65_536
"""A reader gets no more at once, unless one event is larger: it holds that while its client does
not read."""


class Channel:
    """What the readers of one conversation share: its last events, and an alarm."""

    def __init__(self, floor: int | None, size: int) -> None:
        self._window: deque[TurnEvent] = deque()
        self._size = size
        self._chars = 0
        self.floor = floor
        """Every stored event with a higher `seq` is in the window; None: not known yet."""
        self.alarm = asyncio.Event()
        self.calls = 0
        """How often readers were woken without an event."""
        self.news: deque[TurnEvent] = deque(maxlen=_MAX_NEWS)
        """The last announcements; they are not stored."""
        self.announced = 0
        """How many there were."""
        self.readers = 0
        self.renewals = 0
        """How often a floor that is being read from the store became out of date."""

    @property
    def last_seq(self) -> int | None:
        """The `seq` of the last event that readers can have; None: not known yet."""
        if self.floor is None:
            return None
        return max(self.floor, self._window[-1].seq) if self._window else self.floor

    def show(self, events: Sequence[TurnEvent]) -> None:
        """Add stored events that are not there yet, and wake the readers."""
        if self._window and events[0].seq <= (last_seq := self._window[-1].seq):
            events = [event for event in events if event.seq > last_seq]
        self._window.extend(events)
        self._chars += sum(len(event.data) for event in events)
        while len(self._window) > self._size or self._chars > _WINDOW_CHARS:
            oldest = self._window.popleft()
            self._chars -= len(oldest.data)
            self.floor = oldest.seq
        self.ring()

    def call(self) -> None:
        """Wake the readers without an event."""
        self.calls += 1
        self.ring()

    def announce(self, news: TurnEvent) -> None:
        """Pass an announcement to the readers of now."""
        self.news.append(news)
        self.announced += 1
        self.ring()

    def renew(self) -> None:
        """Make the readers look into the store: somebody else has written."""
        self._window.clear()
        self._chars = 0
        self.floor = None
        self.renewals += 1
        self.ring()

    def ring(self) -> None:
        """Wake every reader that waits for the alarm, to look again."""
        self.alarm.set()
        self.alarm.clear()

    def after(self, seq: int) -> list[TurnEvent]:
        """Return the window's events after a `seq` that is not below `floor`."""
        found = []
        for event in reversed(self._window):
            if event.seq <= seq:
                break
            found.append(event)
        found.reverse()
        return found


class EventFeed:
    """The channels of all conversations that are being read, and the store behind them."""

    def __init__(
        self,
        events: EventStore,
        *,
        window: int,
        batch: int,
        on_shown: OnShown,
    ) -> None:
        self._last: dict[ConversationId, int] = {}
        """The `seq` of the last event of conversations, that of the latest event last. Others are
        in the store alone."""
        self._events = events
        self._window = window
        self._batch = batch
        self._on_shown = on_shown
        self.doorbell: Doorbell | None = None
        """Of the servers that share the store; None if this one has it alone."""
        self._forgotten = 0
        """How often what was known of a conversation was forgotten."""
        self.channels: dict[ConversationId, Channel] = {}
        """Of the conversations that are being read."""

    def show(self, events: Sequence[TurnEvent]) -> None:
        """Pass stored events to the readers."""
        touched: dict[ConversationId, list[TurnEvent]] = {}
        for event in events:
            touched.setdefault(event.conversation_id, []).append(event)
        for conversation_id, own in touched.items():
            self._last.pop(conversation_id, None)
            self._last[conversation_id] = own[-1].seq
            if conversation_id in self.channels:
                self.channels[conversation_id].show(own)
        for conversation_id in list(islice(self._last, max(0, len(self._last) - _MAX_KNOWN))):
            del self._last[conversation_id]
        if self.doorbell is not None:
            self.doorbell.stored(touched)
        self._on_shown(events)

    def holds(self, conversation_id: ConversationId) -> bool:
        """Return whether this server alone writes a conversation."""
        return self.doorbell is None or self.doorbell.holds(conversation_id)

    async def last_seq(self, conversation_id: ConversationId) -> int:
        """Return the `seq` of a conversation's last stored event; what comes after it is live."""
        if self.holds(conversation_id):
            return await self.last_own_seq(conversation_id)
        return await self._events.last_seq(conversation_id)

    async def last_own_seq(self, conversation_id: ConversationId) -> int:
        """Return the `seq` of the last event of a conversation that this server alone writes."""
        while conversation_id not in self._last:
            forgotten = self._forgotten
            stored = await self._events.last_seq(conversation_id)
            if forgotten == self._forgotten:
                self._last.setdefault(conversation_id, stored)  # what was shown meanwhile is newer
        return self._last[conversation_id]

    def forget(self, conversation_id: ConversationId) -> None:
        """Ask the store for a conversation's last event again: somebody else has written."""
        self._last.pop(conversation_id, None)
        self._forgotten += 1

    def lose(self, conversation_id: ConversationId) -> None:
        """Forget what is known of a conversation that another node writes now."""
        self.forget(conversation_id)
        if conversation_id in self.channels:
            self.channels[conversation_id].renew()

    async def find_floor(self, conversation_id: ConversationId, channel: Channel) -> None:
        """Set a channel's floor, unless it is out of date already: what is stored from now on comes
        into its window.
        """
        renewals = channel.renewals
        last_seq = await self.last_seq(conversation_id)
        if channel.renewals == renewals and channel.floor is None:
            channel.floor = last_seq

    def delete(self, conversation_id: ConversationId) -> None:
        """Wake the readers of a conversation that was deleted, at all servers."""
        self.wake(conversation_id)
        if self.doorbell is not None:
            self.doorbell.deleted(conversation_id)

    def wake(self, conversation_id: ConversationId) -> None:
        """Wake the readers of a conversation without an event: it was deleted, or they must look
        up.
        """
        channel = self.channels.get(conversation_id)
        if channel is not None:
            channel.call()

    def announce(self, conversation_id: ConversationId, turn_id: TurnId) -> None:
        """Notify a conversation's readers, at all servers, that a stored result changed after its
        turn ended.
        """
        self.announce_here(conversation_id, turn_id)
        if self.doorbell is not None:
            self.doorbell.changed(conversation_id, turn_id)

    def announce_here(self, conversation_id: ConversationId, turn_id: TurnId) -> None:
        """Notify the readers at this server, as `announce` does."""
        channel = self.channels.get(conversation_id)
        if channel is not None:
            fields = {"turn_id": turn_id, "conversation_id": conversation_id}
            channel.announce(
                TurnEvent(
                    seq=0,
                    conversation_id=conversation_id,
                    turn_id=turn_id,
                    n=0,
                    type=CHANGED,
                    data=json_text(fields),
                )
            )

    def enter(self, conversation_id: ConversationId) -> Channel:
        """Return a conversation's channel for one more reader."""
        channel = self.channels.get(conversation_id)
        if channel is None:
            known = self._last.get(conversation_id) if self.holds(conversation_id) else None
            channel = self.channels[conversation_id] = Channel(known, self._window)
        channel.readers += 1
        return channel

    def leave(self, conversation_id: ConversationId) -> None:
        """Note that a reader has gone."""
        channel = self.channels[conversation_id]
        channel.readers -= 1
        if channel.readers == 0:
            del self.channels[conversation_id]

    async def read(
        self, conversation_id: ConversationId, seq: int, turn_id: TurnId | None, limit: int
    ) -> Sequence[TurnEvent]:
        """Read events after a `seq` from the store."""
        limit = min(self._batch, limit)
        return await self._events.after(conversation_id, seq, limit=limit, turn_id=turn_id)


class Subscription:
    """Reads all events after a `seq`, each once, in order, then live; `async with` it."""

    def __init__(
        self,
        feed: EventFeed,
        conversation_id: ConversationId,
        after_seq: int,
        turn_id: TurnId | None,
    ) -> None:
        self._feed = feed
        self._conversation_id = conversation_id
        self._turn_id = turn_id
        self._seq = after_seq
        self._channel: Channel | None = None
        self._calls = 0
        self._heard = 0
        """How many announcements are behind it."""
        self._timer: asyncio.TimerHandle | None = None
        self._read_limit = _FIRST_READ
        """How many events to read from the store: about `_READ_CHARS`, judged by the last ones."""

    async def __aenter__(self) -> Self:
        self._channel = self._feed.enter(self._conversation_id)
        self._calls = self._channel.calls
        self._heard = self._channel.announced
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._channel = None
        self._feed.leave(self._conversation_id)

    def wake(self) -> None:
        """Make `next` return, of this reader and of the conversation's others."""
        self._feed.wake(self._conversation_id)

    async def next(self, wait_s: float) -> list[TurnEvent]:
        """Return the next events; empty if none came within `wait_s` seconds.

        Empty at once, and once, when the conversation was deleted or a reader of it was woken. With
        `wait_s` 0 it still returns what is there. A cancelled call takes nothing.
        """
        channel = self._channel
        assert channel is not None, "enter the subscription first"
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        while (
            not (found := await self._take(channel) or self._take_news(channel))
            and self._calls == channel.calls
        ):
            if loop.time() >= until:
                break
            self._ring_by(until, channel)
            await channel.alarm.wait()  # nothing was awaited since the look
        self._calls = channel.calls
        return found

    def _take_news(self, channel: Channel) -> list[TurnEvent]:
        """Return the announcements since the last; who reads one turn gets none."""
        count = min(channel.announced - self._heard, len(channel.news))
        self._heard = channel.announced
        return list(channel.news)[-count:] if count and self._turn_id is None else []

    def _ring_by(self, at: float, channel: Channel) -> None:
        """Ring the alarm at a time of the loop, or earlier: a timer each time costs more than the
        reading.
        """
        if self._timer is not None and self._timer.when() > at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(at, self._time_out, channel)

    def _time_out(self, channel: Channel) -> None:
        self._timer = None
        channel.ring()

    async def _take(self, channel: Channel) -> list[TurnEvent]:
        while True:
            floor = channel.floor  # what is shown while the store is read moves it
            if floor is None:
                await self._feed.find_floor(self._conversation_id, channel)
                continue
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
            mine = [event for event in batch if self._turn_id in {None, event.turn_id}]
            if mine:
                return mine

    async def _read(self) -> Sequence[TurnEvent]:
        found = await self._feed.read(
            self._conversation_id, self._seq, self._turn_id, self._read_limit
        )
        chars = sum(len(event.data) for event in found)
        self._read_limit = max(1, _READ_CHARS * len(found) // max(1, chars))
        return found

    async def until_completed(self, wait_s: float) -> AsyncIterator[list[TurnEvent]]:
        """Yield one turn's events up to its last; an empty list for each `wait_s` of silence."""
        while True:
            events = await self.next(wait_s)
            yield events
            if any(event.type == COMPLETED for event in events):
                return


def _first_chars(events: Sequence[TurnEvent]) -> Sequence[TurnEvent]:
    """Return the first events with at most `_READ_CHARS` of data together, and at least one."""
    chars = 0
    for count, event in enumerate(events):
        chars += len(event.data)
        if count and chars > _READ_CHARS:
            return events[:count]
    return events
