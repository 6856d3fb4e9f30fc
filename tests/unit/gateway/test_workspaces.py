"""The folder of a user, and what a file of shared projects gives each of them."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import StartError
from gateway.ids import UserId
from gateway.settings import Settings
from gateway.workspaces import folder_name, load_workspaces_blocking
from policies.paths.workspace import ExtraDirectory

ADA, BOB, CYD = UserId("ada"), UserId("bob"), UserId("cyd")


def settings_in(root: Path, **given: Any) -> Settings:
    (root / "tokens").touch()
    folders = {"workspace": root / "ws", "data_dir": root / "data", "log_dir": root / "logs"}
    mode = {"workspaces": "per_user", "tokens_file": root / "tokens"}
    return Settings(**{**folders, **mode, **given})


HOSTILE = [
    "..",
    ".",
    "",
    "/",
    "a/b",
    "../bob",
    "a\\b",
    "con",
    ".server",
    "users",
    "a\0b",
    "a\n",
    " a",
]
NAMES = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=200), st.text("aAbB.-_1", max_size=12))


@given(NAMES)
@example("A" * 5000)
@example("\udc80")
def test_a_name_becomes_one_plain_component(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9_-][a-z0-9._-]{0,63}", folder_name(name))


@given(NAMES, NAMES)
@example("ada", "Ada")
@example("аda", "ada")  # the first letter of one is Cyrillic
@example("é", "e\u0301")
@example("a" * 300, "a" * 301)
@example("..", ".")
def test_users_get_folders_that_differ_without_case_too(one: str, other: str) -> None:
    assert (folder_name(one).casefold() == folder_name(other).casefold()) == (one == other)


@given(NAMES)
def test_a_user_cannot_get_the_folder_of_another_by_bearing_its_name(name: str) -> None:
    assert folder_name(folder_name(name)) != folder_name(name) or folder_name(name) == name


def test_all_work_in_one_folder_or_each_in_their_own(tmp_path: Path) -> None:
    shared = load_workspaces_blocking(settings_in(tmp_path, workspaces="shared"))
    assert shared.of(ADA) == shared.of(BOB) == shared.own
    assert (shared.own.root, shared.own.state_dir) == (tmp_path / "ws", tmp_path / "data")
    each = load_workspaces_blocking(settings_in(tmp_path))
    assert each.of(ADA).root == tmp_path / "ws/users/ada"
    assert each.of(ADA).state_dir == tmp_path / "data/users/ada"
    assert each.own.root.parent == each.of(BOB).root.parent == each.users_dir
    assert len({each.of(ADA).root, each.of(BOB).root, each.own.root}) == 3


def test_folders_of_users_need_tokens_and_projects_need_folders(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="set CANDOR_TOKENS_FILE or CANDOR_IDENTITY_HEADER"):
        load_workspaces_blocking(settings_in(tmp_path, tokens_file=None))
    named = settings_in(tmp_path, tokens_file=None, identity_header="x-user")
    assert (
        load_workspaces_blocking(named).of(UserId("Ada@example.org")).root.name.startswith("ada-")
    )
    projects = tmp_path / "projects.toml"
    with pytest.raises(StartError, match="set CANDOR_WORKSPACES=per_user, or leave it out"):
        load_workspaces_blocking(settings_in(tmp_path, workspaces="shared", projects_file=projects))


@pytest.mark.parametrize(
    "name", ["data_dir", "log_dir", "tokens_file", "policy_file", "mcp_file", "shell_secrets_file"]
)
def test_nothing_of_the_servers_lies_in_the_users_folders(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "ws/users/ada/x"
    with pytest.raises(StartError, match="which belongs to the users; move it out"):
        load_workspaces_blocking(settings_in(tmp_path, **{name: inside}))
    (tmp_path / "project").mkdir()
    projects = write_projects(tmp_path, '[p]\npath = "ROOT/project"\nread = ["*"]')
    given = {"projects_file": projects, name: tmp_path / "project/x"}
    if name != "policy_file":  # which is read first
        with pytest.raises(StartError, match="overlaps with the server's own"):
            load_workspaces_blocking(settings_in(tmp_path, **given))


def write_projects(root: Path, text: str) -> Path:
    file = root / "projects.toml"
    file.write_text(text.replace("ROOT", str(root)), encoding="utf-8")
    return file


def test_a_project_is_read_and_written_by_whom_the_file_names(tmp_path: Path) -> None:
    for name in ("handbook", "plans", "board"):
        (tmp_path / name).mkdir()
    file = write_projects(
        tmp_path,
        """
        handbook = { path = "ROOT/handbook", read = ["*"], write = ["ada"] }
        plans = { path = "ROOT/plans", read = ["bob"] }
        [board]
        path = "ROOT/board"
        write = ["*"]
        """,
    )
    workspaces = load_workspaces_blocking(settings_in(tmp_path, projects_file=file))

    def rights_of(user_id: UserId) -> dict[str, bool]:
        return {place.path.name: place.writable for place in workspaces.of(user_id).projects}

    assert rights_of(ADA) == {"handbook": True, "board": True}
    assert rights_of(BOB) == {"handbook": False, "plans": False, "board": True}
    assert rights_of(CYD) == {"handbook": False, "board": True}
    assert rights_of(UserId("Ada")) == rights_of(CYD)
    assert workspaces.own.projects == ()
    assert ExtraDirectory(path=tmp_path / "board", writable=True) in workspaces.of(CYD).projects


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[p]\nread = ["*"]', "the project p has no path"),
        ('[p]\npath = 3\nread = ["*"]', "line 2: path must be a text"),
        ('[p]\npath = "ROOT/p"', "the project p is for nobody"),
        ('[p]\npath = "ROOT/p"\nread = "ada"', "line 3: read must be a list of texts"),
        ('[p]\npath = "ROOT/p"\nowner = ["ada"]', "line 3: the key owner is not known"),
        ('[p]\npath = "p"\nread = ["*"]', "line 2: p is no plain absolute path"),
        ('[p]\npath = "ROOT/gone"\nread = ["*"]', "is not a directory"),
        ('[p]\npath = "/usr/lib"\nwrite = ["*"]', "is the system's own"),
        ('[p]\npath = "ROOT/link"\nread = ["*"]', "is not the directory's real path"),
        ('[p]\npath = "ROOT/ws"\nread = ["*"]', "overlaps with the users' folders"),
        ('[p]\npath = "ROOT/ws/users/ada"\nread = ["*"]', "overlaps with the users' folders"),
        ('[p]\npath = "ROOT/data"\nread = ["*"]', "overlaps with the server's own"),
        ('[p]\npath = "ROOT"\nread = ["*"]', "overlaps with this file"),
        (
            '[p]\npath = "ROOT/p"\nread = ["*"]\n[q]\npath = "ROOT/p/q"\nwrite = ["*"]',
            "line 5: .* overlaps with the project",
        ),
        ("p = 3", "p must be a table"),
        ("[p", "it is not TOML"),
    ],
)
def test_a_mistake_in_the_file_of_projects_is_told(tmp_path: Path, text: str, said: str) -> None:
    for name in ("p/q", "ws/users/ada", "data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "p")
    file = write_projects(tmp_path, text)
    with pytest.raises(StartError, match=rf"The projects file .*projects\.toml.*{said}"):
        load_workspaces_blocking(settings_in(tmp_path, projects_file=file))


def test_no_agent_can_reach_the_file_of_projects(tmp_path: Path) -> None:
    (tmp_path / "ws/users/ada").mkdir(parents=True)
    (tmp_path / "p").mkdir()
    file = tmp_path / "ws/users/ada/projects.toml"
    file.write_text(f'[p]\npath = "{tmp_path}/p"\nread = ["*"]\n', encoding="utf-8")
    with pytest.raises(StartError, match="where the agent could change it"):
        load_workspaces_blocking(settings_in(tmp_path, projects_file=file))
    with pytest.raises(StartError, match="there is no such file; set CANDOR_PROJECTS_FILE to one"):
        load_workspaces_blocking(settings_in(tmp_path, projects_file=tmp_path / "gone.toml"))
