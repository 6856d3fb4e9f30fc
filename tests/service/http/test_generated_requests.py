"""Requests made up from the service's own description of itself: right ones and wrong ones.

Whatever is sent, the server does not fail, answers in the types and statuses it describes, and
every error has the one shape. The turns are run by the scripted engine, all else is as in the
program.
"""

import inspect
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio.from_thread
import anyio.to_thread
import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, BaseSchema, Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from gateway.application import create_app
from gateway.version import VERSION
from tests.service.http.every_route import BODIES, ROUTES, WITH_BODY, WITH_IDS, endpoints_of
from tests.support.asgi import served
from tests.support.services import running_services

FEW, MANY = 2, 30
RIGHT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
SAME_EACH_TIME = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
TIMEOUT_S = 20
FORMS = {"/workspace/files": "Files", "/openai/v1/files": "File"}
"""The routes that take a form, and what it is called."""
_READS = re.compile(r"context\.(?P<how>body|optional_body)\((?P<model>\w+)\)")


@dataclass(frozen=True, slots=True)
class Live:
    """A server that runs in another thread."""

    url: str
    app: FastAPI
    schema: BaseSchema
    ids: dict[str, str]
    """A conversation, what is in it, and a case."""

    def operation(self, method: str, template: str) -> APIOperation[Any, Any, Any, Any]:
        found: APIOperation[Any, Any, Any, Any] = self.schema[template.replace(":path", "")][method]
        return found


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[tuple[str, FastAPI]]:
    """Run the gateway, and give its address."""
    async with running_services(directory) as services:
        app = await anyio.to_thread.run_sync(partial(create_app, services))
        async with served(app) as port:
            yield f"http://127.0.0.1:{port}", app


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    directory = tmp_path_factory.mktemp("generated")
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(directory)) as (url, app),
    ):
        description = httpx.get(f"{url}/openapi.json", timeout=TIMEOUT_S).json()
        schema = schemathesis.openapi.from_dict(description)
        schema.config.update(base_url=url)
        done = httpx.post(f"{url}/chat", json={"message": "hi"}, timeout=TIMEOUT_S).json()
        case = httpx.post(
            f"{url}/memory/cases", json=BODIES["/memory/cases"], timeout=TIMEOUT_S
        ).json()
        names = ("conversation_id", "turn_id", "log_file")
        ids = {name: done[name] for name in names}
        yield Live(url, app, schema, {**ids, "case_id": case["case_id"]})


def assert_fits(case: Case[Any]) -> None:
    response = case.call(timeout=TIMEOUT_S)
    case.validate_response(response, checks=CHECKS)
    if response.status_code >= 400 and case.method.upper() != "HEAD":
        body = response.json()
        if case.path == "/mcp" and "jsonrpc" in body:  # an error of the protocol, by its library
            assert set(body["error"]) <= {"code", "message", "data"}
            return
        theirs = {"type", "request_id"} if case.path.startswith("/anthropic/") else set()
        assert set(body) == {"error"} | theirs
        own = {"code", "message", "retryable", "request_id", "details"}
        assert set(body["error"]) == own | (theirs & {"type"})
        assert body["error"]["request_id"] == response.headers["x-request-id"][0]
        assert "Traceback" not in body["error"]["message"]
    assert response.headers["x-content-type-options"] == ["nosniff"]
    assert "server" not in response.headers


@pytest.mark.parametrize(
    ("method", "template", "mode", "examples"),
    [
        pytest.param(*route, mode, MANY, marks=pytest.mark.soak)
        for route in ROUTES
        for mode in (RIGHT, WRONG)
    ]
    + [(*route, RIGHT, FEW) for route in ROUTES]
    + [(*route, WRONG, FEW) for route in WITH_BODY],  # a wrong id alone takes long to make up
)
def test_whatever_is_sent_the_answer_fits_the_description(
    live: Live, method: str, template: str, mode: GenerationMode, examples: int
) -> None:
    operation = live.operation(method, template)
    try:
        strategy = operation.as_strategy(generation_mode=mode)

        @settings(SAME_EACH_TIME, max_examples=examples)
        @given(strategy)
        def send(case: Case[Any]) -> None:
            assert_fits(case)

        send()
    except Unsatisfiable:
        assert mode is WRONG, "there is always a right request"


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("method", "template"),
    [route for route in WITH_IDS if route[0] != "DELETE" and not route[1].endswith("/events")],
)
def test_whatever_is_sent_to_what_is_there_the_answer_fits(
    live: Live, method: str, template: str, examples: int
) -> None:
    @settings(SAME_EACH_TIME, max_examples=examples)
    @given(live.operation(method, template).as_strategy())
    def send(case: Case[Any]) -> None:
        for name in set(case.path_parameters) & set(live.ids):
            case.path_parameters[name] = live.ids[name]
        assert_fits(case)

    send()


def test_the_description_has_every_route_and_every_body_that_one_reads(live: Live) -> None:
    """Which body a route reads is found in what it does, so a new one cannot be left out."""
    described = {}
    for path, operations in live.schema.raw_schema["paths"].items():
        for method, operation in operations.items():
            described[method.upper(), path] = _described(operation.get("requestBody"))
    read = {}
    for method, template, endpoint in endpoints_of(live.app):
        source = inspect.getsource(endpoint)
        found = _READS.search(source)
        body = (found["model"], found["how"] == "body") if found else None
        read[method, template.replace(":path", "")] = (
            (FORMS[template], True) if "read_uploads(" in source else body
        )
    assert described == read
    assert len([body for body in read.values() if body]) == len(WITH_BODY) + len(FORMS)


def _described(body: dict[str, Any] | None) -> tuple[str, bool] | None:
    """Return the model of a body and whether the body is required."""
    if body is None:
        return None
    assert "$ref" not in str(body)
    (content,) = body["content"].values()
    return content["schema"]["title"], body["required"]


def test_the_description_names_the_version_and_is_shown_on_no_page(live: Live) -> None:
    assert live.schema.raw_schema["info"] == {"title": "Candor", "version": VERSION}
    assert httpx.get(f"{live.url}/readyz").json()["version"] == VERSION
    for path in ("/docs", "/redoc", "/openapi.yaml", "/docs/oauth2-redirect"):
        assert httpx.get(f"{live.url}{path}").status_code == 404
