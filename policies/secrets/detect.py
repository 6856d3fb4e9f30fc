"""Finds the secrets in a text and masks them."""

from collections.abc import Iterator, Sequence

from policies.secrets.formats import token_spans
from policies.secrets.known import mask_known
from policies.secrets.pairs import pair_spans
from policies.secrets.places import block_spans, place_spans
from policies.secrets.stream import MOST_WAITING_CHARS, may_be_in_block, settled_chars
from policies.secrets.text import Masked, Plain, mask_spans

PART_CHARS = 8_000
"""Longer texts are masked in parts. One search in a long text would keep all other threads waiting."""

MOST_PARTS = 6


def mask_secrets_counted(text: str, *, known: Sequence[str] = ()) -> Masked:
    """Mask every secret in a text and count them.

    `known` are values to mask wherever they stand, also encoded; those shorter than six characters are
    left alone. Masking the result again changes nothing and counts nothing.
    """
    once = mask_known(text, known)
    masked = [_mask_part(part) for part in parts_of(once.text)]
    count = once.count + sum(part.count for part in masked)
    return Masked("".join(part.text for part in masked), count)


def mask_secrets(text: str, *, known: Sequence[str] = ()) -> str:
    """Mask every secret in a text; see `mask_secrets_counted`."""
    return mask_secrets_counted(text, known=known).text


def parts_of(text: str) -> Iterator[str]:
    """Yield a text in parts that can be masked by themselves; a run without a safe cut stays whole."""
    start = 0
    end = PART_CHARS
    while end < len(text):
        cut = _find_cut(text, start, end)
        if cut > start:
            yield text[start:cut]
            start = cut
        end += PART_CHARS
    yield text[start:]


def _find_cut(text: str, start: int, end: int) -> int:
    """Return the last safe place to cut before `end`, or `start`.

    An open key block that is longer than any is cut at a line.
    """
    if end - start > MOST_PARTS * PART_CHARS:
        return max(start, text.rfind("\n", start, end) + 1)
    if may_be_in_block(text, start, end):
        return start
    window = end - MOST_WAITING_CHARS
    settled = settled_chars(text[window:end])
    return window + settled if settled else start


def _mask_part(text: str) -> Masked:
    plain = Plain.of(text)
    read = plain.text
    spans = [*block_spans(read), *place_spans(read)]
    placed = {start for start, _ in spans}  # a place knows better than a key where its value ends
    spans += [span for span in pair_spans(read) if span[0] not in placed]
    spans += token_spans(read)
    return mask_spans(text, plain, spans) if spans else Masked(text, 0)
