"""What a case says after an update, and after a repeated report was merged into it. Pure."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Final, Literal

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.input import MAX_NAMES, TEXT_FIELDS, SentCase

_LISTS: Final = ("related_services", "tags")

Replaceable = Literal["gaps", "values", "all"]
"""Which metadata an update replaces: unknown values only; single values too; lists too.

Where a list is not replaced, new names are added to it while there is room.
"""


def revised(
    content: CaseContent, sent: SentCase, *, replaceable: Replaceable = "values"
) -> CaseContent:
    """Return the content with what was sent; what was not sent, or is an empty list, stays."""
    before, new = content.metadata, sent.metadata
    metadata = united(before, new) if replaceable == "gaps" else united(new, before)
    for name in _LISTS:
        old_names, new_names = getattr(before, name), getattr(new, name)
        if not (new_names and replaceable == "all"):
            new_names = _united(old_names, new_names)
        metadata = replace(metadata, **{name: new_names})
    return replace(content, **sent.texts, metadata=metadata)


def without_room(before: CaseMetadata, new: CaseMetadata) -> tuple[str, ...]:
    """Return the names of the lists that cannot hold all names of both."""
    return tuple(
        f"metadata.{name}"
        for name in _LISTS
        if len(_distinct(getattr(before, name), getattr(new, name))) > MAX_NAMES
    )


def not_replaced(content: CaseContent, sent: SentCase) -> tuple[str, ...]:
    """Return the names of the single metadata values that were sent and differ from
    the known ones.
    """
    kept = united(content.metadata, sent.metadata)
    return tuple(
        f"metadata.{field.name}"
        for field in fields(CaseMetadata)
        if field.name not in _LISTS
        and getattr(sent.metadata, field.name)
        and getattr(kept, field.name) != getattr(sent.metadata, field.name)
    )


def united(one: CaseMetadata, other: CaseMetadata) -> CaseMetadata:
    """Return what both know together; on a contradiction the first one's value."""
    known = {
        field.name: getattr(one, field.name) or getattr(other, field.name)
        for field in fields(CaseMetadata)
    }
    lists = {name: _united(getattr(one, name), getattr(other, name)) for name in _LISTS}
    return CaseMetadata(**(known | lists))


def absorbed(own: CaseMetadata, reported: CaseMetadata) -> CaseMetadata:
    """Return a case's metadata after merging a report: gaps are filled, tags are added.

    Its services stay its own: with those of all reports it would fit a report that contradicts it.
    """
    services = own.related_services or reported.related_services
    return replace(united(own, reported), related_services=services)


def changed_fields(before: CaseContent, after: CaseContent) -> list[str]:
    """Return the names of the fields in which two contents differ."""
    old, new = before.metadata, after.metadata
    around = [field.name for field in fields(CaseMetadata)]
    return [
        *(name for name in TEXT_FIELDS if getattr(before, name) != getattr(after, name)),
        *(f"metadata.{name}" for name in around if getattr(old, name) != getattr(new, name)),
    ]


def _united(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return _distinct(one, other)[:MAX_NAMES]


def _distinct(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """Return the names of both in order; names that differ in case alone count once."""
    kept: dict[str, str] = {}
    for name in (*one, *other):
        kept.setdefault(name.casefold(), name)
    return tuple(kept.values())
