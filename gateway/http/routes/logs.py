"""The logs of the user's own turns: the list, and one log as JSON lines."""

from collections.abc import AsyncIterator, Iterator
from functools import partial

import anyio
from fastapi import APIRouter
from starlette.responses import Response

from gateway.errors import NotFound
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonLines, JsonResponse, fields_of
from gateway.http.parameters import DEFAULT_LIMIT, Limit, Parameter, unknown_cursor
from gateway.http.views import LOG
from gateway.journal.reader import LogEntry, LogLine, LogPage, list_logs, read_log

router = APIRouter()

_CHUNK_BYTES = 262_144
_MAX_PAGES = 10
"""Of all users' logs that one request searches for the user's own; then its page ends short."""


@router.get("/logs")
async def list_own_logs(
    context: Context,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Parameter = "",
    conversation_id: Parameter = "",
) -> Response:
    """List the logs of the user's turns, newest first. A short page may have a next one."""
    if conversation_id:
        await context.chat.conversations.get(context.user_id, conversation_id)
    own: list[LogEntry] = []
    next_cursor = cursor or None
    for _ in range(_MAX_PAGES):
        page = await _page(context, limit - len(own), next_cursor, conversation_id or None)
        own += [
            entry
            for entry in page.entries
            if await context.chat.reader.owns_turn(context.user_id, entry.turn_id)
        ]
        next_cursor = page.next_cursor
        if next_cursor is None or len(own) == limit:
            break
    return JsonResponse(
        {"logs": [fields_of(entry, LOG) for entry in own], "next_cursor": next_cursor}
    )


async def _page(
    context: RequestContext, limit: int, cursor: str | None, conversation_id: str | None
) -> LogPage:
    read = partial(
        list_logs,
        context.state.services.settings.log_dir,
        limit=limit,
        cursor=cursor,
        conversation_id=conversation_id,
    )
    try:
        return await anyio.to_thread.run_sync(read)
    except ValueError:
        raise unknown_cursor("cursor") from None


@router.get("/logs/{log_file:path}", response_class=JsonLines)
async def show_log(context: Context, log_file: str) -> Response:
    """Return one log as JSON lines. The name is looked up in the list, never opened as a path."""
    turn_id = log_file.rpartition("/")[2].removesuffix(".jsonl")
    lines = None
    if await context.chat.reader.owns_turn(context.user_id, turn_id):
        log_dir = context.state.services.settings.log_dir
        lines = await anyio.to_thread.run_sync(read_log, log_dir, log_file)
    if lines is None:
        raise NotFound("There is no such log.")
    return JsonLines(_chunks(lines))


async def _chunks(lines: Iterator[LogLine]) -> AsyncIterator[bytes]:
    while chunk := await anyio.to_thread.run_sync(_next_chunk, lines):
        yield chunk


def _next_chunk(lines: Iterator[LogLine]) -> bytes:
    chunk = bytearray()
    for line in lines:
        chunk += line.text.encode() + b"\n"
        if len(chunk) >= _CHUNK_BYTES:
            break
    return bytes(chunk)
