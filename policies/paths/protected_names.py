"""The tables of protected names, read from `protected_names.toml`: what holds secrets, and which configuration acts."""

import tomllib
from pathlib import Path

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _words(key: str) -> tuple[str, ...]:
    return tuple(_TOLD[key].split())


def _pairs(key: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (folder, name) for folder, _, name in (word.partition("/") for word in _words(key))
    )


READABLE = frozenset(_words("readable"))
SECRET_PATTERNS = _words("secret_patterns")
SECRET_IN_REPOSITORY = _words("secret_in_repository")
SECRET_BELOW = _pairs("secret_below")
INSTRUCTIONS = _words("instructions")
ACTING = frozenset(
    (*INSTRUCTIONS, *(n for names in _TOLD["acting"].values() for n in names.split()))
)
ACTING_ENDINGS = _words("acting_endings")
ACTING_BELOW = _pairs("acting_below")
ACTING_AT_ROOT = frozenset(_words("acting_at_root"))
