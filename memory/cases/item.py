"""A case as search sees it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from memory.cases.case import Case, CaseContent, Report
from memory.cases.fingerprint import plain_words
from memory.items import Item
from memory.text_lines import one_line

MAX_TITLE_CHARS: Final = 120
MAX_SUMMARY_CHARS: Final = 300

MAX_SEARCHED_REPORTS: Final = 5
"""Newest merged reports that are searched with a case."""
MAX_REPORT_CHARS: Final = 1_000
"""Characters of what one report adds."""

_MARKS: Final = re.compile(r"^\s*(?:[-*•#>]+|\d{1,3}\.)\s+|[=_\-*~]{4,}|`|\*\*", re.MULTILINE)
"""Markdown marks, which only take room in one line."""
_MAX_COMPARED_CHARS: Final = 8_000
"""Characters of a section that are compared with a report."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")


def to_item(case: Case, reports: Sequence[Report] = ()) -> Item | None:
    """Return the searchable item of a case, with the case's id; None if search must not find it.

    `reports` are the newest merged ones, oldest first; search finds what they add as well.
    """
    return whole_item(case, reports) if case.is_findable else None


def whole_item(case: Case, reports: Sequence[Report] = ()) -> Item:
    """Return the item of a case, also of one that search must not find."""
    content, known = case.content, case.content.metadata
    return Item(
        id=case.case_id,
        kind="case",
        scope=case.scope,
        title=one_line(content.symptom_summary, MAX_TITLE_CHARS),
        summary=_summary(content),
        body=_body(content, reports[-MAX_SEARCHED_REPORTS:]),
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


def _body(content: CaseContent, reports: Sequence[Report]) -> str:
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
    added = "\n\n".join(_added(content, reports))
    told = (*sections, ("Where", around), ("Reported as well", added))
    return "\n\n".join(f"## {name}\n\n{text}" for name, text in told if text)


def _added(content: CaseContent, reports: Sequence[Report]) -> Iterator[str]:
    """Yield what each report says that neither the case nor an earlier report says, ignoring
    numbers.
    """
    known = {_alike(sentence) for sentence in _sentences(content)} if reports else set()
    for report in reports:
        new = ""
        for sentence in _sentences(report.content):
            if len(new) > MAX_REPORT_CHARS:
                break
            if (told := _alike(sentence)) and told not in known:
                known.add(told)
                new += f" {sentence}"
        if new:
            yield new.strip()[:MAX_REPORT_CHARS]


def _sentences(content: CaseContent) -> Iterator[str]:
    texts = (content.diagnosis, content.resolution, content.root_cause, content.symptom_summary)
    for text in texts:
        sentences = _SENTENCE_END.split(text[:_MAX_COMPARED_CHARS])
        yield from (sentence.strip() for sentence in sentences if sentence.strip())


def _alike(sentence: str) -> frozenset[str]:
    """Return the words that a sentence shares with one about another occasion."""
    return frozenset(plain_words(sentence))


def _source(case: Case) -> str:
    told = f"case {case.case_id}"
    conversation = case.source_conversation_id
    return told if conversation is None else f"{told} of conversation {conversation}"
