"""An editor's side of the Agent Client Protocol, by its library, on `candor acp` and the real server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import acp
import anyio
import pytest
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from tests.support.asgi import served
from tests.support.live_server import (
    DEADLINE_S,
    LiveClient,
    LiveServer,
    bash,
    running_server,
    script,
    started_server,
)

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]


class Editor:
    """What the person sees, and how they answer."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.answer: Callable[[], Any] = lambda: DeniedOutcome(outcome="cancelled")
        self.on_update: Callable[[Any], None] = lambda _: None
        self.is_away = False
        """The person answers no question."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.on_update(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, [option.option_id for option in options]))
        if self.is_away:
            await anyio.sleep_forever()
        return RequestPermissionResponse(outcome=self.answer())

    def on_connect(self, conn: Any) -> None: ...

    async def saw(self, fits: Callable[["Editor"], Any]) -> None:
        """Wait until the editor shows, or was asked, what fits."""
        with anyio.fail_after(DEADLINE_S / 2):
            while not fits(self):  # noqa: ASYNC110
                await anyio.sleep(0.02)

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(
            update.content.text for update in self.updates if update.session_update == kind
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("acp"), approvals="on") as server:
        yield server


@asynccontextmanager
async def editing(server: LiveServer, *more: str) -> AsyncIterator[tuple[Any, Editor]]:
    """Start the command as an editor does, and say hello."""
    editor = Editor()
    command = [str(ROOT / "app.py"), "acp", "--url", server.url, *more]
    workspace = str(server.workspace)
    client: Any = editor
    async with acp.spawn_agent_process(
        client, sys.executable, *command, env={"CANDOR_WORKSPACE": workspace}
    ) as (connection, _):
        hello = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert hello.protocol_version == acp.PROTOCOL_VERSION
        assert hello.agent_capabilities is not None
        assert hello.agent_capabilities.load_session
        session = hello.agent_capabilities.session_capabilities
        assert session is not None
        assert set(session.model_dump(exclude_none=True)) == {"list", "resume", "close"}
        yield connection, editor


async def test_a_session_is_a_conversation_with_text_thought_calls_and_approvals(
    server: LiveServer,
) -> None:
    workspace = str(server.workspace)
    async with editing(server) as (agent, editor):
        session = (await agent.new_session(cwd=workspace)).session_id
        steps = script({"thinking": "Hm."}, {"text": "Plain 好."})
        answer = await agent.prompt(session_id=session, prompt=[acp.text_block(steps)])
        assert answer.stop_reason == "end_turn"
        assert answer.usage.total_tokens > 0
        assert (editor.said(), editor.said("agent_thought_chunk")) == ("Plain 好.", "Hm.")

        editor.updates.clear()
        editor.answer = lambda: AllowedOutcome(option_id="allow", outcome="selected")
        make = script(bash("mkdir made"), {"text": "Made."})
        await agent.prompt(session_id=session, prompt=[acp.text_block(make)])
        ((call, options),) = editor.asked
        assert call.title == "Bash: mkdir -- made"
        assert options == ["allow", "allow_always", "reject"]
        calls = [u for u in editor.updates if u.session_update.startswith("tool_call")]
        assert [update.status for update in calls] == ["pending", "completed"]
        assert call.tool_call_id == calls[0].tool_call_id
        assert editor.said() == "\n\nMade."

        editor.answer = lambda: DeniedOutcome(outcome="cancelled")
        denied = script(bash("mkdir not_made"), {"text": "Not made."})
        await agent.prompt(session_id=session, prompt=[acp.text_block(denied)])
        ended = [u.status for u in editor.updates if u.session_update == "tool_call_update"]
        assert ended == ["completed", "failed"]

        listed = await agent.list_sessions()
        assert session in [one.session_id for one in listed.sessions]
        embedded = acp.resource_block(
            acp.embedded_text_resource("file:///a.txt", "the file's text")
        )
        await agent.prompt(session_id=session, prompt=[acp.text_block("hello"), embedded])

    async with editing(server) as (agent, editor):
        await agent.load_session(cwd=workspace, session_id=session)
        kinds = [update.session_update for update in editor.updates]
        assert kinds[:3] == ["user_message_chunk", "agent_thought_chunk", "agent_message_chunk"]
        assert kinds.count("user_message_chunk") == 4
        assert "the file's text" in editor.said("user_message_chunk")
        starts = [u.tool_call_id for u in editor.updates if u.session_update == "tool_call"]
        assert len(starts) == len(set(starts)) == 2


async def test_cancel_answers_once_the_turn_has_really_stopped(server: LiveServer) -> None:
    async with editing(server) as (agent, _):
        session = (await agent.new_session(cwd=str(server.workspace))).session_id
        slow = script({"thinking": "Begun."}, {"text": "never", "delay_ms": 30_000})

        async with server.client() as candor, candor.follow(session) as events:
            stopped: list[str] = []

            async def prompt() -> None:
                answer = await agent.prompt(session_id=session, prompt=[acp.text_block(slow)])
                stopped.append(answer.stop_reason)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(prompt)
                await events.until("turn.started")
                await agent.cancel(session_id=session)
            completed = await events.until("turn.completed")
        assert stopped == ["cancelled"]
        assert completed.data["stop_reason"] == "user_interrupt"


async def test_a_resumed_session_goes_on_unseen_and_closing_one_stops_it(
    server: LiveServer,
) -> None:
    workspace = str(server.workspace)
    async with editing(server) as (agent, _):
        session = (await agent.new_session(cwd=workspace)).session_id
        first = script({"text": "One."})
        await agent.prompt(session_id=session, prompt=[acp.text_block(first)])
    async with editing(server) as (agent, editor):
        await agent.resume_session(cwd=workspace, session_id=session)
        assert editor.updates == [], "a resumed session is not shown again"
        begun = anyio.Event()
        editor.on_update = lambda _: begun.set()
        slow = script({"thinking": "Begun."}, {"text": "never", "delay_ms": 30_000})
        stopped: list[str] = []

        async def prompt() -> None:
            answer = await agent.prompt(session_id=session, prompt=[acp.text_block(slow)])
            stopped.append(answer.stop_reason)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt)
            await begun.wait()
            await agent.close_session(session_id=session)
        assert stopped == ["cancelled"]
        for call in (
            agent.resume_session(cwd=workspace, session_id="cnv_unknown"),
            agent.close_session(session_id="cnv_unknown"),
        ):
            with pytest.raises(acp.RequestError) as unknown:
                await call
            assert unknown.value.code == -32002
    async with server.client() as candor:
        messages = (await candor.get(f"/conversations/{session}/messages"))["messages"]
    assert [message["text"] for message in messages[::2]] == [first, slow]


async def test_an_editor_that_ends_in_mid_turn_stops_nothing(server: LiveServer) -> None:
    slow = script({"thinking": "Begun."}, {"text": "Ended.", "delay_ms": 7000})
    async with server.client() as candor:
        async with editing(server) as (agent, editor), anyio.create_task_group() as tasks:
            session = (await agent.new_session(cwd=str(server.workspace))).session_id
            begun = anyio.Event()
            editor.on_update = lambda _: begun.set()
            blocks = [acp.text_block(slow)]
            tasks.start_soon(lambda: agent.prompt(session_id=session, prompt=blocks))
            await begun.wait()
            tasks.cancel_scope.cancel()
        found = await candor.wait_until(
            f"/conversations/{session}/messages", lambda told: told["messages"][1]["result"]
        )
    assert found["messages"][1]["result"]["reply"] == "Ended."


async def left_in_mid_turn(
    server: LiveServer, message: str, *, at: Callable[[Editor], Any] = lambda seen: seen.asked
) -> str:
    """Prompt in a new session, and end the editor when it shows, or was asked, so much."""
    async with editing(server) as (agent, editor), anyio.create_task_group() as tasks:
        session = str((await agent.new_session(cwd=str(server.workspace))).session_id)
        editor.is_away = True
        tasks.start_soon(
            partial(agent.prompt, session_id=session, prompt=[acp.text_block(message)])
        )
        await editor.saw(at)
        tasks.cancel_scope.cancel()
    return session


async def test_a_session_loaded_while_its_turn_waits_shows_the_call_and_asks(
    server: LiveServer,
) -> None:
    make = script(bash("mkdir left_behind"), {"text": "Made."})
    session = await left_in_mid_turn(server, make)
    async with editing(server) as (agent, editor):
        editor.answer = lambda: AllowedOutcome(option_id="allow", outcome="selected")
        await agent.load_session(cwd=str(server.workspace), session_id=session)
        await editor.saw(lambda seen: "Made." in seen.said())
        kinds = [update.session_update for update in editor.updates]
        assert kinds[:2] == ["user_message_chunk", "tool_call"]
        ((call, _),) = editor.asked
        assert call.tool_call_id == editor.updates[1].tool_call_id
        assert editor.said("user_message_chunk") == make
    assert (server.workspace / "left_behind").is_dir()


async def test_an_answer_that_is_being_written_is_shown_on_after_loading(
    server: LiveServer,
) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    session = await left_in_mid_turn(
        server, script({"text": words, "delta_delay_ms": 200}), at=Editor.said
    )
    async with editing(server) as (agent, editor):
        await agent.load_session(cwd=str(server.workspace), session_id=session)
        await editor.saw(lambda seen: "word39" in seen.said())
        assert editor.said() == words


async def test_a_session_resumed_while_its_turn_waits_asks_and_shows_what_follows(
    server: LiveServer,
) -> None:
    make = script({"text": "Before.", **bash("mkdir resumed")}, {"text": "Made."})
    session = await left_in_mid_turn(server, make)
    async with editing(server) as (agent, editor):
        editor.answer = lambda: AllowedOutcome(option_id="allow", outcome="selected")
        await agent.resume_session(cwd=str(server.workspace), session_id=session)
        await editor.saw(lambda seen: "Made." in seen.said())
        assert len(editor.asked) == 1
        assert "Before." not in editor.said()


async def test_a_question_whose_run_has_ended_is_asked_after_loading(tmp_path: Path) -> None:
    make = script(bash("mkdir outlived"), {"text": "Made."})
    options: dict[str, Any] = {"approvals": "on", "shutdown_grace_s": 0.2}
    async with running_server(tmp_path, **options) as first:
        session = await left_in_mid_turn(first, make)
        first.signal(signal.SIGTERM)
        assert await first.wait_ended() == 0
    async with running_server(tmp_path, **options) as server, editing(server) as (agent, editor):
        editor.answer = lambda: AllowedOutcome(option_id="allow", outcome="selected")
        await agent.load_session(cwd=str(server.workspace), session_id=session)
        await editor.saw(lambda _: (server.workspace / "outlived").is_dir())
        ((_, offered),) = editor.asked
        assert offered == ["allow", "reject"], "no rule can be left behind any more"
        await editor.saw(
            lambda seen: "completed" in [getattr(u, "status", "") for u in seen.updates]
        )


async def test_a_long_history_is_loaded_from_its_beginning(server: LiveServer) -> None:
    def messages(request: Request) -> JSONResponse:
        before = int(request.query_params.get("before", 250))
        page = [
            {"role": "user", "text": f"{number} ", "turn_id": f"trn_{number}"}
            for number in range(max(0, before - 100), before)
        ]
        return JSONResponse(
            {"messages": page, "next_before": str(before - 100) if before > 100 else None}
        )

    routes = [
        Route("/conversations/cnv_1/messages", messages),
        Route("/conversations/cnv_1", lambda _: JSONResponse({})),
        Route("/approvals", lambda _: JSONResponse({"approvals": []})),
    ]
    async with (
        served(Starlette(routes=routes)) as port,
        editing(server, "--url", f"http://127.0.0.1:{port}") as (agent, editor),
    ):
        await agent.load_session(cwd=str(server.workspace), session_id="cnv_1")
        assert editor.said("user_message_chunk").split() == [str(number) for number in range(250)]


async def test_cancel_withdraws_a_prompt_that_waits_and_leaves_the_turn_before_it_alone(
    server: LiveServer,
) -> None:
    slow = script({"thinking": "Begun."}, {"text": "Ended.", "delay_ms": 5000})
    queued = script(bash("mkdir never_made"), {"text": "never"})
    async with server.client() as candor, editing(server) as (agent, _):
        session = (await agent.new_session(cwd=str(server.workspace))).session_id
        async with candor.stream(slow, session) as other:
            await other.until("thinking.delta")
            stopped = await prompted_and_cancelled(candor, agent, session, queued)
            completed = await other.until("turn.completed")
        assert stopped == ["cancelled"]
        assert (completed.data["outcome"], completed.data["reply"]) == ("answered", "Ended.")
    assert not (server.workspace / "never_made").exists()


async def test_cancel_ends_both_prompts_of_a_session(server: LiveServer) -> None:
    slow = script({"thinking": "Begun."}, {"text": "never", "delay_ms": 30_000})
    queued = script(bash("mkdir nor_this"), {"text": "never"})
    async with server.client() as candor, editing(server) as (agent, editor):
        session = (await agent.new_session(cwd=str(server.workspace))).session_id
        stopped: list[str] = []

        async def prompt() -> None:
            answer = await agent.prompt(session_id=session, prompt=[acp.text_block(slow)])
            stopped.append(answer.stop_reason)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt)
            await editor.saw(lambda seen: seen.said("agent_thought_chunk"))
            stopped += await prompted_and_cancelled(candor, agent, session, queued)
        assert stopped == ["cancelled", "cancelled"]
    assert not (server.workspace / "nor_this").exists()


async def prompted_and_cancelled(
    candor: LiveClient, agent: Any, session: str, message: str
) -> list[str]:
    """Prompt behind a turn that runs, and cancel when the message waits; return how it ended."""
    stopped: list[str] = []

    async def prompt() -> None:
        answer = await agent.prompt(session_id=session, prompt=[acp.text_block(message)])
        stopped.append(answer.stop_reason)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompt)
        await candor.wait_until(f"/conversations/{session}", lambda shown: shown["queue"])
        await agent.cancel(session_id=session)
    return stopped


async def test_what_cannot_be_honoured_is_refused_in_a_sentence(server: LiveServer) -> None:
    workspace = str(server.workspace)
    async with editing(server) as (agent, _):
        with pytest.raises(acp.RequestError) as elsewhere:
            await agent.new_session(cwd="/")
        assert "open its workspace" in str(elsewhere.value)
        assert f"{server.workspace}; if the server" in str(elsewhere.value)
        assert "`CANDOR_WORKSPACE`" in str(elsewhere.value)
        with pytest.raises(acp.RequestError) as unknown:
            await agent.load_session(cwd=workspace, session_id="cnv_unknown")
        assert unknown.value.code == -32002
        session = (await agent.new_session(cwd=workspace)).session_id
        with pytest.raises(acp.RequestError) as picture:
            await agent.prompt(session_id=session, prompt=[acp.image_block("AAAA", "image/png")])
        assert "takes no image" in str(picture.value)
        with pytest.raises(acp.RequestError) as blank:
            await agent.prompt(session_id=session, prompt=[acp.text_block(" ")])
        assert (blank.value.code, str(blank.value)) == (-32602, "The prompt is blank.")
        for clear in ("/clear", "／clear"):
            with pytest.raises(acp.RequestError, match="A session cannot be cleared"):
                await agent.prompt(session_id=session, prompt=[acp.text_block(clear)])


@pytest.mark.parametrize("answer", ["<h1>It works!</h1>", "{}", "[1]", '"text"'])
async def test_an_answer_that_is_not_candors_is_said_so_without_an_exception(
    server: LiveServer, answer: str
) -> None:
    methods = ["GET", "POST"]
    other = [Route("/{path:path}", lambda _: PlainTextResponse(answer), methods=methods)]
    async with (
        served(Starlette(routes=other)) as port,
        editing(server, "--url", f"http://127.0.0.1:{port}") as (agent, _),
    ):
        blocks = [acp.text_block("hello")]
        for call in (
            partial(agent.new_session, cwd=str(server.workspace)),
            agent.list_sessions,
            partial(agent.load_session, cwd=str(server.workspace), session_id="cnv_1"),
            partial(agent.prompt, session_id="cnv_1", prompt=blocks),
        ):
            with pytest.raises(acp.RequestError) as told:
                await call()
            assert str(told.value).endswith((_NOT_OURS, _CUT))
            assert told.value.data is None


_NOT_OURS = "The server gave an answer that is not Candor's."
_CUT = "The server ended in mid-turn; load the session again."


async def test_a_server_that_is_not_there_is_said_so(server: LiveServer) -> None:
    async with editing(server, "--url", "http://127.0.0.1:9") as (agent, _):
        with pytest.raises(acp.RequestError) as gone:
            await agent.new_session(cwd=str(server.workspace))
    assert "Candor does not answer" in str(gone.value)


def command_of(server: LiveServer) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "app.py"), "acp", "--url", server.url]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CANDOR_TEST_")}
    environ = {**inherited, "CANDOR_WORKSPACE": str(server.workspace)}
    return {"args": command, "env": environ, "text": True}


def spoken(server: LiveServer, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Run the command without the library's side of an editor."""
    return subprocess.run(**command_of(server), check=False, timeout=60, **streams)


