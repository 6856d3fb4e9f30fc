"""Opaque, prefixed ids: a prefix and 128 bits, so that they need no coordination.

Most are random and cannot be guessed. An intent's is made of what it tells, so that telling it again,
after a crash say, is seen as the same.
"""

import hashlib
import secrets
from base64 import b32encode

_BYTES = 16


def opaque_id(prefix: str) -> str:
    """Make an id that nobody had before."""
    return _written(prefix, secrets.token_bytes(_BYTES))


def derived_id(prefix: str, *parts: str) -> str:
    """Make the id that belongs to these parts: the same parts, the same id."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return _written(prefix, digest[:_BYTES])


def new_episode_id() -> str:
    """Make an episode's id."""
    return opaque_id("epi")


def new_case_id() -> str:
    """Make a case's id."""
    return opaque_id("cas")


def _written(prefix: str, number: bytes) -> str:
    return f"{prefix}_{b32encode(number).decode().rstrip('=').lower()}"
