"""Finds secrets in a text and masks them, for logs, memory, errors and events.

Four sorts, one after the other: values that the caller knows, what stands where only secrets stand
(headers, addresses, command lines, key blocks), values under or beside a telling key (`password=`,
`密码：`, "the password is …", `name: DB_PASSWORD` with its `value:`), and tokens in the formats of known
providers or of the kind that most make. A mask keeps up to four characters: `sk-a…[masked]`. Full-width
letters and invisible characters hide nothing.

Cheap words are looked for before any expression runs, and no expression can run back over what it has
read, so the time grows with the text's length alone. Masking twice gives the same as masking once. A
secret that is cut in two by a chunk border is not seen: mask whole lines or whole messages.
"""

from collections.abc import Sequence

from policies.known_secrets import MIN_KNOWN_CHARS, mask_known
from policies.masks import MASK, MAX_KEPT_CHARS, Masked
from policies.secret_formats import mask_formats
from policies.secret_places import mask_places
from policies.secret_values import mask_keyed

__all__ = [
    "MASK",
    "MAX_KEPT_CHARS",
    "MIN_KNOWN_CHARS",
    "Masked",
    "mask_secrets",
    "mask_secrets_counted",
]


def mask_secrets_counted(text: str, *, known: Sequence[str] = ()) -> Masked:
    """Mask every secret in a text and say how many were masked.

    `known` are values to mask wherever they stand, also encoded; those shorter than six characters are
    left alone. Masking the result again changes nothing and counts nothing.
    """
    page = mask_known(text, known)
    mask_places(page)
    mask_keyed(page)
    mask_formats(page)
    return Masked(page.text, page.count)


def mask_secrets(text: str, *, known: Sequence[str] = ()) -> str:
    """Mask every secret in a text; see `mask_secrets_counted`."""
    return mask_secrets_counted(text, known=known).text
