"""A whole memory on a directory, as the server opens it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memory.clock import utc_now
from memory.embeddings.choice import EmbedderChoice
from memory.service.assemble import open_memory
from memory.service.memory import Memory
from memory.service.plan import MemoryEvents, MemoryPlan
from policies.secrets import mask_secrets


@asynccontextmanager
async def whole_memory(
    directory: Path, *, events: MemoryEvents | None = None, **plan: Any
) -> AsyncIterator[Memory]:
    """Open a memory with the multilingual vectors while the block runs; `plan` are fields of its `MemoryPlan`."""
    (directory / "workspace" / "memory").mkdir(parents=True, exist_ok=True)
    fields: dict[str, Any] = {
        "data_dir": directory,
        "workspace": directory / "workspace",
        "mask": mask_secrets,
        "embedder": EmbedderChoice(name="multilingual"),
    } | plan
    async with open_memory(
        MemoryPlan(**fields), now=utc_now, draw=lambda: 0.0, events=events
    ) as memory:
        yield memory
