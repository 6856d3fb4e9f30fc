"""Whether another server has ended, and what a server needs of its own."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from gateway.errors import StartError
from gateway.ids import NodeId
from gateway.nodes import digest_settings_blocking, has_ended, join, own_process_blocking
from gateway.settings import Secret
from tests.support.services import settings_below
from tests.support.stores import open_file

SAY = "from gateway.nodes import own_process_blocking; print(own_process_blocking(), flush=True)"


@pytest.fixture
def own() -> str:
    """The name of this process."""
    if sys.platform != "linux":
        pytest.skip("needs /proc of Linux")
    name = own_process_blocking()
    assert name is not None
    return name


async def test_a_process_of_this_machine_is_known_to_have_ended(own: str) -> None:
    assert not await has_ended(own)
    command = [sys.executable, "-c", f"{SAY}; input()"]
    async with await anyio.open_process(command) as process:
        assert process.stdout is not None
        other = (await process.stdout.receive()).decode().strip()
        assert not await has_ended(other)
        process.kill()
        await process.wait()
        assert await has_ended(other)
    place, pid, started = own.rsplit(" ", 2)
    assert await has_ended(f"{place} {pid} {float(started) - 1}"), "its id was given anew"
    assert not await has_ended(f"elsewhere {pid} {started}"), "nothing is known of other machines"
    assert not await has_ended(f"elsewhere 1 {started}")


async def test_a_process_lives_on_when_the_clock_of_its_machine_is_set(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of day at which the system started moves with its clock."""
    before_s = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: before_s + 5)
    assert not await has_ended(own)


async def test_nothing_is_known_of_a_process_that_the_system_hides(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user's process is where `/proc` is mounted with `hidepid`."""

    def hidden(path: Path, *_: str) -> str:
        raise FileNotFoundError(path)

    def forbidden(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", hidden)
    monkeypatch.setattr("gateway.nodes._place", lambda: own.rsplit(" ", 2)[0])
    assert not await has_ended(own)
    monkeypatch.setattr("os.kill", forbidden)
    assert not await has_ended(own)


async def test_a_server_does_not_start_at_the_url_of_another_one(tmp_path: Path) -> None:
    settings = settings_below(tmp_path, node_url="http://10.0.0.5:8000")
    async with open_file(tmp_path) as database:
        await join(settings, database, NodeId("a"))
        with pytest.raises(StartError, match=r"CANDOR_NODE_URL .* each needs its own"):
            await join(settings, database, NodeId("b"))
        await join(settings, database, NodeId("a"))  # after a restart
        await join(settings_below(tmp_path, node_url="http://10.0.0.6:8000"), database, NodeId("b"))


DIFFERENT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "values": (
        {"approvals": "on", "workspaces": "per_user"},
        ["CANDOR_APPROVALS", "CANDOR_WORKSPACES"],
    ),
    "a file of another content": ({"policy_file": "other.toml"}, ["CANDOR_POLICY_FILE"]),
    "a secret that is not set": ({"oidc_client_secret": None}, ["CANDOR_OIDC_CLIENT_SECRET"]),
    "a file of the same content": ({"policy_file": "same.toml"}, []),
    "what each node has of its own": (
        {"port": 9, "data_dir": Path("/elsewhere"), "max_live_clients": 1},
        [],
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
async def test_a_node_names_the_settings_in_which_another_one_differs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    for name, content in (("one.toml", "# 1"), ("same.toml", "# 1"), ("other.toml", "# 2")):
        (tmp_path / name).write_text(content, "utf-8")
    changed, names = DIFFERENT[case]
    changed = {
        name: tmp_path / value if name == "policy_file" else value
        for name, value in changed.items()
    }
    secret = Secret("hunter2")
    given = {"policy_file": tmp_path / "one.toml", "oidc_client_secret": secret}
    here = settings_below(tmp_path, node_url="http://10.0.0.5:8000", **given)
    there = settings_below(tmp_path, **{"node_url": "http://10.0.0.6:8000", **given, **changed})
    async with open_file(tmp_path) as database:
        await join(here, database, NodeId("a"))
        await join(there, database, NodeId("b"))
    told = [row for row in caplog.records if row.msg == "node_settings_differ"]
    assert [(row.nodes, row.settings) for row in told] == (  # type: ignore[attr-defined]
        [(["http://10.0.0.5:8000"], names)] if names else []
    )


def test_what_nodes_compare_says_nothing_of_secrets(tmp_path: Path) -> None:
    digests = [
        digest_settings_blocking(settings_below(tmp_path, oidc_client_secret=Secret(word)))
        for word in ("hunter2", "hunter3")
    ]
    assert digests[0] == digests[1]
    assert "hunter2" not in json.dumps(digests)
