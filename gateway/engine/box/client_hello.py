"""The server's name in the first bytes of a TLS connection. Pure."""

from typing import Final

MAX_BYTES: Final = 16_384 + 5
"""One record; a client's first message that is longer is refused."""

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
_HEAD: Final = 5
_VERSION_AND_RANDOM: Final = 34


class NoHello(ValueError):
    """The bytes are no beginning of TLS."""


def is_complete(data: bytes) -> bool:
    """Return whether the first record is there. Raise `NoHello` if it is none of TLS."""
    if data[:1] != bytes([_HANDSHAKE])[: len(data[:1])] or data[1:2] not in {b"", b"\x03"}:
        raise NoHello
    if len(data) < _HEAD:
        return False
    length = int.from_bytes(data[3:5], "big")
    if _HEAD + length > MAX_BYTES:
        raise NoHello
    return len(data) >= _HEAD + length


def server_name(data: bytes) -> bytes | None:
    """Return the name that a complete first record asks for; None if it names none, or several.

    Raise `NoHello` if the record holds no whole first message of a client.
    """
    try:
        return _read_name(_Reader(data[_HEAD : _HEAD + int.from_bytes(data[3:5], "big")]))
    except IndexError:
        raise NoHello from None


class _Reader:
    """Takes parts off the front; raises `IndexError` at the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        if count > len(self.data):
            raise IndexError
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def part(self, size: int) -> "_Reader":
        """Take a part whose length stands before it in so many bytes."""
        return _Reader(self.take(self.number(size)))


def _read_name(record: _Reader) -> bytes | None:
    if record.number(1) != _CLIENT_HELLO:
        raise NoHello
    hello = record.part(3)
    hello.take(_VERSION_AND_RANDOM)
    hello.part(1)  # session
    hello.part(2)  # ciphers
    hello.part(1)  # compressions
    if not hello.data:
        return None
    extensions = hello.part(2)
    names: list[bytes] = []
    while extensions.data:
        kind, content = extensions.number(2), extensions.part(2)
        if kind == _SERVER_NAME:
            listed = content.part(2)
            while listed.data:
                is_host = listed.number(1) == _HOST_NAME
                name = listed.part(2).data
                names.append(name if is_host else b"")
    return names[0] if len(names) == 1 else None
