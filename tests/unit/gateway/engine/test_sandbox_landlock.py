"""What the sandbox allows, where, and how it is tried."""

import os
from pathlib import Path

import pytest

from gateway.engine.processes import launch_words
from gateway.engine.sandbox import protection, trial
from gateway.engine.sandbox.places import (
    PROGRAMS,
    READABLE,
    AgentPlaces,
    places_named_in,
    ports_named_in,
)
from gateway.engine.sandbox.trial import Outcome, attempt_blocking
from tests.support.walls import needs_landlock, needs_own_mounts

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


def words(version: int) -> list[str]:
    made: list[str] = landlock.landlock_words(PLACES, version)
    return made


def rights(version: int = 7) -> dict[str, int]:
    """Return the rights of each place."""
    parts = (word.split(":", 2) for word in words(version) if word.startswith("path:"))
    return {path: int(number) for _, number, path in parts}


def handled(version: int) -> list[int]:
    return [int(part) for part in words(version)[0].removeprefix("handle:").split(":")]


def test_all_that_the_kernel_can_forbid_is_forbidden_and_an_older_one_is_asked_for_less() -> None:
    fs, net, scopes = handled(7)
    assert fs == sum(accessf for accessf in AccessFS if accessf is not AccessFS.RESOLVE_UNIX)
    assert net == AccessNet.BIND_TCP | AccessNet.CONNECT_TCP
    assert scopes == Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET
    assert handled(11)[1] == net  # names are looked up by UDP
    assert handled(1)[1:] == handled(3)[1:] == [0, 0]
    assert not handled(1)[0] & (AccessFS.REFER | AccessFS.TRUNCATE)
    assert not [word for word in words(3) if word.startswith("port:")]
    assert not rights(1)["/srv/work: ours"] & AccessFS.REFER


def test_only_the_workspace_its_own_and_the_opened_places_are_written() -> None:
    """And programs run from the system alone; nobody makes a device."""
    written = {path for path, right in rights().items() if right & AccessFS.MAKE_REG}
    assert written == {"/srv/work: ours", "/data/sessions", "/data/tmp", "/srv/drop"}
    run = {path for path, right in rights().items() if right & AccessFS.EXECUTE}
    assert "/opt/agent/claude" in run
    assert run.isdisjoint({"/srv/work: ours", "/data/tmp", "/srv/drop", "/srv/shared"})
    devices = AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK
    assert not [path for path, right in rights().items() if right & devices]


def test_the_named_ports_and_the_mounts_that_stay_writable_are_told() -> None:
    """None is listened on; the mounts are those that are written."""
    ports = [word for word in words(7) if word.startswith("port:")]
    assert ports == [f"port:{int(AccessNet.CONNECT_TCP)}:{port}" for port in (443, 8088)]
    written = ["/srv/work: ours", "/data/sessions", "/data/tmp", "/srv/drop"]
    assert landlock.mount_words(PLACES) == [f"writable:{path}" for path in written]


def test_a_kernel_that_refuses_to_say_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise landlockpy.LandlockError(1, "Operation not permitted")

    monkeypatch.setattr(landlock, "abi_version", refuse)
    assert landlock.landlock_version() == 0


PORTS: dict[str, tuple[dict[str, str], list[int]]] = {
    "nothing": ({}, [443]),
    "a server of one's own": ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9000/v1"}, [443, 9000]),
    "without a port": ({"ANTHROPIC_BASE_URL": "http://model.lan"}, [80, 443]),
    "by https": ({"ANTHROPIC_BASE_URL": " https://model.lan "}, [443]),
    "IPv6": ({"ANTHROPIC_BASE_URL": "http://[::1]:8088"}, [443, 8088]),
    "a proxy": ({"HTTPS_PROXY": "http://user:word@proxy.lan:3128"}, [443, 3128]),
    "a proxy without a scheme": ({"https_proxy": "proxy.lan:3128"}, [443, 3128]),
    "a socks proxy": ({"ALL_PROXY": "socks5h://proxy.lan"}, [443, 1080]),
    "another service": ({"AWS_ENDPOINT_URL": "https://aws.lan:4566"}, [443, 4566]),
    "no proxy": ({"NO_PROXY": "localhost,127.0.0.1:5432"}, [443]),
    "no address": ({"A": "http://[", "B": "http://x:99999", "C": "file:///etc:22", "D": ""}, [443]),
}


def test_the_ports_are_those_of_the_addresses_in_the_environment() -> None:
    found = {name: ports_named_in(environ) for name, (environ, _) in PORTS.items()}
    assert found == {name: ports for name, (_, ports) in PORTS.items()}


