"""An MCP server for tests, whose tools are what a file says, and which misbehaves when it is asked to.

A program of its own: `python mcp_server.py TOOLS_FILE`. The file is JSON: descriptions by the name of
the tool. Each tool takes `do` and `text`; it is read anew at each list.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOSTILE = "a" * 40 + "!"
"""The expression of the tools' schemas reads it for years."""


def _tools(file: Path) -> list[dict[str, Any]]:
    schema = {
        "type": "object",
        "properties": {"do": {"type": "string"}, "text": {"type": "string", "pattern": "(a+)+$"}},
        "required": ["do"],
    }
    told = json.loads(file.read_text("utf-8"))
    return [
        {"name": name, "description": text, "inputSchema": schema, "outputSchema": schema}
        for name, text in told.items()
    ]


def _flood(_: str) -> str:
    while True:
        os.write(1, b"x" * 65536)


def _hang(sign: str) -> str:
    """Take no further call; a file says that it has begun."""
    if sign:
        Path(sign).touch()
    time.sleep(600)
    return ""


def _work(seconds: str) -> str:
    time.sleep(float(seconds))
    return "worked"


def _send_lists(_: str) -> str:
    sys.stdout.write('{"jsonrpc": "2.0", "id": 0, "result": [' + "[]," * 60_000 + "[]]}\n")
    return "sent"


def _start_child(_: str) -> str:
    """Start a child that detaches; hear no signal, and not the end of the input, from now on."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        start_new_session=True,
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    atexit.register(time.sleep, 600)
    return json.dumps([os.getpid(), child.pid])


_ACTS: dict[str, Callable[[str], str]] = {
    "say": str,
    "announce": str,
    "die": lambda _: sys.exit(3),
    "hang": _hang,
    "lists": _send_lists,
    "work": _work,
    "flood": _flood,
    "many": lambda text: text * 30_000,
    "environment": lambda _: json.dumps(dict(os.environ)),
    "read": lambda text: Path(text).read_text("utf-8"),
    "write": lambda text: str(Path(text).write_text("written", "utf-8")),
    "child": _start_child,
}


def _answer(arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        text = _ACTS[arguments["do"]](str(arguments.get("text", "")))
    except OSError as exc:
        return {"content": [{"type": "text", "text": str(exc)}], "isError": True}
    # an answer that its output schema, evaluated, would take for ever
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"text": HOSTILE}}


def _result(file: Path, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "test", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": _tools(file)}
    return _answer(params["arguments"]) if method == "tools/call" else None


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main(file: Path) -> None:
    """Serve until the standard input ends."""
    sys.stdout.write("not a message\n")
    for line in sys.stdin:
        told = json.loads(line)
        if "id" not in told:
            continue
        result = _result(file, told["method"], told.get("params") or {})
        if result is None:
            _say({"id": told["id"], "error": {"code": -32601, "message": "No such method."}})
        else:
            _say({"id": told["id"], "result": result})
        if told["method"] == "tools/call" and told["params"]["arguments"].get("do") == "announce":
            _say({"method": "notifications/tools/list_changed"})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
