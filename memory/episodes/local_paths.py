"""Shortens paths that only exist on one machine: below a home, a temporary or a mounted folder."""

import re
from typing import Final

from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_LOCAL: Final = re.compile(_PATTERNS["local"])


def without_local_paths(text: str) -> str:
    """Return a text in which only the last two parts of such a path are left, after `…/`."""
    return _LOCAL.sub(lambda found: f"…/{found['end']}", text)
