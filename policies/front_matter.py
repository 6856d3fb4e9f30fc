"""Reads the front matter of a skill, a command or an agent, strictly: which keys stand in it?

The agent program reads it with a full YAML parser. Here a front matter is understood only where no parser
could read it otherwise: each line begins a plain key at the margin, goes on with the last one (indented,
or an item of a list), is a comment, or is empty. Anything else (quoted keys, anchors, merged or flow
mappings, lone carriage returns) cannot be read, and what cannot be read is not harmless.
"""

import re

_BEGIN = re.compile(r"\s*---")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ ]*:(?:[ ].*)?")
_GOES_ON = re.compile(r"[ ]+\S.*|- .*|-")
_UNSURE = re.compile("[\t\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What one reader takes for the end of a line, or for an indent, and another does not."""

_SHELL_COMMAND = re.compile(r"(?<!`)!`|```!")
"""A command that runs while the text is loaded: before the model has seen it."""


def find_acting_keys(text: str, harmless: frozenset[str]) -> list[str] | None:
    """List the keys that are not known to be harmless; `None`: it cannot be read.

    Text without a front matter has no keys.
    """
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not _BEGIN.match(plain):
        return []
    first, *rest = (line.rstrip(" ") for line in plain.lstrip().split("\n"))
    if first != "---" or "---" not in rest:
        return None
    front = rest[: rest.index("---")]
    if any(map(_UNSURE.search, front)):
        return None
    keys = _keys_of([line for line in front if line and not line.startswith("#")])
    return None if keys is None else [key for key in keys if key.casefold() not in harmless]


def _keys_of(lines: list[str]) -> list[str] | None:
    """List the keys at the margin; `None`: a line is something else, or the first is no key."""
    keys: list[str] = []
    for line in lines:
        if found := _KEY.fullmatch(line):
            keys.append(found[1])
        elif not keys or not _GOES_ON.fullmatch(line):
            return None
    return keys


def has_shell_command(text: str) -> bool:
    """Whether a command would run as the text is loaded."""
    return _SHELL_COMMAND.search(text) is not None
