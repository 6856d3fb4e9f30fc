"""Plays the short histories of `tests/corpus/histories.toml`, whose first lines say what they hold."""

import json
import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio.to_thread import run_sync

from tests.service.http.client import Client

History = Mapping[str, Any]
Step = Mapping[str, Any]
Result = dict[str, Any]

_FILE = Path(__file__).parents[1] / "corpus" / "histories.toml"
_QUOTED = re.compile(r"^> (?:- \[[^\]]*\] )?(?P<text>.*)$", re.MULTILINE)
"""A line of memory in a context; an item's begins with its id, kind, date and source."""
_JOINTS = re.compile(r"said:|[“”→…]|\[masked\]")
"""What memory puts between texts, or in the place of one."""
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


_FORGETTING_S = 60.0
"""For forgotten words to leave the files, which happens in the background."""


@cache
def histories() -> Mapping[str, History]:
    """Return all histories by name."""
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


class Say(Protocol):
    """Sends a message."""

    def __call__(self, words: str, chat: str, steps: Sequence[Step]) -> Awaitable[Result]:
        """Send these words to a conversation, in which the agent then does these steps."""


@dataclass
class Player:
    """Plays one history as a user of their own, and notes what is not as it should be."""

    name: str
    client: Client
    say: Say
    journal: Callable[[Result], Awaitable[Sequence[Mapping[str, Any]]]]
    """Reads the journal of a turn."""
    misses: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    conversations: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """The ids of what was kept, by the history's names."""

    @property
    def history(self) -> History:
        return histories()[self.name]

    async def play(self) -> None:
        """Play the turns, then ask."""
        for turn in self.history["turns"]:
            if "undo" in turn:
                answer = await self.client.delete(f"/memory/items/{self.facts[turn['undo']]}")
                assert answer.is_success, answer.text
            else:
                await self._turn(turn)
        for asked in self.history["ask"]:
            await self._ask(asked)
        if "facts" in self.history:
            held = await self._held()
            self._check(held == sorted(self.history["facts"]), f"the facts are {held}")

    async def delete_conversations(self) -> None:
        """Delete what was said."""
        for conversation_id in self.conversations:
            answer = await self.client.delete(f"/conversations/{conversation_id}")
            assert answer.is_success, answer.text

    async def _turn(self, turn: Mapping[str, Any]) -> None:
        chat = await self._conversation(turn)
        words = turn["say"]
        reply = turn.get("reply", "好的。" if _CHINESE.search(words) else "OK.")
        call = self._call(turn)
        self.said += [f"{words} {reply}", turn.get("remember", "")]
        end = {"status": 400} if turn.get("fails") else {"text": reply}
        result = await self.say(words, chat, [*call, end])
        states = [tool["status"] for tool in result["tools"]]
        wanted = "failed" if turn.get("refused") else "ok"
        self._check(states == [wanted] * len(call), f"the call is {result['tools']}")
        for saved in result["memory"]["saved"]:
            self.facts[turn.get("as", "")] = saved["id"]
        noticed = {notice["code"] for notice in result["notices"]}
        noticed &= {"kept_verbatim", "nothing_forgotten"}
        self._check(noticed == {turn.get("notice")} - {None}, f"notices {noticed}")

    def _call(self, turn: Mapping[str, Any]) -> list[dict[str, Any]]:
        evidence = turn.get("evidence", turn["say"])
        if "forget" in turn:
            ids = [self.facts[name] for name in turn["forget"]]
            given = {"ids": ids, "evidence": evidence}
            return [{"tool": "mcp__memory__memory_forget", "input": given}]
        if "remember" not in turn:
            return []
        given = {"text": turn["remember"], "evidence": evidence}
        if "replaces" in turn:
            given["replaces"] = [self.facts[name] for name in turn["replaces"]]
        if "lasting" in turn:
            given["lasting"] = turn["lasting"]
        return [{"tool": "mcp__memory__memory_remember", "input": given}]

    async def _conversation(self, turn: Mapping[str, Any]) -> str:
        if "in" in turn:
            return self.conversations[int(turn["in"]) - 1]
        project = {"project_id": turn["project"]} if "project" in turn else {}
        chat: str = await self.client.new_conversation(**project)
        self.conversations.append(chat)
        if turn.get("off"):
            off = {"memory": {"enabled": False}}
            assert (await self.client.patch(f"/conversations/{chat}", json=off)).is_success
        return chat

    async def _ask(self, asked: Mapping[str, Any]) -> None:
        """Ask as the route, a turn and the agent's tool do."""
        chat = await self._conversation(asked)
        body = {"queries": [asked["q"]], "conversation_id": chat}
        answer = await self.client.post("/memory/context", json=body)
        assert answer.status_code == 200, answer.text
        self._look(asked, "context", _QUOTED.findall(answer.json()["text"]))
        search = {"tool": "mcp__memory__memory_search", "input": {"query": asked["q"]}}
        self.said.append(f"{asked['q']} Well.")
        result = await self.say(asked["q"], chat, [search, {"text": "Well."}])
        lines = await self.journal(result)
        (shown,) = [line["text"] for line in lines if line["kind"] == "context"]
        self._look(asked, "prompt", _QUOTED.findall(shown or ""))
        (output,) = [line["output"] for line in lines if line["kind"] == "tool"]
        items = json.loads(output)["items"]
        self._look(asked, "search", [f"{item['title']}…{item['summary']}" for item in items])

    def _look(self, asked: Mapping[str, Any], where: str, shown: Sequence[str]) -> None:
        wanted, told = asked.get("shown", []), " | ".join(shown)
        where = f"{where} of {asked['q']!r}"
        for text in wanted:
            self._check(text in told, f"{where} does not show {text!r}: {told!r}")
        for text in asked.get("never", []):
            stale = [line for line in shown if text in line and not _has_any(line, wanted)]
            self._check(not stale, f"{where} shows {text!r}: {stale}")
        if "order" in asked:
            first, second = (_place(text, shown) for text in asked["order"])
            self._check(first <= second, f"{where} has them in the other order: {told!r}")
        for line in shown:
            made_up = [part for part in _parts(line) if not self._was_said(part)]
            self._check(not made_up, f"{where} shows what nobody said: {made_up}")

    def _was_said(self, part: str) -> bool:
        """Return whether it was said, perhaps as a title before the text that it is from."""
        for text in map(_flat, self.said):
            if part in text:
                return True
        title, colon, rest = part.partition(":")
        return bool(colon) and self._was_said(title) and self._was_said(rest)

    async def _held(self) -> list[str]:
        """Return the texts of the facts that hold."""
        items = await self.client.read("/memory/items", kind="fact", limit=50)
        facts = [await self.client.read(f"/memory/items/{one['id']}") for one in items["items"]]
        return sorted(fact["body"] for fact in facts if fact["valid_until"] is None)

    def _check(self, holds: bool, miss: str) -> None:  # noqa: FBT001  what is checked, as in `assert`
        if not holds:
            self.misses.append(f"{self.name}: {miss}")


