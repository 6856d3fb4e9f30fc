"""Complete a turn: make its result from evidence, store it and publish it, once.

The result is stored before memory and the journal get it, and readers get it last, so that a crash
in between leaves nothing published that recovery could contradict.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import anyio

from gateway.engine.events import RunFinished
from gateway.jsonsafe import json_safe
from gateway.turns.context import TurnContext
from gateway.turns.evidence import Evidence, Notice
from gateway.turns.file_changes import NO_CHANGES
from gateway.turns.reply import Cause, Ending, broke_off, describe_unusual_stop
from gateway.turns.result import failure_notice, memory_fields, turn_result
from gateway.turns.sanitizer import off_loop
from gateway.turns.steps import clean_steps
from memory.errors import StoreUnavailable
from memory.recall.query import ContextPack

_log = logging.getLogger(__name__)


class TurnCompletion:
    """Completes one turn."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self.cause: Cause | None = None
        self.cost_usd = 0.0
        self.first_text_s: float | None = None
        self._told: dict[str, Any] = {}

    async def close(self, memory: Mapping[str, Any], session_id: str | None) -> None:
        """Make, store and publish the result; if that fails, a bare one."""
        context, began_s = self._context, anyio.current_time()
        finished_at = context.parts.now()
        await self._conclude_memory()
        await self._compare_files()
        try:
            result = await self._result(memory, finished_at)
        except Exception:  # noqa: BLE001  a turn always gets a result
            _log.exception("result_not_made")
            result = await self._bare_result(finished_at)
        ended = replace(
            context.turn,
            state="completed",
            started_at=context.started_at,
            finished_at=finished_at,
            result=result,
            session_id=context.evidence.session_id or session_id,
            last_entry_id=context.evidence.last_entry_id,
        )
        await context.events.note_ending(ended)
        if context.events.is_refused:
            await self.abandon()
            return
        noted = len(result["notices"])
        context.chronicle.completed(result, context.evidence.text, finished_at)
        if not await context.chronicle.record():
            self._add_late(
                Notice("memory_not_written", context.say(context.chronicle.failure)), result
            )
        context.is_over = True
        context.journal.write("response", frozenset(context.masked.values()), **result)
        await self._close_journal(result)
        is_noted = len(result["notices"]) == noted
        await context.events.complete(ended, result, is_synced=not is_noted)
        context.chronicle.ended()
        with context.trace.asking():
            context.parts.turn_ended(ended)
        self._count(result)
        context.trace.step("reply", began_s)
        context.trace.end(result)

    async def abandon(self) -> None:
        """End without a result: the turn is not stored, or it is another server's."""
        context = self._context
        message = "The message could not be stored, so it was not shown to the model."
        if context.events.is_lost:
            message = "Another server runs this conversation now, so the turn was stopped here."
        context.is_over = True
        context.journal.write("error", where="store", message=message)
        await context.journal.close()
        context.trace.end(None)

    async def _result(self, memory: Mapping[str, Any], finished_at: datetime) -> dict[str, Any]:
        ending = self._ending()
        self._last_notices(ending)
        if self._context.journal.lost:
            self._context.add_notice(self._journal_notice())
        return await self._made(self._context.evidence, ending, memory, finished_at)

    async def _bare_result(self, finished_at: datetime) -> dict[str, Any]:
        """Return a result that reports an internal fault, without the evidence that may have caused
        it.
        """
        evidence = self._context.evidence
        known = Evidence(model=evidence.model, changes=evidence.changes)
        ending = replace(self._ending(), cause="internal")
        return await self._made(known, ending, memory_fields(ContextPack()), finished_at)

    async def _made(
        self, evidence: Evidence, ending: Ending, memory: Mapping[str, Any], finished_at: datetime
    ) -> dict[str, Any]:
        context = self._context
        result = turn_result(
            evidence,
            ending,
            turn=context.turn,
            memory={**memory, **self._told},
            cost_usd=self.cost_usd,
            started_at=context.started_at,
            finished_at=finished_at,
            duration_ms=round(context.elapsed_s * 1000),
        )
        masked = context.masked  # nearly always all of it, because readers were shown it
        for text in (result["reply"], *(step.get("text", "") for step in result["steps"])):
            if text not in masked:
                masked[text] = await off_loop(context.sanitizer.streamed, text)
        result["reply"] = masked[result["reply"]]
        result["steps"] = clean_steps(result["steps"], result["reply"], masked.__getitem__)
        safe: dict[str, Any] = json_safe(result)
        return safe

    async def _compare_files(self) -> None:
        """Store what the turn changed in the workspace; if that fails, the result says that it is
        not known.
        """
        changes = await self._context.file_changes.compare()
        self._context.evidence.changes = changes.summary()
        if not changes.files:
            return
        try:
            await self._context.parts.file_changes.put(
                self._context.turn.id, asdict(changes), epoch=self._context.events.epoch
            )
        except StoreUnavailable:
            _log.exception("changes_not_stored")
            self._context.evidence.changes = {**NO_CHANGES, "complete": False}

    async def _conclude_memory(self) -> None:
        context = self._context
        uses = list(context.evidence.tools.values())
        if not context.chronicle.may_conclude(uses):
            return
        try:
            self._told, notices = await context.chronicle.conclude(context.conversation, uses)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("facts_not_kept")
            return
        for notice in notices:
            context.add_notice(notice)

    def _ending(self) -> Ending:
        context, limits = self._context, self._context.parts.limits
        stopped = context.evidence.stopped_by is not None
        cause = context.control.cause if stopped else self.cause
        return Ending(
            language=context.language,
            log_file=context.journal.log_file,
            cause="waiting" if context.evidence.waiting else cause,
            untrusted=context.untrusted,
            timeout_s=limits.timeout_s,
            silence_s=limits.model_silence_s,
            doom_loop_threshold=limits.doom_loop_threshold,
        )

    def _last_notices(self, ending: Ending) -> None:
        context, evidence = self._context, self._context.evidence
        failed = failure_notice(evidence, ending)
        if failed is not None:
            context.add_notice(failed)
        if evidence.text and evidence.context_full and not evidence.prompt_too_long:
            context.notice("context_window")
            return
        if not isinstance(evidence.finish, RunFinished) or evidence.stopped_by is not None:
            return
        if evidence.cut_off:
            context.notice("max_tokens")
        if evidence.text and evidence.unusual_stop is not None:
            context.add_notice(describe_unusual_stop(evidence.unusual_stop, context.language))
        if evidence.text and evidence.refused:
            context.notice("refusal")
        if evidence.text and broke_off(evidence) and not evidence.model_gave_up:
            context.notice("partial_text")

    def _journal_notice(self) -> Notice:
        context = self._context
        if context.journal.lost:
            message = context.say("journal_lost", lines=context.journal.lost)
            return Notice("journal_lost", message)
        return Notice("journal_late", context.say("journal_late"))

    async def _close_journal(self, result: dict[str, Any]) -> None:
        """Close the journal; only the stored result can report a loss of its last line."""
        is_reported = any(notice["code"].startswith("journal_") for notice in result["notices"])
        if await self._context.journal.close() or is_reported:
            return
        self._add_late(self._journal_notice(), result)

    def _add_late(self, notice: Notice, result: dict[str, Any]) -> None:
        """Add a notice to a result that is made already."""
        fields = asdict(notice)
        self._context.events.emit("notice", **fields)
        result["notices"] = [*result["notices"], fields]

    def _count(self, result: Mapping[str, Any]) -> None:
        metrics = self._context.parts.metrics
        metrics.count_turn(
            result["outcome"],
            result["stop_reason"],
            seconds=result["duration_ms"] / 1000,
            first_text_seconds=self.first_text_s,
        )
        for tool in result["tools"]:
            metrics.count_tool_call(tool["name"], tool["status"])
