"""Masks secrets inside a value, leaf by leaf, so that what is written of it stays valid JSON.

A mask laid over a finished line could swallow a quote or a brace. So the strings are masked while
they are still values: each string and each key by the callable, and in addition whatever stands
under a key that says that it is a secret, `{"password": "hunter2"}` say.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Mask = Callable[[str], str]
"""Masks the secrets in a text, wherever in it they stand; it may not rely on where the text begins."""

MASKED = "…[masked]"
"""Stands for a value that is masked whole, because of the key that it stands under."""
UNMASKABLE = "[left out: could not be masked]"
"""Stands for a string that the mask itself failed on."""

_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s.\-]+")
_TELLING = re.compile(
    r"(?:.*_)?(?:password|passwd|passphrase|passcode|pwd_?hash|secret|token|authorization|cookie"
    r"|credentials?|bearer|api_?key|(?:access|private|secret|auth|signing|encryption|account)_?key"
    r"|密码|密碼|口令|密钥|密鑰|令牌|私钥|凭证|凭据)"
)
_MAX_TELLING_KEY_CHARS = 100


def mask_text(text: str, mask: Mask) -> str:
    """Mask one string; a mask that fails leaves nothing of it rather than all of it."""
    try:
        return mask(text)
    except Exception:  # noqa: BLE001  a fault in a pattern must cost the text, not the line
        return UNMASKABLE


def clip(text: str, limit: int) -> str:
    """Keep head and tail of a long text and say how much is left out between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def mask_leaves(value: Any, mask: Mask) -> Any:
    """Give a value made by `json_safe` with every string in it masked, keys included. Never raises.

    The result has the same shape: the same containers, as many items, the same order. Nearly
    every value holds no secret, so the mask first runs once over all its strings together.
    """
    strings: list[str] = []
    if _collect(value, strings):
        return _mask(value, mask)
    together = "\n".join(strings)
    return value if mask_text(together, mask) == together else _mask(value, mask)


def _collect(value: Any, strings: list[str]) -> bool:
    """Add the strings of a value, and say whether a key in it says that it holds a secret."""
    told = False
    if isinstance(value, str):
        strings.append(value)
    elif isinstance(value, list):
        for one in value:
            told |= _collect(one, strings)
    elif isinstance(value, dict):
        for key, one in value.items():
            strings.append(key)
            told |= _collect(one, strings) | is_telling(key)
    return told


def _mask(value: Any, mask: Mask) -> Any:
    if isinstance(value, str):
        return mask_text(value, mask)
    if isinstance(value, list):
        return [_mask(one, mask) for one in value]
    if isinstance(value, dict):
        return _mask_mapping(value, mask)
    return value


def _mask_mapping(value: dict[str, Any], mask: Mask) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, one in value.items():
        name = mask_text(key, mask)
        while name in out:
            name += "'"
        out[name] = _mask_whole(one, mask) if is_telling(key) else _mask(one, mask)
    return out


def _mask_whole(value: Any, mask: Mask) -> Any:
    if isinstance(value, dict):
        return _mask_mapping(value, mask)
    if isinstance(value, list):
        return [_mask_whole(one, mask) for one in value]
    if value is None or isinstance(value, bool) or value == "":
        return value
    return MASKED


@lru_cache(maxsize=4096)
def is_telling(key: str) -> bool:
    """Say whether a key says that its value is a secret: `apiKey`, `X-Auth-Token`, `密码`."""
    if len(key) > _MAX_TELLING_KEY_CHARS:
        return False
    return _TELLING.fullmatch(_WORD_BORDER.sub("_", key).lower()) is not None
