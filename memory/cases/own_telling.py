"""What a case itself says of its surroundings, apart from what reports that were merged added. Pure.

The case names the services and the like of all of them together, and so fits a telling that is at odds with
what it told itself.
"""

from dataclasses import fields, replace
from typing import Any

from memory.cases.case import Case, CaseContent, CaseMetadata


def own_telling(case: Case) -> CaseContent:
    """Give what a case says without what reports added to it."""
    return replace(case.content, metadata=case.own_metadata or case.content.metadata)


def after_report(before: Case, after: Case) -> Case:
    """Give a case that a report went into, its own telling kept."""
    if after.content == before.content:
        return after
    return replace(after, own_metadata=own_telling(before).metadata)


def after_rewriting(before: Case, after: Case) -> Case:
    """Give a case that was rewritten: what is new in its surroundings is of its own telling, too."""
    if before.own_metadata is None:
        return after
    now = {one.name: _now(one.name, before, after) for one in fields(CaseMetadata)}
    return replace(after, own_metadata=CaseMetadata(**now))


def _now(name: str, before: Case, after: Case) -> Any:
    own, was, is_now = (
        getattr(metadata, name)
        for metadata in (
            own_telling(before).metadata,
            before.content.metadata,
            after.content.metadata,
        )
    )
    if isinstance(is_now, tuple):
        return tuple(one for one in is_now if one in own or one not in was)
    return own if is_now == was else is_now
