"""Long regular expressions, kept as data: `patterns.toml` beside a module has them."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

_NAME = re.compile("<<([a-z_]+)>>")


def read_patterns(module_file: str) -> Mapping[str, str]:
    """Return the expressions of a module, given as its `__file__`, by name; `<<name>>` stands for another one."""
    file = Path(module_file)
    told = tomllib.loads(file.with_name("patterns.toml").read_text(encoding="utf-8"))[file.stem]
    patterns: dict[str, str] = {}
    for name, text in told.items():
        whole = text if isinstance(text, str) else "".join(text)
        patterns[name] = _NAME.sub(lambda named: patterns[named[1]], whole)
    return patterns
