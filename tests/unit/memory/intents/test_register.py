"""Everything that a registered key needs, asked of each one: a key added without its parts fails here."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.intents.contract import validate_intent_contract
from memory.intents.intent import MemoryIntent, SourceKind
from memory.intents.policy import default_memory_policy, validate_memory_policy
from memory.intents.record import IntentRecorder
from memory.intents.registry import (
    FORMS,
    Field,
    FieldType,
    IntentForm,
    IntentRefused,
    UnknownIntent,
    form_of,
    required_intent_keys,
)
from memory.intents.snapshot import render_intents_for_llm
from memory.intents.templates import SinkName, default_templates, render_memory_template
from policies.secrets import mask_secrets
from tests.support.intents import BUILT, HAPPENING, open_chronicle

KEYS = required_intent_keys()
SINKS: tuple[SinkName, ...] = ("chronicle", "runtime_log", "llm_context")
WRONG: dict[FieldType, Any] = {
    "text": 7,
    "number": "7",
    "flag": "yes",
    "object": ["a"],
    "list": {"a": 1},
}
every_key = pytest.mark.parametrize("key", KEYS)


def built(key: str) -> MemoryIntent:
    assert key in BUILT, f"{key} has no builder in tests/support/intents.py"
    return BUILT[key](HAPPENING)


def without(intent: MemoryIntent, name: str) -> MemoryIntent:
    payload = {one: value for one, value in intent.payload.items() if one != name}
    return replace(intent, payload=payload)


def having(intent: MemoryIntent, **fields: Any) -> MemoryIntent:
    return replace(intent, payload={**intent.payload, **fields})


def fields_of(key: str) -> list[tuple[str, Field]]:
    return sorted(form_of(key).fields.items())


def test_what_the_gateway_emits_is_registered() -> None:
    assert set(KEYS) == {
        *(f"turn.{one}" for one in ("received", "completed", "cut_off")),
        "llm.response",
        *(f"tool.{{tool_name}}.{one}" for one in ("ok", "blocked", "error", "interrupted")),
        *(f"permission.{one}" for one in ("allowed", "denied")),
        *(f"approval.{one}" for one in ("requested", "resolved")),
        *(f"memory.{one}" for one in ("injected", "suppressed", "forgotten")),
        *(f"conversation.{one}" for one in ("started", "reset", "forked")),
        *(f"delivery.{one}" for one in ("delivered", "failed", "dead")),
        *(f"breaker.{one}" for one in ("opened", "half_opened", "closed")),
    }
    assert len(KEYS) == len(set(KEYS))
    assert set(BUILT) == set(KEYS)


@every_key
def test_what_its_builder_makes_passes_the_contract(key: str) -> None:
    intent = built(key)
    assert validate_intent_contract(intent).key == key
    assert intent.key == key.replace("{tool_name}", "Bash")
    assert intent.id.startswith("int_")
    assert built(key) == intent, "the same happening is the same intent"


@every_key
def test_the_contract_refuses_a_field_that_is_missing(key: str) -> None:
    for name, field in fields_of(key):
        if field.required:
            for wrong in (without(built(key), name), having(built(key), **{name: None})):
                with pytest.raises(IntentRefused, match=name):
                    validate_intent_contract(wrong)
        else:
            validate_intent_contract(without(built(key), name))


@every_key
def test_the_contract_refuses_a_field_of_another_type(key: str) -> None:
    for name, field in fields_of(key):
        with pytest.raises(IntentRefused, match=name):
            validate_intent_contract(having(built(key), **{name: WRONG[field.type]}))
        if field.type == "number":
            with pytest.raises(IntentRefused, match=name):
                validate_intent_contract(having(built(key), **{name: True}))


@every_key
def test_the_contract_refuses_a_field_that_it_does_not_have(key: str) -> None:
    with pytest.raises(IntentRefused, match="'extra'"):
        validate_intent_contract(having(built(key), extra="x"))


@every_key
def test_the_contract_refuses_another_source(key: str) -> None:
    intent = built(key)
    other: SourceKind = "turn" if intent.source_kind != "turn" else "llm"
    with pytest.raises(IntentRefused, match="comes from"):
        validate_intent_contract(replace(intent, source_kind=other))


@every_key
def test_the_contract_refuses_a_payload_that_says_something_else_than_the_key(key: str) -> None:
    form = form_of(key)
    told = {*form.fixed, *(form.places(built(key).key) or {})}
    if form.is_family:
        assert told == {"tool_name", "status"}
    for name in sorted(told):
        with pytest.raises(IntentRefused, match=name):
            validate_intent_contract(having(built(key), **{name: "other"}))


@every_key
def test_it_has_a_rule_and_a_template_that_tells_only_what_it_has(key: str) -> None:
    policy = default_memory_policy()
    rule = policy.rules[key]
    assert default_templates()[key].strip()
    for sink in SINKS:
        told = render_memory_template(built(key), sink, rule, policy.templates, mask_secrets)
        assert told
        assert "$" not in told
        assert told != built(key).fallback_text
        assert "\n" not in told


@every_key
async def test_what_is_told_the_model_is_visible_in_the_snapshot(key: str, tmp_path: Path) -> None:
    policy = default_memory_policy()
    rule = replace(policy.rules[key], to_llm_context=True)
    policy = replace(policy, rules={**policy.rules, key: rule})
    intent = built(key)
    async with open_chronicle(tmp_path) as chronicle:
        recorder = IntentRecorder(chronicle, mask_secrets, policy)
        assert await recorder.record_intent(intent)
        told = render_intents_for_llm(await chronicle.pending("cnv_1", "ann"), 2_000)
        words = render_memory_template(intent, "llm_context", rule, policy.templates, mask_secrets)
        assert words in told.text
        assert told.intent_ids == (intent.id,)
        (record,) = (await chronicle.page("ann", limit=10)).records
        assert (record.id, record.key, record.source_kind) == (
            intent.id,
            intent.key,
            intent.source_kind,
        )
        assert record.text
        assert set(record.payload) == set(intent.payload)


@every_key
async def test_what_a_policy_keeps_from_the_model_is_not_in_the_snapshot(
    key: str, tmp_path: Path
) -> None:
    policy = default_memory_policy()
    rule = replace(policy.rules[key], to_llm_context=False)
    policy = replace(policy, rules={**policy.rules, key: rule})
    async with open_chronicle(tmp_path) as chronicle:
        assert await IntentRecorder(chronicle, mask_secrets, policy).record_intent(built(key))
        assert await chronicle.pending("cnv_1", "ann") == []


@every_key
def test_a_policy_without_a_rule_for_it_is_refused(key: str) -> None:
    policy = default_memory_policy()
    left = {one: rule for one, rule in policy.rules.items() if one != key}
    with pytest.raises(IntentRefused, match="has no rule"):
        validate_memory_policy(replace(policy, rules=left))


def test_little_goes_to_the_model_by_default() -> None:
    told = {one.key for one in FORMS if one.policy.to_llm_context}
    assert told == {"turn.cut_off", "tool.{tool_name}.interrupted"}


@pytest.mark.parametrize(
    "key",
    [
        "",
        "turn",
        "turn.begun",
        "turn.received.x",
        "xturn.received",
        "tool.Bash",
        "tool.Bash.failed",
        "tool..ok",
        "tool.Bash.ok\n",
        "TURN.RECEIVED",
        "x" * 100_000,
    ],
    ids=lambda key: repr(key[:20]),
)
def test_a_key_that_is_not_registered_is_refused(key: str) -> None:
    with pytest.raises(UnknownIntent) as refused:
        validate_intent_contract(replace(built("turn.received"), key=key))
    assert len(str(refused.value)) < 300


def test_a_near_miss_is_told_the_key_that_was_meant() -> None:
    with pytest.raises(UnknownIntent, match=r"Did you mean 'turn\.received'"):
        form_of("turn.receive")


@pytest.mark.parametrize(
    "key",
    ["tool.{tool_name}.ok", f"tool.{'x' * 300}.ok", "tool.a\u2028b.ok", "tool.a\ud800.ok"],
    ids=["family", "long", "line", "surrogate"],
)
def test_a_key_that_cannot_be_kept_is_refused(key: str) -> None:
    name = key.removeprefix("tool.").removesuffix(".ok")
    intent = built("tool.{tool_name}.ok")
    with pytest.raises(IntentRefused, match="no key"):
        validate_intent_contract(having(replace(intent, key=key), tool_name=name))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"owner_id": ""}, "an owner"),
        ({"id": ""}, "an id"),
        ({"occurred_at": HAPPENING.occurred_at.replace(tzinfo=None)}, "zone"),
    ],
    ids=["owner", "id", "moment"],
)
def test_an_intent_says_whose_it_is_and_when(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(IntentRefused, match=words):
        validate_intent_contract(replace(built("turn.received"), **fields))


def test_a_form_with_a_place_is_a_family() -> None:
    form = IntentForm(key="a.{b}.c", source_kind="turn", fields={"b": Field("text")})
    assert form.places("a.x.y.c") == {"b": "x.y"}
    assert form.places("a..c") is None
