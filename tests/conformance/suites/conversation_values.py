"""What the suites of this package write, and how they open what they test.

`ConversationStoreSuite`, `TurnStoreSuite`, `EventStoreSuite`, `ApprovalStoreSuite`,
`ScheduleStoreSuite`, `LeaseStoreSuite` and `FenceSuite`, beside this file, hold one test for each contract of the stores in
`gateway.conversations`; any new store must pass them. A subclass supplies the fixture `opens` and nothing else: the suites never ask what they run
on. They need pytest and pytest-asyncio; nothing that serves imports this package.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.conversations.model import COMPLETED, Conversation, Turn, TurnEvent
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.conversations.sql.client_objects import ClientObjectStore
from gateway.conversations.sql.client_turns import ClientTurnStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.duties import DutyStore
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.file_changes import FileChangeStore
from gateway.conversations.sql.leases import LeaseStore
from gateway.conversations.sql.record_queue import RecordQueue
from gateway.conversations.sql.schedules import ScheduleStore
from gateway.conversations.sql.turns import TurnStore
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.conversations.sql.work_trees import WorkTreeStore
from gateway.ids import ConversationId, TurnId, UserId
from gateway.transcripts import TranscriptStore
from tests.conformance.suites.opened import OpenedSuite

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN, BOB = UserId("ann"), UserId("bob")
WAIT_S = 30
TEXTS = [
    "plain",
    "你好，世界",
    "🧑‍🚀 e\u0301 \u202e right to left",
    "nul\0inside",
    "'; DROP TABLE turns; --\n\t\\",
    "长" * 200_000,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The stores, open on one place."""

    conversations: ConversationStore
    turns: TurnStore
    events: EventStore
    approvals: ApprovalStore
    schedules: ScheduleStore
    leases: LeaseStore
    duties: DutyStore
    webhooks: WebhookStore
    client_objects: ClientObjectStore
    client_turns: ClientTurnStore
    file_changes: FileChangeStore
    record: RecordQueue
    transcripts: TranscriptStore
    work_trees: WorkTreeStore


OpenStores = Callable[[], AbstractAsyncContextManager[Stores]]


def at(minutes: float) -> datetime:
    """Return a moment so many minutes after the suites' first one."""
    return AT + timedelta(minutes=minutes)


def conversation(name: str = "a", user_id: UserId = ANN, **fields: Any) -> Conversation:
    """Make a conversation with the id `cnv_<name>`."""
    blank = Conversation(
        id=ConversationId(f"cnv_{name}"),
        user_id=user_id,
        title="",
        model=None,
        memory_enabled=True,
        case_memory=False,
        app_code=None,
        environment=None,
        session_id=None,
        fork_at=None,
        created_at=AT,
        last_activity_at=AT,
        turns=0,
    )
    return replace(blank, **fields)


def turn(name: str = "a1", of: str = "a", user_id: UserId = ANN, **fields: Any) -> Turn:
    """Make a queued turn with the id `trn_<name>` in the conversation `cnv_<of>`."""
    blank = Turn(
        id=TurnId(f"trn_{name}"),
        conversation_id=ConversationId(f"cnv_{of}"),
        user_id=user_id,
        seq=0,
        state="queued",
        message=f"message of {name}",
        created_at=AT,
    )
    return replace(blank, **fields)


def ended(one: Turn, minutes: float = 1, **fields: Any) -> Turn:
    """Make the completed form of a turn."""
    done = replace(
        one,
        state="completed",
        started_at=at(minutes),
        finished_at=at(minutes + 0.5),
        result={"reply": "done", "turn_id": one.id, "conversation_id": one.conversation_id},
        session_id="s1",
        last_entry_id="m1",
    )
    return replace(done, **fields)


def event(seq: int, one: Turn, n: int, **fields: Any) -> TurnEvent:
    """Make an event of a turn."""
    blank = TurnEvent(
        seq=seq,
        conversation_id=one.conversation_id,
        turn_id=one.id,
        n=n,
        type="text.delta",
        data=f'{{"n":{n}}}',
    )
    return replace(blank, **fields)


def last_event(seq: int, one: Turn, n: int) -> TurnEvent:
    """Make a turn's last event."""
    return event(seq, one, n, type=COMPLETED)


class StoresSuite(OpenedSuite):
    """A suite of the stores of conversations."""

    @pytest.fixture
    def stores(self, opened: Stores) -> Stores:
        """Return the open stores."""
        return opened
