"""Spellings of a path that Windows reads as something other than plain names below a folder.

Devices, alternate streams, short names, trailing dots, shares, namespaces and providers are refused by their
spelling, whether or not they would lead outside.
"""

import re
import unicodedata

from policies.denials import denied
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
        raise denied("path_empty")
    if has_hidden_character(path):
        raise denied("path_characters")
    encoded = unify(path).encode()
    if len(encoded) > MAX_PATH_BYTES or max(map(len, encoded.split(b"/"))) > MAX_NAME_BYTES:
        raise denied("path_too_long")
    if path.startswith("~"):
        raise denied("path_tilde")


def refuse_rooted(path: str) -> Refused:
    """Return the denial of an absolute or qualified path that is not below the root."""
    unified = unify(path)
    if unified.startswith(("//?/", "//./")):
        return denied("path_namespace")
    if unified.startswith("/??/"):
        return denied("path_namespace.rooted")
    if unified.startswith("//"):
        return denied("path_share", show(path))
    if unified.startswith("/"):
        return denied("path_rooted", show(path))
    return denied("path_drive", show(path))


def is_rooted(unified: str) -> bool:
    """Return whether a path starts from a drive, a share or a namespace."""
    return unified.startswith("/") or (_DRIVE.match(unified) is not None and unified[2:3] == "/")


def check_colon(path: str) -> None:
    """Refuse a colon below the root: a drive, a provider or a stream, all of them elsewhere."""
    if ":" not in path:
        return
    unified = unify(path)
    if _DRIVE.match(unified) and ":" not in unified[2:]:
        raise denied("path_drive_relative", show(path))
    qualifier = unified.partition(":")[0].rpartition("/")[2]
    if qualifier.casefold() in _PROVIDERS:
        raise denied("path_provider", show(path))
    raise denied("path_stream", show(path))


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
        raise denied("path_device", show(name))
    if name.endswith((".", " ")) or name.startswith(" "):
        raise denied("path_trailing", show(name))
    if _SHORT_NAME.search(name):
        raise denied("path_short_name", show(name))
    if _find_lookalike(name):
        raise denied("path_lookalike", show(name))
    if not _ILLEGAL.isdisjoint(name):
        raise denied("path_characters.name", show(name))
