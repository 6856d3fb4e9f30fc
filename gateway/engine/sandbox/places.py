"""The paths, devices and ports that an agent may use; the kernel's sandbox forbids all others.

The kernel supports no exception below an allowed path, so the lists are narrow, and the policy
protects files inside the workspace.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_HTTPS = 443
_SOCKS = dict.fromkeys(("socks", "socks4", "socks4a", "socks5", "socks5h"), 1080)
_PORTS = {"http": 80, "https": _HTTPS, **_SOCKS}

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PROGRAMS: tuple[str, ...] = tuple(_TOLD["programs"].split())
"""The system's programs and libraries: read and run."""
READABLE: tuple[str, ...] = (
    *(f"/etc/{name}" for names in _TOLD["etc"].values() for name in names.split()),
    *_TOLD["other"]["readable"].split(),
)
"""System paths that may be read, but not run."""
DEVICES: tuple[str, ...] = tuple(_TOLD["other"]["devices"].split())

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NAME_A_PLACE: tuple[str, ...] = tuple(_TOLD["other"]["name_a_place"].split())
"""Variables of the agent's environment that name a file or directory it must read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlaces:
    """What the agents of a server may use besides the system's programs."""

    program: Path
    """The agent program."""
    workspace: Path
    programs: Sequence[Path] = ()
    """Further files and directories that are read and run."""
    own: Sequence[Path]
    """The agents' own directories, for sessions and temporary files; writable."""
    readable: Sequence[Path] = ()
    runnable: Sequence[Path] = ()
    """Further directories with programs."""
    writable: Sequence[Path] = ()
    """Further directories that the policy's rules allow."""
    ports: Sequence[int] = (_HTTPS,)
    """TCP ports that the agents may connect to, on any host."""
    private: Sequence[Path] = ()
    """The server's own paths; they must not be inside any of these."""

    def exposed(self) -> Sequence[Path]:
        """Return the server's own paths that the agents could write."""
        return [
            path
            for path in self.private
            if any(
                path.is_relative_to(open_to_agents)
                for open_to_agents in (self.workspace, *self.writable)
            )
        ]


def places_named_in(environ: Mapping[str, str]) -> list[Path]:
    """Return the files and directories, such as certificates, that the
    agent's environment names.
    """
    named = (Path(environ[name]) for name in _NAME_A_PLACE if environ.get(name))
    return [path for path in named if path.is_absolute()]


def ports_named_in(environ: Mapping[str, str]) -> list[int]:
    """Return the port of https and those of all addresses and proxies in
    the agent's environment.
    """
    return sorted({_HTTPS, *_ports_of(environ)})


def _ports_of(environ: Mapping[str, str]) -> Iterator[int]:
    for name, value in environ.items():
        address = value.strip()
        if name.upper() in _PROXIES and "://" not in address:
            address = f"http://{address}"  # `host:port` is how many write it
        try:
            split = urlsplit(address)
            port = split.port
        except ValueError:  # no address
            continue
        if split.scheme in _PORTS and split.hostname:
            yield port or _PORTS[split.scheme]
