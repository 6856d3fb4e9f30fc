"""Pictures that tests make."""

import struct
import zlib
from io import BytesIO

from PIL import Image


def png(shade: int = 0) -> bytes:
    """Return a picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head, line = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0), bytes((0, shade))
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(line)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def picture(form: str, width: int = 2, height: int = 2, frames: int = 1) -> bytes:
    """Return a picture of a Pillow format."""
    first, *others = (
        Image.new("RGB", (width, height), (9 * shade, 0, 0)) for shade in range(frames)
    )
    data = BytesIO()
    animation = {"save_all": True, "append_images": others} if others else {}
    first.save(data, form, **animation)
    return data.getvalue()


def claim(width: int, height: int) -> bytes:
    """Return a picture of a few bytes that claims a size."""
    data = bytearray(picture("PNG"))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)
