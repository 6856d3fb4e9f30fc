"""Where the agents of a user work: in one folder for all, or in a folder of each user's own.

    CANDOR_WORKSPACE/users/NAME      the user's folder
    CANDOR_WORKSPACE/users/.server   the server's own: trials of the sandbox, questions to a model
    CANDOR_DATA_DIR/users/NAME       the sessions, home and temporary folder of the user's agents

A folder is named after its user by `folder_name`, so a start needs no list of users.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gateway.errors import SettingsError, StartError
from gateway.ids import UserId
from gateway.rules import load_policy_blocking
from gateway.settings import Settings
from policies.paths.workspace import ExtraDirectory
from policies.projects import Project, load_projects
from policies.rules import Rules, RulesError

USERS: Final = "users"
_SERVER: Final = ".server"
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_-]+")
_MOST_CHARS: Final = 40
_DIGEST_CHARS: Final = 16

_NO_NAMES: Final = (
    "CANDOR_WORKSPACES=per_user gives each user a folder, and without tokens or a proxy that names "
    "users all are one user: set CANDOR_TOKENS_FILE or CANDOR_IDENTITY_HEADER, or CANDOR_USERS=on, "
    "or CANDOR_WORKSPACES=shared."
)
_NO_USERS: Final = (
    "CANDOR_PROJECTS_FILE names folders that users share beside their own: set "
    "CANDOR_WORKSPACES=per_user, or leave it out."
)


def folder_name(user_id: str) -> str:
    """Return the name of a user's folder: the user's own, if it is plain, else one with a digest.

    Different users get names that also differ for a file system that disregards case. A name is one
    component of at most 64 ASCII characters that does not begin with a dot.
    """
    if _PLAIN.fullmatch(user_id):
        return user_id
    readable = _NOT_PLAIN.sub("-", user_id.lower())[:_MOST_CHARS].strip("-") or "user"
    digest = hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{readable}.{digest[:_DIGEST_CHARS]}"  # a plain name has no dot


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorkspace:
    """The folders of some agents, and what they may use beside them."""

    root: Path
    """Where they work."""
    state_dir: Path
    """Holds their sessions, home and temporary folder."""
    projects: tuple[ExtraDirectory, ...] = ()

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of a server with these folders in place of its own."""
        return replace(settings, workspace=self.root, data_dir=self.state_dir)

    def extend(self, rules: Rules) -> Rules:
        """Return the rules of a server with the shared projects of these agents."""
        return replace(rules, directories=(*rules.directories, *self.projects))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspaces:
    """The workspace of each user."""

    workspace: Path
    data_dir: Path
    is_per_user: bool = False
    projects: tuple[Project, ...] = ()
    enclose_git: Callable[[Path, Path], Sequence[str]] | None = None
    """Returns the words that run the server's own git in a box with two folders; None where no
    command writes repositories.
    """

    @property
    def users_dir(self) -> Path:
        """The folder of the users' folders."""
        return self.workspace / USERS

    @property
    def users_state_dir(self) -> Path:
        """The folder of what is kept of the users' agents."""
        return self.data_dir / USERS

    @property
    def own(self) -> AgentWorkspace:
        """The workspace of agents that work for no user in particular: the one that all share, or
        else an empty folder.
        """
        if not self.is_per_user:
            return AgentWorkspace(root=self.workspace, state_dir=self.data_dir)
        return AgentWorkspace(root=self.users_dir / _SERVER, state_dir=self.data_dir)

    def of(self, user_id: UserId) -> AgentWorkspace:
        """Return the workspace of a user. Nothing is made or looked at."""
        if not self.is_per_user:
            return self.own
        name = folder_name(user_id)
        rights = (project.directory_of(user_id) for project in self.projects)
        return AgentWorkspace(
            root=self.users_dir / name,
            state_dir=self.users_state_dir / name,
            projects=tuple(right for right in rights if right is not None),
        )


def load_workspaces_blocking(settings: Settings) -> Workspaces:
    """Return the workspaces of a server.

    Raise `StartError` if users are to have folders and nothing tells users apart, or the file of
    shared projects is not to be used or has a mistake.
    """
    is_per_user = settings.workspaces == "per_user"
    if is_per_user and not settings.needs_sign_in:
        raise SettingsError(_NO_NAMES)
    if settings.projects_file is not None and not is_per_user:
        raise SettingsError(_NO_USERS)
    _check_apart(settings)
    return Workspaces(
        workspace=settings.workspace,
        data_dir=settings.data_dir.resolve(),
        is_per_user=is_per_user,
        projects=_load_projects_blocking(settings),
    )


def workspace_of_user_blocking(settings: Settings, user: str) -> AgentWorkspace:
    """Return the workspace of the user with a name.

    Raise `StartError` if there is one for all, or as `load_workspaces_blocking` does.
    """
    workspaces = load_workspaces_blocking(settings)
    if not workspaces.is_per_user:
        raise StartError("--user is for CANDOR_WORKSPACES=per_user; all users have one folder.")
    return workspaces.of(UserId(user))


def _check_apart(settings: Settings) -> None:
    """Raise `StartError` if the server keeps something in the users' folders."""
    if settings.workspaces != "per_user":
        return
    users = (settings.workspace / USERS).resolve()
    for path in (settings.data_dir, settings.log_dir, *_files_of(settings)):
        if path.resolve().is_relative_to(users):
            raise SettingsError(f"{path} lies in {users}, which belongs to the users; move it out.")


def _files_of(settings: Settings) -> list[Path]:
    files = (settings.tokens_file, settings.policy_file, settings.mcp_file)
    of_parts = (settings.shell_secrets_file, settings.memory_policy_file)
    return [path for path in (*files, *of_parts) if path is not None]


def _load_projects_blocking(settings: Settings) -> tuple[Project, ...]:
    if settings.projects_file is None:
        return ()
    users = settings.workspace / USERS
    private = (settings.data_dir, settings.log_dir, *_files_of(settings))
    rules = load_policy_blocking(settings)
    taken = [(path, "the server's own") for path in private]
    taken.append((users, "the users' folders"))
    taken += [(place.path, "the policy file's directory") for place in rules.directories]
    try:
        return load_projects(settings.projects_file, taken=taken, in_reach=[users])
    except RulesError as exc:
        raise SettingsError(str(exc)) from exc
