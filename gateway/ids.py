"""The opaque, prefixed ids of the HTTP contract.

An id is its prefix and 128 random bits, so it cannot be guessed and needs no coordination.
"""

import secrets
from base64 import b32encode
from typing import NewType

ConversationId = NewType("ConversationId", str)
TurnId = NewType("TurnId", str)
ApprovalId = NewType("ApprovalId", str)
UserId = NewType("UserId", str)

LOCAL_USER = UserId("local")
"""Who everybody is on a server without tokens: the person at this machine."""


def _opaque(prefix: str) -> str:
    return f"{prefix}_{b32encode(secrets.token_bytes(16)).decode().rstrip('=').lower()}"


def new_conversation_id() -> ConversationId:
    """Make an id that nobody had before."""
    return ConversationId(_opaque("cnv"))


def new_turn_id() -> TurnId:
    """Make an id that nobody had before."""
    return TurnId(_opaque("trn"))


def new_approval_id() -> ApprovalId:
    """Make an id that nobody had before."""
    return ApprovalId(_opaque("apr"))


def new_request_id() -> str:
    """Make the id under which the journal and an error body can be joined."""
    return _opaque("req")
