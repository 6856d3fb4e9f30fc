"""A case as Markdown, for an agent and for a person.

Lines that begin with `>` were recorded by an author; all others are ours. So nothing in a case can
end its quotation and pose as a heading, a state or another case.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from memory.cases.case import LEAST_CONFIDENCE, Case, CaseMetadata, RelatedCase
from memory.cases.results import MAX_TOLD_RELATED, FeedbackTally, sentence
from memory.clock import rfc3339
from memory.text.lines import clipped, flat

_SHORT_CHARS: Final = 200
_NAME_CHARS: Final = 80

_said = partial(sentence, "markdown")


def render_markdown(
    case: Case,
    feedback: FeedbackTally,
    *,
    related: Sequence[tuple[RelatedCase, Case]] = (),
) -> str:
    """Return the case as Markdown, warnings first, without a line break at the end.

    `related` are the relations, nearest first, each with the other case.
    """
    content = case.content
    root_cause = quoted(content.root_cause) if content.root_cause.strip() else "Not found out."
    blocks = [
        *_warnings(case),
        f"# Case {case.case_id}",
        "\n".join(_facts(case, feedback)),
        _said("quoted"),
        f"## Symptom\n\n{quoted(content.symptom_summary)}",
        f"## Root cause\n\n{root_cause}",
        f"## Diagnosis\n\n{quoted(content.diagnosis)}",
        f"## Resolution\n\n{quoted(content.resolution)}",
        *_surroundings(content.metadata),
        *_related(related),
    ]
    return "\n\n".join(blocks)


def quoted(text: str) -> str:
    """Return a text as a quotation: every line, whatever its line break, begins with `>`."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines()) or ">"


def _warnings(case: Case) -> Iterator[str]:
    is_wrong = case.lifecycle in {"rejected", "stale"}
    if is_wrong:
        yield f"**{_said(case.lifecycle)}**"
    if case.review_reasons:
        yield f"**{_said('review', ', '.join(map(_said, case.review_reasons)))}**"
    if not is_wrong and case.confidence < LEAST_CONFIDENCE:
        yield f"**{_said('unsure')}**"
    if case.lifecycle == "draft":
        yield f"**{_said('draft')}**"


def _facts(case: Case, feedback: FeedbackTally) -> Iterator[str]:
    yield f"- State: {case.lifecycle}, confidence {case.confidence:.2f}, revision {case.revision}"
    places = (_place("app", case.scope.app_code), _place("environment", case.scope.environment))
    yield f"- For: {', '.join(places)}"
    yield _said("feedback", feedback.helpful, feedback.unhelpful, feedback.conversations)
    yield f"- Recorded: {rfc3339(case.created_at)}{_by(case.source_conversation_id)}"
    if case.updated_at != case.created_at:
        yield f"- Changed: {rfc3339(case.updated_at)}"
    yield f"- Written by: {', '.join(map(_name, case.authors)) or 'nobody known'}"


def _surroundings(known: CaseMetadata) -> Iterator[str]:
    values = {
        "failure layer": known.failure_layer or "",
        "runtime": known.runtime or "",
        "services": ", ".join(known.related_services),
        "middleware": known.middleware or "",
        "application": known.application_name or "",
        "region": known.region or "",
        "tags": ", ".join(known.tags),
    }
    lines = [f"> - {name}: {flat(value)}" for name, value in values.items() if value.strip()]
    if lines:
        yield "## Where\n\n" + "\n".join(lines)


def _related(related: Sequence[tuple[RelatedCase, Case]]) -> Iterator[str]:
    if related:
        lines = [
            f"- {relation.case_id}: {relation.relation}, {relation.score:.2f}, {other.lifecycle}\n"
            f"  > {clipped(flat(other.content.symptom_summary), _SHORT_CHARS)}"
            for relation, other in related[:MAX_TOLD_RELATED]
        ]
        yield "## Related cases\n\n" + "\n".join(lines)


def _place(kind: str, name: str | None) -> str:
    return f"any {kind}" if name is None else f"{kind} {_name(name)}"


def _by(conversation_id: str | None) -> str:
    return "" if conversation_id is None else f" in {_name(conversation_id)}"


def _name(text: str) -> str:
    """Return an id as one harmless word."""
    clean = "".join(
        char if char.isprintable() and char not in "`>#*" else "_" for char in flat(text)
    )
    return clipped(clean, _NAME_CHARS)
