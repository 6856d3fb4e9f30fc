"""Users, their tokens, and entries of the audit log, as values."""

import getpass
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Literal

from gateway.ids import UserId
from memory.clock import rfc3339

Role = Literal["user", "admin"]
Action = Literal[
    "user.added",
    "user.role_changed",
    "user.disabled",
    "user.enabled",
    "token.made",
    "token.revoked",
    "quota.changed",
    "sign_in.done",
    "sign_in.refused",
    "sign_out",
    "conversation.deleted",
    "memory.deleted",
    "permission.granted",
    "configuration.approved",
    "tool.accepted",
]

USER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}", re.ASCII)
"""A name or an e-mail address; letters of the other case are another user's."""
USER_NAME_FORM: Final = (
    "one name or e-mail address of at most 128 ASCII letters, digits and `. _ @ + -`, beginning"
    " with a letter or digit"
)
"""The form of `USER_NAME`, for people."""
MAX_TOKEN_NAME_CHARS: Final = 64
_PREFIX: Final = "candor_"
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user that an administrator knows of."""

    id: UserId
    role: Role = "user"
    created_at: datetime
    disabled_at: datetime | None = None
    """Since when the user may not sign in; None: the user may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """What is known of a token, without the token."""

    id: str
    user_id: UserId
    name: str
    """What it is used by, such as a computer; at most `MAX_TOKEN_NAME_CHARS` characters."""
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        """Return whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser that signed in through a provider, without its secret."""

    id: str
    user_id: UserId
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Who does something to users, and when."""

    by: str
    """A user's id; `command:` and a name of the system's; empty if it is not known."""
    at: datetime


def act_of_command(at: datetime) -> Act:
    """Return the act of whoever runs this program: the system's user, by number if the system has
    no name for it, as for a container's made-up user.
    """
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return Act(by=f"command:{name}", at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what. It never holds a secret or what users wrote."""

    seq: int = 0
    """The order of the log; 0 before it is stored."""
    at: datetime
    actor: str
    """See `Act.by`."""
    action: Action
    subject: str
    """To what or whom: an id, or an address."""
    details: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Return what clients see of it."""
        return {
            "id": self.seq,
            "at": rfc3339(self.at),
            "actor": self.actor or None,
            "action": self.action,
            "subject": self.subject,
            "details": dict(self.details),
        }


def new_secret() -> str:
    """Return a new token of 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def digest_of(secret: str) -> str:
    """Return the SHA-256 of a token, in hexadecimal.

    A slow hash protects what people choose. A token has 256 random bits, which nobody can try.
    """
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def plain_number(number: float) -> str:
    """Return a limit without exponent and in full, to six decimals."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
