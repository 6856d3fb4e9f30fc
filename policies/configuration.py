"""Concerns about a workspace's own configuration, which the agent program would load.

The agent program reads `.claude`, `.mcp.json` and `CLAUDE.md` in the folder that it works in, and
much of this *acts*: hooks and helpers are shell commands, `env` redirects requests and programs,
servers are processes. Their author would run code with the gateway's rights before a tool is ever
called. So each file is judged by what would act in it:

- Text is content. CLAUDE.md, rules, output styles and skills without special keys only inform the
  model, which is not trusted anyway.
- A key of the settings or of a front matter that is not known to be harmless is a concern, and so
  is each file of an unknown kind, a link, and whatever cannot be read or understood.
- A sub-agent's name that is not a plain word is one, because the definition is withheld by it.

The agent program reads a front matter with a full YAML parser. Here it is understood only if no
parser could read it otherwise: each line begins a plain key at the margin, continues the last one
(indented, or as an item of a list), is a comment, or is empty. Anything else is a concern.

A person can approve a concern by the file's exact content. This module does not access the disk.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from policies.paths.protected import fold

Trouble: TypeAlias = Literal["link", "unreadable", "too_large", "too_many"]
"""Why a file cannot even be judged; such a concern cannot be approved."""

FOLDER = ".claude"
SYNTAX = "syntax"
UNKNOWN_KIND: Final = "unknown_kind"
UNCLEAR_NAME: Final = "name"
SHELL_COMMAND = "!`command`"

_INERT: Final = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
}
"""Names that do not act, by their kind."""

_BEGIN = re.compile(r"\s*---")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ ]*:(?:[ ].*)?")
_GOES_ON = re.compile(r"[ ]+\S.*|- .*|-")
_NAME_LINE = re.compile(r"name[ ]*:")
_PLAIN_NAME = re.compile(r"name[ ]*:[ ]+([A-Za-z][A-Za-z0-9_-]{0,63})")
_UNSURE = re.compile("[\t\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Some parsers take these for the end of a line or for an indent, and others do not."""

_SHELL_COMMAND = re.compile(r"(?<!`)!`|```!")
"""A command that runs while the text is loaded, before the model sees it."""

_NOTHING: tuple[object, ...] = (None, "", [], {})
_TIGHTENING = {"deny", "ask", "disableBypassPermissionsMode"}
_ALLOWED_VALUES: Mapping[str, object] = {
    "disableAllHooks": True,
    "enableAllProjectMcpServers": False,
}

