"""What clients see of memory, as plain JSON values."""

from collections.abc import Sequence
from typing import Any

from memory.clock import rfc3339
from memory.episodes.episode import Episode, Written
from memory.intents.chronicle import IntentRecord
from memory.items import Item
from memory.outbox.delivering import OutboxHealth
from memory.outbox.delivery import Delivery, Link
from memory.recall.query import Category, ContextItem, ContextPack, Found, HeldBack, Hit, Resource
from memory.scope import Scope


def found_fields(found: Found) -> dict[str, Any]:
    """Give the answer of a search."""
    return {
        "items": [hit_fields(one) for one in found.hits],
        "held_back": [_held_back(one) for one in found.held_back],
        "degraded": list(found.degraded),
    }


def hit_fields(hit: Hit) -> dict[str, Any]:
    """Give one thing that was found."""
    item = hit.item
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.title,
        "summary": item.summary,
        "score": round(hit.score, 6),
        "why": hit.why,
        "source": item.source,
        "occurred_at": rfc3339(item.occurred_at),
        "tags": list(item.tags),
        "scope": scope_fields(item.scope),
    }


def context_fields(pack: ContextPack) -> dict[str, Any]:
    """Give a context pack."""
    return {
        "categories": [_category(one) for one in pack.categories],
        "items": [_context_item(one) for one in pack.items],
        "resources": [_resource(one) for one in pack.resources],
        "held_back": [_held_back(one) for one in pack.held_back],
        "next_step_query": pack.next_step_query,
        "degraded": list(pack.degraded),
        "text": pack.text,
    }


def item_fields(item: Item) -> dict[str, Any]:
    """Give an item whole, with where it comes from."""
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.title,
        "summary": item.summary,
        "body": item.body,
        "source": item.source,
        "scope": scope_fields(item.scope),
        "tags": list(item.tags),
        "conversation_id": item.conversation_id,
        "turn_id": item.turn_id,
        "occurred_at": rfc3339(item.occurred_at),
        "updated_at": rfc3339(item.updated_at),
        "revision": item.revision,
    }


def whole_item_fields(item: Item, episode: Episode | None, links: Sequence[Link]) -> dict[str, Any]:
    """Give an item whole, with what it is made of and what backends made of it."""
    return {
        **item_fields(item),
        **(episode_fields(episode) if episode is not None else {}),
        "links": [link_fields(one) for one in links],
    }


def episode_fields(episode: Episode) -> dict[str, Any]:
    """Give what an episode has beyond an item."""
    return {
        "episode_type": episode.episode_type,
        "sections": dict(episode.sections.named()),
        "source_refs": list(episode.source_refs),
        "variants": [
            {"occurred_at": rfc3339(one.occurred_at), "text": one.text} for one in episode.variants
        ],
        "repeats": episode.repeats,
    }


def written_fields(written: Written) -> dict[str, Any]:
    """Say what became of an episode that was sent in."""
    return {
        "episode_id": written.episode_id,
        "status": written.status,
        "reason": written.reason,
        "clipped": [{"section": one.section, "chars": one.chars} for one in written.clipped],
        "redacted": written.redacted,
        "notices": _notices(written),
    }


def _notices(written: Written) -> list[dict[str, str]]:
    """Give what the sender should know in words, as a turn's result does."""
    if written.notice is None:
        return []
    return [{"code": "never_saved", "message": written.notice}]


def delivery_fields(delivery: Delivery) -> dict[str, Any]:
    """Give one delivery."""
    return {
        "id": str(delivery.id),
        "backend": delivery.backend,
        "operation": delivery.operation,
        "item_id": delivery.item_id,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "last_error": delivery.last_error,
        "idempotency_key": delivery.idempotency_key,
        "due_at": rfc3339(delivery.due_at),
        "created_at": rfc3339(delivery.created_at),
        "delivered_at": delivery.delivered_at and rfc3339(delivery.delivered_at),
    }


def link_fields(link: Link) -> dict[str, Any]:
    """Say what a backend made of an item."""
    return {"backend": link.backend, "kind": link.remote_kind, "id": link.remote_id}


def intent_fields(record: IntentRecord) -> dict[str, Any]:
    """Give one thing that happened; of what was forgotten only that there was something."""
    return {
        "id": record.id,
        "key": record.key,
        "source_kind": record.source_kind,
        "conversation_id": record.conversation_id,
        "turn_id": record.turn_id,
        "text": record.text,
        "payload": dict(record.payload),
        "occurred_at": rfc3339(record.occurred_at),
        "forgotten": record.forgotten,
    }


def health_fields(healths: Sequence[OutboxHealth]) -> dict[str, Any]:
    """Tell how each place of delivery is."""
    return {
        "backends": [
            {
                "name": one.backend.name,
                "state": one.backend.state,
                "detail": one.backend.detail,
                "breaker": one.breaker,
                "last_error": one.last_error,
                "lag_s": round(one.lag_s, 3),
            }
            for one in healths
        ]
    }


def missing_health_fields(backends: Sequence[str], state: str, detail: str) -> dict[str, Any]:
    """Tell of each place of delivery that nobody can ask, and why."""
    unknown = {"breaker": None, "last_error": None, "lag_s": None}
    return {
        "backends": [{"name": one, "state": state, "detail": detail, **unknown} for one in backends]
    }


def scope_fields(scope: Scope) -> dict[str, str]:
    """Give the labels; whose it is goes without saying."""
    return scope.labels


def _held_back(one: HeldBack) -> dict[str, Any]:
    return {"id": one.id, "reason": one.reason}


def _category(one: Category) -> dict[str, Any]:
    return {"name": one.name, "summary": one.summary, "item_ids": list(one.item_ids)}


def _context_item(one: ContextItem) -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind,
        "title": one.title,
        "line": one.line,
        "relevance": round(one.relevance, 6),
        "why": one.why,
        "source": one.source,
        "occurred_at": rfc3339(one.occurred_at),
    }


def _resource(one: Resource) -> dict[str, Any]:
    return {"item_id": one.item_id, "source": one.source, "extract": one.extract}
