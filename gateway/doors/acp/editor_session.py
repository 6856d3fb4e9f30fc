"""One session of an editor: the turns that it shows, what it asks the person, and its prompts.

A turn that runs when a session is loaded is followed as if the editor had begun it. A question is
asked once on a connection, and no longer when its turn has ended.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import acp
import anyio
from acp.schema import AllowedOutcome, ToolCallUpdate
from anyio.abc import TaskGroup

from gateway.conversations.model import TurnEvent
from gateway.doors.acp.server_api import UNREADABLE, ServerApi, ServerRefused
from gateway.doors.acp.updates import (
    ALLOW_ALWAYS,
    REJECT,
    call_id,
    options_for,
    question_of,
    update_of,
)
from gateway.doors.pieces import Asked, Ended, PieceReader

_log = logging.getLogger(__name__)

CUT: Final = "The server ended in mid-turn; load the session again."
_OPEN: Final = frozenset({"pending", "waiting"})
"""States of an approval that can be answered."""
_EDITOR_FAILED: Final = (ConnectionError, acp.RequestError, ValueError)
"""The editor has ended, refuses a request, or answers it in another form."""

Fields = Mapping[str, Any]
_Question = tuple[str, anyio.CancelScope]
"""The turn that asks, and the scope of the question in the editor."""


@dataclass(eq=False, slots=True)
class _Prompt:
    """A prompt that is not answered yet."""

    turn_id: str | None = None
    """None until the server has taken the message."""
    is_cancelled: bool = False


class EditorSession:
    """See the module. `tasks` live as long as the connection to the editor."""

    def __init__(
        self, session_id: str, api: ServerApi, editor: acp.Client, tasks: TaskGroup
    ) -> None:
        self._id = session_id
        self._path = f"/conversations/{session_id}"
        self._api = api
        self._editor = editor
        self._tasks = tasks
        self._prompts: list[_Prompt] = []
        self._followed: dict[str, anyio.CancelScope] = {}
        """By turn, in their order."""
        self._questions: dict[str, _Question] = {}
        """Those that are open, by approval."""
        self._answered = set[str]()
        """A list of approvals that was read before the answer may still have them."""

    async def show(self, update: Any) -> None:
        """Show something in the editor."""
        await self._editor.session_update(session_id=self._id, update=update)

    async def prompt(self, message: str) -> tuple[Fields, bool]:
        """Run one turn to its end; return its result, and whether the prompt was cancelled."""
        prompt = _Prompt()
        self._prompts.append(prompt)
        try:
            async with self._api.ask(self._id, message) as events:
                result = await self._present(self._begun(events, prompt), PieceReader())
        finally:
            self._prompts.remove(prompt)
        if result is None:
            raise ServerRefused(CUT)
        return result, prompt.is_cancelled

    async def _begun(
        self, events: AsyncIterator[TurnEvent], prompt: _Prompt
    ) -> AsyncIterator[TurnEvent]:
        """Yield a prompt's events; with the first one its turn is known and can be stopped."""
        async for event in events:
            if prompt.turn_id is None:
                prompt.turn_id = event.turn_id
                if prompt.is_cancelled:
                    await self._stop(event.turn_id)
            yield event

    async def follow(self, turn_id: str, *, from_start: bool) -> None:
        """Show a turn that runs or waits, from its first event or from now on; return when nothing
        of it can be missed.
        """
        if turn_id not in {*self._followed, *self._prompted()}:
            scope = self._followed[turn_id] = anyio.CancelScope()
            opened = anyio.Event()
            self._tasks.start_soon(self._follow, turn_id, scope, from_start, opened)
            await opened.wait()

    def unfollow(self) -> None:
        """Show and ask nothing more of turns that no prompt began."""
        for scope in self._followed.values():
            scope.cancel()
        self._followed.clear()
        asked_of = {turn_id for turn_id, _ in self._questions.values()}
        self._end_questions(asked_of - self._prompted())

    def _prompted(self) -> set[str]:
        return {prompt.turn_id for prompt in self._prompts if prompt.turn_id is not None}

    async def ask_open(self) -> None:
        """Ask the person what can be answered in the conversation and was not asked yet."""
        query = {"conversation_id": self._id}
        for fields in (await self._api.call("GET", "/approvals", params=query))["approvals"]:
            if fields["state"] in _OPEN:
                self._ask_soon(fields)

    async def cancel(self) -> None:
        """Stop the turns of all prompts, or those that are shown if there is no prompt; a queued
        one is withdrawn. Turns that others began go on.
        """
        prompts = list(self._prompts)
        for prompt in prompts:
            prompt.is_cancelled = True
        turns = [prompt.turn_id for prompt in prompts] if prompts else list(self._followed)
        for turn_id in reversed(turns):  # what waits must not begin when the first one stops
            if turn_id is not None:
                await self._stop(turn_id)

    async def _stop(self, turn_id: str) -> None:
        try:
            await self._api.call("DELETE", f"{self._path}/queue/{turn_id}")
        except ServerRefused:  # it does not wait
            with suppress(ServerRefused):  # it has ended
                path = f"{self._path}/interrupt"
                await self._api.call("POST", path, params={"turn_id": turn_id})

    async def _follow(
        self,
        turn_id: str,
        scope: anyio.CancelScope,
        from_start: bool,  # noqa: FBT001  positional in start_soon
        opened: anyio.Event,
    ) -> None:
        after = f"{turn_id}:0" if from_start else None
        try:
            with scope:
                async with self._api.follow(self._id, after) as events:
                    if from_start or turn_id in await self._api.unfinished_turns(self._id):
                        opened.set()
                        await self._show_turn(turn_id, events, from_start=from_start)
        except ServerRefused as exc:
            with suppress(*_EDITOR_FAILED):
                await self.show(acp.update_agent_message_text(f"\n\n{exc}"))
        except (*UNREADABLE, *_EDITOR_FAILED):
            _log.warning("turn_not_shown")
        finally:
            opened.set()
            if self._followed.get(turn_id) is scope:
                del self._followed[turn_id]

    async def _show_turn(
        self, turn_id: str, events: AsyncIterator[TurnEvent], *, from_start: bool
    ) -> None:
        own = (event async for event in events if event.turn_id == turn_id)
        if await self._present(own, PieceReader(from_start=from_start), is_followed=True) is None:
            raise ServerRefused(CUT)

    async def _present(
        self,
        events: AsyncIterator[TurnEvent],
        reader: PieceReader,
        *,
        is_followed: bool = False,
    ) -> Fields | None:
        """Show a turn and have the person asked; return its result, None if its events end
        before.
        """
        seen = set[str]()
        try:
            async for event in events:
                seen.add(event.turn_id)
                for piece in reader.read([event]):
                    if isinstance(piece, Ended):
                        return piece.result
                    if isinstance(piece, Asked) and is_followed:
                        await self.ask_open()  # it may have been answered long ago
                    elif isinstance(piece, Asked):
                        self._ask_soon(piece.fields)
                    elif (update := update_of(piece)) is not None:
                        await self.show(update)
            return None
        finally:
            self._end_questions(seen)

    def _end_questions(self, turns: AbstractSet[str]) -> None:
        for approval_id, (turn_id, scope) in list(self._questions.items()):
            if turn_id in turns:
                scope.cancel()
                del self._questions[approval_id]

    def _ask_soon(self, fields: Fields) -> None:
        approval_id = fields["approval_id"]
        if approval_id not in {*self._questions, *self._answered}:
            question = self._questions[approval_id] = fields["turn_id"], anyio.CancelScope()
            self._tasks.start_soon(self._ask, fields, question)

    async def _ask(self, fields: Fields, question: _Question) -> None:
        approval_id = fields["approval_id"]
        try:
            with question[1]:
                await self._pass_answer_on(fields)
        except ServerRefused:  # answered elsewhere meanwhile
            pass
        except (*UNREADABLE, *_EDITOR_FAILED):
            _log.warning("question_not_answered")
        finally:
            if self._questions.get(approval_id) is question:
                del self._questions[approval_id]

    async def _pass_answer_on(self, fields: Fields) -> None:
        """Ask the person in the editor, and pass the answer on."""
        body, approval_id = await self._answer_to(fields), fields["approval_id"]
        self._answered.add(approval_id)
        counts_in = (await self._api.call("POST", f"/approvals/{approval_id}", json=body))[
            "turn_id"
        ]
        if counts_in not in {None, fields["turn_id"]}:  # its run had ended: another one begins
            await self.follow(counts_in, from_start=True)

    async def _answer_to(self, fields: Fields) -> dict[str, str]:
        answer = await self._editor.request_permission(
            session_id=self._id,
            tool_call=ToolCallUpdate(
                tool_call_id=call_id(fields),
                title=question_of(fields),
                raw_input=fields.get("input"),
            ),
            options=options_for(fields),
        )
        outcome = answer.outcome
        chosen = outcome.option_id if isinstance(outcome, AllowedOutcome) else REJECT
        body = {"decision": "deny" if chosen == REJECT else "allow"}
        if chosen == ALLOW_ALWAYS:
            body["remember"] = "conversation"
        return body
