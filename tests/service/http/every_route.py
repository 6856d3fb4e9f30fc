"""Every route there is, and a request to each of them."""

from collections.abc import Iterator
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.routing import Route

from tests.service.http.stage import Json

ROUTES: list[tuple[str, str]] = [
    ("POST", "/chat"),
    ("POST", "/chat/stream"),
    ("GET", "/conversations"),
    ("POST", "/new-conversation"),
    ("GET", "/conversations/{conversation_id}"),
    ("PATCH", "/conversations/{conversation_id}"),
    ("DELETE", "/conversations/{conversation_id}"),
    ("GET", "/conversations/{conversation_id}/messages"),
    ("GET", "/conversations/{conversation_id}/branches"),
    ("GET", "/conversations/{conversation_id}/matches"),
    ("GET", "/conversations/{conversation_id}/export"),
    ("GET", "/conversations/{conversation_id}/usage"),
    ("GET", "/conversations/{conversation_id}/turns/{turn_id}/tools/{index}"),
    ("GET", "/conversations/{conversation_id}/events"),
    ("POST", "/conversations/{conversation_id}/interrupt"),
    ("POST", "/conversations/{conversation_id}/fork"),
    ("DELETE", "/conversations/{conversation_id}/queue/{turn_id}"),
    ("GET", "/conversations/{conversation_id}/permissions"),
    ("DELETE", "/conversations/{conversation_id}/permissions/{approval_id}"),
    ("GET", "/approvals"),
    ("POST", "/approvals/{approval_id}"),
    ("GET", "/memory/search"),
    ("POST", "/memory/context"),
    ("GET", "/memory/items"),
    ("GET", "/memory/export"),
    ("POST", "/memory/import"),
    ("GET", "/memory/items/{item_id}"),
    ("DELETE", "/memory/items/{item_id}"),
    ("PATCH", "/memory/items/{item_id}"),
    ("POST", "/memory/facts"),
    ("GET", "/memory/tidied"),
    ("POST", "/memory/tidied/{step_id}/undo"),
    ("GET", "/memory/profile"),
    ("PUT", "/memory/profile"),
    ("POST", "/memory/episodes"),
    ("POST", "/memory/cases"),
    ("GET", "/memory/cases/search"),
    ("GET", "/memory/cases/{case_id}"),
    ("POST", "/memory/cases/{case_id}/feedback"),
    ("POST", "/memory/cases/{case_id}/merge"),
    ("GET", "/memory/intents"),
    ("GET", "/memory/intents/fields"),
    ("GET", "/memory/intents/{intent_id}"),
    ("GET", "/memory/outbox"),
    ("POST", "/memory/outbox/{delivery_id}/retry"),
    ("GET", "/memory/health"),
    ("GET", "/conversations/{conversation_id}/turns/{turn_id}/changes"),
    ("GET", "/workspace"),
    ("GET", "/workspace/file"),
    ("POST", "/workspace/files"),
    ("GET", "/logs"),
    ("GET", "/logs/{log_file:path}"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/operations"),
    ("GET", "/"),
    ("GET", "/static/{name:path}"),
]
OPEN = {"/healthz", "/", "/static/{name:path}"}
BODIES: dict[str, Json] = {
    "/chat": {"message": "hi"},
    "/chat/stream": {"message": "hi"},
    "/new-conversation": {},
    "/conversations/{conversation_id}": {"title": "t"},
    "/conversations/{conversation_id}/fork": {"turn_id": "{turn_id}"},
    "/approvals/{approval_id}": {"decision": "allow"},
    "/memory/context": {"queries": ["hi"]},
    "/memory/items/{item_id}": {"text": "the gate code is 4417"},
    "/memory/facts": {"text": "the gate code is 4417"},
    "/memory/profile": {"text": "I am Ana."},
    "/memory/import": {"lines": []},
    "/memory/episodes": {
        "episode_type": "howto",
        "title": "t",
        "sections": {"recipe": "restart the gateway"},
    },
    "/memory/cases": {
        "case": {
            "symptom_summary": "checkout answers 503",
            "diagnosis": "its pool is exhausted",
            "resolution": "raise the pool",
            "confidence": 0.8,
        },
    },
    "/memory/cases/{case_id}/feedback": {"helpful": True},
    "/memory/cases/{case_id}/merge": {"case_id": "cas_other"},
}
QUERIES = {
    "/workspace/file": {"path": "a.txt"},
    "/memory/intents/fields": {"key": "turn.received"},
    "/memory/search": {"q": "hi"},
    "/memory/cases/search": {"q": "hi"},
}
WITH_BODY = [
    route for route in ROUTES if route[1] in BODIES and route[0] in {"POST", "PATCH", "PUT"}
]
WITH_IDS = [route for route in ROUTES if "_id}" in route[1] or "log_file" in route[1]]
UNKNOWN = {
    "conversation_id": "cnv_unknown",
    "turn_id": "trn_unknown",
    "index": "1",
    "approval_id": "apr_unknown",
    "item_id": "epi_unknown",
    "case_id": "cas_unknown",
    "delivery_id": "4711",
    "step_id": "4711",
    "intent_id": "int_unknown",
    "log_file": "2026-11-20/trn_unknown.jsonl",
    "name": "unknown.js",
}


def path_of(template: str, ids: dict[str, str]) -> str:
    return template.replace(":path", "").format(**ids)


def body_of(template: str, ids: dict[str, str]) -> Json:
    body = BODIES.get(template, {})
    return {key: one.format(**ids) if isinstance(one, str) else one for key, one in body.items()}


async def send(
    client: httpx.AsyncClient, method: str, template: str, ids: dict[str, str], **more: Any
) -> httpx.Response:
    if "content" not in more and (method, template) in WITH_BODY:
        more["json"] = body_of(template, ids)
    more.setdefault("params", QUERIES.get(template))
    return await client.request(method, path_of(template, ids), **more)


def routes_of(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield the method and path of every route of the app."""
    for method, path, _ in endpoints_of(app):
        yield method, path


def endpoints_of(app: FastAPI) -> Iterator[tuple[str, str, Any]]:
    """Yield every route of the app with its function."""
    for section in app.router.routes:
        original = getattr(section, "original_router", None)
        for route in [section] if original is None else original.routes:
            assert isinstance(route, Route), f"{route} is of a kind that this test does not know"
            for method in (route.methods or set()) - {"HEAD"}:
                yield method, route.path, route.endpoint
