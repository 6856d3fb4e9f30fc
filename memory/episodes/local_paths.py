"""Shortens paths that only exist on one machine: below a home, a temporary or a mounted folder."""

import re
from typing import Final

_PART: Final = r"[^\s/\\'\"`:;,()\[\]{}<>|]+"
_LOCAL: Final = re.compile(
    rf"(?<![\w./\\~-])(?:/(?:home|Users|root|tmp|private|mnt|media|workspaces?|work|srv|var/folders)|[A-Za-z]:)"
    rf"(?:[/\\]{_PART})*?[/\\](?P<end>{_PART}(?:[/\\]{_PART})?)(?=$|[\s'\"`:;,()\[\]{{}}<>|]|[/\\](?!{_PART}))"
)


def without_local_paths(text: str) -> str:
    """Return a text in which only the last two parts of such a path are left, after `…/`."""
    return _LOCAL.sub(lambda found: f"…/{found['end']}", text)
