"""Masks the secrets in a value leaf by leaf, so that it stays valid JSON.

A mask on a finished line could remove a quote or a brace. Each string and each key is masked by the
callable; in addition every value in a secret place is masked (`policies/secrets/fields.py`), as in
`{"password": "hunter2"}`.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final

from policies.secrets import MASK, is_secret_field, is_secret_item, tells_nothing

Mask = Callable[[str], str]
"""Masks the secrets anywhere in a text; it may not rely on where the text begins."""

UNMASKABLE = "[left out: could not be masked]"
"""Replaces a string on which the mask failed."""
_MAX_CLEAN: Final = 4_000
_MAX_CLEAN_CHARS: Final = 64


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


class CleanStrings:
    """Remembers short strings in which a mask finds nothing, so that it reads each only once.

    Most of a JSON line, the names of its fields above all, stands in many lines. For one thread.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._known: set[str] = set()

    def __contains__(self, text: str) -> bool:
        """Return whether a string is known to hold no secret."""
        return text in self._known

    def mask(self, text: str) -> str:
        """Mask a string, or know that there is nothing to mask."""
        if text in self._known:
            return text
        masked = mask_text(text, self._mask)
        if masked == text and len(text) <= _MAX_CLEAN_CHARS:
            if len(self._known) >= _MAX_CLEAN:
                self._known.clear()
            self._known.add(text)
        return masked

    def learn_names(self, value: Any) -> None:
        """Mask the names of a value's fields, which later values will have as well."""
        if isinstance(value, dict):
            for name in value:
                self.mask(name)
        if isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                self.learn_names(item)


def mask_leaves(
    value: Any,
    mask: Mask,
    masked: AbstractSet[str] = frozenset(),
    clean: CleanStrings | None = None,
) -> Any:
    """Return a value made by `json_safe` with all its strings and keys masked. Never raises.

    The result has the same shape. Nearly every value holds no secret, so the mask first runs once
    over all its strings together, without those in `masked`, which the same mask made, and those
    that `clean` of the same mask knows.
    """
    if clean is not None:
        clean.learn_names(value)
        mask = clean.mask
    strings: list[str] = []
    if _collect(value, strings):
        return _mask(value, mask)
    unread = (
        text
        for text in dict.fromkeys(strings)
        if text not in masked and (clean is None or text not in clean)
    )
    together = "\n".join(unread)
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
