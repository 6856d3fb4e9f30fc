"""A conversation's events as the events of a session, the same in a list and in a stream.

Ids are made of the turn's id and the event's number, or are an approval's. A call is told when it
is known whether a person is asked about it, with what would run. The session is idle when nothing
runs and nothing waits, or when all that runs waits for a person.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import loads
from typing import Any, Final

from gateway.conversations.model import COMPLETED, Turn, TurnEvent
from gateway.doors.anthropic.objects import INSTRUCTIONS
from gateway.doors.pieces import (
    Asked,
    CallEnded,
    CallStarted,
    Ended,
    Piece,
    PieceReader,
    Text,
    Thinking,
)
from gateway.ids import TurnId
from memory.clock import rfc3339


@dataclass(frozen=True, slots=True)
class Told:
    """An event of the session."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Begun:
    """An event that a client may have announced: the text so far, and what came now."""

    kind: str
    id: str
    text: str = ""
    whole: str = ""


Item = Told | Begun

_REASONS: Final[Mapping[str, str]] = {"budget": "budget_reached", "refusal": "refusal"}


def user_message(turn: Turn, *, is_waiting: bool = False) -> dict[str, Any]:
    """Return a person's message; while it waits it is not processed."""
    return {
        "id": message_id(turn.id),
        "type": "user.message",
        "processed_at": None if is_waiting else rfc3339(turn.started_at or turn.created_at),
        "content": _content(turn.message.partition(INSTRUCTIONS)[0]),
    }


def message_id(turn_id: str) -> str:
    """Return the id of the message that began a turn."""
    return f"{turn_id}:message"


def interrupt_id(turn_id: str) -> str:
    """Return the id of the interrupt that ended a turn."""
    return f"{turn_id}:interrupt"


def confirmation_id(approval_id: str) -> str:
    """Return the id of a person's answer."""
    return f"{approval_id}:answer"


def confirmation(approval_id: str, result: str, message: str) -> dict[str, Any]:
    """Return a person's answer, without its time."""
    fields = {
        "id": confirmation_id(approval_id),
        "type": "user.tool_confirmation",
        "tool_use_id": approval_id,
        "result": result,
    }
    return {**fields, "deny_message": message} if message and result == "deny" else fields


