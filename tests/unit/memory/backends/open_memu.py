"""memU's real package in this process, open on a directory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from memory.backends.memu_cli import MemuCliBackend
from memory.embeddings.openai import Embeddings

WAIT_S = 30


@asynccontextmanager
async def opened(directory: Path, address: str) -> AsyncIterator[MemuCliBackend]:
    backend = MemuCliBackend(directory, Embeddings(base_url=address, model="m", api_key="k"))
    try:
        with anyio.fail_after(WAIT_S):
            yield backend
    finally:
        await backend.close()
