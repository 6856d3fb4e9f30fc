"""Read a Messages request: the person's prompts, what happened since, and what the agent process
added.

The agent process adds text of its own. Hook context and reminders come as `system` messages or as
`<system-reminder>` blocks around the prompt, adjacent user messages are merged, and an empty answer
leaves only a request to try again. `read_conversation` sorts the blocks by what they are.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]

_RETRY_NOTICE = re.compile(
    r"\s*(?:\[Your previous response had no visible output|Output token limit hit"
    r"|Your response above was stopped by a safety classifier)"
)
"""The agent process asks again after an answer it cannot use. An empty answer leaves no other
trace."""
_MACHINE_TEXT = re.compile(
    r"\s*(?:\[Request interrupted|\[Image[: ]|\(no content\)|Base directory for this skill:"
    r"|Skill /\S+ is already loaded|<command-name>"
    r"|<local-command-|<task-notification>|<user-prompt-submit-hook>|Caveat: The messages below"
    r"|This session is being continued from a previous conversation)"
)
_REMINDER = re.compile(r"\s*<system-reminder>(.*)</system-reminder>\s*", re.DOTALL)
_APPENDED_REMINDER = re.compile(
    r"(?<!\s)\s*<system-reminder>((?:(?!<system-reminder>).)*?)</system-reminder>\s*\Z",
    re.DOTALL,
)
_RESULT_REMINDERS = re.compile(
    r"(?:^[^\S\n]*<system-reminder\b[^<>]*>(?:(?!<system-reminder\b).)*?"
    r"</system-reminder\b[^<>]*>\s*)+",
    re.DOTALL | re.MULTILINE,
)
"""At the beginning of a line: the lines of a file that was read begin with their numbers."""
_FILE_STATE = re.compile(r" \(file state is current in your context[^()\n]*\)")
_FILE_CHANGES = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_HOOK_ERROR = re.compile(r"\A(?:PreToolUse|PostToolUse)(?::\S+)? hook error: ")
_HOOK_CONTEXT = re.compile(
    r"UserPromptSubmit hook additional context:\s*(?P<text>.*?)"
    r"(?=\n\n(?:\w+(?::\w+)? hook additional context:|Today's date is|Attribution for git"
    r"|<total_tokens>)|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """A tool call and the result that the agent process reports."""

    name: str
    arguments: JsonObject
    text: str
    is_error: bool

    @property
    def text_for_people(self) -> str:
        """The text without what the agent process put into it for the model alone."""
        end = len(self.text)
        text = _RESULT_REMINDERS.sub(
            lambda found: "" if found.start() == 0 or found.end() == end else found[0], self.text
        )
        return _FILE_STATE.sub("", text) if self.name in _FILE_CHANGES else text


@dataclass(slots=True, kw_only=True)
class Prompt:
    """A message of the person, and what followed until the next one."""

    text: str
    answered_count: int = 0
    """Model answers since, including empty ones that left no message."""
    outcomes: list[ToolOutcome] = field(default_factory=list)
    """In the order of their results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A Messages request, read."""

    prompts: tuple[Prompt, ...]
    """The last is the one to answer. Empty only if the request has no text of a person."""
    context: tuple[str, ...]
    """What the agent process put around the last prompt: reminders, hook context, environment."""
    system: str
    messages: Sequence[object]
    tools: frozenset[str]
    """The tools that may be called."""
    session: str
    """Identifies the conversation; empty if the client sends no session header."""

    @property
    def last(self) -> Prompt:
        """The prompt to answer."""
        return self.prompts[-1] if self.prompts else Prompt(text="")

    @property
    def memory(self) -> str:
        """What the `UserPromptSubmit` hooks added to the last prompt."""
        found = [match for text in self.context for match in _HOOK_CONTEXT.finditer(text)]
        return "\n\n".join(match["text"].strip() for match in found if match["text"].strip())


def read_conversation(request: JsonObject, *, session: str = "") -> Conversation:
    """Sort the parts of `request`."""
    reader = _Reader()
    for message in request["messages"]:
        reader.read(message)
    tools = request.get("tools", ())
    may_call_none = request.get("tool_choice") == {"type": "none"}
    return Conversation(
        prompts=tuple(reader.prompts),
        context=tuple(reader.context),
        system="\n\n".join(_texts(request.get("system"))),
        messages=request["messages"],
        tools=frozenset() if may_call_none else frozenset(tool["name"] for tool in tools),
        session=session,
    )


class _Reader:
    """Walks the messages once and counts what follows the last prompt."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.context: list[str] = []
        self._calls: dict[str, JsonObject] = {}
        self._before_prompt: list[str] = []
        self._answer_is_open = False
        self._answer_left_message = False

    def read(self, message: JsonObject) -> None:
        match message.get("role"):
            case "assistant":
                self._read_answer(message)
            case "system":
                self._answer_is_open = False
                for text in _texts(message.get("content")):
                    self._keep_machine_text(text)
            case _:
                self._before_prompt = []
                for block in _blocks(message.get("content")):
                    self._read_user_block(block)

    def _read_answer(self, message: JsonObject) -> None:
        # Text and tool calls of one answer can come as adjacent messages.
        if self.prompts and not self._answer_is_open:
            self.prompts[-1].answered_count += 1
        self._answer_is_open = self._answer_left_message = True
        for block in _blocks(message.get("content")):
            if block.get("type") == "tool_use":
                self._calls[str(block.get("id"))] = block

    def _read_user_block(self, block: JsonObject) -> None:
        if block.get("type") == "tool_result":
            outcome = self._outcome(block)
            self._close_answer()
            if self.prompts:
                self.prompts[-1].outcomes.append(outcome)
        elif block.get("type") == "text":
            self._read_user_text(str(block.get("text", "")))

    def _outcome(self, block: JsonObject) -> ToolOutcome:
        call = self._calls.get(str(block.get("tool_use_id")), {})
        is_error = block.get("is_error") is True
        text = "\n".join(_texts(block.get("content")))
        # A reminder that follows a failed call is put into its result.
        while is_error and (appended := _APPENDED_REMINDER.search(text)):
            self._keep_machine_text(appended[1])
            text = text[: appended.start()]
        arguments = call.get("input")
        return ToolOutcome(
            name=str(call.get("name")),
            arguments=arguments if isinstance(arguments, dict) else {},
            text=_HOOK_ERROR.sub("", text) if is_error else text,
            is_error=is_error,
        )

    def _read_user_text(self, text: str) -> None:
        if _RETRY_NOTICE.match(text):
            if self.prompts and not self._answer_left_message:
                self.prompts[-1].answered_count += 1
            self._close_answer()
        elif _REMINDER.fullmatch(text) or _MACHINE_TEXT.match(text):
            self._keep_machine_text(text)
        elif text.strip():
            self.prompts.append(Prompt(text=text.strip()))
            self.context = list(self._before_prompt)
            self._close_answer()

    def _close_answer(self) -> None:
        self._answer_is_open = self._answer_left_message = False

    def _keep_machine_text(self, text: str) -> None:
        reminder = _REMINDER.fullmatch(text)
        words = (reminder[1] if reminder else text).strip()
        self._before_prompt.append(words)
        if self.prompts and self.prompts[-1].answered_count == 0:
            self.context.append(words)


def _texts(content: object) -> Iterator[str]:
    for block in _blocks(content):
        if block.get("type") == "text":
            yield str(block.get("text", ""))


def _blocks(content: object) -> Sequence[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else ()
