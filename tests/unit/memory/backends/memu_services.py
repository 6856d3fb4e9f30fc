"""An embeddings endpoint and a memU server on loopback, as far as their contracts go.

Written from the public description of `NevaMind-AI/memU-server`: an answer is `{"status",
"result"}`; a memorize request makes a task with an id of its own, whatever came before it; `/clear`
takes a user, an agent or both; `/retrieve` finds items with the scope they were made in.
"""

import hashlib
import json
import math
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from memory.embeddings.openai import Embeddings
from memory.outbox.backends.memu_cli import MemuCliBackend

DIMENSION = 64
Reply = tuple[int, Any]
"""A status and a body: JSON, or bytes as they are."""


@contextmanager
def served(
    answer: Callable[[str, str, Any], Reply], *, headers: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Serve `answer(method, path, body)` on loopback while the block runs; returns the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self._reply(json.loads(self.rfile.read(length)))

        def _reply(self, body: Any) -> None:
            status, said = answer(self.command, self.path, body)
            text = said if isinstance(said, bytes) else json.dumps(said).encode()
            try:
                self.send_response(status)
                for name, value in {"Content-Length": len(text), **(headers or {})}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(text)
            except OSError:
                self.close_connection = True  # the client has gone

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vector_of(text: str) -> list[float]:
    """Return a vector that shares directions with texts of the same words, or characters of CJK."""
    vector = [0.0] * DIMENSION
    for word in re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.lower()):
        vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % DIMENSION] += 1.0
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return [number / length for number in vector]


@dataclass
class FakeEmbeddings:
    """An OpenAI-compatible endpoint; `instead` answers in its place where it gives something."""

    instead: Callable[[list[str]], Reply | None] = lambda _: None
    asked: list[list[str]] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any) -> Reply:
        if (method, path) != ("POST", "/v1/embeddings"):
            return 404, {"detail": "Not Found"}
        texts = body["input"]
        self.asked.append(texts)
        rows = [
            {"object": "embedding", "index": index, "embedding": vector_of(text)}
            for index, text in enumerate(texts)
        ]
        return self.instead(texts) or (200, {"object": "list", "data": rows, "model": "m"})


@dataclass
class FakeMemuServer:
    """The server: one memory a line, made when its task was looked at so many times."""

    looks: int = 1
    fails: bool = False
    instead: Callable[[str, str], Reply | None] = lambda *_: None
    items: list[dict[str, str]] = field(default_factory=list)
    tasks: dict[str, list[Any]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def answer(self, method: str, path: str, body: Any) -> Reply:
        self.asked.append((path, body))
        instead = self.instead(method, path)
        if instead is not None:
            return instead
        if method == "GET" and path.startswith("/memorize/status/"):
            return self._status(path.rpartition("/")[2])
        paths = {"/memorize": self._memorize, "/clear": self._clear, "/retrieve": self._retrieve}
        if method == "POST" and path in paths:
            return paths[path](body)
        return (200, {"message": "Hello MemU user!"}) if path == "/" else (404, {"detail": "?"})

    def end_all(self) -> None:
        """Finish all tasks that did not fail, polled or not."""
        for task, state in self.tasks.items():
            if task not in self.failed:
                self._finish(state)

    def _memorize(self, body: Any) -> Reply:
        if "conversation" not in body or not body.get("user_id"):
            return 422, {"detail": "missing"}
        task = f"memorize-{next(self._numbers):032x}"
        self.tasks[task] = [self.looks, body]
        return _good({"task_id": task, "status": "PENDING", "message": "submitted"})

    def _status(self, task: str) -> Reply:
        if task not in self.tasks:
            return 404, {"detail": f"Task {task} not found"}
        state = self.tasks[task]
        if state[0] > 0:
            state[0] -= 1
            return _good({"task_id": task, "status": "RUNNING", "detail": None})
        if self.fails or task in self.failed:
            self.failed.add(task)
            return _good({"task_id": task, "status": "FAILED", "detail": "failed"})
        self._finish(state)
        return _good({"task_id": task, "status": "COMPLETED", "detail": "SUCCESS"})

    def _finish(self, state: list[Any]) -> None:
        body, state[1] = state[1], None
        for turn in body["conversation"] if body else ():
            for line in filter(None, turn["content"].splitlines()):
                self.items.append(
                    {"summary": line, "user_id": body["user_id"], "agent_id": body["agent_id"]}
                )

    def _clear(self, body: Any) -> Reply:
        if not body.get("user_id") and not body.get("agent_id"):
            return 422, {"detail": "one of both"}
        kept = [item for item in self.items if any(item[name] != body[name] for name in body)]
        purged = len(self.items) - len(kept)
        self.items = kept
        return _good({"purged_categories": 0, "purged_items": purged, "purged_resources": 0})

    def _retrieve(self, body: Any) -> Reply:
        """Find across all users, as the server does that takes no scope from the request."""
        asked = vector_of(body["query"])
        found = [
            (sum(a * b for a, b in zip(asked, vector_of(item["summary"]), strict=True)), item)
            for item in self.items
        ]
        best = sorted(found, key=lambda hit: -hit[0])
        return _good({"items": [entry for score, entry in best if score > 0], "categories": []})


def _good(result: Any) -> Reply:
    return 200, {"status": "success", "result": result}


_WAIT_S = 30


@asynccontextmanager
async def opened_memu(directory: Path, address: str) -> AsyncIterator[MemuCliBackend]:
    backend = MemuCliBackend(directory, Embeddings(base_url=address, model="m", api_key="k"))
    try:
        with anyio.fail_after(_WAIT_S):
            yield backend
    finally:
        await backend.close()
