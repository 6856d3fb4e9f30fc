"""Every route there is, and a request to each of them."""

from collections.abc import Iterator
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.routing import Route

from tests.service.http.stage import Json
from tests.support.tables import read_pairs, read_rows

ROUTES: list[tuple[str, str]] = read_rows("routes")
OPEN = {
    *{"/healthz", "/healthz/ready", "/", "/static/{name:path}", "/auth/sign-in", "/auth/callback"}
}
BODIES: dict[str, Json] = read_pairs("route-bodies")
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
    "schedule_id": "sch_unknown",
    "item_id": "epi_unknown",
    "case_id": "cas_unknown",
    "delivery_id": "4711",
    "step_id": "4711",
    "intent_id": "int_unknown",
    "agent_id": "agent_unknown",
    "environment_id": "env_unknown",
    "webhook_id": "whk_unknown",
    "file_id": "file-Z29uZQ",
    "message_id": "msg_unknown",
    "log_file": "2026-11-20/trn_unknown.jsonl",
    "response_id": "resp_trn_unknown",
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