_INERT_ENDINGS = (".md", ".txt", ".lock", ".part")
_TAKEN_FROM_BELOW = frozenset({"skills", "commands", "agents"})
"""What is loaded out of a `.claude` deeper in the workspace too, once a file beside it is read."""
_TEXT_FOLDERS = frozenset({"commands", "agents", "rules", "output-styles"})
_DIRECTLY_IN = 2
_PLUGIN_PARTS = frozenset({".claude-plugin", ".mcp.json", ".lsp.json", "hooks.json"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file of the configuration, as it was read, once."""

    path: str
    """Below the workspace, with `/`."""
    content: bytes = b""
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """A file that would act, or that cannot be judged."""

    path: str
    what: str
    """What acts in it, as the file names it, or one of the words `link`, `unreadable`, `too_large`,
    `too_many`, `syntax`, `unknown_kind`."""
    digest: str = ""
    """The SHA-256 that an approval is for; empty: it cannot be approved."""

    @property
    def is_approvable(self) -> bool:
        """False if the file has to be moved away, because nobody could judge it."""
        return bool(self.digest)


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def find_concerns(files: Sequence[Found], approved: Mapping[str, str]) -> tuple[Concern, ...]:
    """Return the concerns about loading these files.

    `approved` maps a path to the digest of the content that a person approved.
    """
    found: list[Concern] = []
    for file in files:
        if file.trouble is not None:
            found.append(Concern(path=file.path, what=file.trouble))
            continue
        acting = ", ".join(dict.fromkeys(_acting(file)))
        digest = digest_of(file.content)
        if acting and approved.get(file.path) != digest:
            found.append(Concern(path=file.path, what=acting, digest=digest))
    return tuple(found)


def is_content(path: str) -> bool:
    """Return whether a file cannot act, whatever its content, so that it need not be read."""
    return _kind(path) == "inert"


_Kind = Literal["settings", "servers", "skill", "agent", "inert", "plugin", "unknown_kind"]


def _acting(file: Found) -> Iterable[str]:
    match _kind(file.path):
        case "settings":
            return _acting_settings(file.content)
        case "servers":
            return _acting_servers(file.content)
        case "skill":
            return _acting_text(file.content, _INERT["skill_keys"])
        case "agent":
            return (*_acting_text(file.content, _INERT["agent_keys"]), *_unclear_name(file.content))
        case "inert":
            return ()
        case kind:
            return (kind,)


def _kind(path: str) -> _Kind:
    """Return what the agent program takes a file for, by its path and without regard to case."""
    parts = [fold(part) for part in path.split("/")]
    if len(parts) == 1:
        return "servers" if parts[0] == ".mcp.json" else "inert"
    above, below = parts.index(FOLDER), parts[parts.index(FOLDER) + 1 :]
    if above and below[0] not in _TAKEN_FROM_BELOW:
        return "inert"
    if len(below) > 1:
        return _kind_below(below)
    if below[0] in {"settings.json", "settings.local.json"}:
        return "settings"
    return "inert" if _is_inert(below[0]) else UNKNOWN_KIND


def _kind_below(parts: Sequence[str]) -> _Kind:
    folder, name = parts[0], parts[-1]
    if folder in _INERT["inert_folders"]:
        return "inert"
    if folder == "skills":
        if not _PLUGIN_PARTS.isdisjoint(parts):
            return "plugin"
        is_skill = name == "skill.md" or (len(parts) == _DIRECTLY_IN and name.endswith(".md"))
        return "skill" if is_skill else "inert"
    if folder in {"commands", "agents"} and name.endswith(".md"):
        return "skill" if folder == "commands" else "agent"
    return "inert" if folder in _TEXT_FOLDERS and _is_inert(name) else UNKNOWN_KIND


def _is_inert(name: str) -> bool:
    return name in _INERT["inert_names"] or name.endswith(_INERT_ENDINGS)


def _read_object(content: bytes) -> dict[str, Any] | None:
    """Return a JSON object, empty for an empty file; `None` if it is not an object."""
    try:
        text = content.decode("utf-8")
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _acting_settings(content: bytes) -> Iterator[str]:
    settings = _read_object(content)
    if settings is None:
        yield SYNTAX
        return
    for key, value in settings.items():
        is_harmless = key in _INERT["harmless_keys"] or value in _NOTHING
        if is_harmless or value is _ALLOWED_VALUES.get(key, ...):
            continue
        if key == "permissions" and isinstance(value, dict):
            yield from _named(key, {k: v for k, v in value.items() if k not in _TIGHTENING})
        elif key in {"env", "hooks"} and isinstance(value, dict):
            yield from _named(key, value)
        else:
            yield _shown(key)


_MOST_NAMED = 4


def _named(key: str, values: Mapping[str, Any]) -> Iterator[str]:
    names = [name for name, value in values.items() if value not in _NOTHING]
    yield from (f"{key}.{_shown(name)}" for name in names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        yield f"{key}.…"


_PLAIN_KEY = re.compile(r"[\w$.:-]{1,60}")


def _shown(key: str) -> str:
    """Return a key fit to be shown; the author of the file chose it."""
    return key if _PLAIN_KEY.fullmatch(key) else "…"


def _acting_servers(content: bytes) -> Iterator[str]:
    servers = _read_object(content)
    if servers is None:
        yield SYNTAX
    elif any(value not in _NOTHING for key, value in servers.items() if key != "$schema"):
        yield "mcpServers"


def _acting_text(content: bytes, harmless: frozenset[str]) -> Iterator[str]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        yield SYNTAX
        return
    keys = _find_acting_keys(text, harmless)
    if keys is None:
        yield SYNTAX
        return
    yield from map(_shown, keys)
    if _SHELL_COMMAND.search(text):
        yield SHELL_COMMAND


def _find_acting_keys(text: str, harmless: frozenset[str]) -> list[str] | None:
    """Return the keys of a front matter that are not known to be harmless; `None` if
    it is unclear.
    """
    front = _front_lines(text)
    keys = None if front is None else _read_keys(front)
    return None if keys is None else [key for key in keys if key.casefold() not in harmless]


def _front_lines(text: str) -> list[str] | None:
    """Return the lines of a front matter without comments; `None` if it is unclear."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not _BEGIN.match(plain):
        return []
    first, *rest = (line.rstrip(" ") for line in plain.lstrip().split("\n"))
    if first != "---" or "---" not in rest:
        return None
    front = rest[: rest.index("---")]
    if any(map(_UNSURE.search, front)):
        return None
    return [line for line in front if line and not line.startswith("#")]


def name_of_agent(content: bytes) -> str | None:
    """Return the name of a sub-agent's definition as the agent program reads it: empty without one;
    `None` if it is unclear, so that the definition could not be withheld by it.
    """
    try:
        lines = _front_lines(content.decode("utf-8")) or []
    except UnicodeDecodeError:
        return None
    named = [at for at, line in enumerate(lines) if _NAME_LINE.match(line)]
    if not named:
        return ""
    goes_on = _GOES_ON.fullmatch((*lines, "")[named[0] + 1])
    plain = _PLAIN_NAME.fullmatch(lines[named[0]])
    return plain[1] if plain and len(named) == 1 and not goes_on else None


def _unclear_name(content: bytes) -> Iterator[str]:
    if name_of_agent(content) is None:
        yield UNCLEAR_NAME


def _read_keys(lines: list[str]) -> list[str] | None:
    """Return the keys at the margin; `None` if a line is something else, or the first is
    not a key.
    """
    keys: list[str] = []
    for line in lines:
        if found := _KEY.fullmatch(line):
            keys.append(found[1])
        elif not keys or not _GOES_ON.fullmatch(line):
            return None
    return keys
