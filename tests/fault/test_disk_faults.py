"""One file operation of the gateway fails: it serves or says why not, and the next start finds all that was taken.

The failures come from below Python and SQLite, by a library that is compiled here and preloaded.
The soak lets each operation fail, one run after another; the ordinary run some of them, the same ones
each time unless `CANDOR_TEST_SEED` names others.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform != "linux", reason="preloads a library of Linux"),
]

HERE = Path(__file__).parent
PROGRAM = HERE / "disk_faults_program.py"
ERRORS = {
    "open": ("EMFILE", "EIO", "ENOSPC"),
    "write": ("ENOSPC", "EIO"),
    "sync": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC"),
}
ROUND = {"open": 1, "write": 1, "sync": 1, "rename": 1}
"""How many points of each kind the ordinary run draws."""
PERIODS = {"open": 7, "write": 101, "sync": 7, "rename": 1}
"""While it serves, each so many-th operation fails in one run; a transaction takes some 25 writes."""
Point = tuple[str, str, int, int, bool]
Counts = dict[str, int]
Choice = Callable[[Counts, Counts, Counts], list[Point]]
"""Chooses points by the operations of a first start, of a later one, and of that whole later run."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile the library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler was found; scripts/find-compiler installs Debian's")
    built = tmp_path_factory.mktemp("library") / "failing_disk.so"
    options = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    source = str(HERE / "failing_disk.c")
    subprocess.run([compiler, *options, "-o", str(built), source, "-ldl"], check=True)
    return str(built)


def runs(library: str, directory: Path, choose: Choice) -> Iterator[dict[str, Any]]:
    """Count the operations of a run without a fault, choose points, and return what each came to."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(directory)],
        env={**os.environ, "LD_PRELOAD": library},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        first, later = (json.loads(process.stdout.readline()) for _ in range(2))
        assert first["problems"] == later["problems"] == []
        with process.stdin as asked:
            json.dump(choose(first["served"], later["served"], later["seen"]), asked)
        yield from map(json.loads, process.stdout)
    assert process.returncode == 0


def drawn(chance: random.Random, first: Counts, start: Counts, all_: Counts) -> list[Point]:
    """Draw points of a first start, of a later one, and of the serving after it; some last."""
    points: list[Point] = []
    for kind, count in ROUND.items():
        for _ in range(count):
            error, when = chance.choice(ERRORS[kind]), chance.randrange(3)
            if not all_[kind] or when == 0:
                points.append((kind, error, chance.randint(1, first[kind]), 0, True))
            elif when == 1:
                period = PERIODS[kind]
                nth = start[kind] + chance.randint(1, min(period, all_[kind] - start[kind]))
                points.append((kind, error, nth, chance.choice([period, period, 1]), False))
            else:
                points.append((kind, error, chance.randint(1, start[kind] or all_[kind]), 0, False))
    return points


def all_points(first: Counts, start: Counts, all_: Counts) -> list[Point]:
    """Return points that let each operation fail: alone in a start, every so many-th while serving."""
    points: list[Point] = []
    for kind, errors in ERRORS.items():
        for error in errors:
            points += [(kind, error, nth, 0, True) for nth in range(1, first[kind] + 1)]
            points += [(kind, error, nth, 0, False) for nth in range(1, start[kind] + 1)]
            serving = range(start[kind] + 1, all_[kind] + 1)
            period = PERIODS[kind]
            points += [(kind, error, nth, period, False) for nth in serving[:period]]
            points += [(kind, error, nth, 1, False) for nth in serving[::period]]
    return points


def check(found: Sequence[dict[str, Any]]) -> None:
    broken = [hit for hit in found if hit["problems"]]
    assert not broken, "\n".join(json.dumps(entry, ensure_ascii=False) for entry in broken)
    assert any(hit["hit"] for hit in found), "no operation failed"


def test_operations_that_fail_now_and_then(library: str, tmp_path: Path) -> None:
    chance = random.Random(int(os.environ.get("CANDOR_TEST_SEED", "1")))
    check(list(runs(library, tmp_path, partial(drawn, chance))))


@pytest.mark.soak
def test_each_operation_that_fails(library: str, tmp_path: Path) -> None:
    found = []
    for run in runs(library, tmp_path, all_points):
        print(json.dumps({key: run[key] for key in ("point", "hit", "problems")}), flush=True)  # noqa: T201
        found.append(run)
    check(found)
