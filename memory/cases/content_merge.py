"""What a case says after an update, and after a like one went into it. Pure."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Final, Literal

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.input import MAX_NAMES, TEXT_FIELDS, SentCase

_LISTS: Final = ("related_services", "tags")
_SINGLE: Final = ("failure_layer", "runtime", "middleware", "application_name", "region")


Place = Literal["gaps", "values", "all"]
"""What of the surroundings is taken over: what is not known yet; single values too; lists whole as well.

Otherwise names add up in a list, as far as there is room.
"""


def revised(content: CaseContent, sent: SentCase, *, place: Place = "values") -> CaseContent:
    """Give the content with what was sent in its place; what was not sent stays.

    An empty list says nothing.
    """
    before, new = content.metadata, sent.metadata
    metadata = united(before, new) if place == "gaps" else united(new, before)
    metadata = replace(
        metadata,
        related_services=_listed(before.related_services, new.related_services, place),
        tags=_listed(before.tags, new.tags, place),
    )
    return replace(content, **sent.texts, metadata=metadata)


def without_room(before: CaseMetadata, new: CaseMetadata) -> tuple[str, ...]:
    """Name the lists that are full with names of both, so that some of the new ones are left out."""
    return tuple(
        f"metadata.{name}"
        for name in _LISTS
        if len(_distinct(getattr(before, name), getattr(new, name))) > MAX_NAMES
    )


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


def absorbed(own: CaseMetadata, reported: CaseMetadata) -> CaseMetadata:
    """Return the surroundings of a case that takes a report in: gaps are filled, tags add up.

    Its services stay its own: with those of all reports it would fit a report that contradicts it.
    """
    services = own.related_services or reported.related_services
    return replace(united(own, reported), related_services=services)


def changed_fields(before: CaseContent, after: CaseContent) -> list[str]:
    """Name the fields in which two contents differ."""
    names: list[str] = [
        field_name
        for field_name in TEXT_FIELDS
        if getattr(before, field_name) != getattr(after, field_name)
    ]
    return names + [
        f"metadata.{field_name.name}"
        for field_name in fields(CaseMetadata)
        if getattr(before.metadata, field_name.name) != getattr(after.metadata, field_name.name)
    ]


def _listed(before: tuple[str, ...], new: tuple[str, ...], place: Place) -> tuple[str, ...]:
    return new if new and place == "all" else _united(before, new)


def _united(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return _distinct(one, other)[:MAX_NAMES]


def _distinct(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """Give the names of both in their order; the same name in other letters is the same."""
    kept: dict[str, str] = {}
    for name in (*one, *other):
        kept.setdefault(name.casefold(), name)
    return tuple(kept.values())
