"""`/mcp`: Candor's memory for the agents of other programs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter
from mcp import MCPError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    Tool,
    ToolAnnotations,
)
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from gateway.chat.memory_calls import READING, MemoryCalls
from gateway.doors.mcp.server import URI, memory_server, text_result
from gateway.errors import GatewayError
from gateway.http.bodies import check_type, parse_body, read_chunks
from gateway.http.context import Context, RequestContext
from gateway.http.exception_handlers import to_gateway_error
from gateway.http.memory_bodies import EpisodeBody, QueryBody
from gateway.http.memory_views import context_fields, written_fields
from gateway.http.schemas import Body
from gateway.jsonsafe import json_text

router = APIRouter()
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "An answer of JSON-RPC, as MCP describes it.", "content": {}},
    "default": {"description": "An error of JSON-RPC, or of this server."},
}

CONTEXT: Final = "memory_context"
WRITE: Final = "memory_write_episode"
_MAX_BODY_BYTES: Final = 1 << 30
"""The server's own limit comes first."""
_OWN_TOOLS: Final[Mapping[str, tuple[type[Body], str]]] = {
    CONTEXT: (
        QueryBody,
        "Return what Candor would show an agent beside a message: the best few items.",
    ),
    WRITE: (
        EpisodeBody,
        "Write down what work was about, what was done, decided and checked, what went wrong.",
    ),
}
_NO_MESSAGE: Final = (INVALID_REQUEST, "The body is no message of JSON-RPC 2.0.")
_UNREADABLE: Final[Mapping[tuple[int, str], tuple[int, str]]] = {
    (PARSE_ERROR, "Parse error"): (PARSE_ERROR, "The body is not JSON."),
    (INVALID_PARAMS, "Validation error"): _NO_MESSAGE,
}
"""The code and the message for a body, by the code and the beginning of the library's message."""


class _Exchange(Response):
    """One request of the protocol, answered by its library."""

    def __init__(self, context: RequestContext, body: Sequence[bytes]) -> None:
        """Initialise; `body` is the whole body, which has been read."""
        super().__init__()
        self._calls = _UserCalls(context)
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(
            app=memory_server(self._calls),
            json_response=True,
            stateless=True,
            max_request_body_size=_MAX_BODY_BYTES,
        )
        async with manager.run():
            await manager.handle_request(scope, _again(self._body, receive), _in_own_words(send))


def _again(body: Sequence[bytes], receive: Receive) -> Receive:
    """Return what receives a body that was read already, and then what comes after it."""
    is_read = False

    async def received() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": b"".join(body), "more_body": False}

    return received


def _in_own_words(send: Send) -> Send:
    """Pass an answer on, but for what the library says of a body that it cannot read: it would show
    the words of its parser and the body.
    """
    held: list[Message] = []

    async def sent(message: Message) -> None:
        if message.get("status") == HTTPStatus.BAD_REQUEST:
            held.append(message)
            return
        if held:
            start, body = held.pop(), _told(message["body"])
            length = (b"content-length", str(len(body)).encode())
            others = [header for header in start["headers"] if header[0] != length[0]]
            await send({**start, "headers": [*others, length]})
            message = {**message, "body": body}
        await send(message)

    return sent


def _told(body: bytes) -> bytes:
    try:
        answer = json.loads(body)
        error = answer["error"]
        known = error["code"], error["message"].partition(":")[0]
    except (ValueError, LookupError, TypeError):  # no error of the protocol
        return body
    unread = error["code"], error["message"]
    error["code"], error["message"] = _UNREADABLE.get(known, unread)
    return json_text(answer).encode()


class _UserCalls:
    """Memory of the request's user."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context

    async def tools(self) -> list[Tool]:
        with self._telling():
            own = MemoryCalls(self._context.memory, self._context.user_id).tools
        listed = [_tool(tool.name, tool.description, tool.input_schema) for tool in own]
        for name, (model, description) in _OWN_TOOLS.items():
            if name == CONTEXT or len(own) > len(READING):
                listed.append(_tool(name, description, model.model_json_schema()))
        return listed

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        try:
            if name in _OWN_TOOLS:
                return text_result(json_text(await self._own(name, arguments)))
            calls = MemoryCalls(self._context.memory, self._context.user_id)
            answer = await calls.call(name, arguments)
        except Exception as exc:  # noqa: BLE001  answered like any request's failure
            return text_result(self._error(exc).message, is_error=True)
        return text_result(answer.text, is_error=answer.is_error)

    async def read(self, uri: str) -> str:
        with self._telling():
            calls = MemoryCalls(self._context.memory, self._context.user_id)
            answer = await calls.call("memory_get", {"id": uri.removeprefix(URI)})
        if not uri.startswith(URI) or answer.is_error:
            raise MCPError(code=INVALID_PARAMS, message="There is no such item in memory.")
        return answer.text

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Raise whatever goes wrong as an error of the protocol: its library would tell the client
        the text of an exception.
        """
        try:
            yield
        except Exception as exc:
            raise MCPError(code=INTERNAL_ERROR, message=self._error(exc).message) from exc

    def _error(self, exc: Exception) -> GatewayError:
        return to_gateway_error(exc, self._context.request.state.request_id)

    async def _own(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        raw, user_id = json_text(dict(arguments)).encode(), self._context.user_id
        if name == WRITE:
            draft = parse_body(raw, EpisodeBody).draft(user_id)
            return written_fields(await self._context.memory.writer.write(draft))
        query = parse_body(raw, QueryBody).query(user_id)
        return context_fields(await self._context.memory.reader.recall(query))


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> Tool:
    is_reading = name in READING or name == CONTEXT
    return Tool(
        name=name,
        description=description,
        input_schema=dict(schema),
        annotations=ToolAnnotations(read_only_hint=is_reading, open_world_hint=False),
    )


@router.post("/mcp", response_class=Response, responses=_ANSWERS)
async def mcp(context: Context) -> Response:
    """Speak MCP over HTTP. Each request stands for itself, so there is no stream to open."""
    check_type(context.request.headers)  # the library would answer in plain text
    # the library would wait for a body without end
    body = await read_chunks(context.request, context.state.limits.body_deadline_s)
    return _Exchange(context, body)
