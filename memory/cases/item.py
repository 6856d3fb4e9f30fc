"""A case as search sees it."""

import hashlib
import json
import re
from typing import Final

from memory.cases.case import Case, CaseContent
from memory.items import Item
from memory.scope import Scope

MAX_TITLE_CHARS: Final = 120
MAX_SUMMARY_CHARS: Final = 300

_FINGERPRINT_BYTES: Final = 16
_SPACE: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"^\s*(?:[-*•#>]+|\d{1,3}\.)\s+|[=_\-*~]{4,}|`|\*\*", re.MULTILINE)
"""Marks of Markdown: in one line they only take room."""


def to_item(case: Case) -> Item | None:
    """Give the searchable item of a case, its id the case's; None where search must not find it."""
    if not case.is_findable:
        return None
    content, known = case.content, case.content.metadata
    return Item(
        id=case.case_id,
        kind="case",
        scope=case.scope,
        title=_one_line(content.symptom_summary, MAX_TITLE_CHARS),
        summary=_summary(content),
        body=_body(content),
        source=_source(case),
        occurred_at=case.created_at,
        updated_at=case.updated_at,
        tags=tuple(dict.fromkeys((*known.tags, *known.related_services))),
        conversation_id=case.source_conversation_id,
        revision=case.revision,
    )


def fingerprint_of(content: CaseContent, scope: Scope) -> bytes:
    """Give what stands for exactly these words in this scope; letters' case and white space apart.

    Metadata play no part: they grow with each like report.
    """
    texts = (content.symptom_summary, content.diagnosis, content.root_cause, content.resolution)
    told = [
        *(scope.owner_id, scope.app_code, scope.environment),
        *(_SPACE.sub(" ", one).strip().casefold() for one in texts),
    ]
    return hashlib.sha256(json.dumps(told).encode()).digest()[:_FINGERPRINT_BYTES]


def _summary(content: CaseContent) -> str:
    """Say in one line why it happened and what helped."""
    told = (
        ("Cause", content.root_cause or content.diagnosis),
        ("Resolution", content.resolution),
    )
    share = MAX_SUMMARY_CHARS // len(told) - len("Resolution: · ")
    parts = [f"{name}: {_one_line(_MARKS.sub(' ', text), share)}" for name, text in told]
    return _one_line(" · ".join(parts), MAX_SUMMARY_CHARS)


def _body(content: CaseContent) -> str:
    known = content.metadata
    sections = (
        ("Symptom", content.symptom_summary),
        ("Root cause", content.root_cause),
        ("Diagnosis", content.diagnosis),
        ("Resolution", content.resolution),
    )
    words = [
        *(known.failure_layer, known.runtime, known.middleware, known.application_name),
        *(known.region, *known.related_services, *known.tags),
    ]
    around = ", ".join(dict.fromkeys(one for one in words if one))
    parts = [f"## {name}\n\n{text}" for name, text in (*sections, ("Where", around)) if text]
    return "\n\n".join(parts)


def _source(case: Case) -> str:
    told = f"case {case.case_id}"
    conversation = case.source_conversation_id
    return told if conversation is None else f"{told} of conversation {conversation}"


def _one_line(text: str, limit: int) -> str:
    line = _SPACE.sub(" ", text).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
