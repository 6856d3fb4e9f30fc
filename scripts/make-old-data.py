"""Make the archive of a released state: `python scripts/make-old-data.py REVISION NAME`; see tests/data/README.md.

The server of that revision runs with its own code below `/srv/candor`, on its demo model, and is used over HTTP: turns
that end well and badly, memory where the state has it, and at last a kill in the middle of a turn. The archive holds what
it left on disk, and `told.json`: what it had told about it.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

ARCHIVES = Path(__file__).parents[1] / "tests" / "data"
HOME = Path("/srv/candor")
"""Paths that the server writes down begin with it; nothing of the machine that made the archive is in them."""
KEPT = ("data/*.sqlite3", "data/*.sqlite3-wal", "data/vectors/**/*", "logs/**/*", "workspace/**/*")
"""Not the agent program's own sessions: they are large, and found only under the same path of the workspace."""
UNREACHABLE = "http://127.0.0.1:9"
"""Deliveries to it stay in the outbox."""
WAIT_S = 60
EPISODE = {
    "episode_type": "bugfix",
    "title": "Grebe deploy rolled back",
    "scope": {"project_id": "grebe"},
    "tags": ["deploy"],
    "sections": {
        "context": "The grebe service failed its health check after the deploy.",
        "decisions": "回滚到上一个版本，并且重新生成配置。",
        "verification": "The health check passed on three nodes.",
    },
}
CASE = {
    "symptom_summary": "Grebe returns 502 after a certificate change",
    "diagnosis": "The proxy kept the old certificate chain in memory.",
    "resolution": "Reload the proxy after each certificate change.",
    "root_cause": "stale_certificate",
    "confidence": 0.8,
}


def script(*steps: Mapping[str, Any], say: str = "Please play this.") -> str:
    """Return a message that makes the demo model answer with these steps."""
    return f"{say}\n```candor-script\n{json.dumps(steps, ensure_ascii=False)}\n```"


def bash(command: str) -> dict[str, Any]:
    """Return the step that calls Bash."""
    return {"tool": "Bash", "input": {"command": command}}


