"""The state of the app, and the context of one request as routes get it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Final

import anyio.to_thread
from fastapi import Depends
from starlette.requests import Request

from gateway.chat import Chat
from gateway.chat.arrivals import ARRIVAL
from gateway.conversations.feed import Subscription
from gateway.conversations.model import Turn
from gateway.errors import Forbidden, UnprocessableEntity
from gateway.files.access import WorkspaceAccess
from gateway.files.upload_journal import JOURNALS
from gateway.files.uploads import StoredFile, Upload, store_uploads_blocking
from gateway.http.bodies import BodyT, read_body
from gateway.http.exception_handlers import StorageFailed
from gateway.http.memory_views import health_fields, missing_health_fields
from gateway.http.readiness import Readiness
from gateway.http.sign_in import SignIns
from gateway.http.sse import EventStream, StreamPlan
from gateway.ids import UserId
from gateway.services import Services
from gateway.turns.control import run_until_first
from gateway.turns.requests import Accepted, ChatRequest, WhenBusy
from gateway.users.model import Action
from memory.service.memory import Memory

UNAVAILABLE: Final = "unavailable"
"""The `state` of an optional part that does not work; a part that turns need answers its ping with
a text."""

_RETRIES: Final = frozenset(map(str, range(100)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Deadlines and periods of the HTTP layer."""

    body_deadline_s: float = 30.0
    upload_deadline_s: float = 300.0
    discard_deadline_s: float = 20.0
    """For the rest of a body that was refused; see `UnreadBody`."""
    discard_bytes: int = 134_217_728
    keep_alive_s: float = 10.0
    """The longest silence of a stream; the contract promises 15."""
    ping_deadline_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """What every request of an app shares."""

    services: Services
    limits: HttpLimits
    sign_ins: SignIns | None = None
    """None without a provider."""
    readiness: Readiness = field(default_factory=Readiness)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """One request with its user."""

    request: Request
    state: AppState
    user_id: UserId
    arrived: list[str] = field(default_factory=list)
    """The keys of its messages that `arrive` took."""

    @property
    def chat(self) -> Chat:
        """The operations on conversations."""
        return self.state.services.chat

    def require_admin(self) -> None:
        """Raise `Forbidden` unless the user is an administrator."""
        if self.request.state.role != "admin":
            raise Forbidden("Only an administrator of this server may see this.")

    async def record(self, action: Action, subject: str, **details: str) -> None:
        """Append to the audit log what the user did."""
        await self.state.services.accounts.record(self.user_id, action, subject, **details)

    @property
    def memory(self) -> Memory:
        """The server's memory. Raise `StorageFailed` if it could not be opened."""
        services = self.state.services
        if services.memory is None:
            missing = services.missing_memory
            raise StorageFailed(missing.reason if missing is not None else "Memory is off.")
        return services.memory

    async def accept(self, request: ChatRequest) -> Accepted:
        """Take a message; see `Intake.accept`. One without a key has that under which another
        server may have taken it.
        """
        key = request.idempotency_key or self.forward_key
        is_in_doubt = key == self.forward_key and self.is_in_doubt
        keyed = replace(request, idempotency_key=key, is_in_doubt=is_in_doubt)
        return await self.chat.intake.accept(self.user_id, keyed)

    @property
    def forward_key(self) -> str | None:
        """The key of a message without one, under which another server may have taken it."""
        return getattr(self.request.state, "forward_key", None) or None

    @property
    def is_in_doubt(self) -> bool:
        """True if another server did not answer this request, and may still be serving it."""
        return getattr(self.request.state, "is_in_doubt", False)

    async def check(
        self, place: str | None, when_busy: WhenBusy = "enqueue", key: str | None = None
    ) -> None:
        """Raise what `accept` would raise now; see `Intake.check`. Of a message in doubt nothing is
        checked: only `accept` withdraws its key before it refuses it.
        """
        if not self.is_in_doubt:
            await self.chat.intake.check(self.user_id, place, when_busy, key)

    async def arrive(
        self,
        request: bytes,
        take: Callable[[str], Awaitable[Accepted]],
        *,
        attempt: int | None = None,
        is_wanted: Callable[[Turn], bool] = lambda _: False,
    ) -> Accepted:
        """Take the message of a client that gives no keys; see `Arrivals.accept`.

        `attempt` None: what the client tells of it. If the request is passed on from here, the
        other server takes its first message under the same key.
        """
        state = self.request.state
        forward_key = getattr(state, "forward_key", "")
        if forward_key.startswith(ARRIVAL) and not self.arrived:
            self.arrived.append(forward_key)
            await self.check(None, key=forward_key)
            return await take(forward_key)

        async def take_noted(key: str) -> Accepted:
            if not self.arrived:
                state.forward_key = key
            self.arrived.append(key)
            await self.check(None)
            return await take(key)

        count = self.attempt if attempt is None else attempt
        return await self.chat.arrivals.accept(self.user_id, request, count, take_noted, is_wanted)

    async def result(self, accepted: Accepted) -> dict[str, Any]:
        """Wait for a turn's result, for an answer without a stream; the body must have been read.

        The turn goes on if the client leaves before, which is noted.
        """
        departures, turn_id = self.chat.departures, accepted.turn_id
        result: dict[str, Any] = {}

        async def wait() -> None:
            result.update(await self.chat.reader.result(self.user_id, turn_id))

        with departures.reading(turn_id):
            try:
                await run_until_first(wait, self._wait_left)
            except ExceptionGroup as group:
                raise group.exceptions[0] from group
        if not result:
            departures.note_unread(turn_id)
            await wait()
        return result

    async def _wait_left(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    @property
    def attempt(self) -> int:
        """How often the client has sent this request before, as the vendors' clients tell."""
        count = self.request.headers.get("x-stainless-retry-count", "0")
        return int(count) if count in _RETRIES else 0

    async def memory_health(self) -> dict[str, Any]:
        """Return the state of each memory backend, also if memory could not be opened."""
        missing = self.state.services.missing_memory
        if missing is not None:
            return missing_health_fields(missing.backends, UNAVAILABLE, missing.reason)
        return health_fields(await self.memory.health())

    async def body(self, model: type[BodyT]) -> BodyT:
        """Read the body; see `read_body`. An empty one is not valid."""
        body = await self.optional_body(model)
        if body is None:
            raise UnprocessableEntity("The body is empty; send a JSON object.")
        return body

    @property
    def body_digest(self) -> bytes:
        """The SHA-256 of the body that was read."""
        digest: bytes = self.request.state.body_digest
        return digest

    async def optional_body(self, model: type[BodyT]) -> BodyT | None:
        """Read the body; see `read_body`."""
        return await read_body(self.request, model, self.state.limits.body_deadline_s)

    async def files(self, conversation_id: str = "") -> WorkspaceAccess:
        """Return the files of the user's workspace, or of a conversation's work tree.

        Raise `NotFound` if there is no such conversation.
        """
        if conversation_id:
            return (await self.chat.work_trees.find(self.user_id, conversation_id)).files
        return (await self.state.services.workspaces.open(self.user_id)).files

    async def store(
        self, uploads: Sequence[Upload], conversation_id: str = ""
    ) -> Sequence[StoredFile]:
        """Store files in the workspace, all or none; raises as `store_uploads_blocking` does."""
        journals = self.state.services.settings.data_dir / JOURNALS
        files = await self.files(conversation_id)
        return await anyio.to_thread.run_sync(store_uploads_blocking, files, uploads, journals)

    def event_stream(
        self,
        subscription: Subscription,
        conversation_id: str,
        *,
        until_completed: bool,
        **translation: Any,
    ) -> EventStream:
        """Return the response that streams a subscription of one of the user's conversations.

        `translation` are the fields of a `StreamPlan` for another protocol.
        """
        services = self.state.services
        plan = StreamPlan(
            subscription=subscription,
            until_completed=until_completed,
            check=partial(self.chat.conversations.require, self.user_id, conversation_id),
            wait_stopped=self.chat.intake.wait_shut_down,
            wait_revoked=self.request.state.wait_revoked,
            keep_alive_s=self.state.limits.keep_alive_s,
            request_id=self.request.state.request_id,
            **translation,
        )
        return EventStream(plan, services.metrics.sse_readers)


async def state_of(request: Request) -> AppState:  # noqa: RUF029  a plain function would cost a thread
    """Return the app's state."""
    state: AppState = request.app.state.gateway
    return state


async def context_of(request: Request) -> RequestContext:
    """Return the context of a request whose user is known."""
    return RequestContext(
        request=request, state=await state_of(request), user_id=request.state.user_id
    )


State = Annotated[AppState, Depends(state_of)]
Context = Annotated[RequestContext, Depends(context_of)]