@dataclass(slots=True)
class _TurnState:
    """What is open in one turn."""

    pieces: PieceReader = field(default_factory=PieceReader)
    message_id: str = ""
    text: str = ""
    texts: list[str] = field(default_factory=list)
    """Of the messages that have ended."""
    is_thinking: bool = False
    calls: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Calls that were not told yet, by their index."""
    call_ids: dict[int, str] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    """Approvals that wait."""


class SessionWriter:
    """Reads the events of a conversation from the first one of a turn on, in order; `turns` must
    have each turn that started or ended.
    """

    def __init__(self, turns: Mapping[TurnId, Turn]) -> None:
        self._turns = turns
        self._states: dict[TurnId, _TurnState] = {}
        self._waiting: set[TurnId] = set()
        self._is_running = False

    def read(self, event: TurnEvent) -> Iterator[Item]:
        """Yield what an event tells of the session."""
        match event.type:
            case "turn.queued":
                self._waiting.add(event.turn_id)
            case "turn.started":
                yield from self._start(event)
            case kind if kind == COMPLETED:
                yield from self._complete(event)
            case _:
                state = self._states.get(event.turn_id)
                if state is not None:
                    yield from self._go_on(event, state)

    def _start(self, event: TurnEvent) -> Iterator[Item]:
        self._waiting.discard(event.turn_id)
        self._states[event.turn_id] = _TurnState()
        turn = self._turns.get(event.turn_id)
        if turn is not None:
            yield Told(user_message(turn))
        if not self._is_running:
            self._is_running = True
            yield self._told(event, "session.status_running")

    def _go_on(self, event: TurnEvent, state: _TurnState) -> Iterator[Item]:
        fields = loads(event.data)
        if event.type == "notice" and (void := fields.get("void_text_chars")):
            state.text = state.text[:-void]
        elif event.type == "tool.output":
            yield from self._call(event, state, fields["index"], "allow")
        for piece in state.pieces.read([event]):
            yield from self._piece(event, state, piece)
        if event.type == "approval.resolved" and fields["approval_id"] in state.pending:
            yield from self._resolve(event, state, fields)

    def _piece(self, event: TurnEvent, state: _TurnState, piece: Piece) -> Iterator[Item]:
        if not isinstance(piece, Text) or piece.is_apart:
            yield from self._close(event, state)
        if not isinstance(piece, Thinking):
            state.is_thinking = False
        match piece:
            case Text(text):
                state.message_id = state.message_id or event.id
                state.text += text
                yield Begun("agent.message", state.message_id, text, state.text)
            case Thinking() if not state.is_thinking:
                state.is_thinking = True
                yield Begun("agent.thinking", event.id)
                yield self._told(event, "agent.thinking", id=event.id)
            case CallStarted(fields):
                state.calls[fields["index"]] = {**fields, "id": event.id}
            case CallEnded(fields):
                permission = "deny" if fields["status"] == "denied" else "allow"
                yield from self._call(event, state, fields["index"], permission)
                yield self._result(event, state, fields)
            case Asked(fields):
                yield from self._ask(event, state, fields)
            case Thinking() | Ended():  # it thinks on; and the end has a method of its own
                pass

    def _close(self, event: TurnEvent, state: _TurnState) -> Iterator[Item]:
        """Yield the message that has ended, if one was open."""
        if state.message_id:
            id_, text = state.message_id, state.text
            state.texts.append(text)
            state.message_id = state.text = ""
            yield self._told(event, "agent.message", id=id_, content=_content(text))

    def _call(
        self, event: TurnEvent, state: _TurnState, index: int, permission: str, **asked: Any
    ) -> Iterator[Item]:
        """Yield a call, if it was not told yet."""
        call = state.calls.pop(index, None)
        if call is None:
            return
        call = {**call, **asked}
        state.call_ids[index] = call["id"]
        yield self._told(
            event,
            "agent.tool_use",
            id=call["id"],
            name=call["name"],
            input=call["input"],
            evaluated_permission=permission,
        )

    def _result(self, event: TurnEvent, state: _TurnState, fields: Mapping[str, Any]) -> Item:
        is_error = fields["status"] != "ok"
        text = fields.get("output") or ""
        if is_error:
            text = fields.get("error") or text
        return self._told(
            event,
            "agent.tool_result",
            id=event.id,
            tool_use_id=state.call_ids.get(fields["index"], ""),
            content=_content(text) if text else [],
            is_error=is_error,
        )

    def _ask(
        self, event: TurnEvent, state: _TurnState, fields: Mapping[str, Any]
    ) -> Iterator[Item]:
        approval_id = fields["approval_id"]
        known = {"id": approval_id, "input": fields["input"]}
        yield from self._call(event, state, fields["index"], "ask", **known)
        state.pending.append(approval_id)
        yield self._needs_action(event, state)

    def _resolve(
        self, event: TurnEvent, state: _TurnState, fields: Mapping[str, Any]
    ) -> Iterator[Item]:
        state.pending.remove(fields["approval_id"])
        if fields["by"] == "user":
            message = fields.get("message", "")  # the first servers did not tell it
            answer = confirmation(fields["approval_id"], fields["decision"], message)
            yield Told({**answer, "processed_at": self._at(event)})
        if state.pending:
            yield self._needs_action(event, state)
        else:
            self._is_running = True
            yield self._told(event, "session.status_running")

    def _needs_action(self, event: TurnEvent, state: _TurnState) -> Item:
        self._is_running = False
        reason = {"type": "requires_action", "event_ids": list(state.pending)}
        return self._told(event, "session.status_idle", stop_reason=reason)

    def _complete(self, event: TurnEvent) -> Iterator[Item]:
        self._waiting.discard(event.turn_id)
        state = self._states.pop(event.turn_id, None)
        reason: dict[str, Any] = {"type": "end_turn"}
        if state is not None:
            result = loads(event.data)
            for index in list(state.calls):
                yield from self._call(event, state, index, "allow")
            yield from self._end(event, state, result)
            reason = _stop_reason(result, state.pending)
            self._is_running = True
        elif self._has_run(event.turn_id):  # read from its middle on, for the turn behind it
            self._is_running = bool(self._waiting)
        if self._is_running and not self._waiting and not self._states:
            self._is_running = False
            yield self._told(event, "session.status_idle", stop_reason=reason)

    def _has_run(self, turn_id: TurnId) -> bool:
        turn = self._turns.get(turn_id)
        return turn is not None and turn.started_at is not None

    def _end(
        self, event: TurnEvent, state: _TurnState, result: Mapping[str, Any]
    ) -> Iterator[Item]:
        """Yield what is open, then what the result has and no event had."""
        rest = [piece.text for piece in state.pieces.read([event]) if isinstance(piece, Text)]
        is_told = _plain("".join([*state.texts, state.text])) == _plain(result["reply"])
        yield from self._close(event, state)
        if result["stop_reason"] == "user_interrupt" and not result.get("cause"):
            yield self._told(event, "user.interrupt", id=interrupt_id(event.turn_id))
        if result["outcome"] == "engine_failed":
            yield self._failed(event, "".join(rest) or result["reply"])
        elif rest and not is_told:
            state.message_id, state.text = event.id, "".join(rest)
            yield Begun("agent.message", event.id, state.text, state.text)
            yield from self._close(event, state)

    def _failed(self, event: TurnEvent, message: str) -> Item:
        error = {
            "type": "unknown_error",
            "message": message,
            "retry_status": {"type": "terminal"},
        }
        return self._told(event, "session.error", error=error)

    def _told(self, event: TurnEvent, kind: str, id: str = "", **fields: Any) -> Told:  # noqa: A002
        where = {"id": id or f"{event.id}:{kind.rpartition('.')[2]}", "type": kind}
        return Told({**where, "processed_at": self._at(event), **fields})

    def _at(self, event: TurnEvent) -> str | None:
        """Return when an event was, as far as it is stored: its turn's start or end."""
        turn = self._turns.get(event.turn_id)
        if turn is None:
            return None
        ended = turn.finished_at if event.type == COMPLETED else None
        return rfc3339(ended or turn.started_at or turn.created_at)


def _stop_reason(result: Mapping[str, Any], pending: Sequence[str]) -> dict[str, Any]:
    """Return why a session is idle behind a turn."""
    if result.get("cause") == "waiting" and pending:  # it can still be answered
        return {"type": "requires_action", "event_ids": list(pending)}
    if result["outcome"] == "engine_failed":
        return {"type": "retries_exhausted"}
    return {"type": _REASONS.get(result["stop_reason"], "end_turn")}


def _content(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _plain(text: str) -> str:
    return "".join(text.split())
