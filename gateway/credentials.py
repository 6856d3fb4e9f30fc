"""Is there a way to a real model? Looked for where the agent program itself looks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_KEYS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
_PROVIDERS = (
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_MANTLE",
)
_FALSE = {"", "0", "false", "no", "off"}

Kind = Literal["key", "provider", "server", "login", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """How the model's service is reached: `found` says by what, in words without any secret."""

    kind: Kind
    found: str


def find_credential(environ: Mapping[str, str], home: Path) -> Credential:
    """Find the credential that the agent program would use, in its own order of preference.

    A provider goes before keys, keys before a login. `server`: an address without any key. `login`:
    the person logged in with the agent program on this machine; its sessions then stay in the agent's
    own directory, because the login is there.
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
    """Find the directory whose file holds a login; naming it to the agent frees its HOME.

    None also where the login is in a keychain, which goes by the directory that was *not* named.
    """
    configured = environ.get("CLAUDE_CONFIG_DIR")
    config_dir = Path(configured) if configured else home / ".claude"
    if configured or _holds(config_dir / ".credentials.json", "claudeAiOauth"):
        return config_dir.absolute()
    return None


def _is_logged_in(environ: Mapping[str, str], home: Path) -> bool:
    configured = environ.get("CLAUDE_CONFIG_DIR")
    config_dir = Path(configured) if configured else home / ".claude"
    if _holds(config_dir / ".credentials.json", "claudeAiOauth"):
        return True
    # on macOS the secret itself is in the keychain; the account is named here
    return _holds((config_dir if configured else home) / ".claude.json", "oauthAccount")


def _holds(file: Path, name: str) -> bool:
    """True if a file is a JSON object with something under a name; the agent reads no other."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and bool(found.get(name))


_MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "CREDENTIAL", "CUSTOM_HEADERS")
_PLACES = ("_FILE", "_PATH", "_DIR")
_SHORTEST_SECRET = 8


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """List the secret values that the server itself knows, for masking.

    Names that say where a secret is kept, and values too short to be one, are left out.
    """
    found = [
        value.strip()
        for name, value in environ.items()
        if any(mark in name.upper() for mark in _MARKS) and not name.upper().endswith(_PLACES)
    ]
    return [value for value in dict.fromkeys(found) if len(value) >= _SHORTEST_SECRET]
