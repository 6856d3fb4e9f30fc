"""Brings what other servers store to the readers of this one.

The doorbell says which conversations to look at; the events come from the store, those of all
conversations that are being read with one statement. A ring can be lost, so each time the doorbell
can be heard again all are looked at, and every second or so the last events of those that another
server may write are compared.
"""

import logging
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Final

import anyio

from gateway.conversations.doorbell import Doorbell, Ring
from gateway.conversations.feed import EventFeed
from gateway.conversations.sql.events import EventStore
from gateway.ids import ConversationId
from memory.errors import StoreDamaged, StoreUnavailable

_log = logging.getLogger(__name__)

_POLL_S: Final = 1.5
_RETRY_S: Final = 0.5
_MAX_READ: Final = 512
"""Events that are read at once."""


class FeedFollower:
    """Serves one feed. `run` must be running."""

    def __init__(
        self, feed: EventFeed, events: EventStore, doorbell: Doorbell, *, poll_s: float = _POLL_S
    ) -> None:
        """Initialise; from now on the feed rings the doorbell."""
        self._feed = feed
        feed.doorbell = doorbell
        self._events = events
        self._doorbell = doorbell
        self._poll_s = poll_s
        self._compares_at_s = 0.0
        self._due: set[ConversationId] = set()
        """Conversations of which the store may have more than their readers here."""
        self._work = anyio.Event()
        self._is_deaf = False
        self._may_have_missed = False
        """Rings were lost: results may have changed without a word."""

    async def run(self) -> None:
        """Bring events until cancelled, and ring for those of this server."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._doorbell.run)
            tasks.start_soon(self._hear)
            await self._look()

    async def _hear(self) -> None:
        while True:
            try:
                await self._doorbell.hear(self._take, self._begin_hearing)
            except StoreUnavailable as exc:
                if not self._is_deaf:
                    _log.warning("doorbell_not_heard", extra={"reason": str(exc)})
            self._is_deaf = True
            await anyio.sleep(_RETRY_S)

    def _begin_hearing(self) -> None:
        self._may_have_missed |= self._is_deaf
        self._is_deaf = False
        self._compares_at_s = 0.0
        self._work.set()

    def _take(self, ring: Ring) -> None:
        for where in ring.deleted:
            self._feed.wake(where)
        for where, turn_id in ring.changed:
            self._feed.announce_here(where, turn_id)
        self._look_at(self._foreign() if ring.stored is None else ring.stored)

    def _look_at(self, conversation_ids: Iterable[ConversationId]) -> None:
        self._due.update(self._feed.channels.keys() & conversation_ids)
        if self._due:
            self._work.set()

    def _foreign(self) -> set[ConversationId]:
        """Return the conversations with readers here that another server may write."""
        return {where for where in self._feed.channels if not self._feed.holds(where)}

    async def _look(self) -> None:
        while True:
            wait_s = self._compares_at_s - anyio.current_time()
            with anyio.move_on_after(max(0.0, wait_s)):
                await self._work.wait()
            self._work = anyio.Event()
            try:
                if anyio.current_time() >= self._compares_at_s:
                    await self._compare()
                while self._due:
                    await self._read()
            except StoreUnavailable as exc:  # the log of events reports a store that is lost
                _log.debug("events_not_followed", extra={"reason": str(exc)})
                self._work.set()
                await anyio.sleep(_RETRY_S)

    async def _compare(self) -> None:
        """Find the conversations whose last events readers here do not have, and deleted ones."""
        foreign = self._foreign()
        heads = await self._events.heads(foreign) if foreign else {}
        for where in foreign & self._feed.channels.keys():
            head, channel = heads.get(where), self._feed.channels[where]
            if head is None:
                self._feed.wake(where)
                continue
            if self._may_have_missed and head.ended is not None:
                self._feed.announce_here(where, head.ended)
            if channel.last_seq is None or channel.last_seq < head.last_seq:
                self._due.add(where)
        self._may_have_missed = False
        self._compares_at_s = anyio.current_time() + self._poll_s

    async def _read(self) -> None:
        """Bring the events of conversations that are due; those that may have more remain so."""
        last_seqs: dict[ConversationId, int] = {}
        for where in self._due & self._feed.channels.keys():
            channel = self._feed.channels[where]
            if channel.last_seq is None:
                channel.renewals += 1  # its floor is found in the store, and once more after this
            else:
                last_seqs[where] = channel.last_seq
        self._due.clear()
        if not last_seqs:
            return
        try:
            found = await self._events.after_each(last_seqs, limit=_MAX_READ)
        except StoreDamaged:  # readers leave out what is damaged
            for where in last_seqs.keys() & self._feed.channels.keys():
                self._feed.channels[where].renew()
            return
        except StoreUnavailable:
            self._due.update(last_seqs)
            raise
        for where, events in groupby(found, attrgetter("conversation_id")):
            if where in self._feed.channels:
                self._feed.channels[where].show(list(events))
        if len(found) == _MAX_READ:
            self._due.update(last_seqs)
