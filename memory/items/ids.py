"""Opaque ids: a prefix and 128 bits.

Most are random. An intent's id is derived from its content, so that recording it again, for example
after a crash, has no effect.
"""

import hashlib
import secrets
from base64 import b32encode

_BYTES = 16


def opaque_id(prefix: str) -> str:
    """Return a new random id."""
    return _written(prefix, secrets.token_bytes(_BYTES))


def derived_id(prefix: str, *parts: str) -> str:
    """Return the id of these parts; the same parts have the same id."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return _written(prefix, digest[:_BYTES])


def _written(prefix: str, number: bytes) -> str:
    return f"{prefix}_{b32encode(number).decode().rstrip('=').lower()}"
