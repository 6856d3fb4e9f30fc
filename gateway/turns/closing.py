"""The end of a turn: its result made from evidence, written down, stored and told, once.

It is stored before memory and the log are told of it, and readers last: a crash in between leaves nothing
told that the next start could gainsay.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from gateway.engine.events import RunFinished
from gateway.jsonsafe import json_safe
from gateway.turns.evidence import Evidence, Notice
from gateway.turns.pieces import shown_in_parts
from gateway.turns.reply import Cause, Ending, broke_off, describe_unusual_stop
from gateway.turns.result import failure_notice, memory_fields, turn_result
from gateway.turns.scene import Scene
from gateway.turns.telling import off_loop
from memory.recall.query import ContextPack

_log = logging.getLogger(__name__)


class Closing:
    """Ends one turn."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.cause: Cause | None = None
        self.cost_usd = 0.0
        self.first_text_s: float | None = None

    async def close(self, memory: Mapping[str, Any], session_id: str | None) -> None:
        """Store and tell the result; whatever fails on the way, there is one."""
        scene = self._scene
        finished_at = scene.parts.now()
        try:
            result = await self._result(memory, finished_at)
        except Exception:  # noqa: BLE001  a turn always gets a result
            _log.exception("result_not_made")
            result = await self._bare_result(finished_at)
        ended = replace(
            scene.turn,
            state="completed",
            started_at=scene.started_at,
            finished_at=finished_at,
            result=result,
            session_id=scene.evidence.session_id or session_id,
            last_entry_id=scene.evidence.last_entry_id,
        )
        await scene.events.note_ending(ended)
        scene.chronicle.completed(result, scene.evidence.text, finished_at)
        if not await scene.chronicle.record():
            self._tell_late(Notice("memory_not_written", scene.say("memory_not_written")), result)
        scene.is_over = True
        scene.journal.write("response", **result)
        await self._close_journal(result)
        await scene.events.complete(ended, result)
        scene.chronicle.ended()
        try:
            self._count(result)
        finally:
            scene.control.finished.set()

    async def _result(self, memory: Mapping[str, Any], finished_at: datetime) -> dict[str, Any]:
        ending = self._ending()
        self._last_notices(ending)
        if not await self._scene.journal.flush():
            self._scene.tell_notice(self._journal_notice())
        return await self._made(self._scene.evidence, ending, memory, finished_at)

    async def _bare_result(self, finished_at: datetime) -> dict[str, Any]:
        """Say that something went wrong in here, without what may have been the reason."""
        known = Evidence(model=self._scene.evidence.model)
        ending = replace(self._ending(), cause="internal")
        return await self._made(known, ending, memory_fields(ContextPack()), finished_at)

    async def _made(
        self, evidence: Evidence, ending: Ending, memory: Mapping[str, Any], finished_at: datetime
    ) -> dict[str, Any]:
        scene = self._scene
        result = turn_result(
            evidence,
            ending,
            conversation_id=scene.turn.conversation_id,
            turn_id=scene.turn.id,
            memory=memory,
            cost_usd=self.cost_usd,
            started_at=scene.started_at,
            finished_at=finished_at,
        )
        result["reply"] = await off_loop(
            partial(shown_in_parts, teller=scene.teller), result["reply"]
        )
        safe: dict[str, Any] = json_safe(result)
        return safe

    def _ending(self) -> Ending:
        scene, limits = self._scene, self._scene.parts.limits
        stopped = scene.evidence.stopped_by is not None
        return Ending(
            language=scene.language,
            log_file=scene.journal.log_file,
            cause=scene.control.cause if stopped else self.cause,
            untrusted=scene.untrusted,
            timeout_s=limits.timeout_s,
            silence_s=limits.model_silence_s,
            doom_loop_threshold=limits.doom_loop_threshold,
        )

    def _last_notices(self, ending: Ending) -> None:
        scene, evidence = self._scene, self._scene.evidence
        failed = failure_notice(evidence, ending)
        if failed is not None:
            scene.tell_notice(failed)
        if evidence.text and evidence.context_full and not evidence.prompt_too_long:
            scene.notice("context_window")
            return
        if not isinstance(evidence.finish, RunFinished) or evidence.stopped_by is not None:
            return
        if evidence.cut_off:
            scene.notice("max_tokens")
        if evidence.text and evidence.unusual_stop is not None:
            scene.tell_notice(describe_unusual_stop(evidence.unusual_stop, scene.language))
        if evidence.text and evidence.refused:
            scene.notice("refusal")
        if evidence.text and broke_off(evidence) and not evidence.model_gave_up:
            scene.notice("partial_text")

    def _journal_notice(self) -> Notice:
        scene = self._scene
        if scene.journal.lost:
            message = scene.say("journal_lost", lines=scene.journal.lost)
            return Notice("journal_lost", message)
        return Notice("journal_late", scene.say("journal_late"))

    async def _close_journal(self, result: dict[str, Any]) -> None:
        """Close the journal; a loss in its last line can be told in the stored result alone."""
        told = any(one["code"].startswith("journal_") for one in result["notices"])
        if await self._scene.journal.close() or told:
            return
        self._tell_late(self._journal_notice(), result)

    def _tell_late(self, notice: Notice, result: dict[str, Any]) -> None:
        """Tell what came up after the result was made."""
        fields = {"code": notice.code, "message": notice.message}
        self._scene.events.emit("notice", **fields)
        result["notices"] = [*result["notices"], fields]

    def _count(self, result: Mapping[str, Any]) -> None:
        metrics = self._scene.parts.metrics
        metrics.count_turn(
            result["outcome"],
            result["stop_reason"],
            seconds=result["duration_ms"] / 1000,
            first_text_seconds=self.first_text_s,
        )
        for tool in result["tools"]:
            metrics.count_tool_call(tool["name"], tool["status"])
