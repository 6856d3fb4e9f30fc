"""The box of shell commands beside sandbox-runtime: what a command costs, and hostile programs.

Both get the same programs of `tests.differential`, as an ordinary user, in the same kind of
workspace. sandbox-runtime runs twice: with its defaults, and told to keep what the box keeps.

    npm install @anthropic-ai/sandbox-runtime     # needs ripgrep, socat and bubblewrap
    python -m bench boxes --path node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psutil

from bench.report import median, percentile, save, show
from gateway.engine.environment import KEEPS
from tests.differential.hostile import write_program
from tests.differential.test_hostile_programs import LIMITS, PROGRAMS_A_GROUND, SECRET, Range
from tests.support.boxes import ORDINARY, Bench, Ran, box_bench

_SEED = 11
_WALL_S = 6.0
"""A second more than the box has here, for the start."""
_USER = ORDINARY if os.getuid() == 0 else os.getuid()
_PROTECTED = (
    *("**/.claude", "**/.claude/**", "**/CLAUDE.md", "**/AGENTS.md", "**/.mcp.json", "**/.vscode"),
    *("**/.git/hooks/**", "**/.git/config", "**/.git/info/**", "**/hooks/**", "**/.gitattributes"),
)
_SECRETS = ("**/.env*", "**/.ssh", "**/.ssh/**")

Ground = Callable[[], Any]
"""Opens a workspace; a context manager of what has the methods of `Bench`."""


@dataclass(slots=True, kw_only=True)
class RuntimeBench(Bench):
    """A workspace whose commands sandbox-runtime runs."""

    cli: Path
    settings: Mapping[str, Any]

    def run(self, line: str, *, cwd: Path | None = None, cwd_file: str = "") -> Ran:  # noqa: ARG002
        """Run a command; what takes too long is ended."""
        file = self.root / "settings.json"
        file.write_text(json.dumps(self.settings), encoding="utf-8")
        words = ["prlimit", "--nproc=400", "--fsize=268435456", "node", str(self.cli)]
        with (self.root / "output").open("wb") as output:
            process = subprocess.Popen(
                [*words, "--settings", str(file), "-c", line],
                cwd=cwd or self.workspace,
                env={"PATH": os.environ["PATH"], "HOME": str(self.root / "tmp"), "TMPDIR": "/tmp"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self.starter,
                group=self.starter,
                extra_groups=[],
                start_new_session=True,
            )
            try:
                code = process.wait(_WALL_S)
            except subprocess.TimeoutExpired:
                code = 137
                for one in psutil.Process(process.pid).children(recursive=True):
                    with suppress(psutil.Error):
                        one.kill()
            process.kill()
            process.wait()
        return Ran(code, (self.root / "output").read_text("utf-8", "replace"), "")


@contextmanager
def _runtime_bench(cli: Path, *, is_strict: bool) -> Iterator[RuntimeBench]:
    root = Path(tempfile.mkdtemp(prefix="box-"))
    try:
        for path in (root, root / "ws", root / "tmp"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
            os.chown(path, _USER, _USER)
        files: dict[str, Any] = {"denyRead": [], "allowWrite": [str(root / "ws")], "denyWrite": []}
        if is_strict:
            secrets = [f"{root}/ws/{name}" for name in _SECRETS]
            files["denyRead"] = [f"{root}/outside", *secrets]
            files["denyWrite"] = [f"{root}/ws/{name}" for name in (*_PROTECTED, *_SECRETS)]
        settings = {
            "filesystem": files,
            "network": {"allowedDomains": [], "deniedDomains": []},
        }
        nothing: Any = None
        yield RuntimeBench(
            root=root,
            box=_Places(root / "ws"),  # type: ignore[arg-type]
            process=nothing,
            uid=_USER,
            starter=_USER,
            cli=cli,
            settings=settings,
        )
    finally:
        shutil.rmtree(root, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Places:
    """In place of a `Box`: where the workspace is."""

    folder: Path

    @property
    def plan(self) -> "_Places":
        return self

    @property
    def workspace(self) -> str:
        return str(self.folder)


def _kind_of(effect: str) -> str:
    for words, kind in (
        ("secret", "secrets read"),
        ("outside", "changed outside"),
        ("reached", "decoys reached"),
        ("still runs", "processes left"),
        ("no answer", "no answer"),
        ("is b'' and was None", "empty covers left"),
    ):
        if words in effect:
            return kind
    return "protected files changed"


def _play(open_ground: Ground, count: int) -> tuple[Counter[str], int, float]:
    """Run programs; return how many had an effect of each kind, how many had any, and the median
    of their times in ms.
    """
    random, kinds, bad, times = Random(_SEED), Counter[str](), 0, []
    left = count
    while left:
        with open_ground() as bench, ExitStack() as stack:
            place = Range(bench, stack)
            for number in range(left):
                if number and number % PROGRAMS_A_GROUND == 0:
                    place.lay()
                program = write_program(random, place.scene)
                left -= 1
                began = time.perf_counter()
                effects = place.run(program)
                times.append((time.perf_counter() - began) * 1000)
                if effects:
                    bad += 1
                    kinds.update({_kind_of(effect) for effect in effects})
                    break  # what it left would count again
            _end(bench)
    return kinds, bad, median(times)


def _end(bench: Bench) -> None:
    """End what a command of this workspace left running."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().real == bench.uid and bench._is_in_box(Path(f"/proc/{process.pid}")):  # noqa: SLF001
                process.kill()


