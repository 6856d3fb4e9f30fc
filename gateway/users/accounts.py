"""Who may use the server, by the database: asked anew with each request, watched for streams."""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import anyio

from gateway.ids import UserId
from gateway.users.model import Action, AuditEntry, User, digest_of
from gateway.users.sql.audit import AuditLog
from gateway.users.sql.quotas import QuotaStore
from gateway.users.sql.sessions import SessionStore
from gateway.users.sql.users import TokenStore, UserStore
from memory.clock import Now
from memory.errors import StoreUnavailable
from memory.stores.database import SqlDatabase

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 0.5
_LOOK_AGAIN_S: Final = 1.0
"""After a look that failed, which is a line in the log."""
_KEPT_REFUSED: Final = 10_000
_PRUNE_EVERY_S: Final = 3600.0


class Accounts:
    """The users, tokens, sessions, quotas and audit log of a server."""

    def __init__(self, database: SqlDatabase, *, now: Now) -> None:
        self.users = UserStore(database)
        self.tokens = TokenStore(database)
        self.sessions = SessionStore(database)
        self.quotas = QuotaStore(database)
        self.audit = AuditLog(database)
        self.now = now
        self._enabled: frozenset[UserId] = frozenset()
        self._disabled: frozenset[UserId] = frozenset()
        self._live: frozenset[str] = frozenset()
        self._changed = anyio.Event()
        self.looked = anyio.Event()
        """Set once `watch` has looked, so that `is_enabled` and `is_disabled` tell."""

    async def holder(self, token: str) -> User | None:
        """Return the user of a token; None if it signs nobody in now.

        Raise `StoreUnavailable` if the store cannot be read.
        """
        return await self.tokens.holder(digest_of(token), self.now()) if token else None

    async def session_holder(self, secret: str) -> User | None:
        """Return the user of a session; raises as `holder` does."""
        return await self.sessions.holder(digest_of(secret), self.now()) if secret else None

    async def wait_ended(self, find: Callable[[], Awaitable[User | None]], user_id: UserId) -> None:
        """Return when `find`, which looks up what signed a user in, does not return the user any
        more. Raise `StoreUnavailable` if it cannot be looked up.

        Looked up after each change that `watch` sees, and when `watch` cannot look: a command's
        change counts within a second.
        """
        changed = self._changed
        while (user := await find()) is not None and user.id == user_id:
            await changed.wait()
            changed = self._changed

    async def wait_disabled(
        self, user_id: UserId, wait_revoked: Callable[[], Awaitable[None]]
    ) -> None:
        """Return when a user is disabled, or `wait_revoked` returns."""
        async with anyio.create_task_group() as tasks:

            async def revoked() -> None:
                await wait_revoked()
                tasks.cancel_scope.cancel()

            tasks.start_soon(revoked)
            while not self.is_disabled(user_id):
                await self._changed.wait()
            tasks.cancel_scope.cancel()

    async def refused(self, address: str) -> None:
        """Record that an unknown token came from an address."""
        await self.record("", "sign_in.refused", address)

    async def record(self, actor: str, action: Action, subject: str, **details: str) -> None:
        """Append to the audit log what somebody does now; raises as `AuditLog.add` does."""
        entry = AuditEntry(
            at=self.now(), actor=actor, action=action, subject=subject, details=details
        )
        await self.audit.add(entry)

    async def prune_audit(self, days: int) -> None:
        """Delete what is older in the audit log, now and each hour, until cancelled."""
        while True:
            before = self.now() - timedelta(days=days)
            await self.audit.prune(before, refused=_KEPT_REFUSED)
            await anyio.sleep(_PRUNE_EVERY_S)

    def is_disabled(self, user_id: UserId) -> bool:
        """Return whether a user is disabled, as of the last look of `watch`."""
        return user_id in self._disabled

    def is_enabled(self, user_id: UserId) -> bool:
        """Return whether there is such a user who may sign in, as of the last look of `watch`."""
        return user_id in self._enabled

    async def watch(self) -> None:
        """Look for changes, until cancelled; also while the store cannot be read."""
        while True:
            pause_s = _LOOK_EVERY_S
            try:
                await self._look()
            except StoreUnavailable as exc:
                _log.warning("users_unknown", extra={"reason": str(exc)})
                self._tell()  # streams look up their own tokens, and end
                pause_s = _LOOK_AGAIN_S
            await anyio.sleep(pause_s)

    async def _look(self) -> None:
        users, now = await self.users.listed(), self.now()
        live = [*await self.tokens.live(now), *await self.sessions.live(now)]
        before = (self._enabled, self._disabled, self._live)
        self._enabled = frozenset(user.id for user in users if user.disabled_at is None)
        self._disabled = frozenset(user.id for user in users) - self._enabled
        self._live = frozenset(live)
        if (self._enabled, self._disabled, self._live) != before:
            self._tell()
        self.looked.set()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
