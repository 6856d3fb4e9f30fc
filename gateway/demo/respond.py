"""Recognises plain requests in English and Chinese, and answers them with real tool calls.

`plain_requests` holds the requests that are understood, `phrases.toml` the sentences of the
answers.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.demo.answer import Reply, ToolCall, call, say
from gateway.demo.conversation import Conversation, ToolOutcome
from gateway.demo.plain_requests import QUOTES, is_question, requests

NOTES_PATH = "memory/notes.md"

_MAX_CHARS = 4000
_MAX_FILES_READ = 5
_MAX_QUOTED_CHARS = 3000
_MEMORY_KINDS = frozenset({"remember", "correct", "tell_my", "forget"})
_ALIKE = 0.4
"""Share of pairs of characters by which a message means a fact."""
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_POLITE = re.compile(
    r"(?:(?:please|hi|hello|can you|could you)(?!\w)[,!\s]*|(?:你好|您好)[，,！!\s]*"
    r"|请(?!使用技能)(?:你|帮我)?|帮我)*",
    re.IGNORECASE,
)
_PLAN_FIRST = re.compile(
    r"(?:Plan first: (?:(?!Plan first: ).)+? follows\."
    r"|请先做计划：(?:(?!请先做计划：).)+?如下。)\s*",
    re.DOTALL,
)
"""Within it none begins, so that each character is read once."""
_PLAN_FILE = re.compile(r" at (/(?:(?! at /)[^'\"])+?/\.plans/[\w-]+\.md)")
"""The path of a plan; none has " at /" within, so that each character is read once."""
_NUMBERED_LINE = re.compile(r"^[^\S\n]*\d+(?:\t|→)(.*)$", re.MULTILINE)
_NOTE_FILE = re.compile(r"^\S+\.(?:md|txt|ya?ml)$", re.MULTILINE)
_NOT_FOR_PEOPLE = re.compile(
    r"^memory/README\.md:\n(?:>.*\n?)*|^>.*memory/README\.md.*\n?|^(?!>|-|memory/\S+:$).*\n?",
    re.MULTILINE,
)
"""In the memory shown with a prompt: the folder's own README, and the sentences for the model."""
_HEAD = re.compile(r"^\[[^\]]*\] ?")
"""Id, kind, date and source at the beginning of a line of memory."""
_HEADINGS = re.compile(r"^(?:memory/\S+:|>\s*(?:#.*)?)$\n?", re.MULTILINE)
_PHRASES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """What a message asks for; `help` stands for everything that is not understood."""

    kind: str
    language: str
    fields: Mapping[str, str]
    """The parts that the pattern names: `path`, `target`, `text`, `name` or `key`; some may be
    empty."""

    def sentence(self, key: str, **further: str) -> str:
        """Return a sentence of the answer in the request's language."""
        return str(_PHRASES[self.language][key]).format(**self.fields, **further)

    def done(self) -> str:
        """Return what is said when the request was carried out."""
        return str(_PHRASES[self.language]["done"][self.kind]).format(**self.fields)


def recognise(message: str) -> PlainRequest:
    """Return the request in `message`."""
    asked = _PLAN_FIRST.sub("", message.strip(), count=1)
    text = _POLITE.sub("", asked, count=1).strip() if len(message) <= _MAX_CHARS else ""
    for kind, language, pattern in requests() if text else ():
        if (found := pattern.fullmatch(text)) and not is_question(kind, text):
            return PlainRequest(kind, language, _fields(found.groupdict()))
    return PlainRequest("help", "zh" if _CHINESE.search(message) else "en", {})


def find_value(key: str, message: str) -> str | None:
    """Return what `message` says that "my `key`" is, or `None`."""
    request = recognise(message)
    if request.kind in {"remember", "correct"}:
        request = recognise(request.fields["text"])
    is_told = request.kind == "tell_my" and request.fields["key"].casefold() == key.casefold()
    return request.fields["text"] if is_told else None


def find_key(message: str) -> str | None:
    """Return what a message of the form "my key is value" is about, or `None`."""
    request = recognise(message)
    return request.fields["key"].casefold() if request.kind == "tell_my" else None


def _fields(groups: Mapping[str, str | None]) -> dict[str, str]:
    return {
        key: groups.get(f"{key}_quoted") or (value or "").strip().strip(QUOTES)
        for key, value in groups.items()
        if not key.endswith("_quoted")
    }


