"""What the parts of a server get of its workspaces."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from gateway.engine.box.git_box import enclose_git_blocking
from gateway.ids import LOCAL_USER, UserId
from gateway.observability.paths import PathView, make_path_view_blocking
from gateway.settings import Settings
from gateway.skills import WorkspaceSkills
from gateway.trust import OWN_SKILLS, approvals_file
from gateway.turns.further_tools import FurtherTools
from gateway.turns.workspace_lock import LocksOfServers
from gateway.turns.workspaces import OpenWorkspaces
from gateway.workspace import prepare_user_blocking
from gateway.workspaces import Workspaces
from memory.cases.tools import SKILL
from memory.notes.notebooks import UserNotes
from policies.rules import Rules
from policies.tools import HERE, ToolGate

PROGRAM = Path(__file__).resolve().parent.parent
"""The server's own code and its `.env`."""


def notes_of(workspaces: Workspaces, users: set[UserId]) -> UserNotes | None:
    """Return where the notes of each user are, `users` being looked at; None: they are
    everybody's.
    """
    if not workspaces.is_per_user:
        return None

    def workspace_of(owner_id: str) -> Path:
        return workspaces.of(UserId(owner_id)).root

    return UserNotes(workspace_of=workspace_of, users=lambda: users)


def view_paths_blocking(settings: Settings, workspace: Path) -> PathView:
    """Return the view of paths that clients get who work in a workspace, which hides the server's
    own files.
    """
    server = [settings.data_dir, settings.log_dir, PROGRAM]
    if sys.prefix != sys.base_prefix:  # otherwise it is the system's folder
        server.append(Path(sys.prefix))
    return make_path_view_blocking(workspace, server)


async def open_workspaces(
    workspaces: Workspaces,
    settings: Settings,
    rules: Rules,
    further: FurtherTools,
    users: set[UserId],
    servers: LocksOfServers | None,
) -> OpenWorkspaces:
    """Return what opens the workspaces; `users` gets those whose own are open. `servers` has
    the locks of all that use them.

    One that all users share is open already.
    """

    def make_gate(root: Path, rules: Rules, skills: WorkspaceSkills) -> ToolGate:
        return ToolGate(
            root,
            rules=rules,
            can_ask_user=settings.approvals == "on",
            platform=HERE,
            further_tools=further.rule_of,
            sandboxed_shell=settings.shell == "sandboxed",
            instructions=skills.names_blocking,
        )

    enclose = enclose_git_blocking if settings.shell == "sandboxed" else None
    opened = OpenWorkspaces(
        replace(workspaces, enclose_git=enclose),
        rules,
        make_gate=make_gate,
        make_paths=partial(view_paths_blocking, settings),
        make_skills=partial(
            WorkspaceSkills,
            approvals=approvals_file(settings.data_dir),
            off=() if settings.case_memory == "on" else (SKILL,),
        ),
        prepare=partial(prepare_user_blocking, skills_source=OWN_SKILLS),
        users=users,
        servers=servers,
    )
    if not opened.is_per_user:
        await opened.open(LOCAL_USER)
    return opened


async def ping_workspaces(workspaces: Workspaces) -> Mapping[str, str]:  # noqa: RUF029  a ping
    """Return whose the workspaces are."""
    return {"mode": "per_user" if workspaces.is_per_user else "shared"}
