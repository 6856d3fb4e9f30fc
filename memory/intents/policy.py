"""Which intents go into which sinks: the shipped policy, and a policy file that changes it.

The file is TOML; what it does not name stays as it is shipped:

    [intents."tool.Bash.error"]      # a key, a family, or one name of a family
    to_llm_context = true
    llm_context_template = "mine"    # without one: the template that is named like the key

    [templates]
    mine = "Bash failed: $result"
"""

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, cast

from memory.intents.registry import (
    FORMS,
    IntentRefused,
    MemorySinkPolicy,
    UnknownIntent,
    form_of,
)
from memory.intents.templates import Templates, check_places, default_templates, validate_template

_SWITCHES: Final = ("to_chronicle", "to_runtime_log", "to_llm_context")
_MAX_FILE_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDecision:
    """What the policy does with one intent."""

    intent_key: str
    form_key: str
    """The registered key or family."""
    sinks: MemorySinkPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """The rule of each key, and the templates."""

    rules: Mapping[str, MemorySinkPolicy]
    """By key or family; the rule of a single key is preferred to that of its family."""
    templates: Templates = field(default_factory=default_templates)

    def rule_of(self, key: str) -> MemorySinkPolicy:
        """Return the rule of a key. Raise `UnknownIntent` if the key is not registered."""
        form = form_of(key)
        return self.rules.get(key) or self.rules.get(form.key) or form.policy


def default_memory_policy() -> MemoryPolicy:
    """Return the shipped policy; it has a rule for every registered key.

    The next prompt gets what the agent's own session may not hold: that the turn before was cut
    off, and the calls that were interrupted, whose effect is uncertain. The session has all other
    results already.
    """
    return MemoryPolicy(rules={form.key: form.policy for form in FORMS})


def validate_memory_policy(policy: MemoryPolicy) -> None:
    """Check that every rule is of a registered key and names existing templates.

    Raise `UnknownIntent` if a rule's key is not registered; `IntentRefused` if a registered key has
    no rule, or a template is missing or wrong.
    """
    for name, body in policy.templates.items():
        validate_template(name, body)
    for key, rule in policy.rules.items():
        form = form_of(key)
        named = (rule.chronicle_template, rule.runtime_log_template, rule.llm_context_template)
        for body_name in {key, form.key, *filter(None, named)}:
            if body_name in policy.templates:
                check_places(body_name, policy.templates[body_name], form)
            elif body_name not in {key, form.key}:
                raise IntentRefused(
                    f"The rule of {key!r} names the template {body_name!r}, which is not there;"
                    " add it to [templates]."
                )
    for name, body in policy.templates.items():
        with suppress(UnknownIntent):  # a name of its own, used where a rule names it
            check_places(name, body, form_of(name))
    missing = [form.key for form in FORMS if form.key not in policy.rules]
    if missing:
        raise IntentRefused(f"The registered key {missing[0]!r} has no rule; add one.")


def load_memory_policy_blocking(path: Path) -> MemoryPolicy:
    """Read a policy file on top of the shipped policy.

    Raise `IntentRefused` if the file cannot be read or holds a mistake; the text names the file and
    the fix.
    """
    try:
        policy = _on_top(_toml_blocking(path))
        validate_memory_policy(policy)
    except OSError as exc:
        raise IntentRefused(f"{path}: the file cannot be read ({exc.strerror}).") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise IntentRefused(f"{path}: this is not TOML ({exc}).") from exc
    except IntentRefused as exc:
        raise IntentRefused(f"{path}: {exc}") from exc
    return policy


def _toml_blocking(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        text = file.read(_MAX_FILE_BYTES + 1)
    if len(text) > _MAX_FILE_BYTES:
        raise IntentRefused("the file is larger than 1 MiB.")
    return tomllib.loads(text.decode("utf-8"))


def _on_top(given: Mapping[str, Any]) -> MemoryPolicy:
    shipped = default_memory_policy()
    unknown = sorted(set(given) - {"intents", "templates"})
    if unknown:
        raise IntentRefused(f"[{unknown[0]}] is not known; there are [intents] and [templates].")
    templates = dict(shipped.templates)
    for name, body in _table(given, "templates").items():
        if not isinstance(body, str):
            raise IntentRefused(f"The template {name!r} must be text.")
        templates[name] = body
    rules = dict(shipped.rules)
    given_rules = _table(given, "intents")
    # a family's rule first: the rule of a single key changes that
    for key in sorted(given_rules, key=lambda key: (key not in rules, key)):
        rules[key] = _rule(key, given_rules[key], rules)
    return MemoryPolicy(rules=rules, templates=templates)


def _table(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = given.get(name, {})
    if not isinstance(table, Mapping):
        raise IntentRefused(f"[{name}] must be a table.")
    return cast("Mapping[str, Any]", table)


def _rule(key: str, given: Any, rules: Mapping[str, MemorySinkPolicy]) -> MemorySinkPolicy:
    if not isinstance(given, Mapping):
        raise IntentRefused(f"The rule of {key!r} must be a table.")
    known = {field.name for field in fields(MemorySinkPolicy)}
    nested = [name for name, value in given.items() if isinstance(value, Mapping)]
    if nested:
        raise IntentRefused(
            f"The rule of {key!r} holds a table {nested[0]!r}; write a key with dots in quotes:"
            f' [intents."{key}.{nested[0]}"].'
        )
    shipped = rules[form_of(key).key]
    for name, value in given.items():
        if name not in known:
            raise IntentRefused(
                f"The rule of {key!r} has no {name!r}; there are {', '.join(sorted(known))}."
            )
        wanted, words = (bool, "true or false") if name in _SWITCHES else (str, "text")
        if not isinstance(value, wanted):
            raise IntentRefused(f"In the rule of {key!r} {name!r} must be {words}.")
    return replace(shipped, **given)