def spoken_to(server: LiveServer) -> subprocess.Popen[str]:
    """Start the command, for an editor that ends when it likes."""
    pipe = subprocess.PIPE
    return subprocess.Popen(**command_of(server), stdin=pipe, stdout=pipe, stderr=pipe)


async def test_a_request_without_what_it_needs_is_refused_in_a_sentence(server: LiveServer) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {}}
    ask = partial(spoken, server, input=json.dumps(request) + "\n", capture_output=True)
    answer = json.loads((await anyio.to_thread.run_sync(ask)).stdout)
    assert answer["error"] == {"code": -32602, "message": "`params.cwd` is missing."}


def test_an_editor_that_closes_both_pipes_ends_the_command_without_a_word(
    server: LiveServer,
) -> None:
    process = spoken_to(server)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}\n')
    process.stdin.flush()
    assert process.stdout.readline()
    process.stdin.close()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.parametrize("which", ["stdin", "stdout"])
async def test_a_file_in_the_place_of_an_editor_is_refused_in_a_sentence(
    server: LiveServer, tmp_path: Path, which: str
) -> None:
    with (tmp_path / "file").open("w+") as file:
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, which: file}
        speak = partial(spoken, server, stderr=subprocess.PIPE, **streams)
        ended = await anyio.to_thread.run_sync(speak)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "such as a file" in ended.stderr
