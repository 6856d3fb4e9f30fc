"""What a command in the box may use, and the watch over what the kernel does not sum up.

The kernel limits each process (`ulimit`) and the number of all processes of a box. The sum of their
memory, and what they put on the disk, are measured while the command runs.
"""

import os
import resource
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MIB: Final = 1 << 20
_KIB: Final = 1 << 10
_PAGE: Final = resource.getpagesize()
_BLOCK: Final = 512
_CLOCK_NS: Final = 1_000_000_000
_LEAST_FREE_BYTES: Final = 256 * _MIB
_NEARLY: Final = 0.8
"""Of the processes: the kernel lets no more begin, and some end while they are counted."""
_HARD: Final = {
    "n": resource.RLIMIT_NOFILE,
    "u": resource.RLIMIT_NPROC,
    "d": resource.RLIMIT_DATA,
    "f": resource.RLIMIT_FSIZE,
    "t": resource.RLIMIT_CPU,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one command with all that it starts."""

    memory_mb: int = 2048
    """Of all processes together, and of each alone."""
    processes: int = 512
    """Threads count."""
    file_mb: int = 1024
    """Of one file."""
    disk_mb: int = 2048
    new_files: int = 200_000
    output_mb: int = 8
    temporary_mb: int = 512
    """Of `/tmp`."""
    open_files: int = 1024
    cpu_s: int = 900
    """Of one process."""
    wall_s: float = 620.0
    """Longer than the longest timeout of a call, which comes first."""

    @property
    def temporary_bytes(self) -> int:
        """The size of `/tmp`."""
        return self.temporary_mb * _MIB

    @property
    def shared_memory_bytes(self) -> int:
        """The size of `/dev/shm`."""
        return self.temporary_mb * _MIB // 4

    @property
    def output_bytes(self) -> int:
        """The most that a command may write to its output."""
        return self.output_mb * _MIB

    def ulimits(self) -> str:
        """Return the words for bash's `ulimit`; none is above what this process may have."""
        wanted = {
            "n": (self.open_files, 1),
            "u": (self.processes, 1),
            "d": (self.memory_mb * _MIB, _KIB),
            "f": (self.file_mb * _MIB, _KIB),
            "t": (self.cpu_s, 1),
        }
        words = ["-c 0"]
        for letter, (value, unit) in wanted.items():
            hard = resource.getrlimit(_HARD[letter])[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            words.append(f"-{letter} {most // unit}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class _Disk:
    free_bytes: int
    free_files: int


class Watch:
    """Measures one box while it runs."""

    def __init__(self, limits: Limits, folders: Sequence[Path]) -> None:
        """Watch what is written to the disks of these folders."""
        self._limits = limits
        self._folders = folders
        self._started_ns = time.time_ns() - _CLOCK_NS
        self._before = [_disk(folder) for folder in folders]

    def excess_blocking(self, box: int) -> str | None:
        """Return what the box with this first process has used too much of, as the end of a
        sentence.
        """
        limits, tasks, resident = self._limits, 0, 0
        pids = list(_tree(box))
        for pid in pids:
            tasks += max(1, len(_tasks(pid)))  # one that has just ended counts
            resident += _resident_bytes(pid)
        if tasks >= limits.processes * _NEARLY:
            return f"it started more than {limits.processes} processes and threads"
        if resident > limits.memory_mb * _MIB and (
            sum(map(_proportional_bytes, pids)) > limits.memory_mb * _MIB
        ):
            return f"it used more than {limits.memory_mb} MB of memory"
        return self._disk_excess(pids)

    def _disk_excess(self, pids: Sequence[int]) -> str | None:
        """Look at the whole disk first, and at the command's own files if that lost much."""
        now, limits = [_disk(folder) for folder in self._folders], self._limits
        most_bytes = limits.disk_mb * _MIB
        if not any(
            before.free_bytes - disk.free_bytes > most_bytes
            or before.free_files - disk.free_files > limits.new_files
            for before, disk in zip(self._before, now, strict=True)
        ):
            return None
        if min(disk.free_bytes for disk in now) < _LEAST_FREE_BYTES:
            return "the disk is nearly full"
        own_bytes, files = self._written()
        own_bytes += sum(map(_unnamed_bytes, pids))
        if own_bytes > most_bytes:
            return f"it wrote more than {limits.disk_mb} MB to the disk"
        if files > limits.new_files:
            return f"it made more than {limits.new_files} files"
        self._before = now  # other programs took it
        return None

    def _written(self) -> tuple[int, int]:
        """Return the size and number of the files that changed since the start."""
        size = count = 0
        waiting = [str(folder) for folder in self._folders]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as listing:
                    for entry in listing:
                        status = entry.stat(follow_symlinks=False)
                        if status.st_ctime_ns >= self._started_ns:
                            size += status.st_blocks * _BLOCK
                            count += 1
                        if stat.S_ISDIR(status.st_mode):
                            waiting.append(entry.path)
            except OSError:  # it has gone, or the command has closed it
                continue
        return size, count


def _disk(folder: Path) -> _Disk:
    found = os.statvfs(folder)
    return _Disk(found.f_bavail * found.f_frsize, found.f_ffree)


def _unnamed_bytes(pid: int) -> int:
    """Return the size of the files that a process holds open and that have no name any more."""
    size = 0
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                size += status.st_blocks * _BLOCK
    except OSError:
        pass
    return size


def _tree(root: int) -> Iterator[int]:
    """Yield the processes of a box; in one of its own every process descends from the first."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        for task in _tasks(pid):
            waiting += map(int, _read(f"/proc/{pid}/task/{task}/children").split())


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  a tenth of the time
    except OSError:
        return []


def _resident_bytes(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def _proportional_bytes(pid: int) -> int:
    """Return a process's part of the memory, shared pages divided among those that share them."""
    for line in _read(f"/proc/{pid}/smaps_rollup").split(b"\n"):
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * _KIB
    return _resident_bytes(pid)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  a tenth of the time
            return file.read()
    except OSError:  # it has ended
        return b""
