"""What the HTTP layer works with, and what a route knows of its call."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

from fastapi import Depends
from starlette.requests import Request

from gateway.chat import Chat
from gateway.conversations.feed import Subscription
from gateway.http.bodies import BodyT, read_body, read_optional_body
from gateway.http.exception_handlers import MemoryNotOpened
from gateway.http.memory_views import health_fields, missing_health_fields
from gateway.http.sse import Readers, StreamPlan
from gateway.ids import UserId
from gateway.memory import MissingMemory
from gateway.settings import Settings
from memory.assemble import Memory

Ping = Callable[[], Awaitable[str | Mapping[str, str] | None]]
"""None when a part works, or what there is to tell of it all the same; else a sentence.

A part that turns can do without tells a `state`, which is `UNAVAILABLE` where it does not work.
"""

UNAVAILABLE: Final = "unavailable"


class HttpMetrics(Protocol):
    """What the HTTP layer counts, and where `/metrics` comes from."""

    def count_http_request(self, route: str, method: str, status: int) -> None:
        """Count an answer; `route` is a template, never a path."""
        ...

    def watch(self, name: Literal["sse_readers"], read: Callable[[], float]) -> None:
        """Ask `read` for a gauge at each scrape."""
        ...

    def render(self) -> tuple[bytes, str]:
        """Give all metrics as text, and the content type of it."""
        ...


class HttpServices(Protocol):
    """Everything that routes call; opened and closed elsewhere."""

    @property
    def settings(self) -> Settings:
        """What was set."""
        ...

    @property
    def chat(self) -> Chat:
        """What can be done."""
        ...

    @property
    def memory(self) -> Memory | None:
        """What is remembered; None: it could not be opened."""
        ...

    @property
    def missing_memory(self) -> MissingMemory | None:
        """Why there is no memory; None: there is one."""
        ...

    @property
    def metrics(self) -> HttpMetrics:
        """What is counted."""
        ...

    @property
    def pings(self) -> Mapping[str, Ping]:
        """The parts that can fail by themselves."""
        ...

    @property
    def demo(self) -> bool:
        """Whether the built-in demo model answers."""
        ...

    @property
    def model(self) -> str | None:
        """The default model; None: the agent's own."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How long things may take."""

    body_deadline_s: float = 30.0
    keep_alive_s: float = 10.0
    """A stream is never silent for longer; the contract says 15."""
    ping_deadline_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """What the app was made with."""

    services: HttpServices
    limits: HttpLimits
    web_dir: Path
    """Holds `index.html` and `static/`."""
    readers: Readers = field(default_factory=Readers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """One request, as a route sees it."""

    request: Request
    state: AppState
    user_id: UserId

    @property
    def chat(self) -> Chat:
        """What can be done."""
        return self.state.services.chat

    @property
    def memory(self) -> Memory:
        """What is remembered.

        Raises:
            MemoryNotOpened: it could not be opened.
        """
        services = self.state.services
        if services.memory is None:
            missing = services.missing_memory
            raise MemoryNotOpened(missing.reason if missing is not None else "Memory is off.")
        return services.memory

    async def memory_health(self) -> dict[str, Any]:
        """Tell how each place of delivery is, also where memory could not be opened."""
        missing = self.state.services.missing_memory
        if missing is not None:
            return missing_health_fields(missing.backends, UNAVAILABLE, missing.reason)
        return health_fields(await self.memory.health())

    @property
    def request_id(self) -> str:
        """The name of this request in error bodies and logs."""
        return str(self.request.state.request_id)

    async def body(self, model: type[BodyT]) -> BodyT:
        """Read the body; see `read_body`."""
        return await read_body(self.request, model, self.state.limits.body_deadline_s)

    async def optional_body(self, model: type[BodyT]) -> BodyT | None:
        """Read the body, if there is one."""
        return await read_optional_body(self.request, model, self.state.limits.body_deadline_s)

    def stream_plan(
        self, subscription: Subscription, conversation_id: str, *, until_completed: bool
    ) -> StreamPlan:
        """Say how to follow a subscription of one of the user's conversations."""
        return StreamPlan(
            subscription=subscription,
            until_completed=until_completed,
            check=partial(self.chat.conversations.get, self.user_id, conversation_id),
            wait_stopped=self.chat.intake.wait_shut_down,
            wait_revoked=self.request.state.wait_revoked,
            keep_alive_s=self.state.limits.keep_alive_s,
            readers=self.state.readers,
            request_id=self.request_id,
        )


async def state_of(request: Request) -> AppState:  # noqa: RUF029  a plain one would cost a thread
    """Give what the app was made with."""
    state: AppState = request.app.state.gateway
    return state


async def context_of(request: Request) -> RequestContext:
    """Gather what a route knows of its call."""
    return RequestContext(
        request=request, state=await state_of(request), user_id=request.state.user_id
    )


State = Annotated[AppState, Depends(state_of)]
Context = Annotated[RequestContext, Depends(context_of)]
