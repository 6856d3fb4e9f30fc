"""An engine for tests: does what a prompt's script says, without an agent process.

It reads the demo model's script language (a fenced `candor-script` block: `text`, `thinking`,
`tool`/`tools`, `repeat`, `status`, `drop`, `hang`, `empty`, `refusal`, `echo`, `delay_ms`,
`delta_delay_ms`, `on_followup`), so one suite runs on it and on the real engine. Its tools touch
real files below the workspace: Read, Write, and `ls`, `cat`, `rm` of Bash.
"""

import json
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    EntryRecorded,
    MessageBegun,
    ModelFailed,
    ModelRetrying,
    Observed,
    RunFinished,
    SessionReady,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
)
from gateway.engine.hooks import first_denial, last_word
from gateway.engine.own_tools import OwnServer, call_own
from gateway.engine.protocol import (
    ClientDead,
    ClientSpec,
    EngineUnavailable,
    Prompt,
    SessionGone,
    SessionOrigin,
)
from gateway.engine.runs import EventQueue
from gateway.relay.reports import ModelCall
from policies.calls import ToolCall
from policies.verdict import Deny
from tests.support.scripted_steps import (
    ScriptedCall,
    Session,
    Step,
    calls_of,
    run_tool_blocking,
    steps_of,
)

_WORDS = re.compile(r"\S+\s*|\s+")
_MAX_RETRIES = 10
_RETRY_MS = 10
_LOGIN = "authentication_failed"
_KINDS = {401: _LOGIN, 403: _LOGIN, 404: "model_not_found", 429: "rate_limit"}
_RETRIED = frozenset({401, 408, 409, 429})
"""Besides server errors; the agent program gives up on every other status at once."""

_SERVER_ERROR = 500


class _Refused(Exception):
    """The gate said no."""

    def __init__(self, verdict: Deny) -> None:
        super().__init__(verdict.message)
        self.interrupt = verdict.interrupt


