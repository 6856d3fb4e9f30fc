"""Finds the secrets in a text and masks them."""

from collections.abc import Sequence

from policies.secrets.formats import token_spans
from policies.secrets.known import mask_known
from policies.secrets.pairs import pair_spans
from policies.secrets.places import block_spans, place_spans
from policies.secrets.text import Masked, Plain, mask_spans


def mask_secrets_counted(text: str, *, known: Sequence[str] = ()) -> Masked:
    """Mask every secret in a text and count them.

    `known` are values to mask wherever they stand, also encoded; those shorter than six characters are
    left alone. Masking the result again changes nothing and counts nothing.
    """
    once = mask_known(text, known)
    plain = Plain.of(once.text)
    read = plain.text
    spans = [*block_spans(read), *place_spans(read)]
    placed = {start for start, _ in spans}  # a place knows better than a key where its value ends
    spans += [span for span in pair_spans(read) if span[0] not in placed]
    spans += token_spans(read)
    if not spans:
        return once
    masked = mask_spans(once.text, plain, spans)
    return Masked(masked.text, once.count + masked.count)


def mask_secrets(text: str, *, known: Sequence[str] = ()) -> str:
    """Mask every secret in a text; see `mask_secrets_counted`."""
    return mask_secrets_counted(text, known=known).text
