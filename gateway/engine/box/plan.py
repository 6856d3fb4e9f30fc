"""The box of one command as arguments of bubblewrap. Pure: descriptors are numbers here.

What is in the box: the system's programs and libraries, a few files of `/etc`, a `/proc` and `/dev`
of its own, empty `/tmp` and `/dev/shm` of a limited size, and the workspace with its protected
entries covered. Namespaces of its own: users, processes, network, host name, shared memory,
cgroups. No capability is left, and no further namespace can be made.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from gateway.engine.box.limits import Limits
from gateway.engine.box.wrapper import MARK
from gateway.engine.environment import PATH, SHELL

HOME: Final = "/tmp/home"  # noqa: S108  a folder in the box's own /tmp
PROXY_PORT: Final = 3128

_NAMESPACES = (
    *("--die-with-parent", "--new-session", "--unshare-user", "--unshare-ipc", "--unshare-pid"),
    *("--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--disable-userns"),
    *("--cap-drop", "ALL", "--hostname", "sandbox"),
)
_START = 'ulimit {limits} && exec {shell} -c "$1"'
"""Limits the processes of the box: their number counts in the box alone."""


@dataclass(frozen=True, slots=True)
class Mount:
    """Something at a path in the box; `fd` is where it comes from, if that needs saying."""

    kind: Literal["writable", "read_only", "file", "empty_folder"]
    at: str
    fd: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPlan:
    """One command's box."""

    program: Path
    """bubblewrap."""
    system: Sequence[tuple[str, str]]
    """Paths of the system, each with where it leads if it is a link, else with nothing."""
    mounts: Sequence[Mount]
    """The workspace first, then what is in it, folders before their content."""
    cwd: str
    line: str
    limits: Limits
    filter_fd: int
    info_fd: int
    """Written by bubblewrap: the process id of the box."""
    block_fd: int | None = None
    """The command starts when something can be read there."""
    cwd_file: str = ""
    """Where the line writes its last working directory; empty: it does not."""
    cwd_fd: int = -1
    """Where that goes."""

    def arguments(self) -> list[str]:
        """Return the command line of bubblewrap."""
        return [
            str(self.program),
            *_NAMESPACES,
            *(word for path, leads in self.system for word in _system_words(path, leads)),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--size", str(self.limits.shared_memory_bytes), "--tmpfs", "/dev/shm"),  # noqa: S108
            *("--remount-ro", "/dev"),
            *("--size", str(self.limits.temporary_bytes), "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108
            *("--dir", HOME, "--symlink", "/tmp", "/var/tmp"),  # noqa: S108
            *(word for mount in self.mounts for word in _mount_words(mount)),
            *(
                ("--symlink", f"/proc/self/fd/{self.cwd_fd}", self.cwd_file)
                if self.cwd_file
                else ()
            ),
            *("--remount-ro", "/", "--chdir", self.cwd, "--unsetenv", MARK),
            *("--seccomp", str(self.filter_fd), "--info-fd", str(self.info_fd)),
            *(() if self.block_fd is None else ("--block-fd", str(self.block_fd))),
            *("--", SHELL, "-c", _START.format(limits=self.limits.ulimits(), shell=SHELL)),
            *("sandbox", self.line),
        ]


def _system_words(path: str, leads: str) -> Sequence[str]:
    return ("--symlink", leads, path) if leads else ("--ro-bind", path, path)


def _mount_words(mount: Mount) -> Sequence[str]:
    match mount.kind:
        case "writable":
            return ("--bind-fd", str(mount.fd), mount.at)
        case "read_only":
            return ("--ro-bind-fd", str(mount.fd), mount.at)
        case "file":
            return ("--perms", "0444", "--ro-bind-data", str(mount.fd), mount.at)
        case "empty_folder":
            return ("--perms", "0555", "--tmpfs", mount.at, "--remount-ro", mount.at)


def box_environment(
    hosts: Collection[str] = (), with_secret: Collection[str] = ()
) -> Mapping[str, str]:
    """Return the environment of a command: nothing of the agent's or the server's.

    `hosts` are those that it may reach. Plain requests to those `with_secret` go through the
    proxy, and git makes its requests to them plain, so that they get the secret there.
    """
    environment = {
        "PATH": PATH,
        "HOME": HOME,
        "TMPDIR": "/tmp",  # noqa: S108  the box's own
        "SHELL": SHELL,
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_TEMPLATE_DIR": "",  # no hooks in a new repository
        "CLAUDECODE": "1",
    }
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    if hosts:
        names = ("https_proxy", "all_proxy")
        environment |= {name: proxy for low in names for name in (low, low.upper())}
        environment |= {"no_proxy": "", "NO_PROXY": ""}
    if with_secret:
        environment["http_proxy"] = proxy
    settings = {f"url.http://{host}/.insteadOf": f"https://{host}/" for host in with_secret}
    settings["rerere.enabled"] = "false"  # what it keeps cannot be seen
    environment["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


def users_file(uid: int) -> bytes:
    """Return `/etc/passwd` of the box."""
    return (
        f"agent:x:{uid}:{uid}:agent:{HOME}:{SHELL}\nnobody:x:65534:65534::/:/bin/false\n".encode()
    )


def groups_file(gid: int) -> bytes:
    """Return `/etc/group` of the box."""
    return f"agent:x:{gid}:\nnogroup:x:65534:\n".encode()


GIT_SETTINGS: Final = f"""\
[user]
\tname = Candor agent
\temail = agent@candor.invalid
[safe]
\tdirectory = *
\tbareRepository = explicit
[init]
\tdefaultBranch = main
[core]
\texcludesFile = {HOME}/.gitignore
""".encode()
"""Of git in the box, below those of the repository."""
