"""Pictures that tests make."""

import struct
import zlib


def png(shade: int = 0) -> bytes:
    """Return a picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head, line = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0), bytes((0, shade))
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(line)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
