"""Read turns: their results and their events."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.conversations.feed import Subscription
from gateway.conversations.model import Conversation, Turn, TurnEvent
from gateway.conversations.outputs import CallId
from gateway.engine.result_text import plain_result
from gateway.errors import NotFound
from gateway.ids import TurnId, UserId
from gateway.journal.reader import read_log
from gateway.turns.control import run_until_first
from gateway.turns.requests import Accepted, finished_result, unreadable_result
from gateway.turns.result import call_fields
from gateway.turns.sanitizer import off_loop
from gateway.turns.turn_recovery import evidence_of
from memory.errors import StoreDamaged, StoreUnavailable

_N_DIGITS = 18
_LOOK_S = 2.0
"""How often the turn of another server is looked at that stores nothing."""


class TurnReader:
    """Reads the turns of users."""

    def __init__(self, parts: ChatParts, access: ConversationAccess, intake: Intake) -> None:
        self._parts = parts
        self._access = access
        self._intake = intake

    async def result(self, user_id: UserId, turn_id: TurnId) -> dict[str, Any]:
        """Wait for a turn's result.

        Raises:
            NotFound: no such turn, or it was deleted meanwhile.
            StoreDamaged: the turn ran and the store does not find it, or its conversation cannot be
                read, so that it will not run.
            KeptAtShutDown, NotStored: see `finished_result`.
            NotStored: a turn that this server had cannot be read; see `unreadable_result`.
        """
        ticket = self._parts.lanes.find(turn_id)
        if ticket is not None:
            await run_until_first(
                ticket.control.finished.wait,
                self._intake.wait_shut_down,
                self._parts.log.until_stuck,
            )
        try:
            turn = await self._parts.turns.get(turn_id)
            if ticket is None and turn is not None and turn.result is None:
                await run_until_first(
                    partial(self._completed_elsewhere, turn),
                    self._intake.wait_shut_down,
                    self._parts.log.until_stuck,
                )
                turn = await self._parts.turns.get(turn_id)
            if turn is not None and turn.result is None:
                await self._parts.conversations.get(turn.conversation_id, turn.user_id)
        except StoreUnavailable as exc:
            if ticket is None or ticket.turn.user_id != user_id or isinstance(exc, StoreDamaged):
                raise
            raise unreadable_result(ticket.turn) from exc
        if turn is None and ticket is not None:
            await self._access.find_stored(user_id, ticket.turn.conversation_id)
            raise StoreDamaged("The turn ran, but the database does not find it: it is damaged.")
        if turn is None or turn.user_id != user_id:
            raise NotFound("There is no such turn.")
        is_lost = ticket is not None and ticket.events.is_lost
        is_shut_down = self._intake.is_shut_down
        return finished_result(turn, is_shutting_down=is_shut_down, is_lost=is_lost)

    async def _completed_elsewhere(self, turn: Turn) -> None:
        """Return when a turn that another server has, or had, is completed or deleted, or the
        database cannot be read; no server completes a turn of a conversation that is damaged.
        """
        accepted = Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)
        with suppress(StoreUnavailable):
            async with self.follow_turn(accepted) as events:
                async for found in events.until_completed(_LOOK_S):
                    known = None if found else await self._parts.turns.get(turn.id)
                    if not found and (known is None or known.result is not None):
                        return
                    if not found:
                        await self._parts.conversations.get(turn.conversation_id, turn.user_id)

    async def turn(self, user_id: UserId, turn_id: str) -> Turn:
        """Return a turn. Raise `NotFound` if there is no such turn."""
        turn = await self._parts.turns.get(TurnId(turn_id))
        if turn is None or turn.user_id != user_id:
            raise NotFound("There is no such turn.")
        return turn

    async def turn_before(self, turn: Turn) -> Turn | None:
        """Return the turn before one in its conversation."""
        before = await self._parts.turns.history(turn.conversation_id, limit=1, before_seq=turn.seq)
        return before[0] if before else None

    async def owns_turn(self, user_id: UserId, turn_id: str) -> bool:
        """Return whether a turn, and so its log, is the user's."""
        turn = await self._parts.turns.get(TurnId(turn_id))
        return turn is not None and turn.user_id == user_id

    async def tool_call(
        self,
        user_id: UserId,
        conversation_id: str,
        turn_id: str,
        index: int,
        *,
        log_dir: Path | None = None,
    ) -> dict[str, Any]:
        """Return one tool call of a turn with its input and output; `status` is None while it runs.

        With `log_dir`, the directory of the journal, long texts are not clipped: the output is all
        that was kept of it, the input of a finished turn what its log has. Raise `NotFound` if
        there is no such conversation, turn or call, or the call's events were deleted.
        """
        turn = await self._turn_in(user_id, conversation_id, turn_id)
        stored = await self._parts.events.of_call(turn.id, index)
        use = (await off_loop(evidence_of, stored)).tools.get(index)
        ended = [
            tool for tool in (turn.result or {}).get("tools", []) if tool.get("index") == index
        ]
        if use is None and ended:
            raise NotFound(
                "The input and output of this call were deleted with the conversation"
                " it was made in.",
                code="call_deleted",
            )
        if use is None:
            raise NotFound("There is no such call in this turn.")
        call = {**call_fields(use), **(ended[0] if ended else {})}
        approval = await self._parts.approvals.of_call(turn.id, index)
        if approval is not None:  # the person who is asked sees what would run
            call.update(input=approval.input, hidden=approval.hidden)
        elif log_dir is not None and turn.result is not None:
            log_file = turn.result["log_file"]
            call = await anyio.to_thread.run_sync(whole_call_blocking, log_dir, log_file, call)
        kept = await self._kept_output(stored[0], call)
        if log_dir is not None and kept is not None:
            call["output"] = kept
            if call["error"] is not None:
                call["error"] = kept
        return {**call, "output_kept_chars": len(call["output"] if kept is None else kept)}

    async def _kept_output(self, event: TurnEvent, call: Mapping[str, Any]) -> str | None:
        """Return the whole output of a call that returned, if it was kept; of a copy in a fork the
        original's.
        """
        if call["status"] not in _RETURNED:
            return None
        where = CallId(event.conversation_id, event.turn_id, call["index"])
        return await self._parts.outputs.read(where)

    async def file_changes(
        self, user_id: UserId, conversation_id: str, turn_id: str
    ) -> dict[str, Any]:
        """Return the files that a turn changed, with unified diffs; none while it runs.

        Raise `NotFound` if there is no such conversation or turn.
        """
        turn = await self._turn_in(user_id, conversation_id, turn_id)
        stored = await self._parts.file_changes.get(turn.id)
        # turns of earlier servers have no such field
        known = (turn.result or {}).get("changes", {"complete": False})
        return {"turn_id": turn.id, "complete": known["complete"], "files": [], **(stored or {})}

    async def _turn_in(self, user_id: UserId, conversation_id: str, turn_id: str) -> Turn:
        conversation = await self._access.find(user_id, conversation_id)
        turn = await self._parts.turns.get(TurnId(turn_id))
        if turn is None or turn.conversation_id != conversation.id:
            raise NotFound("There is no such turn in this conversation.")
        return turn

    def follow_turn(self, accepted: Accepted) -> Subscription:
        """Read a turn's events from its first one; `async with` it."""
        return self._parts.log.subscribe(accepted.conversation_id, 0, turn_id=accepted.turn_id)

    async def has_events(self, turn: Turn) -> bool:
        """Return whether a turn has events; a copy in a fork has none."""
        return await self._parts.events.last_n(turn.id) > 0

    async def follow(
        self, user_id: UserId, conversation_id: str, after: str | None = None
    ) -> Subscription:
        """Read a conversation's events after the one with the id `after`; without one it opens,
        live from now.

        `<turn_id>:0` is the moment before a turn's first event. Raise `NotFound` if there is no
        such conversation, or it has no such event.
        """
        if after is None:
            conversation = await self._access.open_events(user_id, conversation_id)
            seq = await self._parts.log.feed.last_seq(conversation.id)
        else:
            conversation = await self._access.find_stored(user_id, conversation_id)
            seq = await self._seq_of(conversation, after)
        return self._parts.log.subscribe(conversation.id, seq)

    async def follow_all(self, user_id: UserId, conversation_id: str) -> Subscription:
        """Read a conversation's events from its first one. Raise `NotFound` if there is no such
        conversation.
        """
        conversation = await self._access.find_stored(user_id, conversation_id)
        return self._parts.log.subscribe(conversation.id, 0)

    async def follow_turns(
        self, user_id: UserId, conversation_id: str, after: str = ""
    ) -> tuple[Subscription, int]:
        """Read a conversation from the beginning of a turn on, for a reader that needs all events
        of a turn; return also the `seq` of the last event that is not new to it.

        With the event id `after` that is its turn, else the turn that runs. Raises as `follow`
        does.
        """
        conversation = await self._access.open(user_id, conversation_id)
        if after:
            known = await self._seq_of(conversation, after)
            turn_id = TurnId(after.rpartition(":")[0])
        else:
            known = await self._parts.log.feed.last_seq(conversation.id)
            current = self._parts.lanes.current(conversation.id)
            turn_id = current.turn.id if current is not None else TurnId("")
        first = await self._parts.events.find(turn_id, 1)
        begin = known if first is None else min(known, first - 1)
        return self._parts.log.subscribe(conversation.id, begin), known

    async def _seq_of(self, conversation: Conversation, after: str) -> int:
        turn_id, _, n = after.rpartition(":")
        turn = await self._parts.turns.get(TurnId(turn_id))
        if turn is not None and turn.conversation_id == conversation.id and n.isdecimal():
            number = int(n[:_N_DIGITS])
            last = await self._parts.log.feed.last_seq(conversation.id)
            found = await self._parts.events.find(turn.id, number or 1)
            if number == 0:
                return last if found is None else found - 1
            if found is not None:
                return found
        raise NotFound("There is no such event in this conversation.", code="unknown_event")


_RETURNED = frozenset({"ok", "failed"})


def whole_call_blocking(log_dir: Path, log_file: str, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call with its input and output from its turn's log; in events long ones are clipped.

    What the log does not have, or does not attribute to this call alone, stays as it was.
    """
    whole = dict(call)
    outputs: list[str] = []
    for line in read_log(log_dir, log_file) or ():
        fields = line.fields or {}
        if fields.get("kind") == "permission" and fields.get("index") == call["index"]:
            whole["input"] = fields["input"]
        elif fields.get("kind") == "message":
            outputs += _outputs(fields.get("message"), call["tool_use_id"])
    if len(outputs) == 1 and call["status"] in _RETURNED:
        whole["output"] = plain_result(outputs[0])
        if call["error"] is not None:
            whole["error"] = whole["output"]
    return whole


def _outputs(message: object, tool_use_id: str) -> Iterator[str]:
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "ToolResultBlock" and block.get("tool_use_id") == tool_use_id:
            returned = block.get("content")
            parts = returned if isinstance(returned, list) else [{"text": returned or ""}]
            yield "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)
