"""The real server as a person starts it, `python app.py demo`, in a process of its own, and a client for it.

Whatever waits here is bounded. A server that does not start, or does not end by itself, fails the
test with what it wrote to standard error.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil

from gateway.engine.processes import MARK, owner_of
from tests.support.engine_processes import running
from tests.support.program import ROOT, START_S, environment, may_be_warm, start_app
from tests.support.warm_starts import WarmProcess

STOP_S = 40.0
DEADLINE_S = 60.0
"""What one test may take with its server, whatever it waits for; only ever reached when it hangs."""

_OPEN = re.compile(r"^Open (http://\S+)$", re.MULTILINE)
_LOOK_AGAIN_S = 0.02


def script(*steps: Mapping[str, Any], say: str = "Please play this.") -> str:
    """Write a message that makes the demo model do exactly these steps; `say` gives the language."""
    return f"{say}\n```candor-script\n{json.dumps(steps, ensure_ascii=False)}\n```"


def bash(command: str) -> dict[str, Any]:
    """Return the step that calls Bash."""
    return {"tool": "Bash", "input": {"command": command}}


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    id: str
    type: str
    data: dict[str, Any]


class EventStream:
    """The events of one response, as they come; comments are counted."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.seen: list[Event] = []
        self.comments = 0
        self._blocks = _blocks(response.aiter_bytes())

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        async for block in self._blocks:
            if block.startswith(":"):
                self.comments += 1
                continue
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            event = Event(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            self.seen.append(event)
            return event
        raise StopAsyncIteration

    async def until(self, kind: str, where: Callable[[Event], bool] = lambda _: True) -> Event:
        """Read on to the next event of a kind."""
        async for event in self:
            if event.type == kind and where(event):
                return event
        raise AssertionError(f"the stream ended without {kind}: {self.seen[-3:]}")

    async def rest(self) -> list[Event]:
        """Read to the end of the stream; returns all its events."""
        async for _ in self:
            pass
        return self.seen


async def _blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Cut at empty lines; only LF ends a line here, whatever else Python takes for one."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        for block in whole:
            yield block.decode()


class LiveClient:
    """HTTP to a live server, in the contract's words."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def ask(self, message: str, conversation_id: str | None = None, **more: Any) -> Any:
        """Send a message and give the turn result."""
        answer = await self.http.post("/chat", json=_body(message, conversation_id, more))
        assert answer.status_code == 200, answer.text
        return answer.json()

    @asynccontextmanager
    async def stream(
        self, message: str, conversation_id: str | None = None, **more: Any
    ) -> AsyncIterator[EventStream]:
        """Send a message and read its events while they come; leaving early leaves the turn alone."""
        body = _body(message, conversation_id, more)
        async with self.http.stream("POST", "/chat/stream", json=body) as response:
            assert response.status_code == 200, await response.aread()
            yield EventStream(response)

    @asynccontextmanager
    async def follow(
        self, conversation_id: str, after: str | None = None
    ) -> AsyncIterator[EventStream]:
        """Follow a conversation, after an event where one is named, else from now on."""
        headers = {} if after is None else {"Last-Event-ID": after}
        url = f"/conversations/{conversation_id}/events"
        async with self.http.stream("GET", url, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield EventStream(response)

    async def replay(
        self, conversation_id: str, turn_id: str, after: str | None = None
    ) -> list[Event]:
        """Return a conversation's events from a turn's first (or after one) up to the turn's end."""
        async with self.follow(conversation_id, after or f"{turn_id}:0") as events:
            await events.until("turn.completed", lambda entry: entry.data["turn_id"] == turn_id)
            return events.seen

    async def get(self, path: str) -> Any:
        """Return what a path answers with."""
        answer = await self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, *, status: int = 200, **body: Any) -> Any:
        """Post and give the answer."""
        answer = await self.http.post(path, json=body or None)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def wait_for_agents(self, count: int) -> None:
        """Wait until so many prewarmed agents are ready."""
        wanted = f"warm_clients {float(count)}"
        with anyio.fail_after(DEADLINE_S / 2):
            while wanted not in (await self.http.get("/metrics")).text:  # noqa: ASYNC110
                await anyio.sleep(_LOOK_AGAIN_S)

    async def wait_until(self, path: str, done: Callable[[Any], bool]) -> Any:
        """Ask again and again until the answer is the one that is waited for."""
        with anyio.fail_after(DEADLINE_S / 2):
            while not done(answer := await self.get(path)):  # noqa: ASYNC110
                await anyio.sleep(_LOOK_AGAIN_S)
        return answer


