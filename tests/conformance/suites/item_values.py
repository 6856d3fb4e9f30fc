"""Items for the suites of item stores, and what an open store is to them."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memory.items.item import Item
from memory.items.scope import Scope
from memory.items.store import ItemStore

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN, BOB = Scope(owner_id="ann"), Scope(owner_id="bob")
TEXTS = (
    "plain words",
    "你好，世界：支付失败",
    "🧑‍🚀 e\u0301 \u202e right to left",
    "'; DROP TABLE items; --\n\t\\ \" *",
    "nul\0inside",
    "长" * 50_000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenItems:
    """An open store, and how items get into it and out of it."""

    store: ItemStore
    put: Callable[[Sequence[Item]], Awaitable[None]]
    """All in one transaction, in their order."""
    delete: Callable[[str], Awaitable[bool]]


Opening = Callable[[], AbstractAsyncContextManager[OpenItems]]


def item(name: str = "1", body: str = "", **fields: Any) -> Item:
    """Make an episode's item with the id `epi_<name>`."""
    blank = Item(
        id=f"epi_{name}",
        kind="episode",
        scope=ANN,
        title=fields.pop("title", ""),
        summary=body[:300],
        body=body,
        source=f"episode epi_{name}",
        occurred_at=AT,
        updated_at=AT,
    )
    return replace(blank, **fields)


async def found(opened: OpenItems, text: str, scope: Scope = ANN, **options: Any) -> list[str]:
    """Return the names of what a search finds, best first."""
    hits = await opened.store.search(text, scope, **{"limit": 50, **options})
    return [hit.item_id.removeprefix("epi_") for hit in hits]


def dialogue(lines: Sequence[str]) -> list[Item]:
    """Make the lines of one thread, named by their places from 0."""
    return [
        item(f"{place}", line, thread="cnv/D1", position=place) for place, line in enumerate(lines)
    ]
