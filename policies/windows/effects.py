"""What an allowed command does to each place, whichever shell runs it, and whether it may.

Links are followed throughout: cmd empties the folder that a link names, and PowerShell's editions differ.
"""

from collections.abc import Sequence
from pathlib import Path

from policies.paths.workspace import Place
from policies.verdict import Deny
from policies.windows.trees import TreeInspector
from policies.windows.workspace import WindowsWorkspace


def refuse_root() -> Deny:
    """Refuse taking the workspace itself away."""
    return Deny(
        "workspace_root",
        "The workspace itself must not be deleted, emptied or moved.",
        "Name the files inside it.",
        interrupt=True,  # whoever tries to take everything away is stopped, not corrected
    )


def fold_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Give a path in the form in which it is compared."""
    return tuple(part.casefold() for part in parts)


def find_here(workspace: WindowsWorkspace) -> tuple[str, ...]:
    """Give where the command runs, in the form in which it is compared."""
    place = workspace.locate(workspace.cwd)
    return () if isinstance(place, Deny) else fold_parts(place.real_parts)


def judge_removal(inspector: TreeInspector, place: Place) -> Deny | None:
    """Judge removing a file, or a folder with all that it holds."""
    if place.is_root:
        return refuse_root()
    here = find_here(inspector.workspace)
    if here[: len(place.real_parts)] == fold_parts(place.real_parts):
        return Deny(
            "working_directory",
            "The command would remove the folder that it runs in.",
            "Name the files inside it.",
        )
    return place.find_write_fault() or inspector.inspect_removal(place)


def judge_move(inspector: TreeInspector, source: Place, landing: Place) -> Deny | None:
    """Judge a file or folder going from one place to another."""
    fault = judge_removal(inspector, source) or landing.find_write_fault()
    return (
        fault
        or inspector.inspect_turn(source, landing)
        or inspector.inspect_landing(source, landing)
    )


def judge_copy(
    inspector: TreeInspector, source: Place, target: Place, landing: Place
) -> Deny | None:
    """Judge what stands at `source` being written again at `landing`, which is in or is `target`."""
    fault = source.find_read_fault() or landing.find_change_fault()
    fault = fault or inspector.inspect_turn(source, landing)
    if fault is not None or not Path(source.real).is_dir():
        return fault
    fault = inspector.inspect_landing(source, landing) or inspector.inspect_links(source)
    fault = fault or inspector.inspect_overwritten(landing)
    return fault or (None if target.is_root else inspector.inspect_links(target))


def find_landing(workspace: WindowsWorkspace, source: Place, target: Place) -> Place | Deny:
    """Find where one source will stand: in the target where that is a folder, else at it."""
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
    inspector: TreeInspector, sources: Sequence[Place], target: Place, *, moves: bool
) -> Deny | None:
    """Judge moving or copying several things to one target."""
    for source in sources:
        if moves and source.is_root:
            return refuse_root()
        landing = find_landing(inspector.workspace, source, target)
        if isinstance(landing, Deny):
            return landing
        fault = (
            judge_move(inspector, source, landing)
            if moves
            else judge_copy(inspector, source, target, landing)
        )
        if fault is not None:
            return fault
    return None
