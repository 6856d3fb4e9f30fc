"""Complete turns that do not run (any more): withdrawn, or cut off by a crash of the server.

Each gets a turn result that reports what stored events prove. A turn whose end was stored before
the crash is completed with that end. One whose rows are damaged gets what can be read of it, and
keeps no other turn from being recovered.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from gateway.conversations.event_log import EventLog, TurnEvents
from gateway.conversations.leases import Lease
from gateway.conversations.model import Approval, Conversation, Turn, TurnEvent
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.turns import TurnStore
from gateway.engine.events import NO_NAME, ToolCalled
from gateway.ids import ConversationId
from gateway.journal.writer import Journal, TurnJournal
from gateway.turns.conversation_memory import ConversationTools
from gateway.turns.evidence import Evidence, Notice
from gateway.turns.file_changes import NO_CHANGES
from gateway.turns.reply import Cause, Ending
from gateway.turns.result import failure_notice, memory_fields, tool_fields, turn_result
from gateway.turns.sentences import Language, language_of, say
from gateway.turns.steps import Steps, clean_steps, closing_step
from gateway.turns.stored_events import is_damaged, is_result, read_event
from gateway.turns.turn_memory import TurnChronicle, TurnMemory
from memory.clock import Now, elapsed_ms
from memory.errors import StoreDamaged, StoreUnavailable
from memory.recall.query import ContextPack

_log = logging.getLogger(__name__)

_ALL_EVENTS = 1_000_000

_NOT_RECOVERED = (
    "{turns} could not be recovered after the last stop, because what is stored of them is "
    "damaged. The server's log"
    " names them; the rest works. Restore a backup if they matter."
)

Withdrawal = Literal["withdrawn", "withdrawn_left"]


def evidence_of(stored: Sequence[TurnEvent]) -> Evidence:
    """Fold a turn's stored events back into evidence, without damaged ones; the calls are not
    settled.
    """
    evidence = Evidence()
    for event in stored:
        data = read_event(event)
        if data is not None:
            _take(evidence, event.type, data)
    return evidence


def _take(evidence: Evidence, kind: str, data: dict[str, Any]) -> None:
    match kind:
        case "turn.started":
            evidence.model = data.get("model") or ""
        case "text.delta" | "thinking.delta" | "approval.requested" | "approval.resolved":
            _take_step(evidence.steps, kind, data)
            if data.get("allowed_by") and data.get("index") is not None:
                evidence.allow(data["index"], data["allowed_by"])
        case "tool.started":
            _take_call(evidence, data.get("index", len(evidence.tools) + 1), data)
        case "tool.finished":
            index = _index_of(evidence, data)
            if index not in evidence.tools:  # its start is damaged; that it was called is certain
                _take_call(evidence, index, {"name": NO_NAME, **data, "input": {}, "summary": ""})
            use = evidence.tools[index]
            use.status, use.error = data["status"], data["error"]
            use.duration_ms = data.get("duration_ms")
            use.output, use.ran = data.get("output") or "", data.get("ran")
            use.allowed_by = data.get("allowed_by") or use.allowed_by
            use.output_chars = data.get("output_chars")
        case "notice":
            evidence.notices.append(Notice(data["code"], data["message"]))
            evidence.steps.drop_last(data.get("void_text_chars", 0), is_thinking=False)
            evidence.steps.drop_last(data.get("void_thinking_chars", 0), is_thinking=True)
        case _:
            return


def _take_call(evidence: Evidence, index: int, data: Mapping[str, Any]) -> None:
    evidence.steps.end_text()
    call = ToolCalled(
        index=index,
        tool_use_id=data["tool_use_id"],
        name=data["name"],
        input=data["input"],
        parent_index=data.get("parent_index"),
        parent_tool_use_id=data.get("parent_tool_use_id"),
    )
    evidence.tool_called(call, data["summary"], 0)


def _take_step(steps: Steps, kind: str, data: dict[str, Any]) -> None:
    match kind:
        case "text.delta":
            steps.add_text(data["text"])  # as it was streamed: what is void is counted in that
        case "thinking.delta":
            if steps.is_writing:
                steps.end_text()
            steps.add_thinking(data["text"])
        case "approval.requested":
            steps.add_approval(data["approval_id"], data.get("index") or 0)
        case _:
            steps.resolve_approval(data["approval_id"], data["decision"], data.get("by"), data)


def _index_of(evidence: Evidence, data: Mapping[str, Any]) -> int:
    """Return the index of an event's call, or of the next one if none has its `tool_use_id`.

    Events stored by version 1.0 have no index.
    """
    if data.get("index") is not None:
        return int(data["index"])
    uses = [use for use in evidence.tools.values() if use.tool_use_id == data["tool_use_id"]]
    if not uses:
        return len(evidence.tools) + 1
    return next((use.index for use in uses if use.status is None), uses[-1].index)


@dataclass(frozen=True, slots=True)
class TurnStores:
    """What a start after a crash reads."""

    turns: TurnStore
    events: EventStore
    conversations: ConversationStore
    approvals: ApprovalStore


class TurnRecovery:
    """Completes the turns that ran when their server died, and readmits those that waited."""

    def __init__(
        self,
        stores: TurnStores,
        log: EventLog,
        journal: Journal,
        memory: TurnMemory,
        now: Now,
        readmit: Callable[[Turn], Awaitable[None]],
    ) -> None:
        """Initialise; `readmit` is called with turns that waited."""
        self._stores = stores
        self._log = log
        self._journal = journal
        self._memory = memory
        self._now = now
        self._readmit = readmit
        self._lost = 0

    async def recover(self, lease: Lease, *, was_let_go: bool) -> None:
        """Recover the turns of a conversation that was taken from a dead server, or from nobody;
        if it `was_let_go`, from one that lives, and had lost its database.

        Raise `StoreUnavailable` if the store cannot be read or written.
        """
        where = lease.conversation_id
        self._log.feed.lose(where)  # what its last owner stored is in the store alone
        for turn in await self._stores.turns.unfinished(self._add_lost, of=where):
            cause: Cause = "database_lost" if was_let_go else "crashed"
            await self._recover(replace(turn, epoch=lease.epoch), cause)

    async def recover_all(
        self, leases: Sequence[Lease], is_foreign: Callable[[ConversationId], Awaitable[bool]]
    ) -> None:
        """Recover, at the start, the turns of conversations that were taken, and those that damage
        has left without one.

        Raise `StoreUnavailable` if the store cannot be read or written.
        """
        epochs = {lease.conversation_id: lease.epoch for lease in leases}
        for turn in await self._stores.turns.unfinished(self._add_lost):
            where = turn.conversation_id
            if where in epochs or not await is_foreign(where):
                await self._recover(replace(turn, epoch=epochs.get(where, 0)), "crashed")

    async def _recover(self, turn: Turn, cause: Cause) -> None:
        try:
            if turn.state == "running":
                await self._close(turn, cause)
            else:
                await self._readmit(turn)
        except Exception as exc:
            if isinstance(exc, StoreUnavailable) and not isinstance(exc, StoreDamaged):
                raise
            self._add_lost()
            _log.exception("turn_not_recovered", extra={"turn_id": turn.id})

    async def _close(self, turn: Turn, cause: Cause) -> None:
        stores, where = self._stores, turn.conversation_id
        stored = await stores.events.after(where, 0, limit=_ALL_EVENTS, turn_id=turn.id)
        waiting = await _waiting_approvals(turn, stored, stores.approvals)
        opened = await self._log.open_turn(turn)
        conversation = await stores.conversations.get(where, turn.user_id)
        found = CutTurn(turn, conversation, stored, waiting, cause)
        await _close_crashed(found, opened, self._journal, self._now(), self._memory)

    def _add_lost(self) -> None:
        """Count a turn that could not be recovered, because what is stored of it is damaged."""
        self._lost += 1

    async def ping(self) -> Mapping[str, str] | None:
        """Report the turns that were lost; the server is ready in spite of them."""
        turns = "1 turn" if self._lost == 1 else f"{self._lost} turns"
        detail = _NOT_RECOVERED.format(turns=turns)
        return {"state": "damaged", "detail": detail} if self._lost else None


@dataclass(frozen=True, slots=True)
class CutTurn:
    """A turn that was running when the server died or let it go, and what is stored of it."""

    turn: Turn
    conversation: Conversation | None
    stored: Sequence[TurnEvent]
    waiting: Sequence[Approval]
    """The approvals that can still be answered: their calls did not run."""
    cause: Cause
    """Why it was cut off, unless an approval can still be answered."""


async def _waiting_approvals(
    turn: Turn, stored: Sequence[TurnEvent], approvals: ApprovalStore
) -> Sequence[Approval]:
    """Return the approvals of a turn that can still be answered.

    A yes of which readers were not told had no effect, because the call waits for that; it is taken
    back.
    """
    told = {data["approval_id"] for data in _of_type(stored, "approval.resolved")}
    waiting = []
    for approval in await approvals.of_turn(turn.id):
        if approval.state == "answered" and approval.decision == "allow":
            if approval.id in told or turn.result is not None:
                continue
            await approvals.reopen(approval.id, epoch=turn.epoch)
        elif approval.state != "open":
            continue
        waiting.append(approval)
    return waiting


def _runs_missed(turn: Turn, language: Language) -> Notice | None:
    """Return what a turn says first that stands for runs of its schedule which did not happen."""
    missed = 0 if turn.schedule is None else turn.schedule.missed
    return Notice("runs_missed", say(language, "runs_missed", count=missed)) if missed else None


def _tell_once(notice: Notice | None, evidence: Evidence, events: TurnEvents) -> None:
    if notice is not None and notice.code not in {known.code for known in evidence.notices}:
        evidence.notices.append(notice)
        events.emit("notice", **asdict(notice))


async def _close_crashed(
    found: CutTurn,
    events: TurnEvents,
    journal: Journal,
    now: datetime,
    memory: TurnMemory,
) -> None:
    """Complete a turn that was running when the server died.

    If its end was stored it is completed with that end, else with the evidence of its events.
    """
    turn, conversation = found.turn, found.conversation
    evidence = evidence_of(found.stored)
    started_at = turn.started_at or turn.created_at
    lines = journal.open(turn.conversation_id, turn.id, started_at)
    is_remembered = conversation is not None and conversation.memory_enabled
    memory = replace(memory, tools=ConversationTools())  # the history has the tools in use
    guard = memory.guard_of(events)
    chronicle = TurnChronicle(memory, turn, is_on=is_remembered, guard=guard)
    if not is_result(turn.result):
        result = _cut_off(found, evidence, events, lines, now)
        told, notices = await chronicle.conclude(conversation, list(evidence.tools.values()))
        result["memory"] |= told
        for notice in map(asdict, notices):
            events.emit("notice", **notice)
            result["notices"].append(notice)
        turn = replace(turn, finished_at=now, result=result)
        await events.note_ending(turn)
        if events.is_refused:  # another server has taken the conversation meanwhile
            await lines.close()
            return
    else:
        result = turn.result or {}
    await chronicle.received(conversation, started_at)
    for use in evidence.tools.values():
        await chronicle.tool(use, now)
    chronicle.recalled(result["memory"], started_at)
    chronicle.completed(result, evidence.text, now)
    if not await chronicle.record():
        lost = asdict(
            Notice("memory_not_written", say(language_of(turn.message), chronicle.failure))
        )
        events.emit("notice", **lost)
        result = {**result, "notices": [*result["notices"], lost]}
    lines.write("response", **result)
    await lines.close()
    await events.complete(replace(turn, state="completed", result=result), result)
    chronicle.ended()


def _cut_off(
    found: CutTurn,
    evidence: Evidence,
    events: TurnEvents,
    lines: TurnJournal,
    now: datetime,
) -> dict[str, Any]:
    """Report what the crash cut off; return the result."""
    turn, stored = found.turn, found.stored
    language = language_of(turn.message)
    what = "lost its database" if found.cause == "database_lost" else "stopped"
    lines.write("error", where="server", message=f"the server {what} while this turn was running")
    cause: Cause = "waiting" if found.waiting else found.cause
    ending = Ending(language=language, log_file=lines.log_file, cause=cause)
    questions, answers = (
        _of_type(stored, "approval.requested"),
        _of_type(stored, "approval.resolved"),
    )
    allowed = {data["approval_id"] for data in answers if data["decision"] == "allow"}
    for approval in found.waiting:
        evidence.waiting.add(approval.call_index)
        evidence.steps.resolve_approval(approval.id, None, None, {"state": "waiting"})
    waiting = {approval.id for approval in found.waiting}
    for data in questions:
        if (
            data["approval_id"] not in allowed | waiting
        ):  # without a stored permission it did not run
            evidence.denials[_index_of(evidence, data)] = say(language, "nobody_allowed")
    evidence.passed = evidence.tools.keys() - evidence.waiting
    for use in evidence.settle(0):
        fields = {**tool_fields(use), "output": "", "output_chars": None}
        lines.write("tool", **fields)
        del fields["summary"]
        events.emit("tool.finished", **fields)
    answered = {data["approval_id"] for data in answers}
    for data in questions:
        if data["approval_id"] not in answered | waiting:
            evidence.steps.resolve_approval(data["approval_id"], "deny", "turn_ended")
            events.emit(
                "approval.resolved",
                approval_id=data["approval_id"],
                index=data.get("index"),
                tool_use_id=data["tool_use_id"],
                decision="deny",
                by="turn_ended",
            )
    for notice in (_runs_missed(turn, language), failure_notice(evidence, ending)):
        _tell_once(notice, evidence, events)
    damaged = is_damaged(stored)
    if damaged:
        damage = Notice("record_damaged", say(language, "record_damaged"))
        evidence.notices.append(damage)
        events.emit("notice", **asdict(damage))
    memory = memory_fields(ContextPack())
    for data in _of_type(stored, "memory.injected"):
        memory = {key: data.get(key, value) for key, value in memory.items()}
    # what the files were before was known to the dead server alone
    evidence.changes = {**NO_CHANGES, "complete": not evidence.tools and not damaged}
    started_at = turn.started_at or turn.created_at
    result = turn_result(
        evidence,
        ending,
        turn=turn,
        memory=memory,
        cost_usd=0.0,
        started_at=started_at,
        finished_at=now,
        duration_ms=elapsed_ms(started_at, now),
    )
    result["steps"] = clean_steps(result["steps"], result["reply"], str)
    return result


def _of_type(stored: Sequence[TurnEvent], kind: str) -> list[dict[str, Any]]:
    found = (read_event(event) for event in stored if event.type == kind)
    return [data for data in found if data is not None]


async def close_withdrawn(turn: Turn, events: TurnEvents, why: Withdrawal, now: datetime) -> None:
    """Complete a turn that never ran, because its message was withdrawn or
    its conversation left.
    """
    result = turn_result(
        Evidence(stopped_by="user_interrupt"),
        Ending(
            language=language_of(turn.message),
            log_file="",
            cause="left" if why == "withdrawn_left" else None,
        ),
        turn=turn,
        memory=memory_fields(ContextPack()),
        cost_usd=0.0,
        started_at=turn.created_at,
        finished_at=now,
        duration_ms=0,
    )
    closing = say(language_of(turn.message), why)
    result |= {"reply": closing, "steps": [closing_step(closing)], "log_file": None}
    state: Literal["withdrawn", "completed"] = "withdrawn" if why == "withdrawn" else "completed"
    await events.complete(replace(turn, state=state, finished_at=now, result=result), result)
