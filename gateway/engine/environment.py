"""The environment of the agent process: an allow-list of the server's variables.

The SDK starts its child with the server's whole environment. The names that the child may keep are
passed to the launcher in the variable `KEEPS`, and the launcher drops all others before it becomes
the agent. Without a launcher (Windows) `blanked` empties what is not allowed.

`pins` are the variables that the workspace's own settings could otherwise set for the agent and its
shell; the flag settings, which take precedence, fix each at its value here. Everything is pure.
"""

import json
from collections.abc import Collection, Iterable, Mapping

KEEPS = "AGENT_KEEPS_OF_CANDOR"
"""Names, separated by one space. Not `CANDOR_…`: that would be a setting. The launcher knows it too."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
"""Where the agent's shell finds programs: the system's own directories."""
SHELL = "/bin/bash"
DEFAULT_BASE_URL = "https://api.anthropic.com"

PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_ANTHROPIC_AWS": ("AWS_",),
    "CLAUDE_CODE_USE_MANTLE": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_", "GCLOUD_", "CLOUDSDK_", "CLOUD_ML_", "VERTEX_", "GCE_"),
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD": ("GOOGLE_", "GCLOUD_", "CLOUDSDK_", "GCE_"),
    "CLAUDE_CODE_USE_FOUNDRY": ("AZURE_", "IDENTITY_", "MSI_"),
}
"""Each provider's switch, and how the names begin that belong to it: kept while the switch is on."""

_OFF = {"", "0", "false", "no", "off"}

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = (
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("CLAUDE_CODE_CERT_STORE", "CLAUDE_CODE_CLIENT_CERT"),
    *("CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"),
)
_SYSTEM = (
    *("LANG", "LANGUAGE", "TZ", "TZDIR", "TERM", "COLORTERM", "NO_COLOR", "USER", "LOGNAME"),
    *("TMPDIR", "TMP", "TEMP"),
    # Windows starts no program without these
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES"),
    *("USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS"),
    *("PROCESSOR_ARCHITECTURE", "CLAUDE_CODE_GIT_BASH_PATH"),
)
_AGENT = (
    *("API_TIMEOUT_MS", "MAX_THINKING_TOKENS", "DO_NOT_TRACK", "ENABLE_TOOL_SEARCH"),
    *("BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH"),
    *("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES"),
    *("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_MAX_CONTEXT_TOKENS"),
    *("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"),
    *("CLAUDE_CODE_EFFORT_LEVEL", "CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_ATTRIBUTION_HEADER"),
    *("CLAUDE_CODE_PROXY_RESOLVES_HOSTS", "CLAUDE_CODE_SUBAGENT_MODEL"),
)
_AGENT_PREFIXES = ("ANTHROPIC_", "CLAUDE_CODE_SKIP_", "CLAUDE_CODE_DISABLE_", "DISABLE_", "LC_")
"""Switches that turn something off, and how the model's service is reached."""

