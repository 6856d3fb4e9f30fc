"""Spellings of a path that Windows reads as something other than plain names below a folder.

Devices, alternate streams, short names, trailing dots, shares, namespaces and providers are refused by their
spelling, whether or not they would lead outside.
"""

import re
import unicodedata

from policies.paths.workspace import MAX_NAME_BYTES, MAX_PATH_BYTES
from policies.verdict import Refused
from policies.visible_text import has_hidden_character, show

_PLAIN = "Write the path plainly, relative to the workspace, as in src\\main.py."
_DEVICES = frozenset(
    {
        *("con", "nul", "aux", "prn", "conin$", "conout$", "clock$"),
        *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789"),
    }
)
_PROVIDERS = frozenset(
    {
        *("alias", "cert", "env", "function", "hkcu", "hklm", "hkcr", "hku", "hkcc", "registry"),
        *("temp", "variable", "wsman", "filesystem", "certificate", "environment", "feed", "gac"),
    }
)
_SHORT_NAME = re.compile(r"~\d")
_ILLEGAL = frozenset('<>|"')
_DRIVE = re.compile(r"[A-Za-z]:")
_SWAPPED = frozenset("/\\\"'`$%")
"""What a look-alike may become in an old code page."""
_YEN_AND_WON = frozenset("¥₩￥￦")
"""They stand for a backslash in Japanese and Korean code pages."""


def unify(path: str) -> str:
    """Return a path with / for every separator, which is how paths are compared here."""
    return path.replace("\\", "/")


def check_text(path: str) -> None:
    """Refuse a path that is empty, too long or not plainly visible."""
    if not path:
        raise Refused("path_empty", "The path is empty.", "Name a file or folder.")
    if has_hidden_character(path):
        raise Refused("path_characters", "The path holds control or invisible characters.", _PLAIN)
    encoded = unify(path).encode()
    if len(encoded) > MAX_PATH_BYTES or max(map(len, encoded.split(b"/"))) > MAX_NAME_BYTES:
        raise Refused("path_too_long", "The path is longer than the system allows.", None)
    if path.startswith("~"):
        raise Refused("path_tilde", "A path that begins with ~ may mean a home folder.", _PLAIN)


def refuse_rooted(path: str) -> Refused:
    """Return the denial of an absolute or qualified path that is not below the root."""
    unified = unify(path)
    if unified.startswith(("//?/", "//./")):
        return Refused("path_namespace", "Paths with \\\\?\\ or \\\\.\\ skip all checks.", _PLAIN)
    if unified.startswith("/??/"):
        return Refused("path_namespace", "Paths with \\??\\ skip all checks.", _PLAIN)
    if unified.startswith("//"):
        return Refused("path_share", f"{show(path)} names a share on the network.", _PLAIN)
    if unified.startswith("/"):
        return Refused("path_rooted", f"{show(path)} starts from the root of a drive.", _PLAIN)
    return Refused("path_drive", f"{show(path)} is on a drive and outside the workspace.", _PLAIN)


def is_rooted(unified: str) -> bool:
    """Return whether a path starts from a drive, a share or a namespace."""
    return unified.startswith("/") or (_DRIVE.match(unified) is not None and unified[2:3] == "/")


def check_colon(path: str) -> None:
    """Refuse a colon below the root: a drive, a provider or a stream, all of them elsewhere."""
    if ":" not in path:
        return
    unified = unify(path)
    if _DRIVE.match(unified) and ":" not in unified[2:]:
        raise Refused(
            "path_drive_relative",
            f"{show(path)} starts from wherever that drive stands.",
            _PLAIN,
        )
    qualifier = unified.partition(":")[0].rpartition("/")[2]
    if qualifier.casefold() in _PROVIDERS:
        raise Refused(
            "path_provider",
            f"{show(path)} names a store of PowerShell's, not a file.",
            _PLAIN,
        )
    raise Refused(
        "path_stream",
        f"{show(path)} holds a colon: a hidden stream of a file, or another store.",
        "Leave out the colon and what follows.",
    )


def _is_device(name: str) -> bool:
    stem = unicodedata.normalize("NFKC", name).partition(".")[0]
    return stem.partition(":")[0].rstrip(" ").casefold() in _DEVICES


def _find_lookalike(name: str) -> bool:
    normal = unicodedata.normalize("NFKC", name)
    swapped = any(
        not _SWAPPED.isdisjoint(unicodedata.normalize("NFKC", char))
        for char in name
        if not char.isascii()
    )
    return (
        swapped or not _YEN_AND_WON.isdisjoint(name) or (normal != name and normal in {".", ".."})
    )


def check_name(name: str) -> None:
    """Refuse one component that Windows reads as something other than its letters."""
    if name in {"", ".", ".."}:
        return
    if _is_device(name):
        raise Refused(
            "path_device", f"{show(name)} is a device in every folder.", "Use another name."
        )
    if name.endswith((".", " ")) or name.startswith(" "):
        raise Refused(
            "path_trailing",
            f"{show(name)} begins or ends with characters that Windows drops.",
            "Leave out spaces and dots at the ends of names.",
        )
    if _SHORT_NAME.search(name):
        raise Refused(
            "path_short_name",
            f"{show(name)} may be the short name of another file.",
            "Write the file's full name.",
        )
    if _find_lookalike(name):
        raise Refused(
            "path_lookalike",
            f"{show(name)} holds a character that passes for a separator, a quote or dots.",
            "Use plain letters, or rename the file by hand.",
        )
    if not _ILLEGAL.isdisjoint(name):
        raise Refused(
            "path_characters", f"{show(name)} holds a character no name may hold.", _PLAIN
        )
