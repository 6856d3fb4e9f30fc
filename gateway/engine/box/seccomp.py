"""The filter of system calls of a command in the box, as a classic BPF program. Pure.

It refuses sockets other than of IPv4 and IPv6, so that no socket file of the machine can be
reached, pushing characters into a terminal, namespaces of one's own, files that run as their owner
(setuid), and the system calls of `seccomp.toml`. A foreign architecture ends the process.
"""

import platform
import struct
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ARCHITECTURES: Final = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
"""Column in the tables, and the kernel's name (linux/audit.h)."""

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x4000_0000

_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_SOCKET, _IOCTL, _CLONE = (41, 198), (16, 29), (56, 220)
_FAMILIES = (2, 10)  # INET, INET6
_TERMINAL_REQUESTS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_NAMESPACES = 0x7E02_0000
_RUNS_AS_OWNER = 0o6000

_Step = tuple[int, int, int, int]


def filter_program(machine: str = "") -> bytes:
    """Return the program for a machine, this one by default.

    Raise `LookupError` if the machine's numbers are not known.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise LookupError(f"no filter of system calls is known for {machine}")
    column, name = _ARCHITECTURES[machine]
    steps = [*_check_machine(name, is_x86=column == 0), *_rules(column), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _check_machine(name: int, *, is_x86: bool) -> Iterator[_Step]:
    yield (_LOAD, 0, 0, _ARCHITECTURE)
    yield (_EQUAL, 1, 0, name)
    yield (_RETURN, 0, 0, _KILL)
    yield (_LOAD, 0, 0, _NUMBER)
    if is_x86:
        yield (_AT_LEAST, 0, 1, _X32)
        yield (_RETURN, 0, 0, _KILL)


def _rules(column: int) -> Iterator[_Step]:
    for table, code in (("refused", _EPERM), ("unknown", _ENOSYS)):
        for numbers in _TOLD[table].values():
            if numbers[column]:
                yield (_EQUAL, 0, 1, numbers[column])
                yield (_RETURN, 0, 0, _ERRNO | code)
    yield from _on_argument(
        _SOCKET[column],
        0,
        [
            *((_EQUAL, len(_FAMILIES) - i, 0, family) for i, family in enumerate(_FAMILIES)),
            (_RETURN, 0, 0, _ERRNO | _EAFNOSUPPORT),
        ],
    )
    for request in _TERMINAL_REQUESTS:
        yield from _refuse_argument(_IOCTL[column], 1, _EQUAL, request)
    yield from _refuse_argument(_CLONE[column], 0, _ANY_BIT, _NAMESPACES)
    for *numbers, argument in _TOLD["mode_at"].values():
        if numbers[column]:
            yield from _refuse_argument(numbers[column], argument, _ANY_BIT, _RUNS_AS_OWNER)


def _refuse_argument(number: int, argument: int, test: int, value: int) -> Iterator[_Step]:
    """Refuse a call if its argument passes a test."""
    yield from _on_argument(
        number, argument, [(test, 0, 1, value), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    )


def _on_argument(number: int, argument: int, steps: list[_Step]) -> Iterator[_Step]:
    """Take steps with the low half of an argument loaded; then load the number again."""
    yield (_EQUAL, 0, len(steps) + 1, number)
    yield (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument)
    yield from steps
    yield (_LOAD, 0, 0, _NUMBER)