_OF_THE_SDK = (
    *("PWD", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION"),
    *("CLAUDE_AGENT_SDK_CLIENT_APP", "CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP"),
    *("CLAUDE_CODE_SDK_READS_SESSION_STATE", "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"),
)
"""Set by the SDK on its child."""

_ROUTES = (
    *("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_CUSTOM_HEADERS"),
    *("ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR"),
    *("CLAUDE_CODE_EXTRA_BODY",),
    *("ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_FOUNDRY_BASE_URL"),
    *("ANTHROPIC_AWS_BASE_URL", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL"),
    *("CLAUDE_CODE_API_BASE_URL", "CLAUDE_CODE_CUSTOM_OAUTH_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
    *("CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_HOST_CREDS_FILE"),
    *PROVIDERS,
    *_PROXIES,
    *(proxy.lower() for proxy in _PROXIES),
    *_CERTIFICATES,
    "NODE_TLS_REJECT_UNAUTHORIZED",
)
"""Where requests go, and with which key."""

_CODE = (
    # the shell reads these, or runs what they name
    *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE"),
    *("CLAUDE_ENV_FILE", "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX"),
    *("CLAUDE_CODE_PROCESS_WRAPPER", "CLAUDE_CODE_PLUGIN_DIRS"),
    # the loader and the runtimes
    *("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"),
    *("NODE_OPTIONS", "NODE_PATH", "BUN_OPTIONS", "BUN_INSPECT", "GCONV_PATH"),
    *("TAR_OPTIONS", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH"),
    # telemetry with what was said in it
    *("CLAUDE_CODE_ENABLE_TELEMETRY", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"),
)
"""Variables that run other code, or send the conversation elsewhere."""

_SHELL_OWN = (
    *("builtin", "cd", "command", "echo", "eval"),
    *("false", "printf", "pwd", "shopt", "source"),
)
"""Shell words that the agent program puts around a command."""

_FALSE_HERE = [
    (
        "- `cd` carries to the next call only in the main session, if the command succeeds and ends inside "
        "the working directories. Outside them the shell returns to the start folder; otherwise it stays "
        "where it was. Prefer absolute paths \u2014 `cd` in a compound command can trigger a permission "
        "prompt. Shell state (env vars, functions) does not persist; the shell is initialized from the "
        "user's profile.\n"
    ),
    (
        "- IMPORTANT: Avoid using this tool to run `find`, `grep`, `cat`, `head`, `tail`, `sed`, `awk`, or "
        "`echo` commands, unless explicitly instructed or after you have verified that a dedicated tool "
        "cannot accomplish your task. Instead, use the appropriate dedicated tool as this will provide a "
        "much better experience for the user.\n"
    ),
]
"""Lines of the Bash tool's description that are wrong here; the agent program leaves them out if they match
exactly. The pinned request of the tests shows when a new version changes one."""

SWITCHED_OFF = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    # `@path` in a skill's text would put that file into the prompt, past the gate
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    # a task list in the workspace would start turns that nobody asked for
    "CLAUDE_CODE_DISABLE_CRON": "1",
    # its newer task tools are not offered; without them TodoWrite is there where a rule file offers it
    "CLAUDE_CODE_ENABLE_TASKS": "0",
    # its own memory is a folder that the gate forbids; notes live in the workspace
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # the gate denies what these offer
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
    "CLAUDE_CODE_DISABLE_POLICY_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_WORKFLOWS": "1",
    # without it a tool that cannot be searched for is offered in place of the hidden ones
    "ENABLE_TOOL_SEARCH": "0",
    "CLAUDE_CODE_REMOVE_PROMPT_STRINGS": json.dumps(_FALSE_HERE),
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

    A cloud's variables are included only if its switch is on. With `demo`, no model's variables are.
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
    """Return the value of `KEEPS`: what is set for the agent, what it inherits, what the SDK sets."""
    return " ".join(sorted({*given, *inherited, *_OF_THE_SDK, "HOME"}))


def blanked(environ: Mapping[str, str], kept: Iterable[str]) -> dict[str, str]:
    """Return empty values for all variables that may not be kept, for systems without the launcher."""
    wanted = {*kept, *_OF_THE_SDK, "HOME", "PATH"}
    return {name: "" for name in environ if name not in wanted and name.upper() != "PATH"}


def pins(env: Mapping[str, str], shell_commands: Iterable[str]) -> dict[str, str]:
    """Return the variables that no settings file of the workspace may change, with their values.

    `env` is the agent's own environment. Of what is set there for reaching the model only the address is
    included: flag settings are part of a command line that other users can read.
    """
    held = dict.fromkeys(_CODE, "")
    held |= {name: "" for name in _ROUTES if not env.get(name)}
    held |= {f"BASH_FUNC_{command}%%": "" for command in (*shell_commands, *_SHELL_OWN)}
    fixed = ("PATH", "SHELL", "HOME", "TMPDIR", "CLAUDE_CODE_TMPDIR", "CLAUDE_CONFIG_DIR")
    held |= {name: env[name] for name in (*fixed, *SWITCHED_OFF) if name in env}
    held["ANTHROPIC_BASE_URL"] = env.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE_URL
    return held
