"""Whose memory something is, and which part of it.

The owner is who the server knows the caller to be; it is never read from an argument, and nothing
is found, shown or changed across owners. The labels only narrow: a query that names one finds what
carries just that (and what carries none, where it says so), a query that names none finds everything of
the owner's. What belongs to the
workspace (its notes) is everybody's who works in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LABELS: Final = ("user_id", "agent_id", "project_id", "workflow_id", "app_code", "environment")

WORKSPACE_OWNER: Final = "*workspace"
"""Owns what every user of the server may see; no user's name looks like it."""


def is_users_name(name: str) -> bool:
    """Whether a user may be called so: not what stands for the workspace or nobody, and not nothing."""
    return bool(name.strip()) and name.isprintable() and not name.startswith("*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """An owner and labels; as a query's, None means any, as an item's, that it carries none."""

    owner_id: str
    user_id: str | None = None
    agent_id: str | None = None
    project_id: str | None = None
    workflow_id: str | None = None
    app_code: str | None = None
    environment: str | None = None

    @property
    def labels(self) -> dict[str, str]:
        """The labels that are set, by name."""
        named = ((name, getattr(self, name)) for name in LABELS)
        return {name: value for name, value in named if value is not None}

    @property
    def wanted(self) -> Mapping[str, tuple[str | None, ...]]:
        """What a query with this scope wants of each label that it names; None: that it is not there."""
        return {name: (value,) for name, value in self.labels.items()}

    def covers(self, other: "Scope") -> bool:
        """Whether a query with this scope may see what has the other one."""
        theirs = other.labels
        return other.owner_id in self.readable_owners and all(
            theirs.get(name) in values for name, values in self.wanted.items()
        )

    @property
    def readable_owners(self) -> tuple[str, ...]:
        """Whose items a query with this scope may see."""
        return (self.owner_id, WORKSPACE_OWNER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope(Scope):
    """A query's scope that some of its labels narrow less: what lacks them holds everywhere."""

    or_without: tuple[str, ...] = ()
    """Labels of which it wants this value or none; only cases can be searched so."""

    @property
    def wanted(self) -> Mapping[str, tuple[str | None, ...]]:
        """What it wants of each label that it names; None: that it is not there."""
        return {
            name: (value, None) if name in self.or_without else (value,)
            for name, value in self.labels.items()
        }