def answer_plainly(conversation: Conversation) -> Reply:
    """Return the next tool calls for the last prompt, or the closing words."""
    request = recognise(conversation.last.text)
    calls = _calls_due(request, conversation)
    if calls:
        return call(*calls)
    text = _closing_words(request, conversation)
    is_first = len(conversation.prompts) == 1 and "candor-demo" not in text
    return say(f"{text}\n\n{request.sentence('scripted')}" if is_first else text)


def _calls_due(request: PlainRequest, conversation: Conversation) -> Sequence[ToolCall]:
    """Return the next calls; in plan mode, the plan and its approval come before a change or a look
    at files.
    """
    outcomes, message = conversation.last.outcomes, conversation.last.text
    is_planned = _PLAN_FIRST.match(message) and request.kind in {"write", *_SINGLE_CALLS}
    plan_files = _PLAN_FILE.findall(str(conversation.messages)) if is_planned else ()
    if not plan_files:
        return _next_calls(request, conversation, outcomes)
    plan = request.sentence("plan", message=_PLAN_FIRST.sub("", message))
    steps = (_write(plan_files[-1], plan, outcomes), (ToolCall("ExitPlanMode", {}),))
    if len(outcomes) < len(steps):
        return steps[len(outcomes)]
    done = outcomes[len(steps) :]
    return () if outcomes[1].is_error else _next_calls(request, conversation, done)


def _next_calls(
    request: PlainRequest, conversation: Conversation, outcomes: Sequence[ToolOutcome]
) -> Sequence[ToolCall]:
    """Return the calls to make after the outcomes so far; empty when the request is done or has
    failed.
    """
    fields = request.fields
    match request.kind:
        case "write":
            return _write(fields["path"], fields["text"], outcomes)
        case "remember" | "correct" | "tell_my":
            return _remember(request, conversation, outcomes)
        case "forget":
            return _forget(conversation, outcomes)
        case "skill":
            return _follow_skill(fields["name"], fields["text"], outcomes)
        case "recall":
            return _recall(conversation, outcomes)
        case "cases" if not outcomes:
            names = (name for name in conversation.tools if name.endswith("memory_case_search"))
            return (ToolCall(next(names, "memory_case_search"), {"query": fields["text"]}),)
        case kind if kind in _SINGLE_CALLS and not outcomes:
            return (_SINGLE_CALLS[kind](fields),)
        case _:
            return ()


