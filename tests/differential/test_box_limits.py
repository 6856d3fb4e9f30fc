"""What uses too much in the box is ended with a reason, and nothing of it is left."""

import fcntl
import resource
import socket
from collections.abc import Iterator

import pytest

from gateway.engine.box.process import Box
from tests.support.boxes import USERS, Bench, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

SMALL = """
import gateway.engine.box.broker as broker
usual = broker.Limits
def limits(**given):
    return usual(**{**given, "memory_mb": 200, "processes": 100, "file_mb": 16, "disk_mb": 24,
        "new_files": 2000, "output_mb": 1, "temporary_mb": 16, "cpu_s": 1, "wall_s": WALL})
broker.Limits = limits
"""
ENDED = "The sandbox ended this command: "


@pytest.fixture(scope="module", params=USERS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A broker with limits that are soon reached."""
    with box_bench(request.param, holes=SMALL.replace("WALL", "30.0")) as bench:
        yield bench


def python(code: str) -> str:
    return f"python3 - <<'END'\n{code}\nEND"


HOG = "import time; x = bytearray({} << 20); time.sleep(60)"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (":(){ :|:& };: ; sleep 60", "it started more than 100 processes and threads"),
        ("for i in $(seq 300); do sleep 60 & done; wait", "it started more than 100 processes"),
        (
            python("import threading, time\nthreading.stack_size(65536)\nfor _ in range(300): threading.Thread(target=time.sleep, args=(60,)).start()"),
            "it started more than 100 processes and threads",
        ),
        (
            f"for i in 1 2 3; do python3 -c '{HOG.format(100)}' & done; wait",
            "it used more than 200 MB of memory",
        ),
        (
            python("import mmap, time\nm = mmap.mmap(-1, 400 << 20)\nfor i in range(0, 400 << 20, 4096): m[i] = 1\ntime.sleep(60)"),
            "it used more than 200 MB of memory",
        ),
        ("yes", "it wrote more than 1 MB of output"),
        ("yes | cat >&2", "it wrote more than 1 MB of output"),
        ("for i in $(seq 20); do head -c 4M /dev/urandom > f$i; sync f$i; done; sleep 60", "it wrote more than 24 MB to the disk"),
        (
            python("import time\nfiles = [open(f'd{i}', 'wb') for i in range(20)]\nfor i, f in enumerate(files):\n  __import__('os').remove(f'd{i}'); f.write(b'x' * (4 << 20)); f.flush()\ntime.sleep(60)"),
            "it wrote more than 24 MB to the disk",
        ),
        (  # by several programs: one alone might use up its second of the processor first
            "for j in $(seq 9); do python3 -c \"for i in range(1000): open(f'n$j-{i}', 'w')\"; done; sleep 60",
            "it made more than 2000 files",
        ),
    ],
)  # fmt: skip
def test_what_uses_too_much_is_ended_with_a_reason(bench: Bench, line: str, reason: str) -> None:
    ran = bench.run(line)
    assert ran.code == 137
    assert ran.output.split(ENDED)[-1].startswith(reason)
    assert bench.left_running() == []
    for path in bench.workspace.iterdir():
        path.unlink()
    assert bench.run("echo still here").output == "still here\n"


def test_the_reason_stands_before_a_long_output_and_behind_a_short_one(bench: Bench) -> None:
    """Of a long one the agent and the person get the beginning alone."""
    for begun, is_first in (("seq 5", False), ("seq 5000", True)):
        whole = bench.run(begun).output
        ran = bench.run(f"{begun}; for i in $(seq 300); do sleep 60 & done; wait")
        reason = f"{ENDED}it started more than 100 processes and threads.\n"
        at = 0 if is_first else len(ran.output) - len(reason)
        assert ran.output[at:].startswith(reason)
        assert ran.output.replace(reason, "").startswith(whole)


@pytest.mark.parametrize(
    "line",
    [
        f"python3 -c '{HOG.format(300)}'",  # MemoryError, by the limit of one process
        "head -c 64M /dev/zero > big",
        "head -c 64M /dev/zero > /tmp/big",
        "head -c 64M /dev/zero > /dev/shm/big",
        "while :; do :; done",
        "cat < /dev/zero > /new",
    ],
)
def test_the_kernel_ends_what_one_process_uses_too_much_of(bench: Bench, line: str) -> None:
    ran = bench.run(line)
    assert ran.code not in {0, None}
    assert bench.left_running() == []
    (bench.workspace / "big").unlink(missing_ok=True)


def test_what_runs_too_long_is_ended_whatever_signals_it_ignores() -> None:
    with box_bench(holes=SMALL.replace("WALL", "0.5")) as bench:
        ran = bench.run("trap '' TERM INT HUP; echo began; while :; do sleep 0.1; done")
        assert ran.output == f"began\n{ENDED}it ran longer than 0.5 seconds.\n"
        assert ran.code == 137
        assert bench.left_running() == []


def test_limits_above_those_of_the_system_are_lowered_to_them() -> None:
    """Otherwise no command would start where the server itself is limited."""
    lower = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))"
    with box_bench(holes=lower) as bench:
        assert bench.run("ulimit -n").output == "200\n"


def test_the_broker_outlives_a_request_that_is_none() -> None:
    with box_bench() as bench:
        for line in ("", "\0", "a" * 131_000):
            bench.run(line)
        assert bench.run("echo served").output == "served\n"
        assert bench.process.poll() is None


def test_a_broker_that_starts_when_many_files_are_open_runs_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its socket has the number that it has in the server; `select` takes none above 1023."""
    listen_blocking = Box.listen_blocking

    def listen_high_blocking(box: Box) -> socket.socket:
        with listen_blocking(box) as listener:
            return socket.socket(fileno=fcntl.fcntl(listener, fcntl.F_DUPFD_CLOEXEC, 1_500))

    monkeypatch.setattr(Box, "listen_blocking", listen_high_blocking)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_000), hard))
    try:
        with box_bench() as bench:
            assert bench.run("echo one").output == "one\n"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
