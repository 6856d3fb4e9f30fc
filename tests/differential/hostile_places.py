"""What hostile programs aim at: places outside the box, protected names in it, and how each is spelled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the programs aim at."""

    outside: Path
    """A folder beside the workspace, with `secret`, `folder/` and `socket` in it."""
    workspace: Path
    tcp: Sequence[tuple[str, int]]
    udp: Sequence[tuple[str, int]]
    victim: int
    """A process outside that must not be signalled."""


Attempt = Callable[[Random, Scene], str]

_PROTECTED = (
    ".env deep/.env.local keys/.ssh/id_rsa .claude/settings.json .claude CLAUDE.md .git/config"
    " .git/hooks/pre-commit .git/hooks .git lib/.git lib/.git/config lib/.git/hooks/update deep keys"
    " lib .git/info/attributes"
).split()
_FREE = (
    ".claude/settings.json .mcp.json AGENTS.md .vscode/tasks.json .CLAUDE/x .git/hooks/post-commit"
    " hooks/post-commit .gitattributes .bashrc CLAUDE.local.md"
).split()
_FOLDERS = ("", "a/", "a/b/", "deep/", "lib/", ".git/")


def target(random: Random, scene: Scene) -> str:
    """Return a path outside, by one of its spellings."""
    name = random.choice(("secret", "new", "folder/kept", "folder", "."))
    path = scene.outside / name
    up = f"../{scene.outside.name}/{name}"
    return str(
        random.choice(
            (path, up, f"/proc/self/cwd/{up}", f"/proc/1/root{path}", f"{scene.workspace}/{up}")
        )
    )


def protected(random: Random, _scene: Scene) -> str:
    """Return a protected name of the workspace."""
    return random.choice(_PROTECTED)


def acting(random: Random, _scene: Scene) -> str:
    """Return a protected name that is free."""
    return random.choice(_FOLDERS) + random.choice(_FREE)