def test_certificates_and_keys_that_the_environment_names_are_read() -> None:
    environ = {
        "NODE_EXTRA_CA_CERTS": "/opt/ca/corp.pem",
        "GOOGLE_APPLICATION_CREDENTIALS": "/srv/key.json",
        "SSL_CERT_FILE": "",
        "SSL_CERT_DIR": "relative/certs",
        "HOME": "/home/ada",
        "DATABASE_FILE": "/srv/db",
    }
    named = [Path("/srv/key.json"), Path("/opt/ca/corp.pem")]
    assert places_named_in(environ) == named


def test_no_list_holds_a_home_a_key_or_a_whole_tree_of_others() -> None:
    listed = {*PROGRAMS, *READABLE}
    assert listed.isdisjoint(
        {"/", "/etc", "/home", "/root", "/var", "/tmp", "/run", "/dev", "/mnt"}
    )
    assert not [item for item in listed if "private" in item or "shadow" in item]


def test_what_is_the_servers_and_lies_in_the_workspace_is_told(tmp_path: Path) -> None:
    inside, beside = tmp_path / "ws" / ".candor", tmp_path / "ws-data"
    extra = tmp_path / "extra" / "logs"
    places = AgentPlaces(
        program=Path("/agent"),
        workspace=tmp_path / "ws",
        own=(inside / "sessions",),
        writable=(tmp_path / "extra",),
        private=(inside, beside, extra),
    )
    assert places.exposed() == [inside, extra]


pytestmark = pytest.mark.skipif(os.name != "posix", reason="the trial is a shell's")

FREE = Outcome(
    ran=True, writes_outside=True, reads_outside=True, changes_outside=True, works_inside=True
)


def test_a_child_without_a_wall_does_everything_where_the_place_can_be_used(tmp_path: Path) -> None:
    inside = tmp_path / "my work"
    inside.mkdir()
    assert attempt_blocking([], tmp_path, [inside]) == FREE
    assert attempt_blocking(launch_words(os.getpid(), []), tmp_path, [inside]) == FREE
    (inside / ".candor-trial").touch()
    assert not attempt_blocking(["false"], tmp_path, [inside]).ran
    left = [path.name for path in tmp_path.rglob("*")]
    assert left == ["my work"], "and what a killed trial left is cleared away"
    (tmp_path / "file").touch()
    found = attempt_blocking([], tmp_path, [tmp_path, tmp_path / "file"])
    assert (found.ran, found.works_inside) == (True, False)


@pytest.mark.parametrize("before", [["/no/such/program"], ["false"], ["sleep", "300"]])
def test_a_child_that_does_not_come_to_its_end_has_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[str]
) -> None:
    monkeypatch.setattr(trial, "_DEADLINE_S", 0.2)
    assert not attempt_blocking(before, tmp_path, [tmp_path]).ran


@needs_landlock
@needs_own_mounts
def test_behind_the_wall_it_does_nothing_outside(tmp_path: Path) -> None:
    from gateway.engine.sandbox import landlock  # noqa: PLC0415  its library is for Linux

    workspace, own = tmp_path / "it's ws: $HOME", tmp_path / "own"
    workspace.mkdir()
    own.mkdir()
    places = AgentPlaces(program=Path("/bin/sh"), workspace=workspace, own=(own,))
    rules = landlock.landlock_words(places, landlock.landlock_version())
    outcomes = [
        attempt_blocking(launch_words(os.getpid(), words), tmp_path, [workspace, own])
        for words in (rules, [*landlock.mount_words(places), *rules])
    ]
    kept = {"ran": True, "writes_outside": False, "reads_outside": False, "works_inside": True}
    assert outcomes == [Outcome(**kept, changes_outside=changes) for changes in (True, False)]


BUBBLEWRAPS = {
    None: "bubblewrap and socat are not installed",
    "exit 1": "bubblewrap cannot start a program here",
    'while [ "$1" != -- ]; do shift; done; shift; exec "$@"': (
        "bubblewrap does not keep a program in the workspace here"
    ),
}


def test_a_bubblewrap_that_is_not_there_or_keeps_nothing_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for script, fault in BUBBLEWRAPS.items():
        monkeypatch.setenv("PATH", str(tmp_path) if script is None else f"{tmp_path}:{os.defpath}")
        for name in ("bwrap", "socat") if script is not None else ():
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{script}\n", "ascii")
            program.chmod(0o700)
        assert protection.find_bubblewrap_fault_blocking(tmp_path, tmp_path) == fault
