"""The paths, devices and ports that an agent may use; the kernel's sandbox forbids all others.

The kernel supports no exception below an allowed path, so the lists are narrow, and the policy protects
files inside the workspace.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_HTTPS = 443
_SOCKS = dict.fromkeys(("socks", "socks4", "socks4a", "socks5", "socks5h"), 1080)
_PORTS = {"http": 80, "https": _HTTPS, **_SOCKS}

PROGRAMS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
)
"""The system's programs and libraries: read and run."""

_OF_ETC = (
    # names, addresses, users
    "gai.conf",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "nsswitch.conf",
    "passwd",
    "protocols",
    "resolv.conf",
    "services",
    # certificates, and never the folders with private keys beside them
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    # programs and the shell
    "alternatives",
    "bash.bashrc",
    "bashrc",
    "gitconfig",
    "inputrc",
    "ld-musl-aarch64.path",
    "ld-musl-x86_64.path",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "profile",
    "profile.d",
    "shells",
    "terminfo",
    # language, time, kind of system
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "timezone",
    # managed settings of the agent program
    "claude-code",
)

READABLE = (
    *(f"/etc/{name}" for name in _OF_ETC),
    # All of it, because a rule for one file below it is lost when the kernel forgets that file. Landlock
    # itself restricts environment, memory and open files to the own processes.
    "/proc",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/var/lib/ca-certificates",
)
"""System paths that may be read, but not run."""

DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NAME_A_PLACE = (
    "AWS_CA_BUNDLE",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_CONFIG_DIR",
    "AZURE_FEDERATED_TOKEN_FILE",
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLOUDSDK_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)
"""Variables of the agent's environment that name a file or directory it must read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlaces:
    """What the agents of a server may use besides the system's programs."""

    program: Path
    """The agent program."""
    workspace: Path
    own: Sequence[Path]
    """The agents' own directories, for sessions and temporary files; writable."""
    readable: Sequence[Path] = ()
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
    """Return the files and directories, such as certificates, that the agent's environment names."""
    named = (Path(environ[name]) for name in _NAME_A_PLACE if environ.get(name))
    return [path for path in named if path.is_absolute()]


def ports_named_in(environ: Mapping[str, str]) -> list[int]:
    """Return the port of https and those of all addresses and proxies in the agent's environment."""
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
