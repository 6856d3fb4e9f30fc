"""What a case says after an update, and after a like one went into it. Pure."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Final

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.input import MAX_NAMES, TEXT_FIELDS, SentCase

_SINGLE: Final = ("failure_layer", "runtime", "middleware", "application_name", "region")


def revised(content: CaseContent, sent: SentCase, *, replaces: bool = True) -> CaseContent:
    """Give the content with what was sent in its place; what was not sent stays, names add up.

    `replaces`: whether what is known of the surroundings gives way; otherwise only gaps are filled.
    """
    before = content.metadata
    metadata = replace(
        united(sent.metadata, before) if replaces else united(before, sent.metadata),
        related_services=_united(before.related_services, sent.metadata.related_services),
        tags=_united(before.tags, sent.metadata.tags),
    )
    return replace(content, **sent.texts, metadata=metadata)


def held_back(content: CaseContent, sent: SentCase) -> tuple[str, ...]:
    """Name what was sent of the surroundings and stands there otherwise; lists add up, and so never do."""
    return tuple(
        f"metadata.{name}"
        for name in _SINGLE
        if getattr(sent.metadata, name)
        and getattr(content.metadata, name)
        and getattr(sent.metadata, name) != getattr(content.metadata, name)
    )


def united(one: CaseMetadata, other: CaseMetadata) -> CaseMetadata:
    """Give what both know together; where they contradict each other, the first one stands."""
    return CaseMetadata(
        failure_layer=one.failure_layer or other.failure_layer,
        runtime=one.runtime or other.runtime,
        related_services=_united(one.related_services, other.related_services),
        middleware=one.middleware or other.middleware,
        application_name=one.application_name or other.application_name,
        region=one.region or other.region,
        tags=_united(one.tags, other.tags),
    )


def changed_fields(before: CaseContent, after: CaseContent) -> list[str]:
    """Name the fields in which two contents differ."""
    names: list[str] = [one for one in TEXT_FIELDS if getattr(before, one) != getattr(after, one)]
    return names + [
        f"metadata.{one.name}"
        for one in fields(CaseMetadata)
        if getattr(before.metadata, one.name) != getattr(after.metadata, one.name)
    ]


def _united(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """Give the names of both in their order; the same name in other letters is the same."""
    kept: dict[str, str] = {}
    for name in (*one, *other):
        kept.setdefault(name.casefold(), name)
    return tuple(kept.values())[:MAX_NAMES]
