"""`record_intent`: the only way into memory.

    contract → policy → text for each sink → chronicle and pending context, in one transaction

An intent is refused before anything is written. What is stored or shown of its payload is masked
and bounded: the chronicle keeps a text and the masked payload (each text of at most 4 000
characters, 16 000 in all), from which episodes are made.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import anyio.to_thread

from memory.intents.chronicle import Guard, Recording, SqlChronicle, unguarded
from memory.intents.masking import Mask, masked_payload
from memory.intents.policy import (
    MemoryDecision,
    MemoryPolicy,
    default_memory_policy,
    validate_memory_policy,
)
from memory.intents.registry import MemoryIntent, validate_intent_contract
from memory.intents.templates import SinkName, render_payload

_MOST_AT_ONCE: Final = 2
"""Batches that are masked at the same time; masking needs the processor alone."""
_MAX_MASKED: Final = 500
"""Payloads that are kept from a turn's log until they are recorded."""

_MASKED_AT_ONCE: Final = 5_000
"""Characters; more are masked in a worker thread."""
_OF_A_CALL: Final = 10_000
"""Of a tool, which may be given and return anything."""


class IntentRecorder:
    """Records intents. Every method raises `IntentRefused` for an intent that does not match the
    registry.
    """

    def __init__(
        self, chronicle: SqlChronicle, mask: Mask, policy: MemoryPolicy | None = None
    ) -> None:
        """Take a function that masks secrets, including those that the program knows.

        Raise `IntentRefused` if the policy is not valid, see `validate_memory_policy`.
        """
        self._chronicle = chronicle
        self._mask = mask
        self._policy = policy or default_memory_policy()
        validate_memory_policy(self._policy)
        self._threads = anyio.CapacityLimiter(_MOST_AT_ONCE)
        self._masked: dict[str, tuple[MemoryIntent, Mapping[str, Any]]] = {}

    def decide(self, intent: MemoryIntent) -> MemoryDecision:
        """Return what the policy does with an intent."""
        form = validate_intent_contract(intent)
        rule = self._policy.rule_of(intent.key)
        return MemoryDecision(intent_key=intent.key, form_key=form.key, sinks=rule)

    async def record_intent(self, intent: MemoryIntent) -> bool:
        """Record one intent; return False if it was recorded before, so that nothing changed.

        Raise `IntentRefused` if the intent does not match the registry, `StoreUnavailable` if the
        chronicle cannot be written; nothing was written then.
        """
        return bool(await self.record_intents([intent]))

    async def record_intents(
        self, intents: Sequence[MemoryIntent], guard: Guard = unguarded, *, is_synced: bool = True
    ) -> Sequence[str]:
        """Record several in one transaction, all or none; return the ids that were new, in order.

        Many and long texts are masked in a worker thread. If not `is_synced`, a cut of the power
        may lose them. Raises as `record_intent` and `guard` do.
        """
        if not intents:
            return []

        def masked() -> list[Recording]:
            return [self.recording(intent) for intent in intents]

        if _chars_of(intents) <= _MASKED_AT_ONCE:
            recordings = masked()
        else:
            recordings = await anyio.to_thread.run_sync(masked, limiter=self._threads)
        new = await self._chronicle.record(recordings, guard, is_synced=is_synced)
        return list(dict.fromkeys(new))

    def runtime_line(self, intent: MemoryIntent) -> str | None:
        """Return the text for the turn's log; None if the policy keeps the intent out of it."""
        rule = self.decide(intent).sinks
        if not rule.to_runtime_log:
            return None
        payload = masked_payload(intent.payload, self._mask)
        if len(self._masked) >= _MAX_MASKED:  # of turns that were not recorded
            self._masked.clear()
        self._masked[intent.id] = intent, payload
        templates = self._policy.templates
        return render_payload(intent, "runtime_log", rule, templates, payload, self._mask)

    def recording(self, intent: MemoryIntent) -> Recording:
        """Return what an intent leaves in the stores, to be written within another transaction."""
        rule = self.decide(intent).sinks
        known, payload = self._masked.pop(intent.id, (None, {}))
        if known is not intent:
            payload = masked_payload(intent.payload, self._mask)
        templates = self._policy.templates

        def text(sink: SinkName) -> str:
            return render_payload(intent, sink, rule, templates, payload, self._mask)

        return Recording(
            intent_id=intent.id,
            key=self._mask(intent.key),  # a tool's name may be invented by a model
            source_kind=intent.source_kind,
            owner_id=intent.owner_id,
            conversation_id=intent.conversation_id,
            turn_id=intent.turn_id,
            occurred_at=intent.occurred_at,
            text=text("chronicle") if rule.to_chronicle else None,
            payload=payload,
            context=text("llm_context") if rule.to_llm_context else None,
        )


def _chars_of(intents: Sequence[MemoryIntent]) -> int:
    """Return about how many characters intents have; any call of a tool counts as many."""
    return sum(
        _OF_A_CALL
        if intent.source_kind == "tool"
        else sum(len(value) for value in intent.payload.values() if isinstance(value, str))
        for intent in intents
    )
