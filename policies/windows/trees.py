"""Inspection of folders for Windows command lines, where every link is followed."""

import os
from collections.abc import Callable
from pathlib import Path

from policies.paths.protected import find_acting, find_secret
from policies.paths.trees import Entry, TreeInspector, is_link, is_packaged, refuse_turn
from policies.paths.workspace import Place
from policies.verdict import Deny
from policies.windows.workspace import WindowsWorkspace


class WindowsTreeInspector(TreeInspector):
    """A `TreeInspector` that refuses every link that would lead outside after a move or copy."""

    def __init__(self, workspace: WindowsWorkspace) -> None:
        super().__init__(workspace)
        self.workspace: WindowsWorkspace = workspace

    def inspect_matches(self, place: Place, takes: Callable[[str], bool]) -> Deny | None:
        """Refuse removing the files below that `takes` picks by name, if one is protected."""

        def judge(entry: Entry) -> Deny | None:
            whole = (*place.real_parts, *entry.parts)
            if entry.is_folder or is_packaged(whole) or not takes(entry.parts[-1]):
                return None
            protected = find_secret(whole) or find_acting(whole)
            return None if protected is None else self.refuse_inside(place, entry)

        return self.inspect(place, judge)

    def find_turn_fault(
        self, link: str, landing: Place, below: tuple[str, ...] = ()
    ) -> Deny | None:
        """Refuse a link that would lead outside from below `landing`, even if it already does."""
        if not is_link(link):
            return None
        lands = os.path.join(landing.absolute, *below)  # noqa: PTH118 - the spelling
        target = str(Path(link).readlink()).removeprefix("\\\\?\\")
        turned = os.path.join(os.path.dirname(lands), target)  # noqa: PTH118, PTH120 - the spelling
        if isinstance(self.workspace.locate(os.path.normpath(turned)), Place):
            return None
        return refuse_turn(link)
