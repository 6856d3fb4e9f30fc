"""memU as a server over HTTP: `POST /memorize`, `GET /memorize/status/{id}`, `POST /retrieve`,
`POST /clear`.

The server knows no idempotency key and makes a new task of each request. So each item has a scope
of its own there (the owner as `user_id`, the item as `agent_id`), which is cleared before the item
is written. A task that was begun is stored as a link and waited for, also after a restart, before
another one begins. Only if its name never arrived here, because the process or the connection broke
off, a task may run twice.

A simpler server answers `/memorize` and `/retrieve` at once, without a task and perhaps without
`result` around the answer, and may have no `/clear`. Then the delivery is done with the answer, and
an earlier revision stays in the server. What the answers name of resources, items and categories is
kept as links.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import anyio

from memory.errors import BackendUnavailable, DeliveryRefused
from memory.items.item import Item
from memory.items.scope import Scope
from memory.outbox.backend import BackendHealth
from memory.outbox.backends.memu_text import content_of, description_of
from memory.outbox.delivery import Link
from memory.remote.json_service import JsonService

NAME: Final = "memu_server"
_SERVER: Final = "The memU server"
_NOT_FOUND: Final = 404
_NO_ROUTE: Final = frozenset({404, 405, 501})
_SERVER_ERRORS: Final = 500
_WAITING: Final = frozenset({"PENDING", "RUNNING"})
_DONE: Final = "COMPLETED"
_CALL_S: Final = 15.0
_CHECK_S: Final = 3.0
"""For a look whether it answers; people wait for it."""
_MAX_BYTES: Final = 4 * 1024 * 1024
_FIRST_WAIT_S: Final = 0.25
"""Before a task is looked at again; doubled each time."""
_MOST_WAIT_S: Final = 5.0
_MAX_LOOKS: Final = 12
_MAX_ID_CHARS: Final = 200
_MAX_MADE: Final = 50
"""Links of one item to what the server made of it."""
_MADE: Final[Mapping[str, str]] = {
    "resource": "resource",
    "resources": "resource",
    "items": "item",
    "categories": "category",
}
"""The fields of an answer that name what was made, and the kinds of their links."""
_SCOPE: Final = "agent"
_TASK: Final = "task"
_BEGUN_FOR: Final = "begun_for"
"""The link to a delivery whose task may still run."""
LEFT_BEHIND: Final = (
    "The memU server has cleared what it made of this, but has no way to remove the text that it"
    " was sent: delete its conversation file in the server's storage by hand."
)
NEVER_CLEARED: Final = (
    "The memU server has no way to remove what it was sent: delete it in the server's storage by"
    " hand."
)


class MemuServerBackend:
    """The server as a backend; see `TaskBackend` and `RetrievingBackend`. Close it."""

    name = NAME

    def __init__(
        self, base_url: str, *, sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        self._sleep = sleep
        self._service = JsonService(base_url, name=_SERVER, timeout_s=_CALL_S, max_bytes=_MAX_BYTES)

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:  # noqa: ARG002  it knows none
        return await self.finish(item, await self._begin_anew(item))

    async def begin(self, item: Item, links: Sequence[Link], delivery_id: int) -> Sequence[Link]:
        by_kind = {link.remote_kind: link.remote_id for link in links}
        task, is_same = by_kind.get(_TASK), by_kind.get(_BEGUN_FOR) == str(delivery_id)
        if task is None and is_same:
            return links  # the server did it at once
        if task is not None and _BEGUN_FOR in by_kind:
            if is_same and (await self._status(task))[0] in {*_WAITING, _DONE}:
                return links
            await self._wait_until_ended(task)  # what it makes would come after the clearing
        return [*await self._begin_anew(item), _link(item.id, _BEGUN_FOR, str(delivery_id))]

    async def finish(self, item: Item, links: Sequence[Link]) -> Sequence[Link]:
        kept = [link for link in links if link.remote_kind != _BEGUN_FOR]
        task = next((link.remote_id for link in kept if link.remote_kind == _TASK), None)
        if task is None:
            return kept
        status, answer = await self._wait_until_ended(task)
        if status != _DONE:
            raise BackendUnavailable(f"{_SERVER} could not memorize it.")
        return list(dict.fromkeys([*kept, *_made(item.id, answer)]))

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:  # noqa: ARG002  it knows none
        """See `Backend.forget`: clears the item's scope.

        Raise `DeliveryRefused` afterwards: the server has no way to remove the text it was sent.
        """
        by_kind = {link.remote_kind: link.remote_id for link in links}
        if _TASK in by_kind and _BEGUN_FOR in by_kind:
            # what it makes would come after the clearing
            await self._wait_until_ended(by_kind[_TASK])
        is_cleared = await self._clear(item_id)
        raise DeliveryRefused(LEFT_BEHIND if is_cleared else NEVER_CLEARED)

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        """See `RetrievingBackend.retrieve`; a server may find items of all users, so others' are
        dropped.
        """
        if not query.strip():
            return []
        body = {"query": query, "user_id": scope.owner_id}
        answer = await self._service.ask("POST", "/retrieve", body)
        rows = _result_of(answer).get("items")
        if not isinstance(rows, list):
            raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
        ids = [
            row["agent_id"]
            for row in rows
            if isinstance(row, dict)
            and isinstance(row.get("agent_id"), str)
            and row.get("user_id") in scope.readable_owners
        ]
        return list(dict.fromkeys(ids))[:limit]

    async def check(self) -> BackendHealth:
        """See `Backend.check`: asks for the server's first page."""
        detail: str | None = None
        try:
            with anyio.fail_after(_CHECK_S):
                answer = await self._service.call("GET", "/")
            if answer.status >= _SERVER_ERRORS:
                detail = f"{_SERVER} failed (HTTP {answer.status})."
        except BackendUnavailable as exc:
            detail = str(exc)
        except TimeoutError:
            detail = f"{_SERVER} did not answer in time."
        return BackendHealth(name=NAME, state="failing" if detail else "ok", detail=detail)

    async def close(self) -> None:
        await self._service.close()

    async def _begin_anew(self, item: Item) -> list[Link]:
        """Clear an item's scope and have it memorized; return links to its task, or to what was
        made at once.
        """
        await self._clear(item.id)
        text = f"{description_of(item)}\n\n{content_of(item)}"
        body = {
            "conversation": [{"role": "user", "content": text}],
            "user_id": item.scope.owner_id,
            "agent_id": item.id,
        }
        answer = _result_of(await self._service.ask("POST", "/memorize", body))
        task, made = answer.get("task_id"), _made(item.id, answer)
        if isinstance(task, str) and 0 < len(task) <= _MAX_ID_CHARS:
            made = [_link(item.id, _TASK, task)]
        elif task is not None or _MADE.keys().isdisjoint(answer):
            raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
        return [_link(item.id, _SCOPE, item.id), *made]

    async def _wait_until_ended(self, task: str) -> tuple[str, Mapping[str, Any]]:
        """Return the status in which a task ended, `NOT_FOUND` if the server does not know it, and
        the answer.

        Raise `BackendUnavailable` if it has not ended.
        """
        wait_s = _FIRST_WAIT_S
        for _ in range(_MAX_LOOKS):
            status, answer = await self._status(task)
            if status not in _WAITING:
                return status, answer
            await self._sleep(wait_s)
            wait_s = min(_MOST_WAIT_S, wait_s * 2)
        raise BackendUnavailable(f"{_SERVER} is still at it; it is looked at again later.")

    async def _status(self, task: str) -> tuple[str, Mapping[str, Any]]:
        path = f"/memorize/status/{quote(task, safe='')}"
        answer = await self._service.call("GET", path)
        if answer.status == _NOT_FOUND:
            return "NOT_FOUND", {}
        if answer.status >= _SERVER_ERRORS:
            raise BackendUnavailable(f"{_SERVER} failed (HTTP {answer.status}).")
        result = _result_of(answer.body)
        return str(result.get("status")), result

    async def _clear(self, item_id: str) -> bool:
        """Clear an item's scope; return False if the server has no way to do so."""
        answer = await self._service.call("POST", "/clear", {"agent_id": item_id})
        if answer.status in _NO_ROUTE:
            return False
        if not answer.is_ok:
            raise BackendUnavailable(f"{_SERVER} failed (HTTP {answer.status}).")
        return True


def _link(item_id: str, kind: str, remote_id: str) -> Link:
    return Link(item_id=item_id, backend=NAME, remote_kind=kind, remote_id=remote_id)


def _made(item_id: str, answer: Mapping[str, Any]) -> list[Link]:
    """Return links to the resources, items and categories that an answer names by id, each once."""
    links = (
        _link(item_id, kind, remote_id)
        for field, kind in _MADE.items()
        for remote_id in _ids(answer.get(field))
    )
    return list(dict.fromkeys(links))[:_MAX_MADE]


def _ids(value: object) -> Iterator[str]:
    for row in value if isinstance(value, list) else [value]:
        remote_id = row.get("id") if isinstance(row, dict) else None
        if isinstance(remote_id, str) and 0 < len(remote_id) <= _MAX_ID_CHARS:
            yield remote_id


def _result_of(answer: Any) -> dict[str, Any]:
    """Return what an answer holds: its `result`, or the whole answer of a server without such an
    envelope.
    """
    result = answer.get("result", answer) if isinstance(answer, dict) else None
    if not isinstance(result, dict):
        raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
    return result