def _write(path: str, text: str, outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    """Write at once; a file that turns out to exist must be read before it may be replaced."""
    if len(outcomes) == 1 and outcomes[0].is_error and "has not been read" in outcomes[0].text:
        return (_read(path),)
    is_due = not outcomes or (len(outcomes) == 2 and not outcomes[1].is_error)  # noqa: PLR2004 - refused, read
    return (ToolCall("Write", {"file_path": path, "content": text}),) if is_due else ()


def _remember(
    request: PlainRequest, conversation: Conversation, outcomes: Sequence[ToolOutcome]
) -> Sequence[ToolCall]:
    """Keep a fact in place of the fact that says otherwise.

    Without memory nothing is kept: all people of the workspace read its notes.
    """
    tools, told = _memory_tools(conversation), request.fields["text"]
    if "memory_remember" not in tools:
        return ()
    if request.kind == "tell_my":
        told = conversation.last.text.strip()
    if not outcomes:
        return (ToolCall(tools["memory_search"], {"query": told}),)
    if len(outcomes) > 1 or outcomes[0].is_error:
        return ()
    older = _replaced(request, told, _facts_found(outcomes[0]))
    call = {"text": told, "evidence": told, "replaces": older}
    return (ToolCall(tools["memory_remember"], call),)


def _replaced(request: PlainRequest, told: str, facts: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the id of the fact about the same thing; of a correction, the id of the most similar
    fact.
    """
    key = find_key(told)
    if key is not None:
        return [fact["id"] for fact in facts if find_key(fact["title"]) == key][:1]
    alike = {fact["id"]: _likeness(told, fact["title"]) for fact in facts}
    best = max(alike, key=lambda fact_id: alike[fact_id], default=None)
    is_meant = request.kind == "correct" and best is not None and alike[best] >= _ALIKE
    return [best] if best is not None and is_meant else []


def _forget(conversation: Conversation, outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    """Search for what is meant, and forget the fact that is most like the message."""
    tools, message = _memory_tools(conversation), conversation.last.text.strip()
    if "memory_forget" not in tools or len(outcomes) > 1:
        return ()
    if not outcomes:
        return (ToolCall(tools["memory_search"], {"query": message}),)
    found = [] if outcomes[0].is_error else _facts_found(outcomes[0])
    likely = [fact for fact in found if _likeness(message, fact["title"]) >= _ALIKE]
    if not likely:
        return ()
    best = max(likely, key=lambda fact: _likeness(message, fact["title"]))
    return (ToolCall(tools["memory_forget"], {"ids": [best["id"]], "evidence": message}),)


def _memory_tools(conversation: Conversation) -> Mapping[str, str]:
    """Return the tools of memory that are offered: full names by short ones."""
    return {
        name.rpartition("__")[2]: name
        for name in conversation.tools
        if name.startswith("mcp__memory__")
    }


def _facts_found(outcome: ToolOutcome) -> list[Mapping[str, str]]:
    return [item for item in _items_found(outcome) if item["kind"] == "fact"]


def _items_found(outcome: ToolOutcome) -> list[Mapping[str, str]]:
    try:
        items: list[Mapping[str, str]] = json.loads(outcome.text)["items"]
    except (ValueError, KeyError, TypeError):
        return []
    return items


def _likeness(message: str, fact: str) -> float:
    """Return which share of the shorter text's pairs of characters is in the other text."""
    pairs = [_pairs(message), _pairs(fact)]
    return len(pairs[0] & pairs[1]) / max(1, min(map(len, pairs)))


def _pairs(text: str) -> set[str]:
    letters = "".join(filter(str.isalnum, text.casefold()))
    return {letters[at : at + 2] for at in range(len(letters) - 1)}


def _note(fact: str, outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    """Add a line to the notes. Reading a missing file would be a failed call, so they are looked
    for first.
    """
    if not outcomes:
        return (ToolCall("Glob", {"pattern": NOTES_PATH}),)
    last = outcomes[-1]
    if last.is_error or last.name == "Write":
        return ()
    if last.name == "Glob" and NOTES_PATH in last.text:
        return (_read(NOTES_PATH),)
    is_read = last.name == "Read"
    notes = "\n".join(_NUMBERED_LINE.findall(last.text)).rstrip() if is_read else "# Notes\n"
    return (ToolCall("Write", {"file_path": NOTES_PATH, "content": f"{notes}\n- {fact}\n"}),)


def _follow_skill(name: str, text: str, outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    """Launch the skill; memory-capture is followed by noting the text that came with it."""
    if not outcomes:
        return (ToolCall("Skill", {"skill": name}),)
    if outcomes[0].is_error or name != "memory-capture" or not text:
        return ()
    return _note(text, outcomes[1:])


def _recall(conversation: Conversation, outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    """List what memory has; without its tools, read the notes unless they are shown."""
    search = _memory_tools(conversation).get("memory_search")
    if search is not None:
        return () if outcomes else (ToolCall(search, {}),)
    return () if conversation.memory else _read_notes(outcomes)


def _read_notes(outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    if not outcomes:
        return (ToolCall("Glob", {"pattern": "memory/*"}),)
    if len(outcomes) > 1 or outcomes[0].is_error:
        return ()
    return [_read(path) for path in _NOTE_FILE.findall(outcomes[0].text)[:_MAX_FILES_READ]]


def _read(path: str) -> ToolCall:
    return ToolCall("Read", {"file_path": path})


def _bash(program: str, *names: str) -> ToolCall:
    """Call Bash; the names cannot be taken for options or shell syntax."""
    words = (shlex.quote(f"./{name}" if name.startswith("-") else name) for name in names if name)
    return ToolCall("Bash", {"command": " ".join([program, *words])})


_SINGLE_CALLS: Mapping[str, Callable[[Mapping[str, str]], ToolCall]] = {
    "list": lambda fields: _bash("ls -la", fields.get("path", "")),
    "read": lambda fields: _read(fields["path"]),
    "move": lambda fields: _bash("mv", fields["path"], fields["target"]),
    "delete": lambda fields: _bash("rm", fields["path"]),
}


def _closing_words(request: PlainRequest, conversation: Conversation) -> str:
    outcomes = conversation.last.outcomes
    if request.kind == "what_is_my":
        return _value_words(request, conversation)
    if not outcomes:
        return _words_without_calls(request, conversation)
    if request.kind == "recall" and outcomes[0].name.endswith("memory_search"):
        return _remembered_words(request, outcomes[0])
    if request.kind == "recall" and len(outcomes) == 1 and not outcomes[0].is_error:
        return request.sentence("nothing_noted")
    reported = (outcomes[1:] if request.kind == "recall" else outcomes[-1:]) or outcomes
    has_failed = any(outcome.is_error for outcome in reported)
    if request.kind in _MEMORY_KINDS and not has_failed:
        return _memory_words(request, outcomes[-1].name)
    lead = request.sentence("failed") if has_failed else request.done()
    return "\n\n".join([lead, *(_quote(outcome, request) for outcome in reported)])


def _value_words(request: PlainRequest, conversation: Conversation) -> str:
    """Return what the person or memory says that something is."""
    shown = _quote_memory(conversation.memory)
    lines = [_HEAD.sub("", line.strip("> -")) for line in shown.splitlines()]
    key = request.fields["key"]
    told = [*lines, *_told_earlier(conversation, key)]
    values = (find_value(key, text) for text in reversed(told))
    if (value := next(filter(None, values), None)) is not None:
        return request.sentence("value", value=value)
    memory = _shown_words(request, conversation)
    return "\n\n".join(filter(None, [request.sentence("no_value"), memory]))


def _told_earlier(conversation: Conversation, key: str) -> list[str]:
    """Return the earlier prompts, those alone that came after `key` was last to be forgotten."""
    earlier = [prompt.text for prompt in conversation.prompts[:-1]]
    starts = (
        number + 1
        for number, text in enumerate(earlier)
        if key.casefold() in text.casefold() and recognise(text).kind == "forget"
    )
    return earlier[max(starts, default=0) :]


def _words_without_calls(request: PlainRequest, conversation: Conversation) -> str:
    memory = _shown_words(request, conversation)
    match request.kind:
        case "recall":
            return memory or request.sentence("nothing_noted")
        case "correct" | "forget":
            return request.sentence("no_memory")
        case "remember":
            reads = "memory_search" in _memory_tools(conversation)
            return request.sentence("keeping_off" if reads else "memory_off")
        case "help":
            return "\n\n".join(filter(None, [request.sentence("help"), memory]))
        case _:
            return request.done()


def _memory_words(request: PlainRequest, last_call: str) -> str:
    """Return what is said of a request to memory whose last call succeeded."""
    is_done = last_call.endswith(("memory_remember", "memory_forget"))
    return request.done() if is_done else request.sentence("nothing_found")


def _remembered_words(request: PlainRequest, outcome: ToolOutcome) -> str:
    items = [] if outcome.is_error else _items_found(outcome)
    if not items:
        return request.sentence("failed" if outcome.is_error else "nothing_remembered")
    lines = [f"- {item['title']} ({item['kind']}, {item['date']})" for item in items]
    return "\n".join([request.sentence("remembered"), "", *lines])


def _shown_words(request: PlainRequest, conversation: Conversation) -> str:
    shown = _quote_memory(conversation.memory)
    return f"{request.sentence('shown')}\n\n{shown}" if shown else ""


def _quote_memory(memory: str) -> str:
    """Return the notes and finds in the memory shown with a prompt; empty if there are none."""
    shown = _NOT_FOR_PEOPLE.sub("", memory).strip()
    return shown[:_MAX_QUOTED_CHARS] if _HEADINGS.sub("", f"{shown}\n").strip() else ""


def _quote(outcome: ToolOutcome, request: PlainRequest) -> str:
    """Return an outcome in the tool's own words, a file without its line numbers."""
    what = next((str(value) for value in outcome.arguments.values()), outcome.name)
    text = outcome.text_for_people
    if not text.strip():
        return f"`{what}` {request.sentence('returned_nothing')}"
    if outcome.name == "Read":
        text = _NUMBERED_LINE.sub(r"\1", text)
    verb = request.sentence("has_failed" if outcome.is_error else "returned")
    fence = "````" if "```" in text else "```"
    return f"`{what}` {verb}\n{fence}\n{text.strip()[:_MAX_QUOTED_CHARS]}\n{fence}"
