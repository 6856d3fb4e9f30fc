"""Everything that a registered key needs, asked of each one: a key added without its parts fails here."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.intents.pending import render_intents_for_llm
from memory.intents.policy import default_memory_policy, validate_memory_policy
from memory.intents.record import IntentRecorder
from memory.intents.registry import (
    FORMS,
    Field,
    FieldType,
    IntentForm,
    IntentRefused,
    MemoryIntent,
    UnknownIntent,
    form_of,
    required_intent_keys,
    validate_intent_contract,
)
from memory.intents.templates import SinkName, default_templates, render_memory_template
from policies.secrets import mask_secrets
from tests.support.intents import BUILT, HAPPENING, open_chronicle

KEYS = required_intent_keys()
SINKS: tuple[SinkName, ...] = ("chronicle", "runtime_log", "llm_context")
WRONG: dict[FieldType, list[Any]] = {
    "text": [7],
    "number": ["7", True],
    "flag": ["yes"],
    "object": [["a"]],
    "list": [{"a": 1}],
}


def built(key: str) -> MemoryIntent:
    assert key in BUILT, f"{key} has no builder in tests/support/intents.py"
    return BUILT[key](HAPPENING)


def without(intent: MemoryIntent, name: str) -> MemoryIntent:
    payload = {entry: value for entry, value in intent.payload.items() if entry != name}
    return replace(intent, payload=payload)


def having(intent: MemoryIntent, **fields: Any) -> MemoryIntent:
    return replace(intent, payload={**intent.payload, **fields})


def refused(intent: MemoryIntent, words: str) -> None:
    with pytest.raises(IntentRefused, match=words):
        validate_intent_contract(intent)


def test_what_the_gateway_emits_is_registered() -> None:
    assert set(KEYS) == {
        *(f"turn.{name}" for name in ("received", "completed", "cut_off")),
        "llm.response",
        *(f"guard.{name}" for name in ("doom_loop", "forced_summary", "model_retries")),
        *(f"tool.{{tool_name}}.{name}" for name in ("ok", "blocked", "error", "interrupted")),
        *(f"permission.{name}" for name in ("allowed", "denied")),
        *(f"approval.{name}" for name in ("requested", "resolved")),
        *(f"memory.{name}" for name in ("injected", "suppressed", "saved", "forgotten")),
        *(f"conversation.{name}" for name in ("started", "reset", "forked")),
        *(f"delivery.{name}" for name in ("delivered", "failed", "dead")),
        *(f"breaker.{name}" for name in ("opened", "half_opened", "closed")),
    }
    assert len(KEYS) == len(set(KEYS)) == len(BUILT)
    told = {form.key for form in FORMS if form.policy.to_llm_context}
    assert told == {"turn.cut_off", "tool.{tool_name}.interrupted"}


def test_what_its_builder_makes_passes_the_contract() -> None:
    for key in KEYS:
        intent = built(key)
        assert validate_intent_contract(intent).key == key
        assert intent.key == key.replace("{tool_name}", "Bash")
        assert intent.id.startswith("int_")
        assert built(key) == intent, "the same happening is the same intent"


def test_the_contract_refuses_a_missing_unknown_or_mistyped_field_of_every_key() -> None:
    for key in KEYS:
        intent = built(key)
        refused(having(intent, extra="x"), "'extra'")
        for name, field in form_of(key).fields.items():
            if field.required:
                refused(without(intent, name), name)
                refused(having(intent, **{name: None}), name)
            else:
                validate_intent_contract(without(intent, name))
            for wrong in WRONG[field.type]:
                refused(having(intent, **{name: wrong}), name)


def test_the_contract_refuses_another_source_or_a_payload_that_contradicts_the_key() -> None:
    for key in KEYS:
        intent, form = built(key), form_of(key)
        other = replace(intent, source_kind="turn" if intent.source_kind != "turn" else "llm")
        refused(other, "comes from")
        told = {*form.fixed, *(form.places(intent.key) or {})}
        assert told == ({"tool_name", "status"} if form.is_family else set())
        for name in told:
            refused(having(intent, **{name: "other"}), name)


def test_every_key_has_a_rule_and_a_template_that_tells_only_what_it_has() -> None:
    policy = default_memory_policy()
    for key in KEYS:
        assert default_templates()[key].strip()
        for sink in SINKS:
            rule, intent = policy.rules[key], replace(built(key), fallback_text="fallback")
            told = render_memory_template(intent, sink, rule, policy.templates, mask_secrets)
            assert told
            assert not [part for part in ("$", "\n", "fallback") if part in told], key
        left = {entry: rule for entry, rule in policy.rules.items() if entry != key}
        with pytest.raises(IntentRefused, match="has no rule"):
            validate_memory_policy(replace(policy, rules=left))


@pytest.mark.parametrize("to_llm_context", [True, False])
async def test_the_policy_decides_for_every_key_what_the_model_is_told(
    tmp_path: Path, *, to_llm_context: bool
) -> None:
    policy = default_memory_policy()
    rules = {key: replace(policy.rules[key], to_llm_context=to_llm_context) for key in KEYS}
    policy = replace(policy, rules=rules)
    intents = {key: built(key) for key in KEYS}
    async with open_chronicle(tmp_path) as chronicle:
        recorder = IntentRecorder(chronicle, mask_secrets, policy)
        await recorder.record_intents(list(intents.values()))
        told = render_intents_for_llm(await chronicle.pending("cnv_1", "ann"), 100_000)
        records = {record.id: record for record in (await chronicle.page("ann", limit=100)).records}
    for key, intent in intents.items():
        words = render_memory_template(
            intent, "llm_context", rules[key], policy.templates, mask_secrets
        )
        assert (words in told.text, intent.id in told.intent_ids) == (to_llm_context,) * 2, key
        record = records[intent.id]
        assert (record.key, record.source_kind) == (intent.key, intent.source_kind)
        assert record.text
        assert set(record.payload) == set(intent.payload)


def test_a_key_that_is_not_registered_is_refused() -> None:
    keys = ["", "turn", "turn.begun", "turn.received.x", "xturn.received", "tool.Bash"]
    keys += ["tool.Bash.failed", "tool..ok", "tool.Bash.ok\n", "TURN.RECEIVED", "x" * 100_000]
    for key in keys:
        with pytest.raises(UnknownIntent) as refusal:
            validate_intent_contract(replace(built("turn.received"), key=key))
        assert len(str(refusal.value)) < 300
    with pytest.raises(UnknownIntent, match=r"Did you mean 'turn\.received'"):
        form_of("turn.receive")


def test_an_intent_says_whose_it_is_and_when_and_its_key_can_be_kept() -> None:
    received, call = built("turn.received"), built("tool.{tool_name}.ok")
    refused(replace(received, owner_id=""), "an owner")
    refused(replace(received, id=""), "an id")
    refused(replace(received, occurred_at=HAPPENING.occurred_at.replace(tzinfo=None)), "zone")
    for name in ("{tool_name}", "x" * 300, "a\u2028b", "a\ud800"):
        refused(having(replace(call, key=f"tool.{name}.ok"), tool_name=name), "not a valid key")


def test_a_form_with_a_place_is_a_family() -> None:
    form = IntentForm(key="a.{b}.c", source_kind="turn", fields={"b": Field("text")})
    assert form.places("a.x.y.c") == {"b": "x.y"}
    assert form.places("a..c") is None


def test_a_payload_may_have_extension_fields() -> None:
    validate_intent_contract(having(built("turn.received"), x_channel="mail"))
