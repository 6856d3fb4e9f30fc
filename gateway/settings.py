"""The settings: one frozen value from the `CANDOR_*` variables, and the table in the README.

Only the command line reads the environment. An unknown `CANDOR_…` variable is an error that names
the nearest known one; the error of a wrong value names the variable, the fault and the accepted
form.
"""

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from gateway.errors import SettingsError
from policies.secrets import mask_secrets
from policies.web import read_listed_host

PREFIX = "CANDOR_"
_SHOWN_CHARS = 60

Demo = Literal["auto", "on", "off"]
Sandbox = Literal["auto", "require", "off"]
Shell = Literal["listed", "sandboxed"]
Switch = Literal["off", "on"]
Learn = Literal["off", "explicit", "model"]
Check = Literal["off", "model"]
Recall = Literal["ranking", "model"]
Embedder = Literal["auto", "multilingual", "none", "onnx", "openai"]
WebFetch = Literal["off", "listed", "public"]
Memu = Literal["off", "cli", "server"]
WorkspaceMode = Literal["shared", "per_user"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is never shown."""

    value: str

    def __repr__(self) -> str:
        return "***"


class _FaultError(ValueError):
    """The fault of a value, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The accepted form of a variable in words, and its parser."""

    words: str
    read: Callable[[str], Any]


def _between(least: float, most: float, words: str, parse: Callable[[str], float]) -> _Form:
    bounds = f"{least:.10g} to {most:.10g}"

    def read(text: str) -> float:
        value = parse(text)
        if not least <= value <= most:
            raise _FaultError(f"it is outside {bounds}")
        return value

    return _Form(f"{words}, {bounds}", read)


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise _FaultError("it is not a whole number")
    return int(text)


def _decimal(text: str) -> float:
    if not re.fullmatch(r"[+-]?([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)", text):
        raise _FaultError("it is not a number")
    return float(text)


def _choice(*words: str) -> _Form:
    def read(text: str) -> str:
        if text not in words:
            raise _FaultError("it is none of them")
        return text

    return _Form("one of " + ", ".join(words), read)


def _host(text: str) -> str:
    if text != "localhost":
        try:
            ipaddress.ip_address(text)
        except ValueError:
            raise _FaultError("it is not an IP address") from None
    return text


def _words(text: str) -> str:
    if not text.isprintable():  # lone surrogates, too: bytes that are no UTF-8
        raise _FaultError("it holds characters that cannot be printed")
    return text


def _path(text: str) -> Path:
    try:
        return Path(_words(text)).expanduser()
    except RuntimeError:
        raise _FaultError("its ~ is not the home of a known user") from None


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", _words(text)):
        raise _FaultError("it is not an address without a name and password in it")
    return text.rstrip("/")


def _list_of(words: str, pattern: re.Pattern[str]) -> _Form:
    def read(text: str) -> tuple[str, ...]:
        entries = [entry.strip().lower() for entry in text.split(",")]
        for number, entry in enumerate(entries, start=1):
            if not pattern.fullmatch(entry):
                raise _FaultError(f"entry {number} is none")
        return tuple(entries)

    return _Form(f"{words}, separated by commas", read)


_HOST_NAME = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A host name or an IP address without a port."""
_HOST_AND_PORT = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
"""As a browser sends it: no path, and no slash at its end."""


def _networks(text: str) -> tuple[str, ...]:
    entries = tuple(entry.strip() for entry in text.split(","))
    for number, entry in enumerate(entries, start=1):
        try:
            ipaddress.ip_network(entry, strict=False)
        except ValueError:
            raise _FaultError(f"entry {number} is none") from None
    return entries


def _header(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", text):
        raise _FaultError("it is none")
    return text.lower()


def _public_hosts(text: str) -> str:
    hosts = [read_listed_host(name) for name in text.replace(",", " ").split()]
    if not all(hosts):
        raise _FaultError("one of them is not a public host name")
    return ",".join(host for host in hosts if host)


def _dollars(text: str) -> float:
    value = _decimal(text)
    if not value > 0:
        raise _FaultError("it is not above 0")
    return value


def _postgres(text: str) -> Secret:
    if not re.match(r"postgres(ql)?://", _words(text)):
        raise _FaultError("it is none")
    return Secret(text)


_SECRET = _Form("a secret", lambda text: Secret(_words(text)))
_POSTGRES = _Form("an address such as postgresql://user@host/database", _postgres)
_FORMS: Mapping[str, Callable[..., _Form]] = {
    "whole": lambda least, most, *unit: _between(
        least, most, " of ".join(("a whole number", *unit)), _integer
    ),
    "seconds": lambda least, most: _between(least, most, "seconds", _decimal),
    "choice": _choice,
    "host": lambda: _Form("an IP address or localhost", _host),
    "address": lambda: _Form("an http or https address", _address),
    "hosts": lambda: _list_of("host names", _HOST_NAME),
    "places": lambda: _list_of("hosts, each with or without a port", _HOST_AND_PORT),
    "origins": lambda: _list_of("origins such as https://chat.example.org", _ORIGIN),
    "header": lambda: _Form("the name of a header", _header),
    "networks": lambda: _Form(
        "IP addresses or networks such as 10.0.0.0/8, separated by commas", _networks
    ),
    "dollars": lambda: _Form("an amount in US dollars above 0", _dollars),
    "public_hosts": lambda: _Form("host names, separated by commas", _public_hosts),
    "directory": lambda: _Form("a directory; made if missing", _path),
    "present_directory": lambda: _Form("a directory", _path),
    "file": lambda: _Form("a file that can be read", _path),
    "text": lambda: _Form("text", _words),
    "secret": lambda: _SECRET,
    "postgres": lambda: _POSTGRES,
}


_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ABOUT: Mapping[str, tuple[_Form, str]] = {
    name: (_FORMS[about["takes"][0]](*about["takes"][1:]), about["does"])
    for name, about in _TOLD.items()
}
"""What each setting takes and does, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting with its default; `settings.toml` says what each takes and does."""

    host: str = "127.0.0.1"
    port: int = 8000
    workspace: Path = Path("workspace")
    workspaces: WorkspaceMode = "shared"
    projects_file: Path | None = None
    worktrees: Switch = "off"
    data_dir: Path = Path(".candor")
    log_dir: Path = Path("logs")
    database_url: Secret | None = None
    node_url: str | None = None
    node_ttl_s: float = 5.0
    model: str | None = None
    max_live_clients: int = 8
    max_live_mb: int = 0
    prewarmed_clients: int = 1
    wake_opened: Switch = "on"
    idle_client_s: float = 900.0
    stale_client_grace_s: float = 20.0
    turn_timeout_s: float = 600.0
    model_silence_s: float = 120.0
    max_agent_steps: int = 200
    max_budget_usd: float | None = None
    max_running_turns: int = 500
    max_user_running_turns: int | None = None
    max_user_live_agents: int | None = None
    max_user_daily_turns: int | None = None
    max_user_daily_usd: float | None = None
    shutdown_grace_s: float = 10.0
    interrupt_grace_s: float = 10.0
    doom_loop_threshold: int = 5
    subagents: Switch = "on"
    task_lists: Switch = "on"
    pictures: Switch = "on"
    approvals: Switch = "off"
    approval_timeout_s: float = 600.0
    schedules: Switch = "off"
    max_schedules: int = 20
    max_body_bytes: int = 1_048_576
    max_upload_bytes: int = 33_554_432
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    users: Switch = "off"
    tokens_file: Path | None = None
    identity_header: str | None = None
    identity_proxies: tuple[str, ...] = ()
    oidc_issuer: str | None = None
    oidc_client_id: str | None = None
    oidc_client_secret: Secret | None = None
    oidc_user_claim: str = "sub"
    oidc_groups_claim: str = "groups"
    oidc_admin_group: str | None = None
    public_url: str | None = None
    session_hours: int = 12
    audit_days: int = 400
    policy_file: Path | None = None
    mcp_file: Path | None = None
    web_fetch: WebFetch = "off"
    search_url: str | None = None
    webhooks: Switch = "off"
    webhook_hosts: tuple[str, ...] = ()
    sandbox: Sandbox = "auto"
    shell: Shell = "listed"
    shell_hosts: str | None = None
    shell_secrets_file: Path | None = None
    shell_memory_mb: int = 2048
    recall_deadline_ms: int = 300
    record: Switch = "on"
    case_memory: Switch = "on"
    extract: Switch = "off"
    recall: Recall = "ranking"
    learn: Learn = "explicit"
    check: Check = "off"
    review: Check = "off"
    redact_contacts: Switch = "on"
    side_model: str = "haiku"
    embedder: Embedder = "auto"
    embeddings_url: str | None = None
    embeddings_model: str | None = None
    embeddings_key: Secret | None = None
    embeddings_path: Path | None = None
    memory_policy_file: Path | None = None
    memu: Memu = "off"
    memu_url: str | None = None
    memu_model: str = "text-embedding-3-small"
    relay: Switch = "on"
    demo: Demo = "auto"
    demo_cadence_ms: int = 15

    @property
    def needs_sign_in(self) -> bool:
        """True if users sign in; otherwise every client is the local user."""
        ways = (self.tokens_file, self.identity_header)
        return self.users == "on" or any(way is not None for way in ways)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Read the settings from an environment; empty variables count as unset.

        Raise `SettingsError` if a `CANDOR_…` variable is unknown or its value is wrong.
        """
        known = {_variable(setting.name): setting.name for setting in fields(cls)}
        values: dict[str, Any] = {}
        for variable, text in environ.items():
            if not variable.startswith(PREFIX):
                continue
            if variable not in known:
                raise SettingsError(_unknown(variable, list(known)))
            if text.strip():
                name = known[variable]
                values[name] = _read(variable, text.strip(), _ABOUT[name][0])
        return cls(**values)


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _unknown(variable: str, known: list[str]) -> str:
    names = [name.removeprefix(PREFIX) for name in known]
    nearest = difflib.get_close_matches(variable.removeprefix(PREFIX), names, n=1, cutoff=0.0)
    return f"{variable} is not a setting; did you mean {PREFIX}{nearest[0]}?"


def _read(variable: str, text: str, form: _Form) -> Any:
    try:
        return form.read(text)
    except _FaultError as fault:
        # a key may have been put into the wrong variable
        shown = "***" if form in {_SECRET, _POSTGRES} else mask_secrets(text)
        if len(shown) > _SHOWN_CHARS:
            shown = f"{shown[:_SHOWN_CHARS]}…"
        raise SettingsError(f"{variable}={shown!r}: {fault}; it takes {form.words}") from None


def settings_rows() -> list[tuple[str, str, str, str]]:
    """Return variable, default, accepted form and meaning of every setting, in order."""
    rows = []
    for setting in fields(Settings):
        form, does = _ABOUT[setting.name]
        default = "" if setting.default in {None, ()} else str(setting.default)
        rows.append((_variable(setting.name), default, form.words, does))
    return rows


def settings_table() -> str:
    """Return the README's table of settings."""
    lines = ["| variable | default | takes | what it does |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{name}` | {default and f'`{default}`'} | {words} | {about} |"
        for name, default, words, about in settings_rows()
    ]
    return "\n".join(lines) + "\n"
