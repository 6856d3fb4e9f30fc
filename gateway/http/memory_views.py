"""Memory as JSON values of the contract. Every view names its fields, so a new one stays inside."""

from collections.abc import Sequence
from typing import Any

from gateway.http.json_response import fields_of
from memory.episodes.episode import Episode, Written
from memory.facts.fact import Fact, to_item
from memory.items.item import Item
from memory.items.store import ItemPage
from memory.outbox.delivery import Delivery, Link
from memory.outbox.worker import OutboxHealth
from memory.recall.query import ContextPack, Found

_HELD_BACK = ("id", "reason")
_CATEGORY = ("name", "summary", "item_ids")
_CONTEXT_ITEM = (
    *("id", "kind", "title", "line", "relevance", "why", "source", "occurred_at"),
    *("conversation_id", "turn_id"),
)
_RESOURCE = ("item_id", "source", "extract")
_HIT = (
    *("id", "kind", "title", "summary", "source", "occurred_at", "tags"),
    *("conversation_id", "turn_id"),
)
_ITEM = (*_HIT, "body", "updated_at", "revision")
_EPISODE = ("episode_type", "source_refs", "repeats")
_FACT = ("origin", "lasting", "evidence", "valid_from", "valid_until", "superseded_by")
_WRITTEN = ("episode_id", "status", "reason", "redacted")
PROFILE = ("text", "updated_at")
_DELIVERY = (
    *("backend", "operation", "item_id", "status", "attempts", "last_error", "idempotency_key"),
    *("due_at", "created_at", "delivered_at"),
)
INTENT = (
    *("id", "key", "source_kind", "conversation_id", "turn_id", "text", "payload", "occurred_at"),
    "forgotten",
)


def found_fields(found: Found) -> dict[str, Any]:
    """Return the answer of a search."""
    return {
        "items": [
            {**_listed(hit.item, hit.why), "score": round(hit.score, 6)} for hit in found.hits
        ],
        "held_back": _each(found.held_back, _HELD_BACK),
        "degraded": list(found.degraded),
    }


def page_fields(page: ItemPage) -> dict[str, Any]:
    """Return a page of items."""
    return {
        "items": [_listed(listed.item, listed.why) for listed in page.items],
        "next_cursor": page.next_cursor,
    }


def _listed(item: Item, why: str) -> dict[str, Any]:
    return {**fields_of(item, _HIT), "scope": item.scope.labels, "why": why}


def context_fields(pack: ContextPack) -> dict[str, Any]:
    """Return a context pack."""
    return {
        "categories": _each(pack.categories, _CATEGORY),
        "items": _each(pack.items, _CONTEXT_ITEM),
        "resources": _each(pack.resources, _RESOURCE),
        "held_back": _each(pack.held_back, _HELD_BACK),
        **fields_of(pack, ("next_step_query", "degraded", "text")),
    }


def item_fields(
    item: Item,
    links: Sequence[Link],
    *,
    episode: Episode | None = None,
    fact: Fact | None = None,
    replaces: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a whole item with its episode or fact, if it is one, and what backends made of it.

    `replaces` has the ids of the facts in whose place a fact came.
    """
    return {
        **fields_of(item, _ITEM),
        "scope": item.scope.labels,
        **(_episode_fields(episode) if episode is not None else {}),
        **(_fact_fields(fact, replaces) if fact is not None else {}),
        "links": [
            {"backend": link.backend, "kind": link.remote_kind, "id": link.remote_id}
            for link in links
        ],
    }


def fact_fields(fact: Fact, replaces: Sequence[str] = ()) -> dict[str, Any]:
    """Return a fact with its item."""
    return item_fields(to_item(fact), (), fact=fact, replaces=replaces)


def _fact_fields(fact: Fact, replaces: Sequence[str]) -> dict[str, Any]:
    return {"body": fact.text, **fields_of(fact, _FACT), "replaces": list(replaces)}


def _episode_fields(episode: Episode) -> dict[str, Any]:
    return {
        **fields_of(episode, _EPISODE),
        "sections": dict(episode.sections.named()),
        "variants": _each(episode.variants, ("occurred_at", "text")),
    }


def written_fields(written: Written) -> dict[str, Any]:
    """Return the outcome of writing an episode; its notices are like those of a turn result."""
    notices = [{"code": "never_saved", "message": written.notice}] if written.notice else []
    return {
        **fields_of(written, _WRITTEN),
        "clipped": _each(written.clipped, ("section", "chars")),
        "notices": notices,
    }


def delivery_fields(delivery: Delivery) -> dict[str, Any]:
    """Return one delivery of the outbox."""
    return {"id": str(delivery.id), **fields_of(delivery, _DELIVERY)}


def health_fields(healths: Sequence[OutboxHealth]) -> dict[str, Any]:
    """Return the state of each backend."""
    return {
        "backends": [
            {
                **fields_of(health.backend, ("name", "state", "detail")),
                **fields_of(health, ("breaker", "reading_breaker", "last_error")),
                "lag_s": round(health.lag_s, 3),
            }
            for health in healths
        ]
    }


def missing_health_fields(backends: Sequence[str], state: str, detail: str) -> dict[str, Any]:
    """Return one state for all backends, where memory could not be opened."""
    unknown = {"breaker": None, "reading_breaker": None, "last_error": None, "lag_s": None}
    return {
        "backends": [
            {"name": name, "state": state, "detail": detail, **unknown} for name in backends
        ]
    }


def _each(values: Sequence[object], names: Sequence[str]) -> list[dict[str, Any]]:
    return [fields_of(value, names) for value in values]
