"""The words in which intents are told; secrets are masked here, and nowhere before.

A template is text with `$field` places. Of a family, one that is named like a single key (`tool.Bash.error`)
goes before the family's own. What comes out is masked and bounded, whatever went in.
"""

import json
import re
from collections.abc import Mapping
from string import Template
from typing import Any, Final, Literal

from memory.intents.intent import MemoryIntent
from memory.intents.masking import Mask, clipped, masked_payload, masked_text
from memory.intents.registry import (
    FORMS,
    IntentForm,
    IntentRefused,
    MemorySinkPolicy,
    form_of,
    required_intent_keys,
)

__all__ = [
    "Mask",
    "SinkName",
    "Templates",
    "check_places",
    "default_templates",
    "render_memory_template",
    "tell",
    "validate_template",
]

SinkName = Literal["chronicle", "runtime_log", "llm_context"]
Templates = Mapping[str, str]

MAX_TEMPLATE_CHARS: Final = 12_000
MAX_RENDERED_CHARS: Final[Mapping[SinkName, int]] = {
    "chronicle": 2_000,
    "runtime_log": 2_000,
    "llm_context": 1_000,
}
_MAX_PLACE_CHARS: Final = 700
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{1,127}")


def default_templates() -> dict[str, str]:
    """Give the shipped templates, each named like its key."""
    return {one.key: one.template for one in FORMS}


def validate_template(name: str, body: str) -> None:
    """Check a template's name and text.

    Raises:
        IntentRefused: one of them cannot be; the sentence says what.
    """
    if not _NAME.fullmatch(name) and name not in required_intent_keys():
        raise IntentRefused(
            f"{name[:120]!r} is no name of a template; take a letter and up to 127 more letters,"
            " digits, '_', '.' or '-', or a registered key."
        )
    if not body.strip() or len(body) > MAX_TEMPLATE_CHARS or "\0" in body:
        raise IntentRefused(
            f"The template {name!r} must hold text, at most {MAX_TEMPLATE_CHARS} characters, no NUL."
        )
    if not Template(body).is_valid():
        raise IntentRefused(f"The template {name!r} has a lone '$'; write it as '$$'.")


def check_places(name: str, body: str, form: IntentForm) -> None:
    """See that a key has what a template of it tells.

    Raises:
        IntentRefused: the template has a place for what is no field of the key.
    """
    unknown = sorted(set(Template(body).get_identifiers()) - set(form.fields))
    if unknown:
        raise IntentRefused(
            f"The template {name!r} tells ${unknown[0]}, which {form.key!r} does not have;"
            f" it has {', '.join(f'${one}' for one in sorted(form.fields))}."
        )


def render_memory_template(
    intent: MemoryIntent, sink: SinkName, policy: MemorySinkPolicy, templates: Templates, mask: Mask
) -> str:
    """Tell an intent for a sink: one masked text, at most 2 000 characters (for a prompt 1 000).

    A place without a value is left out; where there is no template, the fallback text stands.
    """
    return tell(intent, sink, policy, templates, masked_payload(intent.payload, mask), mask)


def tell(
    intent: MemoryIntent,
    sink: SinkName,
    policy: MemorySinkPolicy,
    templates: Templates,
    payload: Mapping[str, Any],
    mask: Mask,
) -> str:
    """Do as `render_memory_template`, with the masked payload given: it serves all sinks."""
    most = MAX_RENDERED_CHARS[sink]
    form = form_of(intent.key)
    body = _body_of(intent.key, form.key, _named(sink, policy), templates)
    if body is None:
        return masked_text(intent.fallback_text, mask, most)
    places = {name: _place(payload.get(name)) for name in form.fields}
    return clipped(Template(body).safe_substitute(places).strip(), most)


def _named(sink: SinkName, policy: MemorySinkPolicy) -> str:
    return {
        "chronicle": policy.chronicle_template,
        "runtime_log": policy.runtime_log_template,
        "llm_context": policy.llm_context_template,
    }[sink]


def _body_of(key: str, family: str, named: str, templates: Templates) -> str | None:
    if named:
        return templates.get(named)
    return templates.get(key) or templates.get(family)


def _place(value: Any) -> str:
    """Write a field's value, masked already."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clipped(text, _MAX_PLACE_CHARS)
