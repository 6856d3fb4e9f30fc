"""Paths as clients see them: relative to the workspace, without the server's own folders."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePath

HIDDEN = "[a path of the server]"
_TOP_PARTS = 2

_GOES_ON = r"""[/\\](?=[^\s'"`,;:)\]}>])"""
_FULL_STOP = r"[/\\]?(?=\.(?!\w))"
_ENDS = r"[/\\]?(?![\w-]|\.\w)"
_REST = r"""(?:[/\\][^\s'"`,;:)\]}>]*)?(?![\w-])"""


class PathView:
    """Rewrites the paths in a text. The workspace goes first: it may be inside a folder of the
    server.
    """

    def __init__(self, workspace: Collection[str], server: Collection[str] = ()) -> None:
        ends = rf"(?P<below>{_GOES_ON})|(?P<stop>{_FULL_STOP})|{_ENDS}"
        self._workspace = re.compile(rf"(?<!\w)(?:{_any_of(workspace)})(?:{ends})")
        self._server = re.compile(rf"(?<!\w)(?:{_any_of(server)}){_REST}")
        above = {
            parent: up for folder in _spelled(workspace) for parent, up in _folders_above(folder)
        }
        self._above = re.compile(rf"(?<!\w)(?P<folder>{_any_of(above)})(?=[/\\])")
        self._ways_up = above
        folders = [*_spelled(workspace), *_spelled(server)]
        self._spaced = [folder for folder in folders if re.search(r"\s", folder)]

    def settled_chars(self, text: str) -> int:
        """Return how many characters of an unfinished text cannot belong to a folder's name.

        Only names with a blank count, because callers do not cut words.
        """
        lengths = (
            length
            for folder in self._spaced
            for length in range(len(folder), 0, -1)
            if text.endswith(folder[:length])
        )
        return len(text) - max(lengths, default=0)

    def shown(self, text: str) -> str:
        """Return a text with relative paths for the workspace and its siblings, and the server's
        hidden.
        """
        own = self._server.sub(HIDDEN, self._workspace.sub(_from_workspace, text))
        return self._above.sub(lambda found: self._ways_up[found["folder"]], own)


def _any_of(folders: Iterable[str]) -> str:
    """Return a pattern for the folders, the longest first; without folders it matches nothing."""
    longest_first = sorted(_spelled(folders), key=len)[::-1]
    return "|".join(map(re.escape, longest_first)) or "(?!)"


def _spelled(folders: Iterable[str]) -> set[str]:
    return {folder.rstrip("/\\") for folder in folders if len(folder) > 1}


def _folders_above(workspace: str) -> Iterator[tuple[str, str]]:
    """Yield the folders above the workspace with the relative path to each, except top ones such as
    `/home`.
    """
    for count, folder in enumerate(PurePath(workspace).parents, start=1):
        if len(folder.parts) > _TOP_PARTS:
            yield str(folder), "/".join([".."] * count)


def _from_workspace(found: re.Match[str]) -> str:
    if found["below"]:
        return ""
    return "." if found["stop"] is None else "the workspace"


def make_path_view_blocking(workspace: PurePath, server: Iterable[PurePath] = ()) -> PathView:
    """Return the view of a server's paths, each folder by its spelling and by
    its resolved links.
    """
    return PathView(_spellings([workspace]), _spellings(server))


def _spellings(folders: Iterable[PurePath]) -> set[str]:
    # abspath normalizes the spelling and follows no link
    return {form(folder) for folder in folders for form in (os.path.abspath, os.path.realpath)}
