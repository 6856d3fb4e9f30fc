"""Places that a command names, located for one kind of access: each is refused unless it is allowed."""

import os
import stat
from pathlib import Path

from policies.paths.workspace import Place, Workspace
from policies.verdict import Deny
from policies.visible_text import show


def locate_read(workspace: Workspace, operand: str) -> Place | Deny:
    """Find a path that will be looked at, or refuse it."""
    place = workspace.locate(operand)
    return place if isinstance(place, Deny) else place.find_read_fault() or place


def locate_content(workspace: Workspace, operand: str) -> Place | Deny:
    """Find a file whose content will be read, or refuse it; devices have no end, or act on being read."""
    place = locate_read(workspace, operand)
    if isinstance(place, Deny) or not _is_device(Path(place.real)):
        return place
    return Deny("special_file", f"{show(operand)} is a device.", "Name a file with text in it.")


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # what is not there is told by the command itself
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode)


def locate_made(workspace: Workspace, operand: str) -> Place | Deny:
    """Find a folder that will be made with all that is missing above it, or refuse it.

    A missing folder before `..` would be made, too, though the tidied path does not show it.
    """
    names = operand.split("/")
    for i, name in enumerate(names):
        above = "/".join(names[:i])
        if name == ".." and above and not os.path.lexists(workspace.join(above)):
            return Deny(
                "parents_spelling",
                f"{show(operand)} would make more folders than is plain to see.",
                "Write the path without ..",
            )
    return locate_written(workspace, operand)


def locate_removed(workspace: Workspace, operand: str) -> Place | Deny:
    """Find what will be deleted or moved away, a link standing for itself, or refuse it."""
    place = workspace.locate(operand, follow=False)
    if isinstance(place, Deny):
        return place
    if place.is_root:
        return Deny(
            "workspace_root",
            "The workspace itself must not be deleted or moved.",
            "Name the files inside it.",
            interrupt=True,  # whoever tries to take everything away is stopped, not corrected
        )
    if _holds_cwd(workspace, place):
        return Deny(
            "working_directory",
            "The command would remove the folder that it runs in.",
            "Name what is in it.",
        )
    return place.find_write_fault() or place


def _holds_cwd(workspace: Workspace, place: Place) -> bool:
    here = os.path.realpath(workspace.cwd)
    return here == place.real or here.startswith(f"{place.real}/")


def locate_written(workspace: Workspace, operand: str) -> Place | Deny:
    """Find what will be made or changed, or refuse it."""
    place = workspace.locate(operand)
    return place if isinstance(place, Deny) else place.find_change_fault() or place
