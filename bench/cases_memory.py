"""A memory in a directory of its own, as the gateway opens it, and callers of its case tools."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memory.cases.case import CaseCaller
from memory.clock import utc_now
from memory.embeddings.choice import EmbedderChoice
from memory.items.scope import Scope
from memory.service.assemble import open_memory
from memory.service.memory import Memory
from memory.service.plan import MemoryPlan

OWNER = "ann"
APP = "shop"


@asynccontextmanager
async def memory_in(directory: Path) -> AsyncIterator[Memory]:
    """Open it as it is without an embedding model, so that a run needs nothing from the network."""
    plan = MemoryPlan(
        data_dir=directory,
        workspace=directory / "workspace",
        mask=_as_it_is,
        embedder=EmbedderChoice(name="none"),
    )
    (directory / "workspace").mkdir(exist_ok=True)
    async with open_memory(plan, now=utc_now, draw=random.Random(1).random) as memory:
        yield memory


def caller(conversation: str | None = None, environment: str | None = "production") -> CaseCaller:
    scope = Scope(owner_id=OWNER, app_code=APP, environment=environment)
    return CaseCaller(scope=scope, conversation_id=conversation)


def _as_it_is(text: str) -> str:
    return text
