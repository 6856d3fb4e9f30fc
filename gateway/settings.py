"""The settings: one frozen value from the `CANDOR_*` variables, and the table in the README.

Only the command line reads the environment. An unknown `CANDOR_…` variable is an error that names the
nearest known one; the error of a wrong value names the variable, the fault and the accepted form.
"""

import difflib
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast

from gateway.version import COMMAND
from policies.secrets import mask_secrets

PREFIX = "CANDOR_"
_SHOWN_CHARS = 60

Demo = Literal["auto", "on", "off"]
Sandbox = Literal["auto", "require", "off"]
Switch = Literal["off", "on"]
Learn = Literal["off", "explicit", "model"]
Embedder = Literal["auto", "hashed", "minilm", "onnx", "openai"]
Memu = Literal["off", "cli", "server"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is never shown."""

    value: str

    def __repr__(self) -> str:
        return "***"


class _FaultError(ValueError):
    """The fault of a value, as the end of a sentence."""


class SettingsError(ValueError):
    """A setting is unknown, or its value is wrong."""


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


def _whole(least: int, most: int, unit: str = "") -> _Form:
    return _between(least, most, f"a whole number{unit and ' of ' + unit}", _integer)


def _seconds(least: float, most: float) -> _Form:
    return _between(least, most, "seconds", _decimal)


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


def _dollars(text: str) -> float:
    value = _decimal(text)
    if not value > 0:
        raise _FaultError("it is not above 0")
    return value


_DIRECTORY = _Form("a directory; made if missing", _path)
_FILE = _Form("a file that can be read", _path)
_TEXT = _Form("text", _words)
_SECRET = _Form("a secret", lambda text: Secret(_words(text)))


def _setting(form: _Form, about: str, default: Any) -> Any:
    return field(default=default, metadata={"form": form, "about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting with its default."""

    host: str = _setting(
        _Form("an IP address or localhost", _host),
        "The address to listen on. Anything but loopback needs `CANDOR_TOKENS_FILE`.",
        "127.0.0.1",
    )
    port: int = _setting(_whole(0, 65535), "The port to listen on; 0 takes a free one.", 8000)
    workspace: Path = _setting(_DIRECTORY, "Where the agent works.", Path("workspace"))
    data_dir: Path = _setting(_DIRECTORY, "Database, agent sessions, lock.", Path(".candor"))
    log_dir: Path = _setting(_DIRECTORY, "The journal: one JSONL file a turn.", Path("logs"))
    model: str | None = _setting(_TEXT, "The model; unset: the agent's default.", None)
    max_live_clients: int = _setting(
        _whole(1, 1000), "Agent processes that conversations may hold at once.", 8
    )
    max_live_mb: int = _setting(
        _whole(0, 1_000_000, "MiB"),
        "Memory that all agent processes may hold together; 0: three fifths of the machine's.",
        0,
    )
    prewarmed_clients: int = _setting(
        _whole(0, 20), "Agent processes kept ready for fresh conversations.", 1
    )
    idle_client_s: float = _setting(
        _seconds(1, 604_800),
        "A conversation's process sleeps after this time without a turn.",
        900.0,
    )
    stale_client_grace_s: float = _setting(
        _seconds(0, 3600),
        "The process of a left conversation ends after this time.",
        20.0,
    )
    turn_timeout_s: float = _setting(
        _seconds(1, 86_400),
        "The time limit of a turn, without the time it waits for approvals.",
        600.0,
    )
    model_silence_s: float = _setting(
        _seconds(1, 86_400),
        "The longest time without an answer of the model's service.",
        120.0,
    )
    max_agent_steps: int = _setting(_whole(1, 10_000), "Model calls that one turn may make.", 200)
    max_budget_usd: float | None = _setting(
        _Form("an amount in US dollars above 0", _dollars),
        "What one agent process may spend before a turn is stopped; unset: no limit.",
        None,
    )
    max_running_turns: int = _setting(
        _whole(1, 10_000), "Turns accepted and not finished, all users together; more get 503.", 500
    )
    shutdown_grace_s: float = _setting(
        _seconds(0, 600),
        "The time that running turns get to finish when the server stops.",
        10.0,
    )
    interrupt_grace_s: float = _setting(
        _seconds(0.1, 120),
        "The time that an interrupted agent gets to stop before it is killed.",
        10.0,
    )
    doom_loop_threshold: int = _setting(
        _whole(2, 1000),
        "This many equal tool calls, or cycles of two or three, in a row end the turn.",
        5,
    )
    approvals: Switch = _setting(
        _choice("off", "on"),
        "`on`: a person approves each tool call that changes something.",
        "off",
    )
    approval_timeout_s: float = _setting(
        _seconds(1, 86_400), "An approval without an answer is denied after this time.", 120.0
    )
    max_body_bytes: int = _setting(
        _whole(1024, 1_073_741_824, "bytes"), "A larger request body gets 413.", 1_048_576
    )
    max_upload_bytes: int = _setting(
        _whole(1024, 1_073_741_824, "bytes"),
        "The same for the files of one `POST /workspace/files`.",
        33_554_432,
    )
    tokens_file: Path | None = _setting(
        _FILE, f"Who may use the server: made by `{COMMAND} token NAME`.", None
    )
    policy_file: Path | None = _setting(_FILE, "Your own rules for the policy.", None)
    sandbox: Sandbox = _setting(
        _choice("auto", "require", "off"),
        "The kernel's sandbox around the agent; `require`: no start without one around all of it.",
        "auto",
    )
    recall_deadline_ms: int = _setting(
        _whole(1, 60_000, "milliseconds"), "The time that memory gets to answer before a turn.", 300
    )
    record: Switch = _setting(
        _choice("off", "on"),
        "`on`: what was said in earlier conversations is found like other memory.",
        "on",
    )
    case_memory: Switch = _setting(
        _choice("off", "on"),
        "`off`: no agent has case memory, also where a conversation switches it on.",
        "on",
    )
    extract: Switch = _setting(
        _choice("off", "on"), "`on`: a model adds decisions and pitfalls to episodes.", "off"
    )
    learn: Learn = _setting(
        _choice("off", "explicit", "model"),
        "What becomes facts of a person: nothing, what they ask for and say of themselves, or also what a model finds.",
        "explicit",
    )
    redact_contacts: Switch = _setting(
        _choice("off", "on"),
        "`on`: episodes are stored without e-mail addresses, phone numbers and account names.",
        "on",
    )
    side_model: str = _setting(
        _TEXT, "The small model that chooses from memory and adds to episodes.", "haiku"
    )
    embedder: Embedder = _setting(
        _choice("auto", "hashed", "minilm", "onnx", "openai"),
        "What makes memory's vectors; `auto`: MiniLM where `memory fetch-model` has put it, else none;"
        " `onnx`: a model in a folder; `openai`: a server that speaks OpenAI's embeddings.",
        "auto",
    )
    embeddings_url: str | None = _setting(
        _Form("an http or https address", _address),
        "The server of `openai`, up to `/v1`: OpenAI, Ollama, LiteLLM, vLLM, TEI, Voyage and others.",
        None,
    )
    embeddings_model: str | None = _setting(_TEXT, "The model of that server.", None)
    embeddings_key: Secret | None = _setting(
        _SECRET, "The key of that server, if it wants one.", None
    )
    embeddings_path: Path | None = _setting(
        _Form("a directory", _path),
        "The folder of `onnx`: `model.onnx` and `tokenizer.json`.",
        None,
    )
    memory_policy_file: Path | None = _setting(
        _FILE, "Which intents go where, on top of the shipped policy.", None
    )
    memu: Memu = _setting(
        _choice("off", "cli", "server"),
        "Episodes are delivered to memU, and it is asked in searches: by its package, or its server.",
        "off",
    )
    memu_url: str | None = _setting(
        _Form("an http or https address", _address),
        "memU's server, or for its package an OpenAI-compatible endpoint of embeddings.",
        None,
    )
    memu_model: str = _setting(
        _TEXT, "The embedding model at that endpoint.", "text-embedding-3-small"
    )
    demo: Demo = _setting(
        _choice("auto", "on", "off"),
        "The built-in demo model; `auto`: where no credential is found.",
        "auto",
    )
    demo_cadence_ms: int = _setting(
        _whole(0, 5000, "milliseconds"), "The demo model's pause between pieces of text.", 15
    )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Read the settings from an environment; empty variables count as unset.

        Raises:
            SettingsError: a `CANDOR_…` variable is unknown or its value is wrong.
        """
        known = {_variable(setting.name): setting for setting in fields(cls)}
        values: dict[str, Any] = {}
        for variable, text in environ.items():
            if not variable.startswith(PREFIX):
                continue
            if variable not in known:
                raise SettingsError(_unknown(variable, list(known)))
            if text.strip():
                setting = known[variable]
                values[setting.name] = _read(variable, text.strip(), setting.metadata["form"])
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
        shown = "***" if form is _SECRET else mask_secrets(text)
        if len(shown) > _SHOWN_CHARS:
            shown = f"{shown[:_SHOWN_CHARS]}…"
        raise SettingsError(f"{variable}={shown!r}: {fault}; it takes {form.words}") from None


def settings_rows() -> list[tuple[str, str, str, str]]:
    """Return variable, default, accepted form and meaning of every setting, in order."""
    rows = []
    for setting in fields(Settings):
        form = cast("_Form", setting.metadata["form"])
        default = "" if setting.default is None else str(setting.default)
        rows.append((_variable(setting.name), default, form.words, setting.metadata["about"]))
    return rows


def settings_table() -> str:
    """Return the README's table of settings."""
    lines = ["| variable | default | takes | what it does |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{name}` | {default and f'`{default}`'} | {words} | {about} |"
        for name, default, words, about in settings_rows()
    ]
    return "\n".join(lines) + "\n"