class ScriptedEngine:
    """See `Engine`.

    With `tasks` a run is played in the background from its start, as an agent does; without, it is
    played while its events are read.
    """

    def __init__(self, workspace: Path, tasks: TaskGroup | None = None) -> None:
        self.workspace = workspace
        self.tasks = tasks
        self.max_retries = _MAX_RETRIES
        self.sessions: dict[str, Session] = {}
        self.clients: list[ScriptedClient] = []
        self.answers: dict[str, Step] = {}
        """What it does at the next prompt with this text, in place of a script in it."""
        self.broken = False
        """Set it to let `connect` fail."""

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> "ScriptedClient":
        await anyio.lowlevel.checkpoint()
        if self.broken:
            raise EngineUnavailable("The agent could not be started.", detail="scripted")
        session_id = origin.resume or str(uuid.uuid4())
        if origin.resume is not None:
            known = self.sessions.get(origin.resume)
            if known is None:
                raise SessionGone("The session is gone.")
            if origin.fork_at is not None:
                session_id = str(uuid.uuid4())
                if origin.fork_at not in known.uuids:
                    raise SessionGone("The session is gone.")
                kept = known.uuids.index(origin.fork_at) + 1
                self.sessions[session_id] = Session(known.prompts[:kept], known.uuids[:kept])
        self.sessions.setdefault(session_id, Session())
        client = ScriptedClient(self, spec, session_id)
        self.clients.append(client)
        return client

    async def forget_session(self, session_id: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.sessions.pop(session_id, None)

    async def end_orphans(self) -> int:
        await anyio.lowlevel.checkpoint()
        return 0

    async def ping(self) -> str | None:
        await anyio.lowlevel.checkpoint()
        return "The scripted engine is broken." if self.broken else None


class ScriptedClient:
    """See `AgentClient`."""

    def __init__(self, engine: ScriptedEngine, spec: ClientSpec, session_id: str) -> None:
        self._engine = engine
        self._spec = spec
        self._session_id = session_id
        self._id = uuid.uuid4().hex
        self._alive = True
        self._used = False
        self._run: ScriptedRun | None = None
        self.memory_bytes = 0
        """What `memory_bytes_blocking` tells."""

    @property
    def client_id(self) -> str:
        return self._id

    @property
    def session_id(self) -> str | None:
        return self._session_id if self._used else None

    def is_alive(self) -> bool:
        return self._alive

    async def start_run(self, prompt: Prompt) -> "ScriptedRun":
        await anyio.lowlevel.checkpoint()
        if not self._alive:
            raise ClientDead("The agent process has ended.")
        if self._run is not None and not self._run.is_over:
            await self.kill()
            raise ClientDead("The agent is still at work on a run that was given up.")
        self._used = True
        session = self._engine.sessions[self._session_id]
        if prompt.text in self._engine.answers:
            session.followups.insert(0, self._engine.answers.pop(prompt.text))
        ready = SessionReady(session_id=self._session_id, model=self._spec.model or "scripted")
        run = ScriptedRun(self._engine.workspace, session, ready, prompt, self._spec.servers)
        run.max_retries = self._engine.max_retries
        self._run = run
        if self._engine.tasks is not None:
            run.play_in(self._engine.tasks)
        return run

    async def close(self) -> None:
        await self.kill()

    async def kill(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()
        self._alive = False
        if self._run is not None:
            self._run.lose()
        if self in self._engine.clients:
            self._engine.clients.remove(self)

    def memory_bytes_blocking(self) -> int:
        return self.memory_bytes

    def stderr_tail(self) -> Sequence[str]:
        return ()


class ScriptedRun:
    """See `AgentRun`."""

    def __init__(
        self,
        workspace: Path,
        session: Session,
        ready: SessionReady,
        prompt: Prompt,
        servers: Sequence[OwnServer] = (),
    ) -> None:
        self.max_retries = _MAX_RETRIES
        self._workspace = workspace
        self._session = session
        self._ready = ready
        self._prompt = prompt
        self._context = ""
        self.asks_model = False
        """True from when the model is asked."""
        self._calls = prompt.calls_before
        self._own = {server.full_name(tool) for server in servers for tool in server.tools}
        self._uuid = str(uuid.uuid4())
        self._queue = EventQueue()
        self.silent_since = anyio.current_time()
        self._begun = False
        self._stop = anyio.Event()
        self._lost = anyio.Event()

    def play_in(self, tasks: TaskGroup) -> None:
        """Play the script from now on, whether or not anybody reads."""
        self._begun = True
        tasks.start_soon(self._play_to_the_end)

    async def events(self) -> AsyncIterator[EngineEvent]:
        if self._begun:
            async for event in self._queue.read():
                yield event
            return
        async with anyio.create_task_group() as tasks:
            self.play_in(tasks)
            async for event in self._queue.read():
                yield event  # noqa: ASYNC119  read to the end by its one reader

    async def interrupt(self) -> None:
        await anyio.lowlevel.checkpoint()
        self._stop.set()

    @property
    def is_over(self) -> bool:
        """Return whether the run has emitted its last event."""
        return self._queue.is_ended

    def lose(self) -> None:
        """End the run as a killed process does."""
        self._lost.set()

    async def _play_to_the_end(self) -> None:
        ending: EngineEvent | None = None

        async def play() -> None:
            nonlocal ending
            ending = await self._play()
            tasks.cancel_scope.cancel()

        async def end_at(event: anyio.Event, told: EngineEvent) -> None:
            nonlocal ending
            await event.wait()
            ending = told
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(play)
            tasks.start_soon(end_at, self._stop, self._finished("aborted_streaming"))
            tasks.start_soon(end_at, self._lost, ClientLost(exit_code=-9))
        if self.asks_model:
            self._session.prompts.append(self._prompt.text)
            self._session.uuids.append(self._uuid)
        self._queue.put(ending or ClientLost(exit_code=None))

    def _finished(self, terminal_reason: str, **more: Any) -> RunFinished:
        broken = terminal_reason in {"aborted_streaming", "aborted_tools"}
        return RunFinished(
            subtype="error_during_execution" if broken else "success",
            is_error=broken or terminal_reason == "api_error",
            result=more.pop("result", None),
            terminal_reason=terminal_reason,
            session_id=self._ready.session_id,
            **more,
        )

    def _emit(self, event: EngineEvent) -> None:
        self.silent_since = anyio.current_time()
        self._queue.put(event)

    async def _play(self) -> RunFinished:
        if self._prompt.context is not None:
            context = await self._prompt.context()
            if context is None:
                return self._finished("completed", result="")
            self._context = context
        self.asks_model = True
        self._emit(Observed(message={"type": "init", "session_id": self._ready.session_id}))
        self._emit(self._ready)
        self._emit(EntryRecorded(entry_id=self._uuid))
        last = ""
        for step in steps_of(self._prompt.text, self._session):
            await anyio.sleep(step.get("delay_ms", 0) / 1000)
            if step.get("hang"):
                await anyio.sleep_forever()
            if "status" in step or step.get("drop"):
                failed = await self._fail(step)
                if failed is not None:
                    return failed
                continue
            if step.get("refusal"):
                self._emit(MessageBegun())
                self._emit(ModelFailed(kind="invalid_request", text="API Error: refused"))
                return self._finished("api_error", stop_reason="refusal")
            last = await self._answer(step) or last
            for call in calls_of(step):
                if not await self._call(call):
                    return self._finished("aborted_tools")
        return self._finished("completed", result=last, stop_reason="end_turn")

    async def _fail(self, step: Step) -> RunFinished | None:
        """Fail as often as the step says; None when it gives way to the next one."""
        status = step.get("status")
        told = _KINDS.get(status or 0, "overloaded" if status else "unknown")
        is_retried = status is None or status in _RETRIED or status >= _SERVER_ERROR
        retries = self.max_retries if is_retried else 0
        for attempt in range(1, min(step.get("times", 1), retries) + 1):
            failing: dict[str, Any] = {"status": status, "error": told, "delay_ms": _RETRY_MS}
            self._emit(ModelRetrying(attempt=attempt, max_attempts=retries, **failing))
            await anyio.sleep(_RETRY_MS / 1000)
        if step.get("times", 1) <= retries:
            return None
        kind = _KINDS.get(status or 0, "server_error" if is_retried else "invalid_request")
        self._emit(ModelFailed(kind=kind, text=f"API Error: {status}"))
        return self._finished("api_error", api_error_status=status)

    async def _answer(self, step: Step) -> str:
        self._emit(MessageBegun())
        if "thinking" in step:
            self._emit(ThinkingDelta(text=step["thinking"]))
        text = self._echo(step["echo"]) if "echo" in step else str(step.get("text", ""))
        for piece in _WORDS.findall(text):
            self._emit(TextDelta(text=piece))
            await anyio.sleep(step.get("delta_delay_ms", 0) / 1000)
        if text:
            self._emit(TextDone(text=text))
        if self._prompt.on_model_call is not None:
            self._prompt.on_model_call(ModelCall(seconds=0.0, status=200, is_whole=True))
        return text

    def _echo(self, part: str) -> str:
        match part:
            case "context" | "memory":
                return self._context
            case "messages":
                return json.dumps([*self._session.prompts, self._prompt.text], ensure_ascii=False)
            case _:
                return self._prompt.text

    async def _call(self, scripted: ScriptedCall) -> bool:
        """Make one tool call; False when the gate ended the run with it."""
        self._calls += 1
        call = ToolCall(
            name=scripted.name,
            input=scripted.input,
            cwd=str(self._workspace),
            tool_use_id=scripted.tool_use_id,
            index=self._calls,
        )
        which: dict[str, Any] = {"tool_use_id": call.tool_use_id, "index": call.index}
        self._emit(ToolCalled(name=call.name, input=call.input, **which))
        goes_on, is_error = True, True
        try:
            text, is_error = await self._gated(call), False
        except _Refused as refused:
            text, goes_on = str(refused), not refused.interrupt
        except (OSError, ValueError, KeyError) as exc:
            text = str(exc)
        self._prompt.gatekeeper.returned(call.index)
        self._emit(ToolReturned(is_error=is_error, text=text, **which))
        return goes_on

    async def _gated(self, call: ToolCall) -> str:
        denial = await first_denial(self._prompt.gatekeeper, call)
        if denial is not None and not denial.interrupt:
            raise _Refused(denial)
        decided = await last_word(self._prompt.gatekeeper, call)
        if isinstance(decided, Deny):
            raise _Refused(decided)
        if denial is not None:
            raise _Refused(denial)
        runs = dict(call.input if decided.updated_input is None else decided.updated_input)
        if call.name in self._own:
            answer = await call_own(self._prompt.call_own, call.name, runs)
            if answer.is_error:
                raise ValueError(answer.text)
            return answer.text
        return await anyio.to_thread.run_sync(run_tool_blocking, self._workspace, call.name, runs)
