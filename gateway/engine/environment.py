"""The environment of the agent process: an allow-list of the server's variables.

The SDK starts its child with the server's whole environment. The names that the child may keep are
passed to the launcher in the variable `KEEPS`, and the launcher drops all others before it becomes
the agent.

`environment.toml` lists the variables. `pins` are the variables that the workspace's own settings
could otherwise set for the agent and its shell; the flag settings, which take precedence, fix each
at its value here. Everything is pure.
"""

import json
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

KEEPS = "AGENT_KEEPS_OF_CANDOR"
"""Names, separated by one space. Not `CANDOR_…`: that would be a setting. The launcher knows it
too."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
"""Where the agent's shell finds programs: the system's own directories."""
SHELL = "/bin/bash"
DEFAULT_BASE_URL = "https://api.anthropic.com"

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _names(*keys: str) -> tuple[str, ...]:
    return tuple(name for key in keys for name in _TOLD[key].split())


PROVIDERS: Mapping[str, tuple[str, ...]] = {
    switch: tuple(prefixes.split()) for switch, prefixes in _TOLD["providers"].items()
}
"""Each provider's switch, and how the names begin that belong to it: kept while the switch is
on."""

_OFF = {"", "0", "false", "no", "off"}

_PROXIES = _names("proxies")
_CERTIFICATES = _names("certificates")
_SYSTEM = _names("system")
_AGENT = _names("agent")
_AGENT_PREFIXES = _names("agent_prefixes")
_OF_THE_SDK = _names("of_the_sdk")
_ROUTES = (
    *(*_names("routes"), *PROVIDERS, *_PROXIES),
    *(*map(str.lower, _PROXIES), *_CERTIFICATES),
)
"""Where requests go, and with which key."""
_CODE = _names("shell_code", "runtime_code", "telemetry")
"""Variables that run other code, or send the conversation elsewhere."""
_SHELL_OWN = _names("shell_own")
SWITCHED_OFF: Mapping[str, str] = {
    **_TOLD["switched_off"],
    "CLAUDE_CODE_REMOVE_PROMPT_STRINGS": json.dumps(_TOLD["false_here"]),
}
"""Features of the agent program that are switched off."""


def _is_kept(name: str, prefixes: tuple[str, ...]) -> bool:
    upper = name.upper()
    if name in {*_SYSTEM, *_AGENT, *_CERTIFICATES, *PROVIDERS}:
        return True
    return upper in {*_PROXIES, *_SYSTEM} or name.startswith(prefixes)


def agent_environment(
    environ: Mapping[str, str], *, demo: bool = False, without: Collection[str] = ()
) -> dict[str, str]:
    """Return the part of the server's environment that the agent may have, except `without`.

    A cloud's variables are included only if its switch is on. With `demo`, no model's variables
    are.
    """
    prefixes = [*_AGENT_PREFIXES]
    for switch, of_provider in PROVIDERS.items():
        if environ.get(switch, "").strip().lower() not in _OFF:
            prefixes += of_provider
    kept = {
        name: text
        for name, text in environ.items()
        if name not in without and _is_kept(name, tuple(prefixes))
    }
    if demo:
        return {name: text for name, text in kept.items() if not _reaches_a_model(name)}
    return kept


def _reaches_a_model(name: str) -> bool:
    return name in {*_ROUTES, *PROVIDERS} or name.startswith(("ANTHROPIC_", "CLAUDE_CODE_"))


def kept_names(given: Iterable[str], inherited: Iterable[str]) -> str:
    """Return the value of `KEEPS`: what is set for the agent, what it inherits, what
    the SDK sets.
    """
    return " ".join(sorted({*given, *inherited, *_OF_THE_SDK, "HOME"}))


def pins(env: Mapping[str, str], shell_commands: Iterable[str]) -> dict[str, str]:
    """Return the variables that no settings file of the workspace may change, with their values.

    `env` is the agent's own environment. Of what is set there for reaching the model only the
    address is included: flag settings are part of a command line that other users can read.
    """
    held = dict.fromkeys(_CODE, "")
    held |= {name: "" for name in _ROUTES if not env.get(name)}
    held |= {f"BASH_FUNC_{command}%%": "" for command in (*shell_commands, *_SHELL_OWN)}
    fixed = (
        *("PATH", "SHELL", "HOME", "TMPDIR", "CLAUDE_CODE_TMPDIR", "CLAUDE_CONFIG_DIR"),
        "CLAUDE_CODE_SHELL_PREFIX",
    )
    held |= {name: env[name] for name in (*fixed, *SWITCHED_OFF) if name in env}
    held["ANTHROPIC_BASE_URL"] = env.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE_URL
    return held
