"""Pages of a session's events. Only the turns of a page are read: forwards from the turn of its
cursor on, backwards turn by turn.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from gateway.conversations.feed import Subscription
from gateway.conversations.model import COMPLETED, ClientObject, Turn
from gateway.doors.anthropic.events import SessionWriter, Told, user_message
from gateway.doors.anthropic.sessions import Turns
from gateway.errors import NotFound
from gateway.http.context import RequestContext
from gateway.http.parameters import unknown_cursor

Fields = Mapping[str, Any]

_TURNS_AT_ONCE: Final = 8
_BEHIND_ALL: Final = 2**53
_TURN: Final = "trn_"


class _Page:
    """Collects the events of a page, and one more to tell whether another page follows."""

    def __init__(
        self, after: str, limit: int, since: datetime | None, fits: Callable[[Fields], bool]
    ) -> None:
        self.events: list[Fields] = []
        self.has_begun = not after
        self._after = after
        self._limit = limit
        self._since = since
        self._fits = fits

    def is_full(self) -> bool:
        return len(self.events) > self._limit

    def is_behind(self, turn: Turn) -> bool:
        """Return whether a turn, and so all before it, had ended before what is asked for."""
        ended = turn.finished_at
        return self._since is not None and ended is not None and ended < self._since

    def add(self, events: Iterable[Fields]) -> None:
        for event in events:
            if not self.has_begun:
                self.has_begun = event["id"] == self._after
            elif not self.is_full() and self._fits(event):
                self.events.append(event)


async def page_of(
    context: RequestContext,
    session: ClientObject,
    *,
    after: str,
    limit: int,
    is_descending: bool,
    since: datetime | None,
    fits: Callable[[Fields], bool],
) -> tuple[Sequence[Fields], str | None]:
    """Return at most `limit` events that fit, behind the one with the id `after` or from the first
    one on, and the cursor of the next page. Messages that wait are the newest events. No event
    before `since` fits.

    Raise `UnprocessableEntity` if there is no event `after`.
    """
    page = _Page(after, limit, since, fits)
    turn = await _turn_of(context, session, after) if after else None
    if since is not None and turn is None and not is_descending:
        turn = await _first_since(context, session, page)
    read = _read_backwards if is_descending else _read_forwards
    await read(context, session, turn, page)
    if not page.has_begun:
        raise unknown_cursor("page")
    shown = page.events[:limit]
    return shown, shown[-1]["id"] if page.is_full() else None


async def _first_since(context: RequestContext, session: ClientObject, page: _Page) -> Turn | None:
    """Return the turn from which on events may fit; None: the conversation's first event."""
    first: Turn | None = None
    async for turn in _turns_before(context, session, _BEHIND_ALL):
        first = first or turn
        if page.is_behind(turn):
            break
        first = turn
    has_events = first is not None and await context.chat.reader.has_events(first)
    return first if has_events else None  # a copy in a fork has none


async def _turn_of(context: RequestContext, session: ClientObject, event_id: str) -> Turn:
    """Return the turn of an event. Raise `UnprocessableEntity` if it is not of this session."""
    name = event_id.partition(":")[0]
    try:
        if not name.startswith(_TURN):
            name = await context.chat.approvals.turn_of(context.user_id, name)
        turn = await context.chat.reader.turn(context.user_id, name)
    except NotFound:
        raise unknown_cursor("page") from None
    if turn.conversation_id != session.id:
        raise unknown_cursor("page")
    return turn


async def _read_forwards(
    context: RequestContext, session: ClientObject, begin: Turn | None, page: _Page
) -> None:
    turns = Turns(context)
    writer = SessionWriter(turns.known)
    told: set[str] = set()
    async with await _events_from(context, session, begin) as subscription:
        while not page.is_full() and (events := await subscription.next(0)):
            await turns.prepare(events)
            items = [item for event in events for item in writer.read(event)]
            found = [item.fields for item in items if isinstance(item, Told)]
            told.update(fields["id"] for fields in found)
            page.add(found)
    if not page.is_full():
        waiting = await _waiting(context, session)
        page.add(fields for fields in waiting if fields["id"] not in told)


async def _read_backwards(
    context: RequestContext, session: ClientObject, begin: Turn | None, page: _Page
) -> None:
    waiting = await _waiting(context, session)
    page.add(reversed(waiting))
    told = {fields["id"] for fields in waiting}
    before = _BEHIND_ALL if begin is None else begin.seq + 1
    async for turn in _turns_before(context, session, before):
        if page.is_full() or page.is_behind(turn):
            return
        found = await _events_of(context, session, turn)
        page.add(fields for fields in reversed(found) if fields["id"] not in told)


async def _turns_before(
    context: RequestContext, session: ClientObject, before: int
) -> AsyncIterator[Turn]:
    """Yield the turns with a lower number, the latest first."""
    while turns := await context.chat.conversations.messages(
        context.user_id, session.id, limit=_TURNS_AT_ONCE, before_seq=before
    ):
        for turn in reversed(turns):
            yield turn
        before = turns[0].seq


async def _events_of(
    context: RequestContext, session: ClientObject, turn: Turn
) -> Sequence[Fields]:
    """Return the events of one turn as far as it is."""
    turns = Turns(context)
    writer = SessionWriter(turns.known)
    told: list[Fields] = []
    async with await _events_from(context, session, turn) as subscription:
        while events := await subscription.next(0):
            await turns.prepare(events)
            for event in events:
                items = list(writer.read(event))  # other turns say what the session is meanwhile
                if event.turn_id == turn.id:
                    told += [item.fields for item in items if isinstance(item, Told)]
                    if event.type == COMPLETED:
                        return told
    return told


async def _events_from(
    context: RequestContext, session: ClientObject, turn: Turn | None
) -> Subscription:
    reader = context.chat.reader
    if turn is None:
        return await reader.follow_all(context.user_id, session.id)
    return await reader.follow(context.user_id, session.id, f"{turn.id}:0")


async def _waiting(context: RequestContext, session: ClientObject) -> list[Fields]:
    """Return the messages that wait, oldest first."""
    view = await context.chat.conversations.get(context.user_id, session.id)
    return [user_message(turn, is_waiting=True) for turn in view.queue]
