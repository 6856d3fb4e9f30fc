"""Agents of many users, each in a workspace of their own: an engine for each user."""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import anyio

from gateway.engine.protocol import (
    AgentClient,
    ClientSpec,
    Engine,
    EngineUnavailable,
    SessionOrigin,
)
from gateway.engine.session_files import forget_blocking

MakeEngineOf = Callable[[str], Awaitable[Engine]]
"""Returns the engine of a user. Raises `EngineUnavailable` if there can be none now."""


class UserEngines:
    """See `Engine`. The engine of a user is made when the user's first agent is started."""

    def __init__(
        self, own: Engine, make: MakeEngineOf, session_dirs: Callable[[], Iterable[Path]]
    ) -> None:
        """Initialise; `own` works for no user, and `session_dirs` returns where the sessions of
        all users are.
        """
        self._own = own
        self._make = make
        self._session_dirs = session_dirs
        self._engines: dict[str, Engine] = {}
        self._making: dict[str, anyio.Lock] = {}

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> AgentClient:
        """Start an agent in the workspace of the user whom the options name."""
        if spec.user_id is None:
            raise EngineUnavailable("An agent was asked for without a user.")
        return await (await self._engine_of(spec.user_id)).connect(spec, origin)

    async def _engine_of(self, user_id: str) -> Engine:
        async with self._making.setdefault(user_id, anyio.Lock(fast_acquire=True)):
            if user_id not in self._engines:
                self._engines[user_id] = await self._make(user_id)
            return self._engines[user_id]

    async def forget_session(self, session_id: str) -> None:
        """Delete a session's files, wherever they are: it may be older than the user's folder."""
        await self._own.forget_session(session_id)
        for directory in await anyio.to_thread.run_sync(lambda: list(self._session_dirs())):
            await anyio.to_thread.run_sync(forget_blocking, directory, session_id)

    async def end_orphans(self) -> int:
        """End the agents of an earlier, crashed run, whosever they were."""
        return await self._own.end_orphans()

    async def ping(self) -> str | None:
        """Return None if agents can be started; no user's folder makes the server unready."""
        return await self._own.ping()
