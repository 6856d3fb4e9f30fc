"""The workspaces in use: which users change the same files, and what each user's gate lets through."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.errors import StartError, WorkspaceUnavailable
from gateway.ids import UserId
from gateway.observability.paths import make_path_view_blocking
from gateway.skills import WorkspaceSkills
from gateway.turns.workspaces import OpenWorkspaces
from gateway.workspaces import Workspaces
from policies.calls import ToolCall
from policies.paths.workspace import ExtraDirectory
from policies.projects import Project
from policies.rules import Rules, shipped_rules
from policies.tools import ToolGate
from policies.verdict import Allow

ADA, BOB, CYD, DAN = (UserId(name) for name in ("ada", "bob", "cyd", "dan"))


def opening(
    root: Path, *projects: Project, is_per_user: bool = True, rules: Rules | None = None
) -> OpenWorkspaces:
    def prepare(folder: Path) -> None:
        if folder.name == "dan":
            raise StartError("There is something else in its place.")
        folder.mkdir(parents=True)

    return OpenWorkspaces(
        Workspaces(
            workspace=root, data_dir=root / "data", is_per_user=is_per_user, projects=projects
        ),
        rules or shipped_rules(),
        make_gate=lambda folder, given, _: ToolGate(folder, rules=given),
        make_paths=make_path_view_blocking,
        make_skills=partial(WorkspaceSkills, approvals=None),
        prepare=prepare,
    )


def board(root: Path, *writers: str) -> Project:
    return Project(path=root / "board", readers=frozenset({"cyd"}), writers=frozenset(writers))


async def test_those_who_change_the_same_files_change_them_one_at_a_time(tmp_path: Path) -> None:
    workspaces = opening(tmp_path, board(tmp_path, "ada", "bob"))
    locks = [(await workspaces.open(user_id)).lock for user_id in (ADA, BOB, CYD)]
    assert locks[0] is locks[1]
    assert locks[2] not in locks[:2]
    everybodys = ExtraDirectory(path=tmp_path / "everybodys", writable=True)
    rules = replace(shipped_rules(), directories=(everybodys,))
    others = opening(tmp_path / "others", rules=rules)
    assert (await others.open(BOB)).lock is (await others.open(CYD)).lock


async def test_all_users_of_one_workspace_share_its_parts(tmp_path: Path) -> None:
    workspaces = opening(tmp_path, is_per_user=False)
    opened = await workspaces.open(ADA)
    assert opened is await workspaces.open(BOB)
    assert (opened.root, opened.user_id, workspaces.last_user_id) == (tmp_path, None, None)


async def test_a_project_is_judged_by_each_users_rights(tmp_path: Path) -> None:
    await anyio.Path(tmp_path / "board").mkdir()
    workspaces = opening(tmp_path, board(tmp_path, "ada"))

    async def may(user_id: UserId, tool: str) -> bool:
        opened = await workspaces.open(user_id)
        given = {"file_path": f"{tmp_path}/board/a.txt"} | (
            {"content": ""} if tool == "Write" else {}
        )
        call = ToolCall(name=tool, input=given, cwd=str(opened.root))
        return isinstance(await anyio.to_thread.run_sync(opened.policy.judge, call), Allow)

    assert [await may(user_id, "Read") for user_id in (ADA, BOB, CYD)] == [True, False, True]
    assert [await may(user_id, "Write") for user_id in (ADA, BOB, CYD)] == [True, False, False]


async def test_a_folder_that_cannot_be_made_is_not_open_and_an_empty_one_takes_its_place(
    tmp_path: Path,
) -> None:
    workspaces = opening(tmp_path)
    for _ in range(2):
        with pytest.raises(WorkspaceUnavailable):
            await workspaces.open(DAN)
    empty = await workspaces.open_empty(DAN, "It is a link.")
    assert (empty.root, empty.user_id) == (tmp_path / "users/.server", DAN)


async def test_paths_are_shown_from_the_users_own_folder(tmp_path: Path) -> None:
    opened = await opening(tmp_path).open(ADA)
    assert opened.paths.shown(f"{tmp_path}/users/ada/a.txt") == "a.txt"
    assert opened.paths.shown(f"{tmp_path}/users/bob/a.txt") == "../bob/a.txt"
