"""The places that the names of one command stand for: existing ones, those a pattern takes, new ones."""

import os
from pathlib import Path

from policies.denials import denied
from policies.paths.workspace import Place
from policies.visible_text import show
from policies.windows.effects import find_here, fold_parts
from policies.windows.wildcards import Budget, Expansion, expand, has_wildcard
from policies.windows.workspace import WindowsWorkspace


class Operands:
    """Locates the names of one command, and records what they touch."""

    def __init__(self, workspace: WindowsWorkspace) -> None:
        self.workspace = workspace
        self.touched: list[str] = []
        self._budget = Budget()

    def gather(self, text: str, *, sweeps: bool, is_literal: bool = False) -> tuple[Place, ...]:
        """Return the existing places that a name or a pattern stands for.

        With `sweeps` a pattern must not take everything at the root or in the working directory.
        """
        if is_literal or not has_wildcard(text):
            return self._gather_one(text)
        expansion = expand(text, self.workspace, self._budget)
        if sweeps:
            expansion.base.check_write()
            _check_sweep(expansion, self.workspace)
        else:
            expansion.base.check_read()
        self.touched += (place.absolute for place in expansion.places)
        return expansion.places

    def _gather_one(self, path: str) -> tuple[Place, ...]:
        place = self.workspace.locate(path)
        if not os.path.lexists(place.real):
            raise denied("source_missing", show(place.given))
        self.touched.append(place.absolute)
        return (place,)

    def target(self, path: str, *, is_deep: bool = False) -> Place:
        """Locate what is to be made or written; its folder must exist unless `is_deep`."""
        self.workspace.check_root(path)
        if has_wildcard(path):
            raise denied("target_pattern.target", show(path))
        place = self.workspace.locate(path)
        ends_as_folder = place.given.endswith("/")
        folder = Path(place.real) if ends_as_folder else Path(place.real).parent
        if is_deep and ".." in place.given.split("/"):
            raise denied("target_parent", show(place.given))
        if not is_deep and not folder.is_dir():
            raise denied("folder_missing", show(place.given))
        self.touched.append(place.absolute)
        place.check_change()
        return place


def _check_sweep(expansion: Expansion, workspace: WindowsWorkspace) -> None:
    """Refuse taking everything at the root or in the working directory."""
    base = expansion.base
    if not base.is_root and fold_parts(base.real_parts) != find_here(workspace):
        return
    if expansion.names_nothing or _sweeps_all(expansion):
        raise denied("glob_root.sweep")


def _sweeps_all(expansion: Expansion) -> bool:
    visible = {p.name for p in Path(expansion.base.real).iterdir() if not p.name.startswith(".")}
    depth = len(expansion.base.parts)
    hit = {place.parts[depth] for place in expansion.places if len(place.parts) > depth}
    return len(visible) > 1 and visible <= hit
