"""`record_intent`: the only way into memory.

    contract → policy → words for each sink → chronicle and pending context, in one transaction → log

Whatever is refused is refused before anything is written. The payload itself goes nowhere: what is stored
or shown of it is masked and bounded. The chronicle keeps an intent's words and, for whoever makes episodes of
turns, its payload in that form (a call's arguments and result, a message, an outcome, a duration: every
text of at most 4 000 characters, 16 000 in all); which fields payloads have is counted apart, without values.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import anyio

from memory.intents.chronicle import Chronicle, IntentRecord, Recording
from memory.intents.contract import validate_intent_contract
from memory.intents.intent import MemoryIntent
from memory.intents.masking import Mask, masked_payload
from memory.intents.observe import observe_intent_payload
from memory.intents.policy import MemoryPolicy, default_memory_policy, validate_memory_policy
from memory.intents.templates import SinkName, render_memory_template, tell

RuntimeLog = Callable[[MemoryIntent, str], None]
"""Takes an intent and its masked words into the turn's log."""

_MOST_AT_ONCE: Final = 2
"""Batches that are masked side by side: it is work for the processor alone."""

_Prepared = tuple[Recording, str | None]
"""What an intent leaves in the stores, and its words for the log."""


class IntentRecorder:
    """Takes intents."""

    def __init__(
        self, chronicle: Chronicle, mask: Mask, policy: MemoryPolicy | None = None
    ) -> None:
        """Make one; `mask` masks secrets, those that the program knows included.

        Raises:
            IntentRefused: the policy is not valid, see `validate_memory_policy`.
        """
        self._chronicle = chronicle
        self._mask = mask
        self._policy = policy or default_memory_policy()
        validate_memory_policy(self._policy)
        self._threads = anyio.CapacityLimiter(_MOST_AT_ONCE)

    async def record_intent(
        self, intent: MemoryIntent, *, runtime_log: RuntimeLog | None = None
    ) -> bool:
        """Record one intent; False: it was recorded before, and nothing changed.

        Raises:
            IntentRefused: it is not as registered; nothing was written.
            StoreUnavailable: the chronicle cannot be written; nothing was.
        """
        return bool(await self.record_intents([intent], runtime_log=runtime_log))

    async def record_intents(
        self, intents: Sequence[MemoryIntent], *, runtime_log: RuntimeLog | None = None
    ) -> Sequence[str]:
        """Record several in one transaction, all or none; gives the ids that were new, in order.

        `runtime_log` is called last, when all is committed, for those that were new: what was recorded
        before is told nowhere again. Masking runs in a worker thread. Raises as `record_intent` does.
        """
        if not intents:
            return []
        prepared = await anyio.to_thread.run_sync(
            partial(self._prepared, intents, with_lines=runtime_log is not None),
            limiter=self._threads,
        )
        new = dict.fromkeys(await self._chronicle.record([one for one, _ in prepared]))
        if runtime_log is not None:
            lines = {one.intent_id: line for one, line in prepared}
            told = {one.id: one for one in reversed(intents)}
            for intent_id in new:
                line = lines[intent_id]
                if line is not None:
                    runtime_log(told[intent_id], line)
        return list(new)

    def runtime_line(self, intent: MemoryIntent) -> str | None:
        """Give the words for the turn's log; None: the policy keeps it out.

        Raises:
            IntentRefused: the intent is not as registered.
        """
        validate_intent_contract(intent)
        rule = self._policy.rule_of(intent.key)
        if not rule.to_runtime_log:
            return None
        return render_memory_template(
            intent, "runtime_log", rule, self._policy.templates, self._mask
        )

    def recording(self, intent: MemoryIntent) -> Recording:
        """Give what an intent leaves in the stores, for whoever writes it within a transaction.

        Raises:
            IntentRefused: the intent is not as registered.
        """
        return self._prepare(intent, with_line=False)[0]

    def _prepared(self, intents: Sequence[MemoryIntent], *, with_lines: bool) -> list[_Prepared]:
        return [self._prepare(one, with_line=with_lines) for one in intents]

    def _prepare(self, intent: MemoryIntent, *, with_line: bool) -> _Prepared:
        """Check an intent and put it into words, its payload being masked once for all sinks."""
        form = validate_intent_contract(intent)
        rule = self._policy.rule_of(intent.key)
        payload = masked_payload(intent.payload, self._mask)
        key = self._mask(intent.key)  # a tool's name may be a model's invention

        def words(sink: SinkName, *, wanted: bool) -> str | None:
            if not wanted:
                return None
            return tell(intent, sink, rule, self._policy.templates, payload, self._mask)

        text = words("chronicle", wanted=rule.to_chronicle)
        recording = Recording(
            record=None if text is None else _record_of(intent, key, text, payload),
            intent_id=intent.id,
            key=key,
            form_key=form.key,
            source_kind=intent.source_kind,
            owner_id=intent.owner_id,
            conversation_id=intent.conversation_id,
            turn_id=intent.turn_id,
            occurred_at=intent.occurred_at,
            context=words("llm_context", wanted=rule.to_llm_context),
            fields=observe_intent_payload(intent.payload, self._mask),
        )
        return recording, words("runtime_log", wanted=with_line and rule.to_runtime_log)


def _record_of(
    intent: MemoryIntent, key: str, text: str, payload: Mapping[str, Any]
) -> IntentRecord:
    return IntentRecord(
        id=intent.id,
        key=key,
        source_kind=intent.source_kind,
        owner_id=intent.owner_id,
        conversation_id=intent.conversation_id,
        turn_id=intent.turn_id,
        text=text,
        payload=payload,
        occurred_at=intent.occurred_at,
    )
