"""From the file to what is started: what a server gets of the machine, and what it must not get."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.environment import KEEPS
from gateway.engine.processes import MARK, owner_of
from gateway.engine.sandbox.places import AgentPlaces
from gateway.errors import StartError
from gateway.mcp_servers.guardian import OWN_PID
from gateway.mcp_servers.plan import Boxed, ServerPlan, plan_servers_blocking
from gateway.settings import Settings
from tests.support.mcp_servers import settings_with


class Boxes:
    """Makes boxes, and keeps which places were asked for."""

    def __init__(self) -> None:
        self.asked: list[AgentPlaces] = []

    def __call__(self, places: AgentPlaces) -> Boxed:
        self.asked.append(places)
        return Boxed(kind="made", before=["box", OWN_PID, "--"])


def planned(
    settings: Settings, boxes: Boxes | None = None, environ: Mapping[str, str] | None = None
) -> ServerPlan:
    (plan,) = plan_servers_blocking(settings, environ or {}, make_box=boxes or Boxes())
    return plan


def test_without_a_file_there_are_no_servers(tmp_path: Path) -> None:
    assert plan_servers_blocking(Settings(data_dir=tmp_path), {}) == ()


def test_a_server_gets_the_places_that_the_file_names_and_no_more(tmp_path: Path) -> None:
    table = {"command": ["cat", "-u"], "reads": ["/srv"], "writes": ["/var/tmp"], "network": [443]}
    for workspace, where in (("none", None), ("read", "readable"), ("write", "writable")):
        boxes, settings = Boxes(), settings_with(tmp_path, {"x": {**table, "workspace": workspace}})
        plan = planned(settings, boxes)
        (places,) = boxes.asked
        here, home = settings.workspace.resolve(), settings.data_dir.resolve() / "mcp" / "x"
        assert places.workspace == home
        assert [name for name in ("readable", "writable") if here in getattr(places, name)] == (
            [where] if where else []
        )
        assert Path("/srv") in places.readable
        assert Path("/var/tmp") in places.writable
        assert (places.ports, places.own) == ((443,), ())
        assert plan.directory == (here if where else home)
        assert home.stat().st_mode & 0o777 == 0o700
        words = ("box", OWN_PID, "--", str(places.program), "-u")
        assert plan.command[-len(words) :] == words


def test_its_environment_is_made_anew_and_shown_nowhere(tmp_path: Path) -> None:
    table = {
        "command": ["cat"],
        "environment": {"LANG": "de_DE.UTF-8", "HOME": "/root"},
        "secrets": {"TOKEN": {"env": "THE_TOKEN"}},
    }
    settings = settings_with(tmp_path, {"x": table})
    environ = {"THE_TOKEN": "sesame-4711", "ANTHROPIC_API_KEY": "k", "PATH": "/evil"}
    plan = planned(settings, environ=environ)
    home = str(settings.data_dir.resolve() / "mcp" / "x")
    given = dict(plan.environment)
    assert set(given.pop(KEEPS).split(" ")) == given.keys()
    assert given.pop("PATH") != "/evil"
    assert given == {
        "LANG": "de_DE.UTF-8",
        "TOKEN": "sesame-4711",
        "HOME": home,
        "TMPDIR": home,
        MARK: f"{owner_of(settings.data_dir)}:mcp-x",
    }
    assert "sesame" not in repr(plan)


def test_a_program_of_a_virtual_environment_brings_it_and_its_python(tmp_path: Path) -> None:
    boxes = Boxes()
    planned(settings_with(tmp_path, {"x": {"command": [sys.executable]}}), boxes)
    (places,) = boxes.asked
    real = {path.resolve() for path in places.programs}
    assert Path(sys.prefix).resolve() in real
    assert Path(sys.base_prefix, "lib").resolve() in real


def test_a_program_that_is_missing_or_that_the_agent_could_change_is_refused(
    tmp_path: Path,
) -> None:
    settings = settings_with(tmp_path, {"x": {"command": ["no-such-program"]}})
    with pytest.raises(StartError, match="no-such-program of the MCP server x is not found"):
        planned(settings)
    inside = settings.workspace / "server"
    inside.write_text("#!/bin/sh\n", encoding="ascii")
    inside.chmod(0o755)
    (tmp_path / "link").symlink_to(inside)
    for program in (inside, tmp_path / "link"):
        settings = settings_with(tmp_path, {"x": {"command": [str(program)]}})
        with pytest.raises(StartError, match="where the agent could change it"):
            planned(settings)


@pytest.mark.parametrize("key", ["programs", "reads", "writes"])
def test_the_gateways_own_directories_are_given_to_no_server(tmp_path: Path, key: str) -> None:
    def refused(**more: Any) -> bool:
        settings = settings_with(tmp_path, {"x": {"command": ["cat"], **more}})
        try:
            planned(settings)
        except StartError as exc:
            return "must not get" in str(exc)
        return False

    data = tmp_path / "data"
    (tmp_path / "link").symlink_to(data)
    for path in (data, data / "mcp", tmp_path, Path("/"), tmp_path / "link"):
        assert refused(**{key: [str(path)]}), path
    assert not refused(**{key: ["/srv"]})


def test_one_process_for_all_users_gets_nothing_that_is_one_users(tmp_path: Path) -> None:
    def planned_for_users(**more: Any) -> ServerPlan:
        settings = settings_with(tmp_path, {"x": {"command": ["cat"], **more}})
        return planned(replace(settings, workspaces="per_user"))

    with pytest.raises(StartError, match="one process serves all users"):
        planned_for_users(workspace="read")
    users = tmp_path / "ws" / "users"
    for path in (users, users / "ada", users.parent):
        with pytest.raises(StartError, match=r"must not get .* belongs to the users"):
            planned_for_users(reads=[str(path)])
    assert planned_for_users().box == "made"