@contextlib.contextmanager
def server() -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """Run the state's server; the block ends it, by SIGTERM unless it has ended."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CANDOR_")}
    settings = {
        "CANDOR_PORT": "0",
        "CANDOR_WORKSPACE": str(HOME / "workspace"),
        "CANDOR_DATA_DIR": str(HOME / "data"),
        "CANDOR_LOG_DIR": str(HOME / "logs"),
        "CANDOR_PREWARMED_CLIENTS": "0",
        "CANDOR_DEMO_CADENCE_MS": "0",
        "CANDOR_DEMO": "on",
    }
    if "memu_url" in (HOME / "app" / "gateway" / "settings.py").read_text("utf-8"):
        settings |= {"CANDOR_MEMU": "server", "CANDOR_MEMU_URL": UNREACHABLE}
    with (HOME / "out").open("w+b") as out:
        process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=HOME / "app",
            env={**ours, **settings, "HOME": str(HOME)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        try:
            with httpx.Client(base_url=_address(process), timeout=WAIT_S, trust_env=False) as http:
                yield process, http
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_S)


def _address(process: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"^Open (http://\S+)$", (HOME / "out").read_text("utf-8"), re.MULTILINE)
        if found is not None:
            return found[1]
        time.sleep(0.05)
    raise SystemExit("the server of that revision did not start")


def get(http: httpx.Client, path: str) -> Any:
    """Return the JSON that a path answers with."""
    answer = http.get(path)
    answer.raise_for_status()
    return answer.json()


def ask(http: httpx.Client, message: str, conversation_id: str = "", **more: Any) -> dict[str, Any]:
    """Run a turn and return its result."""
    named = {"conversation_id": conversation_id} if conversation_id else {}
    answer = http.post("/chat", json={"message": message, **named, **more})
    answer.raise_for_status()
    result: dict[str, Any] = answer.json()
    print(result["outcome"], result["stop_reason"], repr(result["reply"][:60]))  # noqa: T201
    return result


def converse(http: httpx.Client) -> dict[str, str]:
    """Run turns of every outcome; return the conversations."""
    first = ask(http, "my codeword is plover", idempotency_key="state-1")["conversation_id"]
    http.patch(f"/conversations/{first}", json={"title": "Plover 与 grebe"}).raise_for_status()
    ask(http, script(bash("ls"), {"tool": "Write", "input": {"file_path": "a.txt", "content": "one\n"}}, {"text": "Written."}), first)  # fmt: skip
    ask(http, script(bash("cat missing.txt"), {"text": "写不了。"}, say="请按照脚本执行。"), first)
    ask(http, script(bash("cat /etc/passwd"), {"empty": True, "times": 9}), first)
    failed = ask(http, script({"status": 400, "message": "scripted refusal", "times": 9}))[
        "conversation_id"
    ]
    ask(http, script(*[bash("ls")] * 8), failed)
    ask(http, "remember that the grebe service listens on port 7431")
    return {"first": first, "failed": failed}


def remember(http: httpx.Client) -> None:
    """Write an episode and a case, and vote on the case."""
    http.post("/memory/episodes", json=EPISODE).raise_for_status()
    written = http.post("/memory/cases", json={"case": CASE, "app_code": "grebe"})
    written.raise_for_status()
    case_id = written.json()["case_id"]
    http.post(f"/memory/cases/{case_id}/feedback", json={"helpful": True}).raise_for_status()


def told(http: httpx.Client) -> dict[str, Any]:
    """Collect what the server tells of everything that it keeps, by path."""
    conversations = get(http, "/conversations")["conversations"]
    paths = [f"/conversations/{conversation['id']}/messages" for conversation in conversations]
    if http.get("/memory/health").is_success:
        paths += ["/memory/intents?limit=200", "/memory/outbox"]
        found = get(http, "/memory/search?q=grebe&limit=20")["items"]
        paths += [f"/memory/items/{hit['id']}" for hit in found]
    return {path: get(http, path) for path in paths}


def cut_off(
    http: httpx.Client, process: subprocess.Popen[bytes], conversation_id: str
) -> dict[str, str]:
    """Kill the server with one turn running and one queued; return the messages of both."""
    running = script(bash("ls"), {"hang": True}, say="Cut off.")
    queued = script({"text": "Answered later."}, say="Queued.")
    body = {"conversation_id": conversation_id}
    with http.stream("POST", "/chat/stream", json={"message": running, **body}) as first:
        lines = first.iter_lines()
        while next(lines) != "event: tool.finished":
            pass
        with http.stream("POST", "/chat/stream", json={"message": queued, **body}) as second:
            waiting = second.iter_lines()
            while next(waiting) != "event: turn.queued":
                pass
            process.kill()
            process.wait()
    return {"running": running, "queued": queued}


def pack(name: str) -> None:
    """Write the archive: the same bytes for the same files."""
    kept = {path for pattern in (*KEPT, "told.json") for path in HOME.glob(pattern)}
    with tarfile.open(ARCHIVES / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(path for path in kept if path.is_file()):
            data = path.read_bytes()
            entry = tarfile.TarInfo(str(path.relative_to(HOME)))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def main() -> None:
    """Make one archive."""
    parser = argparse.ArgumentParser()
    parser.add_argument("revision")
    parser.add_argument("name")
    wanted = parser.parse_args()
    (HOME / "app").mkdir(parents=True)  # fails if it is there
    try:
        files = subprocess.run(
            ["git", "archive", wanted.revision],
            cwd=ARCHIVES.parents[1],
            check=True,
            capture_output=True,
        )
        with tarfile.open(fileobj=io.BytesIO(files.stdout)) as archive:
            archive.extractall(HOME / "app", filter="data")
        with server() as (_, http):
            conversations = converse(http)
            if http.get("/memory/health").is_success:
                remember(http)
        with server() as (process, http):
            answers = told(http)
            cut = cut_off(http, process, conversations["first"])
        (HOME / "told.json").write_text(
            json.dumps({"conversations": conversations, "cut": cut, "answers": answers}, indent=1),
            "utf-8",
        )
        pack(wanted.name)
    finally:
        shutil.rmtree(HOME)


if __name__ == "__main__":
    main()
