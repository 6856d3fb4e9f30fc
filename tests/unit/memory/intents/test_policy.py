from dataclasses import replace
from pathlib import Path

import pytest

from memory.intents.policy import (
    default_memory_policy,
    load_memory_policy_blocking,
    validate_memory_policy,
)
from memory.intents.record import IntentRecorder
from memory.intents.registry import (
    IntentRefused,
    MemorySinkPolicy,
    UnknownIntent,
)
from policies.secrets import mask_secrets
from tests.support.intents import open_chronicle
from tests.support.tables import read_pairs

FAMILY = "tool.{tool_name}.error"


def load(directory: Path, text: str) -> object:
    return load_memory_policy_blocking(written(directory, text))


def written(directory: Path, text: str) -> Path:
    file = directory / "policy.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "") == default_memory_policy()


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    policy = load_memory_policy_blocking(
        written(
            tmp_path,
            """
            [intents."llm.response"]
            to_chronicle = false
            [intents."turn.received"]
            runtime_log_template = "mine"
            [templates]
            mine = "说：$message"
            """,
        )
    )
    shipped = default_memory_policy()
    changed = {key for key, rule in policy.rules.items() if rule != shipped.rules[key]}
    assert changed == {"llm.response", "turn.received"}
    assert policy.rule_of("llm.response") == replace(
        shipped.rule_of("llm.response"), to_chronicle=False
    )
    assert policy.templates["mine"] == "说：$message"
    assert {**policy.templates, "mine": ""} == {**shipped.templates, "mine": ""}


@pytest.mark.parametrize("order", [1, -1], ids=["family first", "family last"])
def test_a_rule_for_one_tool_stands_on_the_files_own_rule_of_its_family(
    tmp_path: Path, order: int
) -> None:
    tables = [
        f'[intents."{FAMILY}"]\nto_chronicle = false\n',
        '[intents."tool.Bash.error"]\nto_llm_context = true\n',
    ]
    policy = load_memory_policy_blocking(written(tmp_path, "".join(tables[::order])))
    assert policy.rule_of("tool.Read.error") == MemorySinkPolicy(to_chronicle=False)
    assert policy.rule_of("tool.Bash.error") == MemorySinkPolicy(
        to_chronicle=False, to_llm_context=True
    )
    assert policy.rule_of("tool.Bash.ok") == MemorySinkPolicy()


def test_a_shipped_template_can_be_replaced_by_its_keys_name(tmp_path: Path) -> None:
    text = '[templates]\n"turn.received" = "> $message"\n"tool.Bash.ok" = "$result"'
    policy = load_memory_policy_blocking(written(tmp_path, text))
    assert policy.templates["turn.received"] == "> $message"
    assert policy.templates["tool.Bash.ok"] == "$result"


MISTAKES = read_pairs("intent-policy-mistakes")


def test_a_mistake_is_told_with_file_key_and_fix(tmp_path: Path) -> None:
    missed: dict[str, str] = {}
    for text, words in MISTAKES.items():
        with pytest.raises(IntentRefused) as refused:
            load(tmp_path, text)
        said = str(refused.value)
        assert said.startswith(f"{tmp_path / 'policy.toml'}: ")
        if "\n" in said or any(word not in said for word in words):
            missed[text] = said
    assert not missed


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for file in (tmp_path / "gone.toml", tmp_path):
        with pytest.raises(IntentRefused, match="cannot be read"):
            load_memory_policy_blocking(file)
    file = tmp_path / "binary.toml"
    file.write_bytes(b"\xff\xfe\0")
    with pytest.raises(IntentRefused, match="not TOML"):
        load_memory_policy_blocking(file)
    file.write_text("#" * 1_048_577)
    with pytest.raises(IntentRefused, match="larger than 1 MiB"):
        load_memory_policy_blocking(file)


def test_a_rule_of_an_unregistered_key_is_refused_and_nothing_is_registered_by_it() -> None:
    policy = default_memory_policy()
    wrong = replace(policy, rules={**policy.rules, "turn.begun": MemorySinkPolicy()})
    with pytest.raises(UnknownIntent):
        validate_memory_policy(wrong)
    with pytest.raises(UnknownIntent):
        policy.rule_of("turn.begun")


async def test_a_recorder_takes_no_invalid_policy(tmp_path: Path) -> None:
    async with open_chronicle(tmp_path) as chronicle:
        wrong = replace(default_memory_policy(), rules={})
        with pytest.raises(IntentRefused, match="has no rule"):
            IntentRecorder(chronicle, mask_secrets, wrong)
