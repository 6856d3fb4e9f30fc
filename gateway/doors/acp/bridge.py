"""`candor acp`: an editor's agent, over standard input and output, by a running Candor.

A session is a conversation; the editor's folder must be the workspace. Standard output belongs to
the protocol.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import acp
import anyio
from acp.schema import (
    AgentCapabilities,
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
)
from anyio.abc import TaskGroup

from gateway.conversations.model import starts_afresh
from gateway.doors.acp.editor_session import EditorSession
from gateway.doors.acp.message_lines import MessageLines, are_streams
from gateway.doors.acp.server_api import (
    NOT_OURS,
    PAGE,
    UNREADABLE,
    ServerApi,
    ServerRefused,
    connect,
    unfinished_in,
)
from gateway.doors.acp.updates import message_of, replayed, stop_reason, usage_of
from gateway.doors.bridge_options import read_options
from gateway.doors.pieces import pieces_of
from gateway.version import VERSION

_NOT_FOUND: Final = -32002
_REFUSED: Final = -32603
_INVALID: Final = -32602
_EXIT_USAGE: Final = 2
_ELSEWHERE: Final = (
    "Candor works in one folder of its own: open its workspace. `candor acp` takes it for"
    " {workspace}; if the server has another, set `CANDOR_WORKSPACE` of this command to that."
)
_NO_STREAMS: Final = (
    "An editor opens standard input and output as pipes or sockets, or a person as a terminal; here"
    " one of them is something else, such as a file."
)


@contextmanager
def _telling() -> Iterator[None]:
    """Turn a refusal of the server into its sentence, and an answer that is not Candor's into one;
    the library would show an exception to the editor.
    """
    try:
        yield
    except (ServerRefused, *UNREADABLE) as exc:
        raise _told(exc) from None


def _told(exc: BaseException) -> acp.RequestError:
    if not isinstance(exc, ServerRefused):
        return acp.RequestError(_REFUSED, NOT_OURS)
    return acp.RequestError(_NOT_FOUND if exc.is_missing else _REFUSED, str(exc))


class Bridge:
    """See `acp.Agent`."""

    def __init__(self, api: ServerApi, workspace: Path, tasks: TaskGroup) -> None:
        self._api = api
        self._workspace = workspace
        self._tasks = tasks
        self._client: acp.Client | None = None
        self._sessions: dict[str, EditorSession] = {}

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
            messages = await self._history(path)
            session = self._session(session_id)
            session.unfollow()  # it may have been loaded before
            for message in messages:
                if message["role"] == "user":
                    await session.show(acp.update_user_message_text(message["text"]))
                elif message["result"] is not None:
                    for piece in pieces_of(message["result"]):
                        for update in replayed(piece, message["turn_id"]):
                            await session.show(update)
            for turn_id in unfinished_in(messages):
                await session.follow(turn_id, from_start=True)
            await session.ask_open()
            return LoadSessionResponse()

    async def _history(self, path: str) -> list[Any]:
        """Return the messages of a conversation, oldest first."""
        pages: list[list[Any]] = []
        query: dict[str, Any] = {"limit": PAGE}
        while True:
            page = await self._api.call("GET", f"{path}/messages", params=query)
            pages.append(page["messages"])
            if not page["next_before"]:
                return [message for page in reversed(pages) for message in page]
            query["before"] = page["next_before"]

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Go on with a conversation without showing it again; of a turn that runs, what comes from
        now on is shown.
        """
        with _telling():
            self._check(cwd, mcp_servers)
            await self._api.call("GET", f"/conversations/{session_id}")
            session = self._session(session_id)
            session.unfollow()
            for turn_id in await self._api.unfinished_turns(session_id):
                await session.follow(turn_id, from_start=False)
            await session.ask_open()
            return ResumeSessionResponse()

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Stop what runs in a conversation; it stays, and can be loaded again."""
        with _telling():
            await self._api.call("GET", f"/conversations/{session_id}")
            session = self._session(session_id)
            await session.cancel()
            session.unfollow()
            with suppress(ServerRefused):  # nothing runs
                await self._api.call("POST", f"/conversations/{session_id}/interrupt")
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
            if not message.strip():
                raise acp.RequestError(_INVALID, "The prompt is blank.")
            if starts_afresh(message):  # in another conversation, and the session would stay
                raise acp.RequestError(
                    _INVALID, "A session cannot be cleared; begin another one instead."
                )
            result, is_cancelled = await self._session(session_id).prompt(message)
            return PromptResponse(
                stop_reason=stop_reason(result, is_cancelled=is_cancelled),
                usage=usage_of(result),
                field_meta={"candor": {"turn_id": result["turn_id"], "outcome": result["outcome"]}},
            )

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop what the session's prompts began; each answers once its turn has really stopped."""
        await self._session(session_id).cancel()

    def _session(self, session_id: str) -> EditorSession:
        assert self._client is not None
        if session_id not in self._sessions:
            self._sessions[session_id] = EditorSession(
                session_id, self._api, self._client, self._tasks
            )
        return self._sessions[session_id]

    def _check(self, cwd: str, mcp_servers: Sequence[Any] | None) -> None:
        if mcp_servers:
            raise acp.RequestError(
                _INVALID, "Candor takes no MCP servers from an editor; its operator names them."
            )
        if not Path(cwd).resolve().is_relative_to(self._workspace):
            raise acp.RequestError(_INVALID, _ELSEWHERE.format(workspace=self._workspace))


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
    async with connect(address, token) as http, anyio.create_task_group() as tasks:
        bridge: Any = Bridge(ServerApi(http), workspace, tasks)
        # the library still counts `session/resume` and `session/close` among the unstable methods
        await acp.run_agent(bridge, await MessageLines.open(), use_unstable_protocol=True)
        tasks.cancel_scope.cancel()
