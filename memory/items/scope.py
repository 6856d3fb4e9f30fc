"""Owner and labels of what is remembered.

The server sets the owner; no argument does, and nothing is found, shown or changed across owners. A
query with a label finds items with this label (and, if it says so, items without); a query without
labels finds all of the owner's items. The workspace's notes belong to everybody who works in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LABELS: Final = ("user_id", "agent_id", "project_id", "workflow_id", "app_code", "environment")

WORKSPACE_OWNER: Final = "*workspace"
"""Owner of what every user may see; no user can have this name."""


def is_users_name(name: str) -> bool:
    """Return whether a user may have this name; names of the form `*…` are reserved."""
    return bool(name.strip()) and name.isprintable() and not name.startswith("*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """An owner and labels; None means any in a query, and no label in an item."""

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
        """The accepted values of each label of a query; None: the label may be absent."""
        return {name: (value,) for name, value in self.labels.items()}

    def covers(self, other: "Scope") -> bool:
        """Return whether a query with this scope sees items of the other one."""
        return other.owner_id in self.readable_owners and all(
            getattr(other, name) in values for name, values in self.wanted.items()
        )

    @property
    def readable_owners(self) -> tuple[str, ...]:
        """The owners whose items a query sees."""
        return (self.owner_id, WORKSPACE_OWNER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope(Scope):
    """A query's scope that also accepts items without some of its labels."""

    or_without: tuple[str, ...] = ()
    """Labels that may be absent: `project_id`, and of cases any."""

    @property
    def wanted(self) -> Mapping[str, tuple[str | None, ...]]:
        """The accepted values of each label; None: the label may be absent."""
        return {
            name: (value, None) if name in self.or_without else (value,)
            for name, value in self.labels.items()
        }
