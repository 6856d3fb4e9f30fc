"""The filter of system calls, by an interpreter of classic BPF of the test's own."""

import struct

import pytest

from gateway.engine.box.seccomp import filter_program

MACHINES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
ALLOW, KILL = 0x7FFF_0000, 0x8000_0000
REFUSED, UNKNOWN, NO_FAMILY = 0x5_0001, 0x5_0026, 0x5_0061


def answer(machine: str, number: int, *arguments: int, architecture: int = 0) -> int:
    """Return what the kernel would do with a call."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture or MACHINES[machine], 0, *words)
    program = list(struct.iter_unpack("=HBBI", filter_program(machine)))
    at = loaded = 0
    while True:
        code, jump_true, jump_false, value = program[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, value)
            case 0x06:
                return int(value)
            case 0x15:
                at += jump_true if loaded == value else jump_false
            case 0x35:
                at += jump_true if loaded >= value else jump_false
            case 0x45:
                at += jump_true if loaded & value else jump_false
            case _:
                raise AssertionError(hex(code))


@pytest.mark.parametrize(
    ("machine", "numbers"),
    [
        ("x86_64", {"ptrace": 101, "mount": 165, "unshare": 272, "keyctl": 250, "io_uring_setup": 425, "bpf": 321, "shmget": 29}),
        ("aarch64", {"ptrace": 117, "mount": 40, "unshare": 97, "keyctl": 219, "io_uring_setup": 425, "bpf": 280, "shmget": 194}),
    ],
)  # fmt: skip
def test_calls_that_let_programs_out_are_refused(machine: str, numbers: dict[str, int]) -> None:
    assert {name: answer(machine, number) for name, number in numbers.items()} == dict.fromkeys(
        numbers, REFUSED
    )


@pytest.mark.parametrize(("machine", "clone", "chmod"), [("x86_64", 56, 268), ("aarch64", 220, 53)])
def test_what_a_call_does_decides_where_its_number_does_not(
    machine: str, clone: int, chmod: int
) -> None:
    assert answer(machine, clone, 0x0100_0000 | 17) == ALLOW
    assert answer(machine, clone, 0x1000_0000 | 17) == REFUSED  # a user namespace
    assert answer(machine, chmod, 0, 0, 0o755) == ALLOW
    assert answer(machine, chmod, 0, 0, 0o4755) == REFUSED
    assert answer(machine, 435) == answer(machine, 437) == UNKNOWN


@pytest.mark.parametrize(("machine", "socket", "ioctl"), [("x86_64", 41, 16), ("aarch64", 198, 29)])
def test_only_internet_sockets_are_opened(machine: str, socket: int, ioctl: int) -> None:
    allowed = {family for family in range(64) if answer(machine, socket, family) == ALLOW}
    assert allowed == {2, 10}
    assert answer(machine, socket, 1) == NO_FAMILY
    assert answer(machine, ioctl, 0, 0x5412) == REFUSED
    assert (
        answer(machine, ioctl, 0, 0xFFFF_FFFF_0000_5412) == REFUSED
    )  # the kernel reads the low half
    assert answer(machine, ioctl, 0, 0x5413) == ALLOW


def test_a_foreign_architecture_ends_the_process() -> None:
    assert answer("x86_64", 1, architecture=0x4000_0003) == KILL
    assert answer("x86_64", 0x4000_0000 | 1) == KILL
    assert answer("x86_64", 1) == answer("aarch64", 1) == ALLOW


def test_a_machine_whose_numbers_are_not_known_has_no_filter() -> None:
    with pytest.raises(LookupError, match="riscv64"):
        filter_program("riscv64")
