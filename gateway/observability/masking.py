"""Masks the secrets in a value leaf by leaf, so that it stays valid JSON.

A mask on a finished line could remove a quote or a brace. Each string and each key is masked by the
callable; in addition every value in a secret place is masked (`policies/secrets/fields.py`), as in
`{"password": "hunter2"}`.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from policies.secrets import MASK, is_secret_field, is_secret_item, tells_nothing

Mask = Callable[[str], str]
"""Masks the secrets anywhere in a text; it may not rely on where the text begins."""

UNMASKABLE = "[left out: could not be masked]"
"""Replaces a string on which the mask failed."""


def mask_text(text: str, mask: Mask) -> str:
    """Mask one string; if the mask fails, nothing of the string is kept."""
    try:
        return mask(text)
    except Exception:  # noqa: BLE001  any callable; its failure must cost the text, not the line
        return UNMASKABLE


def clip(text: str, limit: int) -> str:
    """Return the head and the tail of a long text, and how much is left out between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def mask_leaves(value: Any, mask: Mask, masked: AbstractSet[str] = frozenset()) -> Any:
    """Return a value made by `json_safe` with all its strings and keys masked. Never raises.

    The result has the same shape. Nearly every value holds no secret, so the mask first runs once
    over all its strings together, without those in `masked`: the same mask made them.
    """
    strings: list[str] = []
    if _collect(value, strings):
        return _mask(value, mask)
    together = "\n".join(text for text in dict.fromkeys(strings) if text not in masked)
    return value if mask_text(together, mask) == together else _mask(value, mask)


def _collect(value: Any, strings: list[str]) -> bool:
    """Add the strings of a value to `strings`; return whether anything in it stands in a secret
    place.
    """
    found = False
    if isinstance(value, str):
        strings.append(value)
    elif isinstance(value, list):
        for before, item in _items(value):
            found |= _collect(item, strings) | is_secret_item(before, within=False)
    elif isinstance(value, dict):
        for key, item in value.items():
            strings.append(key)
            found |= _collect(item, strings) | is_secret_field(key, within=False)
    return found


def _items(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip([None, *items], items, strict=False)


def _mask(value: Any, mask: Mask, *, is_secret: bool = False) -> Any:
    """Mask a value; `is_secret`: all of it."""
    if isinstance(value, list):
        return [
            _mask(item, mask, is_secret=is_secret_item(before, within=is_secret))
            for before, item in _items(value)
        ]
    if isinstance(value, dict):
        out: dict[str, Any] = {}
        for key, item in value.items():
            name = mask_text(key, mask)
            while name in out:
                name += "'"
            out[name] = _mask(item, mask, is_secret=is_secret_field(key, within=is_secret))
        return out
    if tells_nothing(value):
        return value
    if is_secret:
        return MASK
    return mask_text(value, mask) if isinstance(value, str) else value


def spell_out(text: str, *, keep: str = "") -> str:
    """Escape every character that is not printable, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode()
