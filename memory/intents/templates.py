"""Renders intents as text by templates; the result is masked and bounded, whatever the payload
holds.

A template is text with `$field` places. A template named like a single key (`tool.Bash.error`) is
preferred to that of its family.
"""

import json
import re
from collections.abc import Mapping
from string import Template
from typing import Any, Final, Literal

from memory.intents.masking import Mask, clipped, masked_payload, masked_text
from memory.intents.registry import (
    FORMS,
    IntentForm,
    IntentRefused,
    MemoryIntent,
    MemorySinkPolicy,
    form_of,
    required_intent_keys,
)

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
    """Return the shipped templates by key."""
    return {form.key: form.template for form in FORMS}


def validate_template(name: str, body: str) -> None:
    """Check a template's name and text. Raise `IntentRefused` if either is not valid; the text says
    why.
    """
    if not _NAME.fullmatch(name) and name not in required_intent_keys():
        raise IntentRefused(
            f"{name[:120]!r} cannot name a template; use a letter and up to 127 more letters,"
            " digits, '_', '.' or '-', or a registered key."
        )
    if not body.strip() or len(body) > MAX_TEMPLATE_CHARS or "\0" in body:
        raise IntentRefused(
            f"The template {name!r} must hold text, at most {MAX_TEMPLATE_CHARS} characters, no "
            "NUL."
        )
    if not Template(body).is_valid():
        raise IntentRefused(f"The template {name!r} has a lone '$'; write it as '$$'.")


def check_places(name: str, body: str, form: IntentForm) -> None:
    """Check that every place of a template is a field of the key.

    Raise `IntentRefused` if the template has a place that is not a field.
    """
    unknown = sorted(set(Template(body).get_identifiers()) - set(form.fields))
    if unknown:
        raise IntentRefused(
            f"The template {name!r} tells ${unknown[0]}, which {form.key!r} does not have;"
            f" it has {', '.join(f'${field}' for field in sorted(form.fields))}."
        )


def render_memory_template(
    intent: MemoryIntent, sink: SinkName, policy: MemorySinkPolicy, templates: Templates, mask: Mask
) -> str:
    """Render an intent for a sink: masked, at most 2 000 characters (1 000 for a prompt).

    A place without a value is left empty. Without a template the fallback text is used.
    """
    payload = masked_payload(intent.payload, mask)
    return render_payload(intent, sink, policy, templates, payload, mask)


def render_payload(
    intent: MemoryIntent,
    sink: SinkName,
    policy: MemorySinkPolicy,
    templates: Templates,
    payload: Mapping[str, Any],
    mask: Mask,
) -> str:
    """Render as `render_memory_template`, with a payload that is masked already."""
    most = MAX_RENDERED_CHARS[sink]
    form = form_of(intent.key)
    named: str = getattr(policy, f"{sink}_template")
    names = (named,) if named else (intent.key, form.key)
    body = next((templates[name] for name in names if name in templates), None)
    if body is None:
        return masked_text(intent.fallback_text, mask, most)
    places = {name: _place(payload.get(name)) for name in form.fields}
    return clipped(Template(body).safe_substitute(places).strip(), most)


def _place(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clipped(text, _MAX_PLACE_CHARS)
