"""Turns in which the agent keeps and forgets facts with its tools of memory."""

import json
import re
from typing import Any

from gateway.ids import LOCAL_USER as ME
from memory.items.scope import Scope
from tests.support.services import RunningServices, script

MINE = Scope(owner_id=ME)
LOCKER = "my locker is number 12"


def remember(text: str, evidence: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a call of memory_remember; the evidence is the text unless it is given."""
    given = {"text": text, "evidence": text if evidence is None else evidence, **more}
    return {"tool": "mcp__memory__memory_remember", "input": given}


def forget(evidence: str, *ids: str) -> dict[str, Any]:
    """Return a call of memory_forget."""
    given = {"ids": list(ids), "evidence": evidence}
    return {"tool": "mcp__memory__memory_forget", "input": given}


def saying(message: str, *steps: dict[str, Any]) -> str:
    """Return a message with the steps of the agent that answers it; the steps are no words of the person."""
    return f"{message}\n{_WORDS.sub(_escaped, script(*steps, {'text': 'Well.'}))}"


_WORDS = re.compile(r'(?<="evidence": ")[^"]+|(?<="text": ")[^"]+')


def _escaped(words: re.Match[str]) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in json.loads(f'"{words[0]}"'))


async def keep(
    services: RunningServices, text: str, chat: str | None = None, **more: Any
) -> dict[str, Any]:
    """Run a turn in which the agent stores a text of the person; return its result."""
    return await services.ask(saying(text, remember(text, **more)), chat)


async def held(services: RunningServices) -> list[str]:
    """Return the texts of the facts that hold, oldest first."""
    items = await services.open_memory.items.newest(MINE, kinds=["fact"], limit=50)
    return [item.body for item in reversed(items)]


async def context_of(services: RunningServices, result: dict[str, Any]) -> str:
    (line,) = [one for one in await services.journal_of(result) if one["kind"] == "context"]
    return str(line["text"])


def saved_ids(result: dict[str, Any]) -> list[str]:
    return [entry["id"] for entry in result["memory"]["saved"]]


async def answer_of(services: RunningServices, result: dict[str, Any]) -> str:
    """Return what the turn's first call returned."""
    (line, *_) = [one for one in await services.journal_of(result) if one["kind"] == "tool"]
    return str(line["output"])
