"""One file operation of the server fails: it serves or says why not, and the next start finds all that was taken.

The failures come from below Python and SQLite, by a library that is compiled here and preloaded. The
soak lets each operation fail, one run after another; the ordinary run draws some of them.
"""

import errno
import json
import os
import random
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.live_server import (
    LiveServer,
    bash,
    one_sentence,
    run_app,
    script,
    started_server,
)

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
ROUND = {"open": 2, "write": 3, "sync": 2, "rename": 1}
"""How many points of each kind the ordinary run draws."""
PERIODS = {"open": 7, "write": 101, "sync": 7, "rename": 1}
"""While it serves, each so many-th operation fails in one run; a transaction takes some 25 writes."""
Point = tuple[str, str, int, int, bool]
Counts = dict[str, int]


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


def runs(library: str, directory: Path, points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """Run the points one after another; returns what each came to, and before them two without a fault."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(directory), json.dumps(points)],
        env={**os.environ, "LD_PRELOAD": library},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    assert process.returncode == 0


def drawn(chance: random.Random, first: Counts, start: Counts, all_: Counts) -> list[Point]:
    """Draw points of a first start, of a later one, and of the serving after it; some last."""
    points: list[Point] = []
    for kind, count in ROUND.items():
        for n in range(count):
            error = chance.choice(ERRORS[kind])
            if not all_[kind] or n % 3 == 0:
                points.append((kind, error, chance.randint(1, first[kind]), 0, True))
            elif n % 3 == 1:
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


def counted(library: str, directory: Path) -> tuple[Counts, Counts, Counts]:
    """Count the operations of a first start, of a later one, and of that whole later run."""
    first, later = runs(library, directory, [])
    assert first["problems"] == later["problems"] == []
    return first["served"], later["served"], later["seen"]


def check(found: Sequence[dict[str, Any]]) -> None:
    broken = [hit for hit in found if hit["problems"]]
    assert not broken, "\n".join(json.dumps(entry, ensure_ascii=False) for entry in broken)
    assert any(hit["hit"] for hit in found), "no operation failed"


def test_operations_that_fail_now_and_then(library: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("DISK_FAULTS_SEED", "0")) or secrets.randbelow(10**6) + 1
    print(f"DISK_FAULTS_SEED={seed}")  # noqa: T201  shown where the test fails
    points = drawn(random.Random(seed), *counted(library, tmp_path / "counted"))
    check(list(runs(library, tmp_path / "points", points))[2:])


@pytest.mark.soak
def test_each_operation_that_fails(library: str, tmp_path: Path) -> None:
    points = all_points(*counted(library, tmp_path / "counted"))
    found = []
    for run in runs(library, tmp_path / "points", points):
        print(json.dumps({key: run[key] for key in ("point", "hit", "problems")}), flush=True)  # noqa: T201
        found.append(run)
    check(found[2:])


def order(root: Path, kind: str, error: int, nth: int, library: str) -> dict[str, str]:
    """Return the environment in which a server's n-th operation of a kind below `root` fails."""
    number = list(ERRORS).index(kind)
    return {
        "LD_PRELOAD": library,
        "FAILING_DISK": f"{number} {nth} 0 {error} {root}",
        "FAILING_DISK_REPORT": str(root.parent / f"{root.name}.hit"),
    }


def test_a_whole_server_of_which_an_operation_fails(library: str, tmp_path: Path) -> None:
    """It serves on, with its agents, and keeps what it has answered."""
    root = tmp_path / "root"
    with started_server(root):
        pass  # what a first start writes is there already
    environ = order(root / "data", "write", errno.EIO, 60, library)
    answered: list[dict[str, Any]] = []
    with started_server(root, environ=environ) as server:
        server.tolerated += ["events_not_stored", "storage_unavailable", "outbox_unavailable"]
        server.tolerated += ["intents_not_recorded"]
        for n in range(3):
            message = script(bash("ls"), {"text": f"Said {n}."})
            answer = asked(server, "POST", "/chat", json={"message": message})
            assert answer.status_code in {200, 503}
            if answer.status_code == 200:
                answered.append(answer.json())
                assert answered[-1]["reply"] == f"Said {n}."
    assert len(answered) >= 2
    assert (root / "data.hit").is_file(), "no operation failed"
    with started_server(root) as server:
        assert asked(server, "GET", "/readyz").json()["ready"] is True
        for result in answered:
            path = f"/conversations/{result['conversation_id']}/messages"
            *_, message = asked(server, "GET", path).json()["messages"]
            assert message["result"] == result


def asked(server: LiveServer, method: str, path: str, **more: Any) -> httpx.Response:
    return httpx.request(method, f"{server.url}{path}", timeout=60, trust_env=False, **more)


def test_a_start_that_finds_no_descriptor_says_so(library: str, tmp_path: Path) -> None:
    environ = order(tmp_path / "data" / "candor.sqlite3", "open", errno.EMFILE, 1, library)
    done = run_app("demo", directory=tmp_path, environ=environ)
    assert done.returncode == 1
    assert one_sentence(done.stderr).startswith(
        "The database cannot be opened: Too many open files"
    )
    with started_server(tmp_path):
        pass
