"""A text that comes in pieces, masked as streams are."""

from collections.abc import Sequence

from policies.secrets import mask_secrets
from policies.secrets.detect import settled_chars


def masked_in_pieces(pieces: Sequence[str]) -> str:
    """Return the text, each part masked as soon as nothing that follows can change it."""
    out, held = "", ""
    for piece in pieces:
        held += piece
        at = settled_chars(held)
        out += mask_secrets(held[:at])
        held = held[at:]
    return out + mask_secrets(held)
