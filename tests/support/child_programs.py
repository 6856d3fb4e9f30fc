"""Runs a function of the tests in a process of its own, which prints lines of JSON."""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120
Lines = list[dict[str, Any]]


def say(**fields: object) -> None:
    """Print a line, in the process itself."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def command(function: Callable[..., Awaitable[None]], *arguments: object) -> list[str]:
    """Return the words that run a function of a module; it is given the arguments as strings."""
    code = (
        f"import sys, anyio; sys.path.insert(0, {str(ROOT)!r})\n"
        f"from {function.__module__} import {function.__name__} as function\n"
        "anyio.run(function, *sys.argv[1:])"
    )
    return [sys.executable, "-c", code, *map(str, arguments)]


def run_blocking(words: Sequence[str]) -> Lines:
    """Return what a process says until it ends; it says something."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return lines


def kill_after_blocking(words: Sequence[str], count: int) -> Lines:
    """Kill a process once it has said so many lines; return all that it said in whole lines."""
    lines: Lines = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                lines.append(json.loads(line))
            if len(lines) >= count:
                process.kill()
    assert len(lines) >= count, "it ended by itself"
    return lines
