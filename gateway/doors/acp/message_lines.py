"""Messages of JSON-RPC, one a line, over standard input and output.

The library's own transport would pass on what a validation found, and the texts of exceptions.
"""

import asyncio
import json
import logging
import os
import stat
import sys
from collections.abc import Mapping
from typing import Any, Final

import acp
import anyio.lowlevel

_log = logging.getLogger(__name__)

_INTERNAL: Final = -32603
_MAX_LINE_BYTES: Final = 1 << 30
"""More than the server takes; it says so."""


def are_streams() -> bool:
    """Return whether standard input and output are pipes, sockets or terminals: the loop cannot
    wait for a file.
    """
    if sys.stdin is None:
        return False
    source, sink = (os.fstat(file.fileno()).st_mode for file in (sys.stdin, sys.stdout))
    is_read = stat.S_ISFIFO(source) or stat.S_ISSOCK(source) or sys.stdin.isatty()
    return is_read and (stat.S_ISFIFO(sink) or stat.S_ISSOCK(sink) or stat.S_ISCHR(sink))


class MessageLines:
    """A transport of `acp`; see `are_streams`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls) -> "MessageLines":
        """Take over standard input and output."""
        return cls(*await acp.stdio_streams(limit=_MAX_LINE_BYTES))

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None: there is none any more."""
        await anyio.lowlevel.checkpoint()  # what was received before is begun first
        while line := await self._reader.readline():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict):
                return message
            if line.strip():
                _log.warning("message_not_understood")
        return None

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; an error of the library becomes one sentence."""
        if message.get("error"):
            message = {**message, "error": _plain_error(message["error"])}
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        """Leave both open; the process ends."""


def _plain_error(error: Mapping[str, Any]) -> Mapping[str, Any]:
    data = error.get("data")
    found = data.get("errors") if isinstance(data, Mapping) else None
    if found:
        name = ".".join(["params", *map(str, found[0]["loc"])])
        fault = "is missing" if found[0]["type"] == "missing" else "is not valid"
        return {"code": error["code"], "message": f"`{name}` {fault}."}
    return {**error, "data": None} if error["code"] == _INTERNAL else error
