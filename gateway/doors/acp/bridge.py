"""`candor acp`: an editor's agent, over standard input and output, by a running Candor.

A session is a conversation; the editor's folder must be the workspace. Standard output belongs to
the protocol.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import acp
import anyio
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    ToolCallUpdate,
)

from gateway.doors.acp.message_lines import MessageLines, are_streams
from gateway.doors.acp.server_api import NOT_OURS, ServerApi, ServerRefused, connect
from gateway.doors.acp.updates import (
    ALLOW_ALWAYS,
    OPTIONS,
    REJECT,
    call_id,
    message_of,
    question_of,
    replayed,
    stop_reason,
    update_of,
    usage_of,
)
from gateway.doors.bridge_options import read_options
from gateway.doors.pieces import Asked, Ended, PieceReader, pieces_of
from gateway.version import VERSION

_PAGE: Final = 100
_NOT_FOUND: Final = -32002
_REFUSED: Final = -32603
_INVALID: Final = -32602
_EXIT_USAGE: Final = 2
_NO_STREAMS: Final = (
    "An editor opens standard input and output as pipes or sockets, or a person as a terminal; here"
    " one of them is something else, such as a file."
)
_UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError)
"""What reading an answer of another form raises."""


@contextmanager
def _telling() -> Iterator[None]:
    """Turn a refusal of the server into its sentence, and an answer that is not Candor's into one;
    the library would show an exception to the editor.
    """
    try:
        yield
    except (ServerRefused, *_UNREADABLE) as exc:
        raise _told(exc) from None
    except ExceptionGroup as group:
        refusals = group.subgroup((ServerRefused, *_UNREADABLE))
        if refusals is None:
            raise
        raise _told(next(iter(_leaves(refusals)))) from None


def _told(exc: BaseException) -> acp.RequestError:
    if not isinstance(exc, ServerRefused):
        return acp.RequestError(_REFUSED, NOT_OURS)
    return acp.RequestError(_NOT_FOUND if exc.is_missing else _REFUSED, str(exc))


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for exc in group.exceptions:
        yield from _leaves(exc) if isinstance(exc, BaseExceptionGroup) else (exc,)


class Bridge:
    """See `acp.Agent`."""

    def __init__(self, api: ServerApi, workspace: Path) -> None:
        self._api = api
        self._workspace = workspace
        self._client: acp.Client | None = None
        self._cancelled: set[str] = set()

    def on_connect(self, conn: acp.Client) -> None:
        """Take the editor's side."""
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:  # noqa: ARG002
        """Return what is supported."""
        return InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="candor", title="Candor", version=VERSION),
        )

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Start a conversation."""
        with _telling():
            self._check(cwd, mcp_servers)
            made = await self._api.call("POST", "/new-conversation")
            return NewSessionResponse(session_id=made["conversation_id"])

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Show a conversation again, from its beginning."""
        with _telling():
            self._check(cwd, mcp_servers)
            path = f"/conversations/{session_id}"
            await self._api.call("GET", path)
            pages, before = [], None
            while before != "":
                query = {"limit": _PAGE} | ({"before": before} if before else {})
                page = await self._api.call("GET", f"{path}/messages", params=query)
                pages.append(page["messages"])
                before = page.get("before") or ""
            for message in (message for page in reversed(pages) for message in page):
                if message["role"] == "user":
                    await self._show(session_id, acp.update_user_message_text(message["text"]))
                elif message["result"] is not None:
                    for piece in pieces_of(message["result"]):
                        for update in replayed(piece, message["turn_id"]):
                            await self._show(session_id, update)
            return LoadSessionResponse()

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Go on with a conversation without showing it again."""
        with _telling():
            self._check(cwd, mcp_servers)
            await self._api.call("GET", f"/conversations/{session_id}")
            return ResumeSessionResponse()

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Stop what runs in a conversation; it stays, and can be loaded again."""
        with _telling():
            await self._api.call("GET", f"/conversations/{session_id}")
            await self.cancel(session_id)
            return CloseSessionResponse()

    async def list_sessions(self, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """List conversations, newest first."""
        with _telling():
            query = {} if cursor is None else {"cursor": cursor}
            page = await self._api.call("GET", "/conversations", params=query)
            return ListSessionsResponse(
                sessions=[
                    SessionInfo(
                        session_id=conversation["id"],
                        cwd=str(self._workspace),
                        title=conversation["title"],
                        updated_at=conversation["last_activity_at"],
                    )
                    for conversation in page["conversations"]
                ],
                next_cursor=page["next_cursor"],
            )

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        """Run one turn to its end; what it shows and asks goes to the editor meanwhile."""
        with _telling():
            try:
                message = message_of(prompt)
            except ValueError as exc:
                raise acp.RequestError(_INVALID, str(exc)) from None
            self._cancelled.discard(session_id)
            reader = PieceReader()
            async with (
                self._api.ask(session_id, message) as events,
                anyio.create_task_group() as questions,
            ):
                async for event in events:
                    for piece in reader.read([event]):
                        if isinstance(piece, Ended):
                            questions.cancel_scope.cancel()
                            return self._answer(session_id, piece.result)
                        if isinstance(piece, Asked):
                            questions.start_soon(self._ask, session_id, piece)
                        elif (update := update_of(piece)) is not None:
                            await self._show(session_id, update)
            raise ServerRefused("The server ended in mid-turn; load the session again.")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the running turn; its prompt answers once it has really stopped."""
        self._cancelled.add(session_id)
        try:
            await self._api.call("POST", f"/conversations/{session_id}/interrupt")
        except ServerRefused:  # nothing runs
            self._cancelled.discard(session_id)

    def _answer(self, session_id: str, result: Any) -> PromptResponse:
        is_cancelled = session_id in self._cancelled
        self._cancelled.discard(session_id)
        return PromptResponse(
            stop_reason=stop_reason(result, is_cancelled=is_cancelled),
            usage=usage_of(result),
            field_meta={"candor": {"turn_id": result["turn_id"], "outcome": result["outcome"]}},
        )

    async def _ask(self, session_id: str, asked: Asked) -> None:
        """Have the person asked in the editor, and pass the answer on."""
        assert self._client is not None
        answer = await self._client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(
                tool_call_id=call_id(asked.fields),
                title=question_of(asked),
                raw_input=asked.fields.get("input"),
            ),
            options=OPTIONS,
        )
        outcome = answer.outcome
        chosen = outcome.option_id if isinstance(outcome, AllowedOutcome) else REJECT
        body = {"decision": "deny" if chosen == REJECT else "allow"}
        if chosen == ALLOW_ALWAYS:
            body["remember"] = "conversation"
        try:
            await self._api.call("POST", f"/approvals/{asked.fields['approval_id']}", json=body)
        except ServerRefused:  # answered elsewhere meanwhile
            return

    async def _show(self, session_id: str, update: Any) -> None:
        assert self._client is not None
        await self._client.session_update(session_id=session_id, update=update)

    def _check(self, cwd: str, mcp_servers: Sequence[Any] | None) -> None:
        if mcp_servers:
            raise acp.RequestError(
                _INVALID, "Candor takes no MCP servers from an editor; its operator names them."
            )
        if not Path(cwd).resolve().is_relative_to(self._workspace):
            raise acp.RequestError(
                _INVALID, "Candor works in one folder of its own: open its workspace."
            )


def run_bridge_command(
    arguments: Sequence[str],
    address: str,
    workspace_of: Callable[[str | None], Path],
    program: str,
) -> int:
    """Serve until standard input ends and return the exit code; `address` is that of the server of
    these settings, and `workspace_of` returns the workspace for a token.

    Raise `StartError` if the token cannot be read, or has no workspace.
    """
    options = read_options(arguments, address=address, program=f"{program} acp", about=__doc__)
    if isinstance(options, int):
        return options
    url, token = options
    workspace = workspace_of(token).resolve()
    if not are_streams():
        sys.stderr.write(f"candor: {_NO_STREAMS}\n")
        return _EXIT_USAGE
    anyio.run(_serve, url, token, workspace)
    return 0


async def _serve(address: str, token: str | None, workspace: Path) -> None:
    async with connect(address, token) as http:
        bridge: Any = Bridge(ServerApi(http), workspace)
        # the library still counts `session/resume` and `session/close` among the unstable methods
        await acp.run_agent(bridge, await MessageLines.open(), use_unstable_protocol=True)
