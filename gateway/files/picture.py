"""Open a picture before a model is shown it: kind, dimensions, animation, and that its data are
whole. Blocks.
"""

import warnings
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal

from PIL import Image, UnidentifiedImageError

MAX_SIDE: Final = 8_000
"""Pixels of width or height that the Messages API takes."""
MAX_PIXELS: Final = 36_000_000
"""What is decoded at most: some 140 MB of memory for a moment. A file of a few bytes can claim any
size."""

PictureFault = Literal["other", "side", "animated", "broken"]
"""Not a picture that can be opened; too many pixels; several frames; data that are missing or
damaged."""

_MEDIA_TYPES: Final = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",  # a JPEG of a phone, with further pictures behind the first
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
_OPENED_AS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_ANIMATED: Final = frozenset({"PNG", "GIF", "WEBP"})


@dataclass(frozen=True, slots=True)
class PictureKind:
    """A picture that the model's service takes."""

    media_type: str


def inspect_picture_blocking(file: BinaryIO) -> PictureKind | PictureFault:
    """Return the kind of a picture, decided by its content, or why no model can be shown it."""
    try:
        with _open(file) as picture:
            width, height = picture.size
            if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
                return "side"
            if picture.format in _ANIMATED and getattr(picture, "is_animated", False):
                return "animated"
            picture.verify()  # the checksums of a PNG; the picture cannot be used afterwards
        with _open(file) as picture:
            picture.load()
            return PictureKind(_MEDIA_TYPES[str(picture.format)])
    except UnidentifiedImageError:
        return "other"
    except Image.DecompressionBombError:
        return "side"
    except Exception:  # noqa: BLE001  a decoder may raise anything for foreign bytes
        return "broken"


def _open(file: BinaryIO) -> Image.Image:
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the caller decides
        return Image.open(file, formats=_OPENED_AS)
