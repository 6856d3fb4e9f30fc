"""How what tools were asked and said is told to people and stored: the one way out for such texts.

No path of the server above the workspace, no secret, nothing that UTF-8 cannot carry, and nothing
endless passes here.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from gateway.jsonsafe import clean_text, json_safe, json_text
from gateway.observability.masking import mask_leaves

SUMMARY_CHARS = 160
OUTPUT_CHARS = 8_000
INPUT_CHARS = 8_000

_READ_CHARS = 32_000
"""What is looked through for secrets on the event loop; the rest is left out before."""

_KEYS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "skill",
    "url",
    "query",
    "description",
    "prompt",
)

_GOES_ON = r"""[/\\](?=[^\s'"`,;:)\]}>])"""
_FULL_STOP = r"[/\\]?(?=\.(?!\w))"
_ENDS = r"[/\\]?(?![\w-]|\.\w)"

Mask = Callable[[str], str]


class Teller:
    """Makes texts fit to be shown. Made once for a workspace."""

    def __init__(self, roots: tuple[str, ...], mask: Mask) -> None:
        self.mask = mask
        self._root = _root_pattern(roots)

    def text(self, text: str) -> str:
        """Mask secrets and tell paths as they are seen from the workspace."""
        return self.mask(self._root.sub(_from_workspace, clean_text(text)))

    def clipped(self, text: str, limit: int = OUTPUT_CHARS) -> str:
        """Give a long text's head and tail; a secret at the cut is masked before it is cut."""
        return clip(self.text(clip(text, _READ_CHARS)), limit)

    def summary(self, tool_input: Mapping[str, Any]) -> str:
        """Say in one line what a call is about: its command, file or pattern."""
        for key in _KEYS:
            value = tool_input.get(key)
            if isinstance(value, str) and value.strip():
                return self._line(value)
        return self._line(json_text(tool_input)) if tool_input else ""

    def input(self, tool_input: Mapping[str, Any]) -> dict[str, Any]:
        """Give a tool's input with every text in it fit to be shown, and what is under a telling key."""
        shown = {str(key): self._value(value) for key, value in json_safe(tool_input).items()}
        masked: dict[str, Any] = mask_leaves(shown, self.mask)
        return masked

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self.clipped(value, INPUT_CHARS)
            case list():
                return [self._value(one) for one in value]
            case dict():
                return {key: self._value(one) for key, one in value.items()}
            case _:
                return value

    def _line(self, text: str) -> str:
        line = " ".join(self.text(clip(text, _READ_CHARS)).split())
        return line if len(line) <= SUMMARY_CHARS else f"{line[: SUMMARY_CHARS - 1]}…"


def make_teller_blocking(workspace: PurePath, mask: Mask) -> Teller:
    """Make the teller of a workspace, known by its spelling and by where its links lead."""
    absolute = os.path.abspath(workspace)  # noqa: PTH100  tidies the spelling, follows no link
    return Teller((absolute, os.path.realpath(workspace)), mask)


def clip(text: str, limit: int = OUTPUT_CHARS) -> str:
    """Keep head and tail of a long text and say how much is left out between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _root_pattern(roots: tuple[str, ...]) -> re.Pattern[str]:
    """Match a root as a whole folder's name: what goes on below it, or the root alone."""
    longest_first = sorted({one.rstrip("/\\") for one in roots if len(one) > 1}, key=len)[::-1]
    names = "|".join(map(re.escape, longest_first)) or "(?!)"
    ends = rf"(?P<below>{_GOES_ON})|(?P<stop>{_FULL_STOP})|{_ENDS}"
    return re.compile(rf"(?<!\w)(?:{names})(?:{ends})")


def _from_workspace(found: re.Match[str]) -> str:
    if found["below"]:
        return ""
    return "." if found["stop"] is None else "the workspace"
