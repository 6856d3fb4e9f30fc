"""Reads a Messages request the way a person would: who said what, and what happened since.

The agent process mixes much of its own into a request. Hook context and reminders come as `system`-role messages for models it does not
know, and as `<system-reminder>` text blocks before and after the prompt for those it knows; adjacent user messages are merged into one;
an empty answer leaves no assistant message but a bracketed request to try again. So "the last user text" is no place to look:
`read_conversation` sorts blocks by what they are. Pure; never raises on odd shapes, it skips them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

JsonObject: TypeAlias = Mapping[str, object]

# The agent process asks once more after an answer it cannot use; such an answer often leaves no message, so this is its only trace.
_RETRY_NOTICES = (
    "[Your previous response had no visible output",
    "Output token limit hit",
    "Your response above was stopped by a safety classifier",
)
_MACHINE_PREFIXES = (
    "[Request interrupted",
    "(no content)",
    "Base directory for this skill:",
    "(Re-invocation of /",
    "<command-name>",
    "<local-command-",
    "<bash-",
    "<task-notification>",
    "<user-prompt-submit-hook>",
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
)
_REMINDER = re.compile(r"\A\s*<system-reminder>(.*)</system-reminder>\s*\Z", re.DOTALL)
_APPENDED_REMINDER = re.compile(r"\s*<system-reminder>(.*?)</system-reminder>\s*\Z", re.DOTALL)
_SLASH = re.compile(
    r"\A\s*<command-message>.*?<command-name>(?P<name>/?[^<]+)</command-name>"
    r"(?:\s*<command-args>(?P<args>.*?)</command-args>)?",
    re.DOTALL,
)
_CWD = re.compile(r"(?:Primary working directory|Working directory):\s*(?P<cwd>[^\n]+)")
_HOOK_CONTEXT = re.compile(
    r"UserPromptSubmit hook additional context:\s*(?P<text>.*?)"
    r"(?=\n\n(?:\w+(?::\w+)? hook additional context:|Today's date is|Attribution for git|<total_tokens>)|\Z)",
    re.DOTALL,
)
_ASIDE = re.compile(
    r"The user sent a new message while you were working:\n(?P<text>.*?)\n\nThis is how Claude Code",
    re.DOTALL,
)
_SIDE_CALL = re.compile(
    r"sentence-case title|title for this|generate a (?:short|concise|brief)[^.]{0,40}(?:title|name)|new conversation topic|"
    r"under 50 characters|process Bash commands that an AI coding agent|prompt suggestion",
    re.IGNORECASE,
)
_COMPACTION = re.compile(r"Your task is to create a detailed summary of (?:the|this) conversation")
_SIDE_CALL_MAX_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """One tool call and what the agent says came of it."""

    name: str
    arguments: JsonObject
    text: str
    is_error: bool


@dataclass(slots=True, kw_only=True)
class Prompt:
    """Something the person said, and what followed until the next prompt."""

    text: str
    is_expanded_skill: bool = False
    """The person typed a slash command and the agent put the skill's text behind it."""
    answered_count: int = 0
    """Model answers since, those included that were empty and left no message."""
    rounds: list[tuple[ToolOutcome, ...]] = field(default_factory=list)
    """Outcomes of the tool calls, one tuple for each answer that made any and whose results are in."""
    asides: list[str] = field(default_factory=list)
    """What the person sent while this prompt was being worked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A Messages request, read."""

    prompts: tuple[Prompt, ...]
    """In order; the last is the one to answer. Empty only for requests without any words of a person."""
    context: tuple[str, ...]
    """What the agent put around the last prompt: reminders, hook context, environment."""
    memory: str
    """What the `UserPromptSubmit` hooks added to the last prompt."""
    system: str
    messages: Sequence[object]
    tools: Mapping[str, frozenset[str]]
    """The tools offered, each with the names of its parameters."""
    cwd: str | None
    session: str
    """Tells conversations apart; empty where the client does not say."""
    is_side_call: bool
    """A call the agent makes for itself, such as for a title."""
    is_compaction: bool

    @property
    def last(self) -> Prompt:
        """The prompt to answer."""
        return self.prompts[-1] if self.prompts else Prompt(text="")


def read_conversation(request: JsonObject, *, session: str = "") -> Conversation:
    """Sort `request` into prompts, outcomes and surroundings."""
    messages = _items(request.get("messages"))
    reader = _Reader()
    for message in messages:
        reader.read(message)
    system = "\n\n".join(_texts(request.get("system")))
    tools = {
        str(tool.get("name")): frozenset(
            _mapping(_mapping(tool.get("input_schema")).get("properties"))
        )
        for tool in map(_mapping, _items(request.get("tools")))
    }
    surroundings = "\n\n".join([*reader.machine_texts, system])
    cwd = _CWD.search(surroundings)
    last = reader.prompts[-1].text if reader.prompts else ""
    return Conversation(
        prompts=tuple(reader.prompts),
        context=tuple(reader.context),
        memory="\n\n".join(_memory_of(reader.context)),
        system=system,
        messages=messages,
        tools=tools,
        cwd=cwd["cwd"].strip() if cwd else None,
        session=session or _session_of(request),
        is_side_call=not tools and _is_side_call(request, system, last),
        is_compaction=_COMPACTION.search(last) is not None,
    )


