"""What of the machine the agents of a server get: by its settings, its model and its rules."""

import errno
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway import agent_setup
from gateway.agent_setup import AgentPlan, find_wall_blocking, make_setup_blocking
from gateway.agents import check_users_wall, plan_agents
from gateway.credentials import Credential
from gateway.engine.protocol import EngineUnavailable
from gateway.engine.sandbox.places import AgentPlaces
from gateway.engine.sandbox.protection import Protection, WallMode
from gateway.errors import StartError
from gateway.rules import load_policy_blocking
from gateway.settings import Settings
from gateway.workspaces import load_workspaces_blocking

PROGRAM = Path("/agent")
ROOT = Path(__file__).parents[3]
WALL = Protection(kind="landlock", sentence="It stands.")


class Machine:
    """A server's directories, and the places that the wall was asked to let through."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.home = root / "person"
        for name in ("person", "work", "logs"):
            (root / name).mkdir()
        (root / "ws").symlink_to(root / "work")
        self.asked: list[tuple[WallMode, AgentPlaces, Path]] = []
        monkeypatch.setattr(agent_setup, "protect_blocking", self._protect)

    def _protect(self, mode: WallMode, places: AgentPlaces, scratch: Path) -> Protection:
        self.asked.append((mode, places, scratch))
        return WALL

    def settings(self, **more: Any) -> Settings:
        return Settings(
            workspace=self.root / "ws",
            data_dir=self.root / "data",
            log_dir=self.root / "logs",
            **more,
        )

    def places(
        self, environ: Mapping[str, str], model_env: Mapping[str, str] | None = None, **more: Any
    ) -> AgentPlaces:
        settings = self.settings(**more)
        plan = plan_agents(settings, environ, self.home)
        rules = load_policy_blocking(settings)
        setup = make_setup_blocking(settings, environ, plan, PROGRAM, rules)
        setup = replace(setup, model_env={**setup.model_env, **(model_env or {})})
        assert find_wall_blocking(settings, environ, plan, setup, rules) is WALL
        return self.asked[-1][1]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_demo_gets_the_workspace_its_own_directories_and_its_models_port(
    machine: Machine,
) -> None:
    data = machine.root / "data"
    places = machine.places({}, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, sandbox="require")
    assert machine.asked[-1][0] == "require"
    assert machine.asked[-1][2] == data
    assert places.workspace == machine.root / "work"  # where the link leads
    assert places.own == [data / "tmp", data / "sessions"]
    assert list(places.readable) == [data / "home"]
    assert list(places.ports) == [9, 443]
    assert set(places.private) == {data, machine.root / "logs", ROOT}
    assert {item.stat().st_mode & 0o777 for item in (*places.own, *places.readable)} == {0o700}


def modes_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder.parent)): oct(path.lstat().st_mode & 0o777)
        for path in (folder, *folder.rglob("*"))
        if not path.is_symlink()
    }


def test_a_start_takes_old_session_files_from_other_users(machine: Machine) -> None:
    sessions, outside = machine.root / "data" / "sessions", machine.root / "person"
    (sessions / "projects" / "one").mkdir(parents=True)
    transcript = sessions / "projects" / "one" / "1.jsonl"
    for file in (transcript, outside / "named.txt", outside / "linked.txt"):
        file.write_text("x")
    (sessions / "link").symlink_to(outside)
    (sessions / "name.txt").symlink_to(outside / "named.txt")
    (sessions / "second-name.txt").hardlink_to(outside / "linked.txt")
    os.mkfifo(sessions / "pipe")
    opened = (sessions, sessions / "projects", outside, *sessions.glob("*/*"))
    for path in (*opened, transcript, *outside.iterdir(), sessions / "pipe"):
        path.chmod(0o755)
    machine.places({})
    assert modes_below(sessions) == {
        "sessions": "0o700",
        "sessions/projects": "0o700",
        "sessions/projects/one": "0o700",
        "sessions/projects/one/1.jsonl": "0o700",
        "sessions/second-name.txt": "0o755",
        "sessions/pipe": "0o755",
    }
    assert set(modes_below(outside).values()) == {"0o755"}


def test_a_login_on_this_machine_stays_readable_and_writable(machine: Machine) -> None:
    login = machine.home / ".claude"
    login.mkdir()
    (login / ".credentials.json").write_text('{"claudeAiOauth": {"a": 1}}', "utf-8")
    places = machine.places({})
    assert login in places.own
    assert machine.root / "data" / "sessions" not in places.own
    assert machine.home not in (*places.own, *places.readable)


def test_a_login_that_no_file_holds_is_looked_for_where_the_person_is(machine: Machine) -> None:
    account = machine.home / ".claude.json"
    account.write_text('{"oauthAccount": {"a": 1}}', "utf-8")
    (machine.home / ".claude").mkdir()
    places = machine.places({})
    assert places.own[1:] == [machine.home / ".claude", account]
    assert list(places.readable) == []


def test_a_clouds_own_login_and_metadata_are_reached(machine: Machine) -> None:
    (machine.home / ".aws").mkdir()
    (machine.home / ".ssh").mkdir()
    places = machine.places({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_CA_BUNDLE": "/srv/ca.pem"})
    assert machine.home / ".aws" in places.readable
    assert Path("/srv/ca.pem") in places.readable
    assert machine.home / ".ssh" not in places.readable
    assert {80, 443} <= set(places.ports)
    places = machine.places({"ANTHROPIC_API_KEY": "key-of-the-person"})
    assert machine.home / ".aws" not in places.readable
    assert 80 not in places.ports


def test_a_proxy_and_certificates_of_ones_own_are_reached(machine: Machine) -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "HTTPS_PROXY": "http://proxy.lan:3128"}
    environ |= {"NODE_EXTRA_CA_CERTS": "/srv/corp.pem", "ADMIN_URL": "http://127.0.0.1:8000"}
    places = machine.places(environ | {"DATABASE_URL": "postgres://db.lan:5432/x"})
    assert list(places.ports) == [443, 3128]
    assert Path("/srv/corp.pem") in places.readable


def test_directories_of_the_rules_are_opened_as_they_say(machine: Machine) -> None:
    for name in ("shared", "drop"):
        (machine.root / name).mkdir()
    rules = machine.root / "rules.toml"
    rules.write_text(
        f'[directories]\nread_only = ["{machine.root}/shared"]\n'
        f'read_write = ["{machine.root}/drop"]\n',
        "utf-8",
    )
    places = machine.places({}, policy_file=rules)
    assert machine.root / "shared" in places.readable
    assert list(places.writable) == [machine.root / "drop"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (EngineUnavailable("There is none."), r"There is none\."),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            r"data cannot be written \(No space left on device\)",
        ),
    ],
)
def test_a_wall_that_is_missing_or_cannot_be_tried_stops_the_start(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, fault: Exception, told: str
) -> None:
    def fail(*_: object) -> Protection:
        raise fault

    monkeypatch.setattr(agent_setup, "protect_blocking", fail)
    with pytest.raises(StartError, match=told):
        machine.places({})


def test_a_directory_that_cannot_be_made_is_told(machine: Machine) -> None:
    (machine.root / "data").mkdir()
    (machine.root / "data" / "tmp").touch()
    with pytest.raises(StartError, match=r"The agent's directory .*/data/tmp cannot be made"):
        machine.places({})


def test_a_plan_knows_whose_login_it_takes() -> None:
    login = Credential(kind="login", found="a login on this machine")
    assert not AgentPlan(demo=True, credential=login).takes_login
    assert AgentPlan(demo=False, credential=login).takes_login


def test_users_are_kept_apart_by_the_kernel_unless_the_operator_does_without(
    machine: Machine,
) -> None:
    settings = machine.settings(workspaces="per_user", tokens_file=machine.root / "tokens")
    workspaces = load_workspaces_blocking(settings)
    weak = [Protection(kind="bubblewrap", sentence="Weak."), Protection(kind="off", sentence="No.")]
    for wall in weak:
        with pytest.raises(StartError, match=f"Landlock.*{wall.sentence} Set CANDOR_SANDBOX=off"):
            check_users_wall(workspaces, settings, wall)
        check_users_wall(workspaces, replace(settings, sandbox="off"), wall)
        check_users_wall(load_workspaces_blocking(machine.settings()), settings, wall)
    check_users_wall(workspaces, settings, Protection(kind="landlock", sentence="Whole."))
