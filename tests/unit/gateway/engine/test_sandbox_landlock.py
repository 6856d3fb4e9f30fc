"""What is asked of Landlock: all that the kernel's version knows, and leave for what is listed."""

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.engine.sandbox.places import AgentPlaces

landlockpy = pytest.importorskip("landlockpy", reason="Landlock is Linux's")
landlock = pytest.importorskip("gateway.engine.sandbox.landlock", exc_type=ImportError)
AccessFS, AccessNet, Scope = landlockpy.AccessFS, landlockpy.AccessNet, landlockpy.Scope

PLACES = AgentPlaces(
    program=Path("/opt/agent/claude"),
    workspace=Path("/srv/work: ours"),
    own=(Path("/data/sessions"), Path("/data/tmp")),
    readable=(Path("/srv/shared"),),
    writable=(Path("/srv/drop"),),
    ports=(443, 8088),
)


def rights_of(path: str, version: int = 7) -> int:
    (word,) = [
        item for item in words(version) if item.startswith("path:") and item.endswith(f":{path}")
    ]
    return int(word.split(":")[1])


def words(version: int) -> list[str]:
    made: list[str] = landlock.landlock_words(PLACES, version)
    return made


def handled(version: int) -> list[int]:
    return [int(part) for part in words(version)[0].removeprefix("handle:").split(":")]


def test_all_that_the_kernel_can_forbid_is_forbidden() -> None:
    fs, net, scopes = handled(7)
    assert fs == sum(accessf for accessf in AccessFS if accessf is not AccessFS.RESOLVE_UNIX)
    assert net == AccessNet.BIND_TCP | AccessNet.CONNECT_TCP
    assert scopes == Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET
    assert handled(11)[1] == net  # names are looked up by UDP


def test_an_older_kernel_is_asked_for_what_it_knows() -> None:
    assert handled(1)[1:] == [0, 0]
    assert handled(3)[1:] == [0, 0]
    assert not handled(1)[0] & (AccessFS.REFER | AccessFS.TRUNCATE)
    assert not [word for word in words(3) if word.startswith("port:")]
    assert not rights_of("/srv/work: ours", 1) & AccessFS.REFER


def test_only_the_workspace_its_own_and_the_opened_places_are_written() -> None:
    made = {
        word.split(":", 2)[2]
        for word in words(7)
        if word.startswith("path:") and int(word.split(":")[1]) & AccessFS.MAKE_REG
    }
    assert made == {"/srv/work: ours", "/data/sessions", "/data/tmp", "/srv/drop"}


def test_programs_run_from_the_system_alone() -> None:
    run = {
        word.split(":", 2)[2]
        for word in words(7)
        if word.startswith("path:") and int(word.split(":")[1]) & AccessFS.EXECUTE
    }
    assert "/opt/agent/claude" in run
    assert run.isdisjoint({"/srv/work: ours", "/data/tmp", "/srv/drop", "/srv/shared"})


def test_nobody_makes_a_device() -> None:
    devices = AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK
    assert not [
        word for word in words(7) if word.startswith("path:") and int(word.split(":")[1]) & devices
    ]


def test_the_named_ports_are_connected_to_and_none_is_listened_on() -> None:
    ports = [word for word in words(7) if word.startswith("port:")]
    assert ports == [f"port:{int(AccessNet.CONNECT_TCP)}:{port}" for port in (443, 8088)]


def test_the_mounts_that_stay_writable_are_those_that_are_written() -> None:
    assert landlock.mount_words(replace(PLACES, own=(Path("/data/tmp"),))) == [
        "writable:/srv/work: ours",
        "writable:/data/tmp",
        "writable:/srv/drop",
    ]


def test_a_kernel_that_refuses_to_say_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise landlockpy.LandlockError(1, "Operation not permitted")

    monkeypatch.setattr(landlock, "abi_version", refuse)
    assert landlock.landlock_version() == 0
