"""Users and their tokens in SQLite."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from gateway.ids import UserId
from gateway.users.model import Act, Action, ApiToken, Role, User
from gateway.users.sql.audit import record_blocking
from memory.clock import rfc3339
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value
from memory.stores.sqlite.statements import insert_blocking

_user_of: Callable[[Any], User] = partial(read_value, User)
_token_of: Callable[[Any], ApiToken] = partial(read_value, ApiToken)
_HOLDER = (
    "SELECT users.* FROM api_tokens JOIN users ON users.id = api_tokens.user_id"
    " WHERE api_tokens.digest = :digest AND api_tokens.revoked_at IS NULL"
    " AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > :at)"
    " AND users.disabled_at IS NULL"
)


class UserStore:
    """The users that administrators know of."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def add(self, user: User, act: Act) -> bool:
        """Add a user; return False, and change nothing, if the id is taken."""

        def work(writer: Connection) -> bool:
            is_new = "ON CONFLICT (id) DO NOTHING RETURNING id"
            if not insert_blocking(writer, "users", columns_of(user), is_new).fetchall():
                return False
            record_blocking(writer, act, "user.added", user.id, role=user.role)
            return True

        return await self._database.write(work)

    async def get(self, user_id: UserId) -> User | None:
        """Return the user; None if there is no such user."""
        return await self._database.value(_user_of, "SELECT * FROM users WHERE id = ?", (user_id,))

    async def listed(self) -> Sequence[User]:
        """List all users by their ids."""
        return await self._database.values(_user_of, "SELECT * FROM users ORDER BY id")

    async def set_role(self, user_id: UserId, role: Role, act: Act) -> bool:
        """Change a user's role; return False if there is no such user.

        A role that the user has already is no change, and not an entry.
        """

        def work(writer: Connection) -> bool:
            user = _find_blocking(writer, user_id)
            if user is not None and user.role != role:
                writer.execute("UPDATE users SET role = ? WHERE id = ?", (role, user_id))
                record_blocking(writer, act, "user.role_changed", user_id, role=role)
            return user is not None

        return await self._database.write(work)

    async def set_disabled(self, user_id: UserId, act: Act, *, is_disabled: bool) -> bool:
        """Refuse or admit a user; return False if there is no such user.

        What is so already is no change, and not an entry.
        """

        def work(writer: Connection) -> bool:
            user = _find_blocking(writer, user_id)
            if user is not None and (user.disabled_at is not None) != is_disabled:
                since = rfc3339(act.at) if is_disabled else None
                writer.execute("UPDATE users SET disabled_at = ? WHERE id = ?", (since, user_id))
                done: Action = "user.disabled" if is_disabled else "user.enabled"
                record_blocking(writer, act, done, user_id)
            return user is not None

        return await self._database.write(work)


class TokenStore:
    """The tokens of users, of which only the digests are kept."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def add(self, token: ApiToken, digest: str, act: Act) -> bool:
        """Add a token; return False, and change nothing, if there is no such user."""

        def work(writer: Connection) -> bool:
            if _find_blocking(writer, token.user_id) is None:
                return False
            insert_blocking(writer, "api_tokens", columns_of(token) | {"digest": digest})
            of = {"user": token.user_id, "name": token.name}
            record_blocking(writer, act, "token.made", token.id, **of)
            return True

        return await self._database.write(work)

    async def listed(self, user_id: UserId | None = None) -> Sequence[ApiToken]:
        """List a user's tokens, or those of all users, oldest first; revoked ones are among
        them.
        """
        return await self._database.values(
            _token_of,
            "SELECT * FROM api_tokens WHERE user_id = coalesce(:user, user_id)"
            " ORDER BY created_at, id",
            {"user": user_id},
        )

    async def revoke(self, token_id: str, act: Act) -> bool:
        """Revoke a token for good; return False if there is none, or it is revoked already."""

        def work(writer: Connection) -> bool:
            revoked = writer.execute(
                "UPDATE api_tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
                " RETURNING user_id, name",
                (rfc3339(act.at), token_id),
            ).fetchall()
            for row in revoked:
                of = {"user": row["user_id"], "name": row["name"]}
                record_blocking(writer, act, "token.revoked", token_id, **of)
            return bool(revoked)

        return await self._database.write(work)

    async def holder(self, digest: str, at: datetime) -> User | None:
        """Return the user who signs in with a token at a moment.

        None if there is no such token, it is revoked or has expired, or the user is disabled.
        """
        values = {"digest": digest, "at": rfc3339(at)}
        return await self._database.value(_user_of, _HOLDER, values)

    async def live(self, at: datetime) -> Sequence[str]:
        """Return the ids of the tokens that are neither revoked nor expired, in their order."""
        rows = await self._database.rows(
            "SELECT id FROM api_tokens WHERE revoked_at IS NULL"
            " AND (expires_at IS NULL OR expires_at > ?) ORDER BY id",
            (rfc3339(at),),
        )
        return [row["id"] for row in rows]


def _find_blocking(writer: Connection, user_id: UserId) -> User | None:
    row = writer.execute("SELECT * FROM users WHERE id = ?", (user_id,)).fetchone()
    return None if row is None else _user_of(row)