class _Reader:
    """Walks the messages once, keeping the tally of the last prompt."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.context: list[str] = []
        self.machine_texts: list[str] = []
        self._calls: dict[str, ToolCallSeen] = {}
        self._before_prompt: list[str] = []
        self._answer_is_open = False
        self._answer_left_message = False

    def read(self, message: object) -> None:
        body = _mapping(message)
        match body.get("role"):
            case "assistant":
                self._read_answer(body)
            case "system":
                self._answer_is_open = False
                for text in _texts(body.get("content")):
                    self._keep_machine_text(text)
            case _:
                self._before_prompt = []
                self._read_user(body)

    def _read_answer(self, body: JsonObject) -> None:
        # Text and tool calls of one answer can come as adjacent messages; they are one answer.
        if self.prompts and not self._answer_is_open:
            self.prompts[-1].answered_count += 1
        self._answer_is_open = self._answer_left_message = True
        for block in _blocks(body.get("content")):
            if block.get("type") == "tool_use":
                self._calls[str(block.get("id"))] = ToolCallSeen(
                    name=str(block.get("name")), arguments=_mapping(block.get("input"))
                )

    def _read_user(self, body: JsonObject) -> None:
        outcomes: list[ToolOutcome] = []
        for block in _blocks(body.get("content")):
            if block.get("type") == "tool_result":
                outcomes.append(self._outcome(block))
                self._close_answer()
            elif block.get("type") == "text":
                if outcomes and self.prompts:
                    self.prompts[-1].rounds.append(tuple(outcomes))
                    outcomes = []
                self._read_user_text(str(block.get("text", "")))
        if outcomes and self.prompts:
            self.prompts[-1].rounds.append(tuple(outcomes))

    def _outcome(self, block: JsonObject) -> ToolOutcome:
        seen = self._calls.get(str(block.get("tool_use_id")), ToolCallSeen(name="?", arguments={}))
        text = "\n".join(_texts(block.get("content")))
        # Reminders that follow a failed call are put into its very result.
        while block.get("is_error") is True and (appended := _APPENDED_REMINDER.search(text)):
            self._keep_machine_text(appended[1])
            text = text[: appended.start()]
        return ToolOutcome(
            name=seen.name,
            arguments=seen.arguments,
            text=text,
            is_error=block.get("is_error") is True,
        )

    def _read_user_text(self, text: str) -> None:
        slash = _SLASH.match(text)
        if slash is not None:
            words = f"/{slash['name'].strip().lstrip('/')} {(slash['args'] or '').strip()}"
            self._start_prompt(Prompt(text=words.strip(), is_expanded_skill=True))
        elif text.lstrip().startswith(_RETRY_NOTICES):
            if self.prompts and not self._answer_left_message:
                self.prompts[-1].answered_count += 1
            self._close_answer()
        elif is_machine_text(text):
            self._keep_machine_text(text)
        elif text.strip():
            self._start_prompt(Prompt(text=text.strip()))

    def _start_prompt(self, prompt: Prompt) -> None:
        self.prompts.append(prompt)
        self.context = list(self._before_prompt)
        self._close_answer()

    def _close_answer(self) -> None:
        self._answer_is_open = self._answer_left_message = False

    def _keep_machine_text(self, text: str) -> None:
        reminder = _REMINDER.match(text)
        words = (reminder[1] if reminder else text).strip()
        self.machine_texts.append(words)
        if self.prompts:
            self.prompts[-1].asides += [found["text"].strip() for found in _ASIDE.finditer(words)]
        self._before_prompt.append(words)
        if self.prompts and self.prompts[-1].answered_count == 0:
            self.context.append(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallSeen:
    """A tool call in the request, kept until its result turns up."""

    name: str
    arguments: JsonObject


def is_machine_text(text: str) -> bool:
    """Whether a user text block comes from the agent process, not from the person."""
    return _REMINDER.match(text) is not None or text.lstrip().startswith(
        (*_RETRY_NOTICES, *_MACHINE_PREFIXES)
    )


def _memory_of(context: Sequence[str]) -> Iterator[str]:
    for text in context:
        for found in _HOOK_CONTEXT.finditer(text):
            if found["text"].strip():
                yield found["text"].strip()


def _is_side_call(request: JsonObject, system: str, last: str) -> bool:
    limit = request.get("max_tokens")
    is_tiny = isinstance(limit, int) and limit <= _SIDE_CALL_MAX_TOKENS
    wants_schema = "format" in _mapping(request.get("output_config"))
    return is_tiny or wants_schema or _SIDE_CALL.search(f"{system}\n{last}") is not None


def _session_of(request: JsonObject) -> str:
    user_id = _mapping(request.get("metadata")).get("user_id")
    if not isinstance(user_id, str):
        return ""
    try:
        return str(_mapping(json.loads(user_id)).get("session_id", user_id))
    except ValueError:
        return user_id


def _texts(content: object) -> Iterator[str]:
    for block in _blocks(content):
        if block.get("type") == "text":
            yield str(block.get("text", ""))


def _blocks(content: object) -> Iterator[JsonObject]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
        return
    yield from map(_mapping, _items(content))


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
