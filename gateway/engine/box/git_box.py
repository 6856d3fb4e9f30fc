"""The box of the server's own git, which works in repositories that agents write.

It shows the workspace and the folder of the server's own indexes, and of the rest the system's
programs: a link, a reference or an alternate object folder that leads elsewhere leads nowhere.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gateway.engine.box.process import find_bubblewrap_blocking, system_paths_blocking

_NAMESPACES: Final = (
    *("--die-with-parent", "--new-session", "--unshare-user", "--unshare-ipc", "--unshare-pid"),
    *("--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"),
)


def enclose_git_blocking(workspace: Path, own_dir: Path) -> Sequence[str]:
    """Return bubblewrap with the mounts of the box; nothing if this machine has none.

    Both folders are seen at their own paths and can be written; `own_dir` may be missing.
    """
    program = find_bubblewrap_blocking()
    if program is None:
        return ()
    system = (
        word
        for path, leads in system_paths_blocking()
        for word in (("--symlink", leads, path) if leads else ("--ro-bind", path, path))
    )
    return (
        *(str(program), *_NAMESPACES, *system),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108  the box's own
        *("--bind", str(workspace), str(workspace)),
        *("--bind-try", str(own_dir), str(own_dir)),
    )