def _parts(line: str) -> list[str]:
    return [part for part in map(_flat, _JOINTS.split(line)) if part]


def _flat(text: str) -> str:
    """Return a text without its white space, of which memory has its own."""
    return "".join(text.split()).removeprefix("-")


def _has_any(line: str, texts: Sequence[str]) -> bool:
    return any(text in line for text in texts)


def _place(text: str, lines: Sequence[str]) -> int:
    """Return the number of the first line with a text; behind all lines if none has it."""
    return next((at for at, line in enumerate(lines) if text in line), len(lines))


async def left_in(directory: Path, names: Sequence[str], pattern: str = "*") -> list[str]:
    """Wait until no file has a forgotten word of these histories; return which still have one."""
    left = ["not looked"]
    with anyio.move_on_after(_FORGETTING_S):
        while left := await run_sync(_left_blocking, directory, names, pattern):  # noqa: ASYNC110
            await anyio.sleep(0.1)
    return left


def _left_blocking(directory: Path, names: Sequence[str], pattern: str) -> list[str]:
    files = {path: path.read_bytes() for path in directory.rglob(pattern) if path.is_file()}
    assert files, f"there is no {pattern}"
    return [
        f"{name}: {path.relative_to(directory)} has {word!r}"
        for name in names
        for word in histories()[name].get("gone", [])
        for path, data in files.items()
        if word.encode() in data or word.lower().encode() in data
    ]
