"""Shared projects: folders beside the users' own that some of them may read, and some may write.

A file names them, one table a project:

    [handbook]
    path = "/srv/candor/handbook"
    read = ["*"]
    write = ["ada"]

A user who may write a project may read it. `*` is every user.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from policies.paths.workspace import ExtraDirectory
from policies.rule_file import RuleFile, Section, show_path
from policies.rules import find_overlap, is_in, read_directory
from policies.visible_text import show

EVERYBODY = "*"
_KEYS = ("path", "read", "write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder with the users who may read and write it."""

    path: Path
    """Absolute, with no link in it."""
    readers: frozenset[str]
    writers: frozenset[str]

    def directory_of(self, user: str) -> ExtraDirectory | None:
        """Return the folder with the rights of a user; None if the user has none."""
        writable = not self.writers.isdisjoint({user, EVERYBODY})
        if not writable and self.readers.isdisjoint({user, EVERYBODY}):
            return None
        return ExtraDirectory(path=self.path, writable=writable)


def load_projects(
    path: Path, *, taken: Collection[tuple[Path, str]], in_reach: Collection[Path]
) -> tuple[Project, ...]:
    """Return the projects that a file names.

    No project may overlap with another, with the file, or with what is `taken`, each with a word
    for it; and the file must not lie in what agents have `in_reach`. Raise `RulesError` if it
    cannot be used; the text names file, line and fix.
    """
    file = RuleFile(path, "projects file", "CANDOR_PROJECTS_FILE")
    mine = os.path.realpath(path)
    others = [(mine, "this file"), *((os.path.realpath(other), what) for other, what in taken)]
    projects = []
    for name in file.values:
        section = Section(file, name, _KEYS)
        project = _read_project(section)
        # by the strongest right that anybody has
        strongest = ExtraDirectory(path=project.path, writable=bool(project.writers))
        if found := find_overlap(strongest, others):
            shown, (other, what) = show(str(project.path)), found
            raise section.fault("path", "", "overlap", shown, what, show(other), "name")
        others.append((str(project.path), "the project"))
        projects.append(project)
    for folder in in_reach:
        if is_in(mine, os.path.realpath(folder)):
            raise file.fault(None, "in_reach", show_path(folder))
    return tuple(projects)


def _read_project(section: Section) -> Project:
    given = section.values.get("path")
    if given is None:
        raise section.fault("", "", "no_path", show(section.name))
    if not isinstance(given, str):
        raise section.fault("path", "", "not_a_text", "path")
    readers, writers = (frozenset(section.texts(key) or ()) for key in ("read", "write"))
    if not readers | writers:
        raise section.fault("", "", "no_users", show(section.name))
    path = read_directory(section, "path", given, writable=bool(writers))
    return Project(path=path, readers=readers, writers=writers)
