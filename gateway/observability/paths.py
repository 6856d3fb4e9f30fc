"""Paths as people see them: relative to the workspace, and nothing of where the server keeps its files."""

import os
import re
from collections.abc import Iterable
from pathlib import PurePath

HIDDEN = "[a path of the server]"

_GOES_ON = r"""[/\\](?=[^\s'"`,;:)\]}>])"""
_FULL_STOP = r"[/\\]?(?=\.(?!\w))"
_ENDS = r"[/\\]?(?![\w-]|\.\w)"
_REST = r"""(?:[/\\][^\s'"`,;:)\]}>]*)?(?![\w-])"""


class PathView:
    """Rewrites the paths in a text. The workspace may lie in a folder of the server: it comes first."""

    def __init__(self, workspace: Iterable[str], server: Iterable[str] = ()) -> None:
        ends = rf"(?P<below>{_GOES_ON})|(?P<stop>{_FULL_STOP})|{_ENDS}"
        self._workspace = re.compile(rf"(?<!\w)(?:{_any_of(workspace)})(?:{ends})")
        self._server = re.compile(rf"(?<!\w)(?:{_any_of(server)}){_REST}")

    def shown(self, text: str) -> str:
        """Return a text with the workspace's paths made relative and the server's left out."""
        return self._server.sub(HIDDEN, self._workspace.sub(_from_workspace, text))


def _any_of(folders: Iterable[str]) -> str:
    """Return a pattern for the folders, the longest first; of none it matches nothing."""
    longest_first = sorted({one.rstrip("/\\") for one in folders if len(one) > 1}, key=len)[::-1]
    return "|".join(map(re.escape, longest_first)) or "(?!)"


def _from_workspace(found: re.Match[str]) -> str:
    if found["below"]:
        return ""
    return "." if found["stop"] is None else "the workspace"


def make_path_view_blocking(workspace: PurePath, server: Iterable[PurePath] = ()) -> PathView:
    """Make the view of a server, each folder known by its spelling and by where its links lead."""
    return PathView(_spellings([workspace]), _spellings(server))


def _spellings(folders: Iterable[PurePath]) -> set[str]:
    # abspath tidies the spelling and follows no link
    return {form(one) for one in folders for form in (os.path.abspath, os.path.realpath)}
