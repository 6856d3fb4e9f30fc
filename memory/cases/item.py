"""A case as search sees it."""

import re
from typing import Final

from memory.cases.case import Case, CaseContent
from memory.items.item import Item
from memory.text.lines import one_line

MAX_TITLE_CHARS: Final = 120
MAX_SUMMARY_CHARS: Final = 300

_MARKS: Final = re.compile(r"^[^\S\n]*(?:[-*•#>]+|\d{1,3}\.)\s+|[=_\-*~]{4,}|`|\*\*", re.MULTILINE)
"""Markdown marks, which only take room in one line."""


def to_item(case: Case) -> Item | None:
    """Return the searchable item of a case, with the case's id; None if search must not find it."""
    return whole_item(case) if case.is_findable else None


def whole_item(case: Case) -> Item:
    """Return the item of a case, even if search must not find the case."""
    content, known = case.content, case.content.metadata
    return Item(
        id=case.case_id,
        kind="case",
        scope=case.scope,
        title=one_line(content.symptom_summary, MAX_TITLE_CHARS),
        summary=_summary(content),
        body=_body(content),
        source=_source(case),
        occurred_at=case.created_at,
        updated_at=case.updated_at,
        tags=tuple(dict.fromkeys((*known.tags, *known.related_services))),
        conversation_id=case.source_conversation_id,
        revision=case.revision,
    )


def _summary(content: CaseContent) -> str:
    told = (
        ("Cause", content.root_cause or content.diagnosis),
        ("Resolution", content.resolution),
    )
    share = MAX_SUMMARY_CHARS // len(told) - len("Resolution: · ")
    parts = [f"{name}: {one_line(_MARKS.sub(' ', text), share)}" for name, text in told]
    return one_line(" · ".join(parts), MAX_SUMMARY_CHARS)


def _body(content: CaseContent) -> str:
    known = content.metadata
    sections = (
        ("Symptom", content.symptom_summary),
        ("Root cause", content.root_cause),
        ("Diagnosis", content.diagnosis),
        ("Resolution", content.resolution),
    )
    names = [
        *(known.failure_layer, known.runtime, known.middleware, known.application_name),
        *(known.region, *known.related_services, *known.tags),
    ]
    around = ", ".join(dict.fromkeys(name for name in names if name))
    told = (*sections, ("Where", around))
    return "\n\n".join(f"## {name}\n\n{text}" for name, text in told if text)


def _source(case: Case) -> str:
    told = f"case {case.case_id}"
    conversation = case.source_conversation_id
    return told if conversation is None else f"{told} of conversation {conversation}"
