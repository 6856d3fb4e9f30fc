"""memU as a server over HTTP: `POST /memorize`, `GET /memorize/status/{id}`, `POST /retrieve`, `POST /clear`.

The server knows no idempotency key and makes a new task of each request. So each item has a scope of its
own there (the owner as `user_id`, the item as `agent_id`), which is cleared before the item is written. A
task that was begun is stored as a link and waited for, also after a restart, before another one begins.
Only if its name never arrived here, because the process or the connection broke off, a task may run twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import anyio

from memory.backends.memu_text import content_of, description_of
from memory.items import Item
from memory.outbox.backend import BackendHealth, BackendUnavailable, DeliveryRefused
from memory.outbox.delivery import Link
from memory.outbox.json_service import JsonService
from memory.scope import Scope

NAME: Final = "memu_server"
_SERVER: Final = "The memU server"
_NOT_FOUND: Final = 404
_SERVER_ERRORS: Final = 500
_WAITING: Final = frozenset({"PENDING", "RUNNING"})
_DONE: Final = "COMPLETED"
_MAX_ID_CHARS: Final = 200
_SCOPE: Final = "agent"
_TASK: Final = "task"
_BEGUN_FOR: Final = "begun_for"
"""The link to a delivery whose task may still run."""
LEFT_BEHIND: Final = (
    "The memU server has cleared what it made of this, but has no way to remove the text that it was"
    " sent: delete its conversation file in the server's storage by hand."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemuServerLimits:
    """What bounds calls of the server."""

    call_s: float = 15.0
    check_s: float = 3.0
    """For a look whether it answers; people wait for it."""
    max_bytes: int = 4 * 1024 * 1024
    first_wait_s: float = 0.25
    """Before a task is looked at again; doubled each time."""
    most_wait_s: float = 5.0
    max_looks: int = 12


class MemuServerBackend:
    """The server as a backend; see `TaskBackend` and `RetrievingBackend`. Close it."""

    name = NAME

    def __init__(
        self,
        base_url: str,
        *,
        limits: MemuServerLimits | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._limits = limits or MemuServerLimits()
        self._sleep = sleep
        self._service = JsonService(
            base_url,
            name=_SERVER,
            timeout_s=self._limits.call_s,
            max_bytes=self._limits.max_bytes,
        )

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:  # noqa: ARG002  it knows none
        task = await self._begin_anew(item)
        return await self.finish(item, _links(item.id, task))

    async def begin(self, item: Item, links: Sequence[Link], delivery_id: int) -> Sequence[Link]:
        begun = _begun(links)
        if begun is not None:
            task, begun_by = begun
            if begun_by == str(delivery_id) and await self._status(task) in {*_WAITING, _DONE}:
                return links
            await self._wait_until_ended(task)  # what it makes would come after the clearing
        task = await self._begin_anew(item)
        begun_for = Link(
            item_id=item.id, backend=NAME, remote_kind=_BEGUN_FOR, remote_id=str(delivery_id)
        )
        return [*_links(item.id, task), begun_for]

    async def finish(self, item: Item, links: Sequence[Link]) -> Sequence[Link]:
        task = next(link.remote_id for link in links if link.remote_kind == _TASK)
        if await self._wait_until_ended(task) != _DONE:
            raise BackendUnavailable(f"{_SERVER} could not memorize it.")
        return _links(item.id, task)

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:  # noqa: ARG002  it knows none
        """See `Backend.forget`: clears the item's scope.

        Raise `DeliveryRefused` afterwards: the server has no way to remove the text it was sent.
        """
        begun = _begun(links)
        if begun is not None:  # what it makes would come after the clearing
            await self._wait_until_ended(begun[0])
        await self._clear(item_id)
        raise DeliveryRefused(LEFT_BEHIND)

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        """See `RetrievingBackend.retrieve`; a server may find items of all users, so others' are dropped."""
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
            with anyio.fail_after(self._limits.check_s):
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

    async def _begin_anew(self, item: Item) -> str:
        """Clear an item's scope and have it memorized; return the task's name."""
        await self._clear(item.id)
        text = f"{description_of(item)}\n\n{content_of(item)}"
        body = {
            "conversation": [{"role": "user", "content": text}],
            "user_id": item.scope.owner_id,
            "agent_id": item.id,
        }
        task = _result_of(await self._service.ask("POST", "/memorize", body)).get("task_id")
        if not isinstance(task, str) or not 0 < len(task) <= _MAX_ID_CHARS:
            raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
        return task

    async def _wait_until_ended(self, task: str) -> str:
        """Return the status in which a task ended; `NOT_FOUND` if the server does not know it.

        Raise `BackendUnavailable` if it has not ended.
        """
        wait_s = self._limits.first_wait_s
        for _ in range(self._limits.max_looks):
            status = await self._status(task)
            if status not in _WAITING:
                return status
            await self._sleep(wait_s)
            wait_s = min(self._limits.most_wait_s, wait_s * 2)
        raise BackendUnavailable(f"{_SERVER} is still at it; it is looked at again later.")

    async def _status(self, task: str) -> str:
        path = f"/memorize/status/{quote(task, safe='')}"
        answer = await self._service.call("GET", path)
        if answer.status == _NOT_FOUND:
            return "NOT_FOUND"
        if answer.status >= _SERVER_ERRORS:
            raise BackendUnavailable(f"{_SERVER} failed (HTTP {answer.status}).")
        return str(_result_of(answer.body).get("status"))

    async def _clear(self, item_id: str) -> None:
        await self._service.ask("POST", "/clear", {"agent_id": item_id})


def _begun(links: Sequence[Link]) -> tuple[str, str] | None:
    """Return the task that may still run, and the id of its delivery."""
    by_kind = {link.remote_kind: link.remote_id for link in links}
    if _BEGUN_FOR not in by_kind or _TASK not in by_kind:
        return None
    return by_kind[_TASK], by_kind[_BEGUN_FOR]


def _links(item_id: str, task: str) -> list[Link]:
    return [
        Link(item_id=item_id, backend=NAME, remote_kind=_SCOPE, remote_id=item_id),
        Link(item_id=item_id, backend=NAME, remote_kind=_TASK, remote_id=task),
    ]


def _result_of(answer: Any) -> dict[str, Any]:
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, dict):
        raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
    return result
