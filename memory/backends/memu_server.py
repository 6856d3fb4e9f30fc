"""memU as a server over HTTP: `POST /memorize`, `GET /memorize/status/{id}`, `POST /retrieve`, `POST /clear`.

The server knows no idempotency key: it makes a new task of each request. So each item has a scope of
its own there (the owner as `user_id`, the item as `agent_id`) which is cleared before it is written, and
a task that was begun is waited for again before another one is.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import anyio

from memory.backends.memu_http import JsonService
from memory.backends.memu_text import content_of, description_of
from memory.items import Item
from memory.outbox.backend import BackendHealth, BackendUnavailable, DeliveryRefused
from memory.outbox.delivery import Link

NAME: Final = "memu_server"
_SERVER: Final = "The memU server"
_NOT_FOUND: Final = 404
_SERVER_ERRORS: Final = 500
_WAITING: Final = frozenset({"PENDING", "RUNNING"})
_MAX_ID_CHARS: Final = 200
_MAX_BEGUN: Final = 1000
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
    """The server as a place of delivery. Close it."""

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
        self._begun: dict[str, tuple[str, str]] = {}  # item → key, task

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        """Have an item memorized, and wait until it is."""
        key, task = self._begun.get(item.id, ("", ""))
        if task:
            await self._wait_for(item.id, task)
        if not task or key != idempotency_key:
            await self._clear(item.id)
            task = await self._begin(item, idempotency_key)
            await self._wait_for(item.id, task)
        self._begun.pop(item.id, None)
        return [
            Link(item_id=item.id, backend=NAME, remote_kind="agent", remote_id=item.id),
            Link(item_id=item.id, backend=NAME, remote_kind="task", remote_id=task),
        ]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:  # noqa: ARG002
        """Clear an item's scope; says what the server keeps in spite of it.

        Raises:
            DeliveryRefused: cleared, but for what the server has no way to remove.
        """
        _, task = self._begun.get(item_id, ("", ""))
        if task:  # what it makes would come after the clearing
            await self._wait_for(item_id, task)
            self._begun.pop(item_id, None)
        await self._clear(item_id)
        raise DeliveryRefused(LEFT_BEHIND)

    async def retrieve(self, query: str, owner_id: str, *, limit: int) -> Sequence[str]:
        """Give the ids of items that the server finds, best first.

        The server may find what is another owner's: whoever asks loads the items by their scope.

        Raises:
            BackendUnavailable: the server cannot be used.
        """
        answer = await self._service.ask("POST", "/retrieve", {"query": query, "user_id": owner_id})
        rows = _result_of(answer).get("items")
        if not isinstance(rows, list):
            raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
        ids = [
            one["agent_id"]
            for one in rows
            if isinstance(one, dict)
            and isinstance(one.get("agent_id"), str)
            and one.get("user_id") == owner_id
        ]
        return list(dict.fromkeys(ids))[:limit]

    async def check(self) -> BackendHealth:
        """Ask for its first page."""
        try:
            with anyio.fail_after(self._limits.check_s):
                answer = await self._service.call("GET", "/")
        except BackendUnavailable as exc:
            return BackendHealth(name=NAME, state="failing", detail=str(exc))
        except TimeoutError:
            detail = f"{_SERVER} did not answer in time."
            return BackendHealth(name=NAME, state="failing", detail=detail)
        if answer.status >= _SERVER_ERRORS:
            detail = f"{_SERVER} failed (HTTP {answer.status})."
            return BackendHealth(name=NAME, state="failing", detail=detail)
        return BackendHealth(name=NAME, state="ok")

    async def close(self) -> None:
        """Close its connections; idempotent."""
        await self._service.close()

    async def _begin(self, item: Item, idempotency_key: str) -> str:
        text = f"{description_of(item)}\n\n{content_of(item)}"
        body = {
            "conversation": [{"role": "user", "content": text}],
            "user_id": item.scope.owner_id,
            "agent_id": item.id,
        }
        task = _result_of(await self._service.ask("POST", "/memorize", body)).get("task_id")
        if not isinstance(task, str) or not 0 < len(task) <= _MAX_ID_CHARS:
            raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
        if len(self._begun) >= _MAX_BEGUN:
            self._begun.pop(next(iter(self._begun)))
        self._begun[item.id] = (idempotency_key, task)
        return task

    async def _wait_for(self, item_id: str, task: str) -> None:
        """Return when a task is done; one that failed or is not known is forgotten, to begin anew."""
        wait_s = self._limits.first_wait_s
        for _ in range(self._limits.max_looks):
            status = await self._status(task)
            if status == "COMPLETED":
                return
            if status not in _WAITING:
                self._begun.pop(item_id, None)
                raise BackendUnavailable(f"{_SERVER} could not memorize it.")
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


def _result_of(answer: Any) -> dict[str, Any]:
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, dict):
        raise BackendUnavailable(f"{_SERVER} answered in a form that is not known.")
    return result