def _body(message: str, conversation_id: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
    named = {} if conversation_id is None else {"conversation_id": conversation_id}
    return {"message": message, **named, **more}


@dataclass(slots=True, kw_only=True)
class LiveServer:
    """A server that runs, or has run."""

    process: subprocess.Popen[bytes] | WarmProcess
    owner: str
    """What the marks of its agent processes begin with."""
    url: str
    workspace: Path
    data_dir: Path
    log_dir: Path
    out_file: Path
    err_file: Path
    tolerated: list[str] = field(default_factory=list)
    """Events of its log at the level `error` that the test brings about."""
    was_killed: bool = False
    """True if the test killed it."""

    @asynccontextmanager
    async def client(self, *, deadline_s: float = DEADLINE_S) -> AsyncIterator[LiveClient]:
        """Return a client; the block is cut after the deadline."""
        with anyio.fail_after(deadline_s):
            async with httpx.AsyncClient(
                base_url=self.url, timeout=deadline_s, trust_env=False, verify=False
            ) as http:
                yield LiveClient(http)

    def new_conversation(self) -> str:
        """Start a conversation, for the tests of a module to share: each new one costs a process."""
        answer = httpx.post(f"{self.url}/new-conversation", trust_env=False, verify=False)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["conversation_id"])

    def agents(self) -> dict[int, psutil.Process]:
        """List the agent processes of this server's data directory, wherever they hang, by pid."""
        return agents_of(self.owner)

    def make_pipe(self, name: str) -> Path:
        """Make a file in the workspace that `cat` waits for until `let_go`."""
        pipe = self.workspace / name
        os.mkfifo(pipe)
        return pipe

    def journal(self, result: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Read the journal of a turn; every line of it must be JSON."""
        *lines, last = self.journal_text(result).split("\n")
        assert last == ""
        return [json.loads(line) for line in lines]

    def journal_text(self, result: Mapping[str, Any]) -> str:
        """Read the journal of a turn as it stands in its file."""
        return (self.log_dir / str(result["log_file"])).read_text(encoding="utf-8")

    def said(self) -> str:
        """Return its standard output."""
        return self.out_file.read_text(encoding="utf-8")

    def log(self) -> list[dict[str, Any]]:
        """Return the server's own log; every line must be JSON."""
        rows = self.err_file.read_text(encoding="utf-8").split("\n")
        return [json.loads(row) for row in rows if row]

    def faults(self) -> list[dict[str, Any]]:
        """Return what the log holds of errors that no test asked for."""
        return [
            row
            for row in self.log()
            if row["level"] in {"error", "critical"}
            and row["event"] not in self.tolerated
            and not row["logger"].startswith("claude_agent_sdk")  # an agent that a test killed
        ]

    def signal(self, number: signal.Signals) -> None:
        """Send the server, and nothing else, a signal."""
        self.process.send_signal(number)

    def wait(self, timeout_s: float = STOP_S) -> int:
        """Wait for its end; returns the exit code."""
        return self.process.wait(timeout_s)

    async def wait_ended(self, timeout_s: float = STOP_S) -> int:
        """Wait for its end without holding up the loop; returns the exit code."""
        with anyio.fail_after(timeout_s):
            while (code := self.process.poll()) is None:  # noqa: ASYNC110
                await anyio.sleep(_LOOK_AGAIN_S)
        return code

    def stop(self, timeout_s: float = STOP_S) -> int:
        """Stop it and return the exit code, -9 if it had to be killed."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.wait()

    def kill(self) -> None:
        """End it as a crash does."""
        self.was_killed = True
        self.process.kill()
        self.wait()


async def let_go(pipe: Path) -> None:
    """End the command that reads a pipe; it has begun, but may not have opened it yet."""
    descriptor = await opened_pipe(pipe)
    os.write(descriptor, b"through\n")
    os.close(descriptor)


async def opened_pipe(pipe: Path) -> int:
    """Wait until a command reads a pipe; return the end that keeps it waiting."""
    with anyio.fail_after(DEADLINE_S / 2):
        while True:
            try:
                return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                await anyio.sleep(_LOOK_AGAIN_S)


def agents_of(owner: str) -> dict[int, psutil.Process]:
    """List the processes that carry an owner's mark, by pid."""
    found = {}
    for process in running():
        with suppress(psutil.Error, OSError):
            mark = process.environ().get(MARK, "")
            if mark.startswith(f"{owner}:") and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = process
    return found


def start_server(
    directory: Path,
    *,
    command: str | None = "demo",
    environ: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    fresh: bool = False,
    program: Path = ROOT / "app.py",
    **settings: Any,
) -> LiveServer:
    """Start a server and wait for its address; again below the same directory, it is a restart.

    With `fresh` it is a new process from its first import on; see `warm_starts`. `program` is
    what runs as `app.py`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    number = len(list(directory.glob("server-*.out")))
    out_file, err_file = directory / f"server-{number}.out", directory / f"server-{number}.err"
    env = environment(directory, settings, environ or {})
    with out_file.open("wb") as out, err_file.open("wb") as err:
        is_fresh = fresh or not may_be_warm(environ, prefix)
        arguments = [command] if command else []
        process = start_app(
            *arguments,
            env=env,
            out=out.fileno(),
            err=err.fileno(),
            prefix=prefix,
            fresh=is_fresh,
            program=program,
        )
    try:
        url = _wait_for_address(process, out_file, err_file)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return LiveServer(
        process=process,
        owner=owner_of(Path(env["CANDOR_DATA_DIR"])),
        url=url,
        workspace=Path(env["CANDOR_WORKSPACE"]),
        data_dir=Path(env["CANDOR_DATA_DIR"]),
        log_dir=Path(env["CANDOR_LOG_DIR"]),
        out_file=out_file,
        err_file=err_file,
    )


def _wait_for_address(
    process: subprocess.Popen[bytes] | WarmProcess, out_file: Path, err_file: Path
) -> str:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        found = _OPEN.search(out_file.read_text(encoding="utf-8"))
        if found is not None:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(_LOOK_AGAIN_S)
    raise AssertionError(
        f"the server did not start (exit code {process.poll()}):\n{err_file.read_text('utf-8')}"
    )


@contextmanager
def started_server(directory: Path, **options: Any) -> Iterator[LiveServer]:
    """Run a server while the block does; see `start_server`.

    At the end it must go by itself with exit code 0, unless it has ended already, leave no agent
    process behind, and have logged no error.
    """
    server = start_server(directory, **options)
    with _seen_to_its_end(server):
        yield server


@asynccontextmanager
async def running_server(directory: Path, **options: Any) -> AsyncIterator[LiveServer]:
    """Run a server while the block does, without holding up the loop; see `started_server`."""
    server = await anyio.to_thread.run_sync(partial(start_server, directory, **options))
    with _seen_to_its_end(server):
        yield server
        await anyio.to_thread.run_sync(server.stop)


@contextmanager
def _seen_to_its_end(server: LiveServer) -> Iterator[None]:
    try:
        yield
    except BaseException:
        sys.stderr.write(server.err_file.read_text("utf-8"))
        raise
    finally:
        server.stop()
        left = server.agents()
        for process in left.values():
            with suppress(psutil.NoSuchProcess):  # it is ending by itself
                process.kill()
    told = server.err_file.read_text(encoding="utf-8")
    if not server.was_killed:
        assert server.process.returncode == 0, f"it ended with {server.process.returncode}:\n{told}"
        assert not left, f"agents were left: {sorted(left)}\n{told}"
    assert not server.faults(), told
