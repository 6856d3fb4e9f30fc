"""The profile: a short text about a person that is always in their context.

The person edits it; lasting facts add a line each, and take it out or change it when they are
forgotten or superseded. A line that the person has changed is theirs and stays.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory.text.lines import flat

MAX_PROFILE_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A person's profile; at most 2 000 characters."""

    text: str = ""
    updated_at: datetime | None = None
    """None if there never was one."""


def with_fact(profile: str, fact: str, instead_of: str | None = None) -> str | None:
    """Return the profile with a fact's line, in the place of an older fact's; None if there is no
    room.
    """
    line = _line(fact)
    lines = profile.splitlines()
    old = None if instead_of is None else _line(instead_of)
    if line in lines:
        return "\n".join(known for known in lines if known == line or known != old)
    changed = [line if known == old else known for known in lines]
    if old not in lines:
        changed.append(line)
    text = "\n".join(changed)
    return text if len(text) <= MAX_PROFILE_CHARS else None


def without_fact(profile: str, fact: str) -> str:
    """Return the profile without a fact's line."""
    return "\n".join(line for line in profile.splitlines() if line != _line(fact))


def _line(fact: str) -> str:
    return f"- {flat(fact)}"
