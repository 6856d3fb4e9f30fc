"""The credential for the model's service, found as the agent program finds it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

_KEYS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
_PROVIDERS = (
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_MANTLE",
)
_HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
"""Each holds headers, `name=value` with commas between them, the values percent-encoded."""
_DATABASE = "CANDOR_DATABASE_URL"
_FALSE = {"", "0", "false", "no", "off"}
_MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "CREDENTIAL", "CUSTOM_HEADERS")
_PLACES = ("_FILE", "_PATH", "_DIR")
_SHORTEST_SECRET = 8

Kind = Literal["key", "provider", "server", "login", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """How the model's service is reached; `found` names the source and holds no secret."""

    kind: Kind
    found: str


def find_credential(environ: Mapping[str, str], home: Path) -> Credential:
    """Return the credential that the agent program would use: a provider, a key, a server or a
    login.

    `server` is an address without a key. `login` is the person's login with the agent program on
    this machine; sessions then stay in the agent's own directory, where the login is.
    """
    for name in _PROVIDERS:
        if environ.get(name, "").strip().lower() not in _FALSE:
            return Credential(kind="provider", found=name)
    for name in _KEYS:
        if environ.get(name, "").strip():
            return Credential(kind="key", found=name)
    if environ.get("ANTHROPIC_BASE_URL", "").strip():
        return Credential(kind="server", found="ANTHROPIC_BASE_URL")
    if _is_logged_in(environ, home):
        return Credential(kind="login", found="a login on this machine")
    return Credential(kind="none", found="no credential")


def find_login_dir(environ: Mapping[str, str], home: Path) -> Path | None:
    """Return the directory whose file holds a login, so that the agent can have another HOME.

    None also if the login is in a keychain, which must not be given a directory.
    """
    config_dir = _config_dir(environ, home)
    if environ.get("CLAUDE_CONFIG_DIR") or _holds(
        config_dir / ".credentials.json", "claudeAiOauth"
    ):
        return config_dir.absolute()
    return None


def _is_logged_in(environ: Mapping[str, str], home: Path) -> bool:
    config_dir = _config_dir(environ, home)
    if _holds(config_dir / ".credentials.json", "claudeAiOauth"):
        return True
    # on macOS the secret itself is in the keychain; this file names the account
    account_dir = config_dir if environ.get("CLAUDE_CONFIG_DIR") else home
    return _holds(account_dir / ".claude.json", "oauthAccount")


def _config_dir(environ: Mapping[str, str], home: Path) -> Path:
    configured = environ.get("CLAUDE_CONFIG_DIR")
    return Path(configured) if configured else home / ".claude"


def _holds(file: Path, name: str) -> bool:
    """Return whether a file is a JSON object with a value under a name."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and bool(found.get(name))


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """Return the secret values of an environment, for masking.

    Names of places where secrets are kept, and values too short for a secret, are left out.
    """
    found = [
        value.strip()
        for name, value in environ.items()
        if any(mark in name.upper() for mark in _MARKS) and not name.upper().endswith(_PLACES)
    ]
    for name in _HEADERS:
        entries = (entry.partition("=")[2].strip() for entry in environ.get(name, "").split(","))
        found += [
            unquote(entry).removeprefix("Bearer ").removeprefix("Basic ") for entry in entries
        ]
    if password := _password_of(environ.get(_DATABASE, "")):
        found += [password, unquote(password)]
    return [value for value in dict.fromkeys(found) if len(value) >= _SHORTEST_SECRET]


def _password_of(address: str) -> str | None:
    try:
        return urlsplit(address.strip()).password
    except ValueError:  # the settings refuse it, or the driver
        return None
