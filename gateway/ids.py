"""The opaque, prefixed ids of the HTTP contract.

An id is its prefix and 128 random bits, so it cannot be guessed and needs no coordination.
"""

from typing import NewType

from memory.ids import opaque_id

ConversationId = NewType("ConversationId", str)
TurnId = NewType("TurnId", str)
ApprovalId = NewType("ApprovalId", str)
UserId = NewType("UserId", str)

LOCAL_USER = UserId("local")
"""Who everybody is on a server without tokens: the person at this machine."""


def new_conversation_id() -> ConversationId:
    """Make an id that nobody had before."""
    return ConversationId(opaque_id("cnv"))


def new_turn_id() -> TurnId:
    """Make an id that nobody had before."""
    return TurnId(opaque_id("trn"))


def new_approval_id() -> ApprovalId:
    """Make an id that nobody had before."""
    return ApprovalId(opaque_id("apr"))


def new_request_id() -> str:
    """Make the id under which the journal and an error body can be joined."""
    return opaque_id("req")
