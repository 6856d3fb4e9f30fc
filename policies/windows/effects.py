"""What an allowed Windows command does to each place, and whether it may.

Links are followed throughout: cmd empties the folder that a link names, and PowerShell's editions differ.
"""

from collections.abc import Sequence
from pathlib import Path

from policies.paths.workspace import Place
from policies.verdict import Deny
from policies.windows.trees import WindowsTreeInspector
from policies.windows.workspace import WindowsWorkspace

ROOT_REMOVED = Deny(
    "workspace_root",
    "The workspace itself must not be deleted, emptied or moved.",
    "Name the files inside it.",
    interrupt=True,  # an attempt to take everything away ends the run
)


def fold_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Return a path in the form in which it is compared."""
    return tuple(part.casefold() for part in parts)


def find_here(workspace: WindowsWorkspace) -> tuple[str, ...]:
    """Return the working directory in the form in which it is compared."""
    place = workspace.locate(workspace.cwd)
    return () if isinstance(place, Deny) else fold_parts(place.real_parts)


def _judge_removal(inspector: WindowsTreeInspector, place: Place) -> Deny | None:
    """Judge removing a file, or a folder with its content."""
    if place.is_root:
        return ROOT_REMOVED
    here = find_here(inspector.workspace)
    if here[: len(place.real_parts)] == fold_parts(place.real_parts):
        return Deny(
            "working_directory",
            "The command would remove the folder that it runs in.",
            "Name the files inside it.",
        )
    return place.find_write_fault() or inspector.inspect_removal(place)


def judge_removals(inspector: WindowsTreeInspector, places: Sequence[Place]) -> Deny | None:
    """Judge removing several things."""
    faults = (_judge_removal(inspector, place) for place in places)
    return next((fault for fault in faults if fault is not None), None)


def _find_turn_fault(inspector: WindowsTreeInspector, source: Place, landing: Place) -> Deny | None:
    itself = inspector.workspace.locate(source.absolute, follow=False)
    return itself if isinstance(itself, Deny) else inspector.find_turn_fault(itself.real, landing)


def judge_move(inspector: WindowsTreeInspector, source: Place, landing: Place) -> Deny | None:
    """Judge moving a file or folder."""
    return (
        _judge_removal(inspector, source)
        or landing.find_write_fault()
        or _find_turn_fault(inspector, source, landing)
        or inspector.inspect_landing(source, landing)
    )


def _judge_copy(
    inspector: WindowsTreeInspector, source: Place, target: Place, landing: Place
) -> Deny | None:
    """Judge copying `source` to `landing`, which is `target` or lies in it."""
    fault = (
        source.find_read_fault()
        or landing.find_change_fault()
        or _find_turn_fault(inspector, source, landing)
    )
    if fault is not None or not Path(source.real).is_dir():
        return fault
    return (
        inspector.inspect_landing(source, landing)
        or inspector.inspect_links(source)
        or inspector.inspect_overwritten(landing)
        or (None if target.is_root else inspector.inspect_links(target))
    )


def _find_landing(workspace: WindowsWorkspace, source: Place, target: Place) -> Place | Deny:
    """Return where one source will stand: in the target if that is a folder, else at it."""
    if not Path(target.real).is_dir():
        return target
    if source.is_root:
        return Deny(
            "source_name",
            "The workspace itself does not say under which name it should land.",
            "Name the files and folders inside it.",
        )
    return workspace.locate(f"{target.absolute}/{source.parts[-1]}")


def judge_transfers(
    inspector: WindowsTreeInspector, sources: Sequence[Place], target: Place, *, moves: bool
) -> Deny | None:
    """Judge moving or copying several things to one target."""
    for source in sources:
        if moves and source.is_root:
            return ROOT_REMOVED
        landing = _find_landing(inspector.workspace, source, target)
        if isinstance(landing, Deny):
            return landing
        if moves:
            fault = judge_move(inspector, source, landing)
        else:
            fault = _judge_copy(inspector, source, target, landing)
        if fault is not None:
            return fault
    return None
