"""Long regular expressions, kept as data: `patterns.toml` beside a module has them."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_NAME = re.compile("<<([a-z_]+)>>")


def read_patterns(module_file: str) -> Mapping[str, str]:
    """Return the expressions of a module, given as its `__file__`, by name; `<<name>>` stands for
    another one.
    """
    file = Path(module_file)
    told = _read(file.with_name("patterns.toml"))[file.stem]
    patterns: dict[str, str] = {}
    for name, text in told.items():
        whole = text if isinstance(text, str) else "".join(text)
        patterns[name] = _NAME.sub(lambda named: patterns[named[1]], whole)
    return patterns


@cache
def _read(file: Path) -> Mapping[str, Any]:
    """Read a file once for all modules of its package."""
    return tomllib.loads(file.read_text(encoding="utf-8"))
