"""What an allowed Windows command does to each place: whatever it may not do is refused.

Links are followed throughout: cmd empties the folder that a link names, and PowerShell's editions differ.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from policies.denials import denied
from policies.paths.trees import TreeInspector, is_link, refuse_turn
from policies.paths.workspace import Place
from policies.verdict import Refused
from policies.windows.workspace import WindowsWorkspace


class WindowsTreeInspector(TreeInspector):
    """A `TreeInspector` that refuses every link that would lead outside after a move or copy."""

    def __init__(self, workspace: WindowsWorkspace) -> None:
        super().__init__(workspace)
        self.workspace: WindowsWorkspace = workspace

    def check_turn(self, link: str, landing: Place, below: tuple[str, ...] = ()) -> None:
        """Refuse a link that would lead outside from below `landing`, even if it already does."""
        if not is_link(link):
            return
        lands = os.path.join(landing.absolute, *below)  # noqa: PTH118 - the spelling
        target = str(Path(link).readlink()).removeprefix("\\\\?\\")
        turned = os.path.join(os.path.dirname(lands), target)  # noqa: PTH118, PTH120 - the spelling
        if self.workspace.find(os.path.normpath(turned)) is None:
            raise refuse_turn(link)


def refuse_root() -> Refused:
    """Return the denial of an attempt to take everything away, which ends the run."""
    return denied("workspace_root.root", interrupt=True)


def fold_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Return a path in the form in which it is compared."""
    return tuple(part.casefold() for part in parts)


def find_here(workspace: WindowsWorkspace) -> tuple[str, ...]:
    """Return the working directory in the form in which it is compared."""
    place = workspace.find(workspace.cwd)
    return () if place is None else fold_parts(place.real_parts)


def judge_removal(inspector: WindowsTreeInspector, place: Place) -> None:
    """Judge removing a file, or a folder with its content."""
    if place.is_root:
        raise refuse_root()
    here = find_here(inspector.workspace)
    if here[: len(place.real_parts)] == fold_parts(place.real_parts):
        raise denied("working_directory.removal")
    place.check_write()
    inspector.inspect_removal(place)


def _check_turn(inspector: WindowsTreeInspector, source: Place, landing: Place) -> None:
    itself = inspector.workspace.locate(source.absolute, follow=False)
    inspector.check_turn(itself.real, landing)


def judge_move(inspector: WindowsTreeInspector, source: Place, landing: Place) -> None:
    """Judge moving a file or folder."""
    judge_removal(inspector, source)
    landing.check_write()
    _check_turn(inspector, source, landing)
    inspector.inspect_move(source, landing)


def _judge_copy(
    inspector: WindowsTreeInspector, source: Place, target: Place, landing: Place
) -> None:
    """Judge copying `source` to `landing`, which is `target` or lies in it."""
    source.check_read()
    landing.check_change()
    _check_turn(inspector, source, landing)
    if not Path(source.real).is_dir():
        return
    inspector.inspect_landing(source, landing)
    inspector.inspect_links(source)
    inspector.inspect_overwritten(landing)
    if not target.is_root:
        inspector.inspect_links(target)


def _find_landing(workspace: WindowsWorkspace, source: Place, target: Place) -> Place:
    """Return where one source will stand: in the target if that is a folder, else at it."""
    if not Path(target.real).is_dir():
        return target
    if source.is_root:
        raise denied("source_name.landing")
    return workspace.locate(f"{target.absolute}/{source.parts[-1]}")


def judge_transfers(
    inspector: WindowsTreeInspector, sources: Sequence[Place], target: Place, *, moves: bool
) -> None:
    """Judge moving or copying several things to one target."""
    for source in sources:
        if moves and source.is_root:
            raise refuse_root()
        landing = _find_landing(inspector.workspace, source, target)
        if moves:
            judge_move(inspector, source, landing)
        else:
            _judge_copy(inspector, source, target, landing)
