"""Typed commands: a message that is `/name`, with or without words after it.

The agent program never gets one as a command, because it would expand the workspace's texts past
the gate, except `/compact`, which the gateway writes anew. `/plan words` asks for a plan first.
`/name` of a skill or command of the workspace becomes a request to use it, which the gate judges
like any other call.
`/clear` starts a new conversation, in `gateway.chat`. Unknown commands are answered without the
model, with words after them only if they are nearly a known one. Everything else, such as
"/etc/hosts is wrong" or "/tmp is full", is text for the model.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

_COMMAND = re.compile(r"[/／]([A-Za-z0-9][A-Za-z0-9_:-]{0,63})(?:\s+(.*))?", re.DOTALL)
"""With either slash: Chinese keyboards type the wide one."""


_TAKE_WORDS: Final = ("plan", "compact")
"""The gateway's own commands that may have words after them."""
_NEAR_RATIO: Final = 0.9
"""One letter wrong of ten: `/plane is late` is text."""


@dataclass(frozen=True, slots=True)
class SkillRequest:
    """The person asks for a skill of the workspace."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The person asks for a plan before anything is changed."""

    words: str


@dataclass(frozen=True, slots=True)
class CompactRequest:
    """The person asks for a summary in the place of the conversation's messages; the words say what
    to keep.
    """

    words: str


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """The gateway itself answers, with the sentence `key`."""

    key: str
    name: str
    meant: str = ""
    """The command that was probably meant, where the sentence names one."""


def looks_typed(message: str) -> bool:
    """Return whether a message may be a command."""
    return _COMMAND.fullmatch(message.strip()) is not None


def read_command(
    message: str, skills: Collection[str]
) -> SkillRequest | PlanRequest | CompactRequest | GatewayAnswer | None:
    """Return what a typed command asks for; None: the message is text for the model."""
    found = _COMMAND.fullmatch(message.strip())
    if found is None:
        return None
    name, words = found[1], (found[2] or "").strip()
    if name in skills:
        return SkillRequest(name, words)
    if name.lower() == "plan":
        return PlanRequest(words) if words else GatewayAnswer("command_plan", name)
    if name.lower() == "compact":
        return CompactRequest(words)
    if name.lower() == "clear":
        return None if words else GatewayAnswer("command_clear", name)
    if not words:
        return GatewayAnswer("command_unknown", name)
    meant = _nearest(name, [*skills, *_TAKE_WORDS])
    return GatewayAnswer("command_near", name, meant) if meant else None


def _nearest(name: str, known: Collection[str]) -> str | None:
    """Return the one of these names of which this one is very likely a misspelling."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=_NEAR_RATIO)
    return by_lower[found[0]] if found else None
