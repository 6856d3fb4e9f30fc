"""Values that the program knows, masked in every form in which they turn up.

Also where they were encoded together with something else: base64 writes the same bytes in three
ways, by their place in a group of three, and of each the part that does not depend on the
neighbours is looked for.
"""

import base64
import html
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from urllib.parse import quote, quote_plus

from policies.secrets.text import MASK, Masked, Plain, Span, mask_value, united

MIN_KNOWN_CHARS = 6
"""A shorter known value would mask ordinary words."""
_MIN_CORE_CHARS = 12
"""A shorter piece of base64 could stand in any other base64."""
_IN_DOUBLE_QUOTES = re.compile(r"[\\\"$`]")
_PERCENT = re.compile(r"%[0-9A-F]{2}")


def mask_known(text: str, known: Sequence[str]) -> Masked:
    """Mask the known values in a text, in any form."""
    spans = known_spans(text, known)
    out: list[str] = []
    copied = 0
    for start, end in spans:
        out += [text[copied:start], mask_value(Plain.of(text[start:end]).text)]
        copied = end
    return Masked("".join([*out, text[copied:]]), len(spans))


def known_spans(text: str, known: Sequence[str]) -> list[Span]:
    """Return where the known values stand in a text, in any form, in order and without overlaps."""
    forms = _forms(tuple(known))
    spans = [span for form in forms for span in _places(form, text)]
    plain = Plain.of(text)
    if plain.text != text:
        folded = {Plain.of(form).text for form in forms}
        spans += [
            (plain.source_start(start), plain.source_end(end))
            for form in folded
            if len(form) >= MIN_KNOWN_CHARS
            for start, end in _places(form, plain.text)
        ]
    return united(spans)


def _places(form: str, text: str) -> Iterator[Span]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + len(form))


@lru_cache(maxsize=64)
def _forms(known: tuple[str, ...]) -> frozenset[str]:
    """Return every form of every value."""
    return frozenset(
        form
        for value in known
        if len(value) >= MIN_KNOWN_CHARS and value not in MASK and MASK not in value
        for form in _spell(value)
    )


def _spell(known: str) -> Iterator[str]:
    raw = known.encode("utf-8", "surrogatepass")
    yield known
    for spelt in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield spelt
        yield _PERCENT.sub(lambda match: match[0].lower(), spelt)
    for spelt in (json.dumps(known)[1:-1], json.dumps(known, ensure_ascii=False)[1:-1]):
        yield spelt
        yield spelt.replace("/", "\\/")
        yield json.dumps(spelt, ensure_ascii=False)[1:-1]  # JSON in JSON
    yield repr(known)[1:-1]
    yield known.replace("\\", "\\\\").replace("'", "\\'")
    # in a shell: between single quotes, as two programs write it, and between double ones
    yield known.replace("'", "'\"'\"'")
    yield known.replace("'", "'\\''")
    yield _IN_DOUBLE_QUOTES.sub(r"\\\g<0>", known)
    yield known.replace("'", "''")  # YAML, SQL
    yield html.escape(known)
    yield raw.hex()
    yield raw.hex().upper()
    yield base64.b64encode(raw).decode().rstrip("=")
    yield base64.urlsafe_b64encode(raw).decode().rstrip("=")
    for before in range(3):
        core = _core(raw, before)
        if len(core) >= _MIN_CORE_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")


def _core(raw: bytes, before: int) -> str:
    """Return the base64 of bytes behind `before` others, without what depends on its neighbours."""
    first = -(-8 * before // 6)
    last = 8 * (before + len(raw)) // 6
    return base64.b64encode(b"\0" * before + raw).decode()[first:last]
