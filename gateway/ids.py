"""The opaque, prefixed ids of the HTTP contract.

An id is its prefix and 128 random bits, so it cannot be guessed and needs no coordination.
"""

from typing import NewType

from memory.items.ids import opaque_id

ConversationId = NewType("ConversationId", str)
TurnId = NewType("TurnId", str)
ApprovalId = NewType("ApprovalId", str)
ScheduleId = NewType("ScheduleId", str)
UserId = NewType("UserId", str)
NodeId = NewType("NodeId", str)

LOCAL_USER = UserId("local")
"""The user of every request on a server without tokens."""


def new_conversation_id() -> ConversationId:
    """Return a new id."""
    return ConversationId(opaque_id("cnv"))


def new_turn_id() -> TurnId:
    """Return a new id."""
    return TurnId(opaque_id("trn"))


def new_approval_id() -> ApprovalId:
    """Return a new id."""
    return ApprovalId(opaque_id("apr"))


def new_schedule_id() -> ScheduleId:
    """Return a new id."""
    return ScheduleId(opaque_id("sch"))


def new_incarnation() -> str:
    """Return a new id of a start of this process."""
    return opaque_id("inc")


def new_request_id() -> str:
    """Return a new id that links an error body with the log."""
    return opaque_id("req")