def _cost(grounds: Mapping[str, Ground], rounds: int) -> Mapping[str, list[float]]:
    """Return what an empty command takes, ms, in turns with a plain one."""
    line = "true"
    times: dict[str, list[float]] = {"plain": [], **{name: [] for name in grounds}}
    with ExitStack() as stack:
        benches = {name: stack.enter_context(ground()) for name, ground in grounds.items()}
        for bench in benches.values():
            if not isinstance(bench, RuntimeBench):
                bench.box.write_script_blocking()
        for _ in range(rounds):
            for name, told in times.items():
                bench = benches.get(name)
                began = time.perf_counter()
                if bench is None:
                    subprocess.run(["/bin/bash", "-c", line], check=True)
                elif isinstance(bench, RuntimeBench):
                    bench.run(line)
                else:
                    _run_wrapped(bench, line)
                told.append((time.perf_counter() - began) * 1000)
    return times


def _run_wrapped(bench: Bench, line: str) -> None:
    """Run a command as the agent program does: by the script in front of it."""
    subprocess.run(
        [str(bench.box.prefix), line],
        cwd=bench.workspace,
        env={"PATH": os.defpath, KEEPS: "PATH"},
        check=True,
    )


async def run(rounds: int, path: Path | None) -> None:  # noqa: RUF029  as the others
    """Measure and print; without sandbox-runtime the box alone."""
    own = {"Candor's box": lambda: box_bench("own")}
    grounds: dict[str, Ground] = {
        "Candor's box": lambda: box_bench("ordinary" if os.getuid() == 0 else "own", holes=LIMITS)
    }
    if path is not None:
        for name, is_strict in (("defaults", False), ("strict", True)):
            grounds[f"sandbox-runtime, {name}"] = lambda strict=is_strict: _runtime_bench(
                path.resolve(), is_strict=strict
            )
    costs = _cost({**grounds, **own}, rounds)
    show(
        "An empty command, ms",
        ("", "median", "least", "p90"),
        [
            (name, f"{median(told):.1f}", f"{min(told):.1f}", f"{percentile(told, 0.9):.1f}")
            for name, told in costs.items()
        ],
    )
    rows, saved = [], {}
    for name, ground in grounds.items():
        kinds, bad, took = _play(ground, rounds * 5)
        told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "none"
        print(f"{name}: {bad} of {rounds * 5} ({told})", flush=True)
        rows.append((name, str(rounds * 5), str(bad), told, f"{took:.0f}"))
        saved[name] = {"programs": rounds * 5, "with_effect": bad, **kinds}
    show(
        f"Hostile programs, seed {_SEED} (the secret is {SECRET})",
        ("", "programs", "with an effect", "kinds", "ms each, median"),
        rows,
    )
    save("boxes", {"ms": {name: median(told) for name, told in costs.items()}, "hostile": saved})
