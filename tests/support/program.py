"""Commands of the real program, in processes of their own: `python app.py …`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from gateway.settings import settings_rows
from tests.support.warm_starts import POSSIBLE, WarmProcess, start_warm

ROOT = Path(__file__).resolve().parents[2]
START_S = 120.0
_READ_EARLY = ("PYTHON", "LD_", "LC_", "LANG", "TZ")
"""The beginnings of variables that the interpreter reads before its first line, or as it imports."""


def one_sentence(text: str) -> str:
    """Return the message of a failed command, which must be one sentence after the program's name."""
    (line,) = text.splitlines()
    assert line.startswith("candor: ")
    assert line.endswith((".", "?")) or "; it takes " in line or "; run: " in line
    return line.removeprefix("candor: ")


def environment(
    directory: Path, settings: Mapping[str, Any], environ: Mapping[str, str]
) -> dict[str, str]:
    """Make a server's environment: nothing of a `.env` beside `app.py`, all directories below one."""
    given = {
        "port": 0,
        "workspace": directory / "workspace",
        "data_dir": directory / "data",
        "log_dir": directory / "logs",
        "prewarmed_clients": 0,  # an agent that nobody asks costs as much as one that works
        "recall_deadline_ms": 20_000,  # on a busy machine memory is late, which is a notice
        "embedder": "none",
        **settings,
    }
    blank = [*dotenv_values(ROOT / ".env"), *(row[0] for row in settings_rows())]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CANDOR_TEST_")}
    return {
        **inherited,
        **dict.fromkeys(blank, ""),
        "HOME": str(directory),
        "PYTHONWARNINGS": "error",
        **{f"CANDOR_{name.upper()}": str(value) for name, value in given.items()},
        **environ,
    }


def run_app(
    *arguments: str,
    directory: Path,
    environ: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    program: Path = ROOT / "app.py",
    given: str | None = None,
    **settings: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself; `given` is what it reads."""
    env = environment(directory, settings, environ or {})
    fresh = not may_be_warm(environ, prefix)
    return run_program(arguments, env, program=program, given=given, prefix=prefix, fresh=fresh)


def may_be_warm(environ: Mapping[str, str] | None, prefix: Sequence[str]) -> bool:
    """Return whether a forked process behaves as a new one: no variable matters before its first line."""
    is_early = any(name.startswith(_READ_EARLY) for name in environ or {})
    return POSSIBLE and not prefix and not is_early


def run_program(
    arguments: Sequence[str],
    env: Mapping[str, str],
    *,
    program: Path = ROOT / "app.py",
    given: str | None = None,
    prefix: Sequence[str] = (),
    fresh: bool = not POSSIBLE,
) -> subprocess.CompletedProcess[str]:
    """Run a program that ends by itself; `fresh` is a process that imports the server by itself."""
    if fresh:
        return subprocess.run(
            [*prefix, sys.executable, str(program), *arguments],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), **env},
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=START_S,
            check=False,
        )
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as read,
    ):
        read.write((given or "").encode())
        read.seek(0)
        process = start_warm(
            arguments,
            env=env,
            out=out.fileno(),
            err=err.fileno(),
            given=read.fileno(),
            program=program,
        )
        code = process.wait(START_S)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess(list(arguments), code, *said)


def run_code(
    code: str, env: Mapping[str, str], *arguments: str, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )


def start_app(
    *arguments: str,
    env: Mapping[str, str],
    out: int,
    err: int,
    given: int | None = None,
    prefix: Sequence[str] = (),
    fresh: bool = not POSSIBLE,
    program: Path = ROOT / "app.py",
) -> subprocess.Popen[bytes] | WarmProcess:
    """Start a command that goes on; `fresh` is a process that imports the server by itself."""
    if not fresh:
        return start_warm(arguments, env=env, out=out, err=err, given=given, program=program)
    return subprocess.Popen(
        [*prefix, sys.executable, str(program), *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), **env},
        stdin=subprocess.DEVNULL if given is None else given,
        stdout=out,
        stderr=err,
    )
