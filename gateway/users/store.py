"""The protocols of the stores of users, tokens and the audit log.

SQLite implements them; another store must pass the same suites (`tests/conformance`). Times are
aware and kept to the millisecond. Every change is one transaction together with its entry in the
audit log. Every method raises `memory.errors.StoreUnavailable` if the store cannot be read or
written.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from gateway.conversations.model import QuotaLimit
from gateway.ids import UserId
from gateway.users.model import Act, ApiToken, AuditEntry, Role, Session, User


class UserStore(Protocol):
    """The users that administrators know of."""

    async def add(self, user: User, act: Act) -> bool:
        """Add a user; return False, and change nothing, if the id is taken."""

    async def get(self, user_id: UserId) -> User | None:
        """Return the user; None if there is no such user."""

    async def listed(self) -> Sequence[User]:
        """List all users by their ids."""

    async def set_role(self, user_id: UserId, role: Role, act: Act) -> bool:
        """Change a user's role; return False if there is no such user.

        A role that the user has already is no change, and not an entry.
        """

    async def set_disabled(self, user_id: UserId, act: Act, *, is_disabled: bool) -> bool:
        """Refuse or admit a user; return False if there is no such user.

        What is so already is no change, and not an entry.
        """


class TokenStore(Protocol):
    """The tokens of users, of which only the digests are kept."""

    async def add(self, token: ApiToken, digest: str, act: Act) -> bool:
        """Add a token; return False, and change nothing, if there is no such user."""

    async def listed(self, user_id: UserId | None = None) -> Sequence[ApiToken]:
        """List a user's tokens, or those of all users, oldest first; revoked ones are among
        them.
        """

    async def revoke(self, token_id: str, act: Act) -> bool:
        """Revoke a token for good; return False if there is none, or it is revoked already."""

    async def holder(self, digest: str, at: datetime) -> User | None:
        """Return the user who signs in with a token at a moment.

        None if there is no such token, it is revoked or has expired, or the user is disabled.
        """

    async def live(self, at: datetime) -> Sequence[str]:
        """Return the ids of the tokens that are neither revoked nor expired, in their order."""


class SessionStore(Protocol):
    """Sessions of browsers, and sign-ins that are on their way through a provider."""

    async def begin(
        self, digest: str, data: Mapping[str, str], *, at: datetime, expires_at: datetime
    ) -> None:
        """Keep what the answer of a sign-in must match, until it comes or expires.

        `digest` is that of its state. Expired ones are deleted. Raise `StoreConflict` if it is
        taken.
        """

    async def take(self, digest: str, at: datetime) -> Mapping[str, str] | None:
        """Return what was kept for a sign-in, once; None if there is none, or it has expired."""

    async def start(self, session: Session, digest: str, act: Act) -> None:
        """Start a session; `digest` is that of its secret. Expired ones are deleted.

        Raise `StoreConflict` if there is no such user.
        """

    async def holder(self, digest: str, at: datetime) -> User | None:
        """Return the user of a session; None if there is none, it has ended or expired, or the user
        is disabled.
        """

    async def end(self, digest: str, act: Act) -> bool:
        """End a session; return False if there is none."""

    async def live(self, at: datetime) -> Sequence[str]:
        """Return the ids of the sessions that have not expired, in their order."""


class QuotaStore(Protocol):
    """The limits that users have instead of everybody's. A user need not be in `UserStore`."""

    async def own(self, user_id: UserId) -> Mapping[QuotaLimit, float | None]:
        """Return a user's own limits; None: there is no limit."""

    async def set(self, user_id: UserId, limit: QuotaLimit, most: float | None, act: Act) -> None:
        """Set a limit of a user, which counts from the next turn on; `most` None: no limit."""

    async def reset(self, user_id: UserId, limit: QuotaLimit, act: Act) -> bool:
        """Have everybody's limit count for a user again; return False if it does already."""


class AuditLog(Protocol):
    """Who did what, in the order in which it was stored. No entry can be changed."""

    async def add(self, entry: AuditEntry) -> None:
        """Append an entry; its `seq` is given by the store."""

    async def page(
        self, *, limit: int, before: int | None = None, actor: str | None = None
    ) -> Sequence[AuditEntry]:
        """List entries, the latest first; `before` is the `seq` of the last one of the page before.

        With `actor` those of one actor alone.
        """

    async def prune(self, before: datetime, *, refused: int) -> int:
        """Delete entries older than a moment, and of refused sign-ins all but the latest `refused`;
        return how many were deleted.

        Refused sign-ins, which strangers can cause, never displace other entries.
        """
