"""Recognises plain requests in English and Chinese, and answers them with real tool calls.

A pattern must fit the whole message, so that a sentence that merely mentions a file is not taken for a request.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from gateway.demo.answer import Reply, ToolCall, call, say
from gateway.demo.conversation import Conversation, ToolOutcome

Kind: TypeAlias = Literal[
    "list",
    "read",
    "write",
    "move",
    "delete",
    "remember",
    "recall",
    "cases",
    "skill",
    "tell_my",
    "what_is_my",
    "help",
]
Language: TypeAlias = Literal["en", "zh"]

_QUOTES = "`'\"“”‘’「」『』《》"
_MAX_CHARS = 4000
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_POLITE = re.compile(
    r"(?:(?:please|hi|hello|can you|could you)(?!\w)[,!\s]*|(?:你好|您好)[，,！!\s]*|请(?!使用技能)(?:你|帮我)?|帮我)*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """What a message asks for; `help` stands for everything that is not understood."""

    kind: Kind
    language: Language
    fields: Mapping[str, str]
    """The parts that the pattern names: `path`, `target`, `text`, `name` or `key`; some may be empty."""


def _name(group: str) -> str:
    """Return a pattern for a file's name: a bare word, or anything in quotes; a noun before it is skipped."""
    return (
        r"(?:(?:the\s+|a\s+|an\s+)?(?:empty\s+)?file\s+(?:named\s+|called\s+)?|the\s+|文件\s+|文件(?=\w*[\u4e00-\u9fff]\w*\.))?"
        rf"(?:[{_QUOTES}](?P<{group}_quoted>[^{_QUOTES}]+)[{_QUOTES}]|(?P<{group}>[^\s{_QUOTES}，。！？；：]{{1,200}}?))"
    )


_PATH, _TARGET = _name("path"), _name("target")

_PATTERNS: Mapping[Language, str] = {
    "en": rf"""
        skill       use the skill (?P<name>[\w:-]+): call the skill tool .+? follows\.(?P<text>.*)
        skill       use the (?P<name>[\w:-]+) skill(?:\s*:(?P<text>.+))?
        cases       (?:search|find) (?:the |memory )*cases? (?:for |about |on )?(?P<text>.+)
        recall      what (?:do|can) you (?:still )?remember.*|what(?:'s| is) in your memory
        what_is_my  what(?:'s| is) my (?P<key>.+?)
        remember    (?:remember|note)(?: that|\s*:)?\s+(?P<text>.+)
        list        (?:list|show)(?: me)?(?: all)?(?: the)? files(?: here| in {_PATH}(?: folder)?)?
        list        ls(?: {_PATH})?|(?:what|which) files are (?:there|here)
        write       (?:write|save|put) (?P<text>.+) (?:to|into|as) {_PATH}
        write       (?:create|make|write) {_PATH}(?:,? (?:with|containing|saying) (?P<text>.+))?
        move        (?:move|rename|mv) {_PATH} (?:to |into )?{_TARGET}
        delete      (?:delete|remove|rm) {_PATH}
        read        (?:read|open|cat|show(?: me)?|what(?:'s| is) in) {_PATH}
        tell_my     my (?P<key>\w[\w ]{{0,40}}?) is (?P<text>[^\n,;!?]+?)(?:\.\s.*)?
    """,
    "zh": rf"""
        skill       请?使用技能\s*(?P<name>[\w:-]+)：先用这个名称调用.+?附在后面。(?P<text>.*)
        cases       (?:搜索|查找|搜)(?:一下)?(?:记忆)?案例[：:\s]*(?P<text>.+)
        recall      你?(?:还|都)?记(?:得|住了?).*(?:什么|哪些|啥|吗)
        recall      (?:查看|看看)?(?:你的)?记忆(?:系统)?(?:里|中)?(?:都?有(?:什么|哪些).*)?
        what_is_my  我的(?P<key>[^，。？！]+?)(?:是|叫)(?:什么|啥|多少|谁)
        remember    (?:记住|记下来?|记得)[：:，,\s]*(?P<text>.+)
        list        (?:列出|显示|看看|查看)\s*(?:{_PATH}\s*(?:目录|文件夹)?[里中下]面?的?)?(?:所有|全部)?文件
        list        (?:看看)?(?:(?:当前|这里|工作区|{_PATH})\s*(?:目录|文件夹)?[里中下]?面?)?都?有(?:哪些|什么)(?:文件|东西)?
        write       (?:把|将)\s*(?P<text>.+?)\s*(?:写入|写到|写进|保存到|存到)\s*{_PATH}\s*[里中]?
        write       (?:新建|创建)\s*{_PATH}(?:[，,\s]+(?:内容[为是]?[：:\s]*|写着?)(?P<text>.+))?
        move        (?:把|将)\s*{_PATH}\s*(?:移动?到|改名为|重命名为)\s*{_TARGET}
        delete      (?:删除|删掉)\s*{_PATH}
        delete      (?:把|将)\s*{_PATH}\s*(?:删除|删掉)
        read        (?:读取|读一下|读|打开)\s*{_PATH}(?:\s*的内容)?
        tell_my     我的(?P<key>[^\s，。？！是叫]{{1,20}})(?:是|叫)\s*(?P<text>[^\n，。；？！]+)
    """,
}
"""For each language the kinds and their patterns, one a line, in the order in which they are tried."""


def _compile(language: Language) -> Iterator[tuple[Kind, Language, re.Pattern[str]]]:
    kinds: tuple[Kind, ...] = get_args(Kind)
    for line in _PATTERNS[language].strip().splitlines():
        name, pattern = line.split(maxsplit=1)
        whole = rf"(?:{pattern})[\s.?!。？！]*(?:please)?"
        compiled = re.compile(whole, re.IGNORECASE | re.DOTALL)
        yield kinds[kinds.index(name)], language, compiled


_COMPILED = (*_compile("en"), *_compile("zh"))


def recognise(message: str) -> PlainRequest:
    """Return the request in `message`."""
    if len(message) <= _MAX_CHARS:
        text = _POLITE.sub("", message.strip(), count=1).strip()
        for kind, language, pattern in _COMPILED:
            found = pattern.fullmatch(text)
            if found is not None:
                return PlainRequest(kind, language, _fields(found.groupdict()))
    return PlainRequest("help", "zh" if _CHINESE.search(message) else "en", {})


def find_value(key: str, message: str) -> str | None:
    """Return what `message` says that "my `key`" is, or `None`."""
    request = recognise(message)
    is_told = request.kind == "tell_my" and request.fields["key"].casefold() == key.casefold()
    return request.fields["text"] if is_told else None


def _fields(groups: Mapping[str, str | None]) -> dict[str, str]:
    """Return the named parts, without quotation marks around them."""
    return {
        key: groups.get(f"{key}_quoted") or (value or "").strip().strip(_QUOTES)
        for key, value in groups.items()
        if not key.endswith("_quoted")
    }


NOTES_PATH = "memory/notes.md"

_MAX_FILES_READ = 5
_MAX_QUOTED_CHARS = 3000
_NUMBERED_LINE = re.compile(r"^\s*\d+(?:\t|→)(.*)$", re.MULTILINE)
_NOTE_FILE = re.compile(r"^\S+\.(?:md|txt|ya?ml)$", re.MULTILINE)
_NOT_FOR_PEOPLE = re.compile(
    r"^memory/README\.md:\n(?:>.*\n?)*|^>.*memory/README\.md.*\n?|^(?!>|-|memory/\S+:$).*\n?",
    re.MULTILINE,
)
"""In the memory shown with a prompt: the folder's own README, and the sentences for the model."""
_HEADINGS = re.compile(r"^(?:memory/\S+:|>\s*(?:#.*)?)$\n?", re.MULTILINE)

_HELP: Mapping[Language, str] = {
    "en": """\
I am the demo model, `candor-demo`: no language model is behind me, my answers are scripted, and my tool calls are real. I can

- list, read, write, move and delete files: “list the files”, “read notes.md”, “write hello to a.txt”, “rename a.txt to b.txt”, “delete b.txt”
- remember: “remember that …”, “what do you remember?”, “search cases for …”
- recall this conversation: “my codeword is …” and later “what is my codeword?”

For a real model set `ANTHROPIC_API_KEY`, and start the gateway without the demo.""",
    "zh": """\
我是演示模型 `candor-demo`：背后没有大语言模型，回答是按脚本写好的，工具调用是真的。我能做这些：

- 列出、读取、写入、移动、删除文件：“列出文件”、“读取 notes.md”、“把 你好 写入 a.txt”、“把 a.txt 改名为 b.txt”、“删除 b.txt”
- 记忆：“记住……”、“你记得什么”、“搜索案例 ……”
- 这次对话：先说“我的暗号是……”，再问“我的暗号是什么”

要接真正的模型，请设置 `ANTHROPIC_API_KEY`，并且不用演示方式启动网关。""",
}
_SCRIPTED: Mapping[Language, str] = {
    "en": "(I am candor-demo, the built-in demo model; my answers are scripted.)",
    "zh": "（我是内置的演示模型 candor-demo，回答是按脚本写好的。）",
}
_DONE: Mapping[Kind, tuple[str, str]] = {
    "list": ("These are the files.", "这是文件列表。"),
    "read": ("This is {path}.", "这是 {path} 的内容。"),
    "write": ("I wrote {path}.", "已写入 {path}。"),
    "move": ("I moved {path} to {target}.", "已把 {path} 移动到 {target}。"),
    "delete": ("I deleted {path}.", "已删除 {path}。"),
    "remember": (f"I wrote it down in {NOTES_PATH}.", f"我已记在 {NOTES_PATH} 里。"),
    "recall": ("This is what the memory folder says.", "这是记忆文件夹里的内容。"),
    "cases": ("I searched the cases for “{text}”.", "我在案例里搜索了“{text}”。"),
    "skill": (
        "I followed the skill {name} as far as a scripted demo model can.",
        "我按技能 {name} 做了；作为按脚本回答的演示模型，我只能做到这里。",
    ),
    "tell_my": (
        "Noted for this conversation: your {key} is {text}.",
        "好的，在这次对话里我知道你的{key}是{text}。",
    ),
}
_FAILED = ("That did not work.", "没有成功。")
_NOTHING_NOTED = (
    "Nothing is noted in memory yet. To note something, say “remember that …”.",
    "记忆里还没有内容。要记下什么，请说“记住……”。",
)
_SHOWN = ("This is the memory I was shown with your message:", "随这条消息给我的记忆是：")
_VALUE = ("Your {key} is {value}.", "你的{key}是{value}。")
_NO_VALUE = (
    "I do not know: you have not told me your {key} in this conversation.",
    "我不知道：这次对话里你没有告诉我你的{key}。",
)


def answer_plainly(conversation: Conversation) -> Reply:
    """Return the next tool calls for the last prompt, or the closing words."""
    request = recognise(conversation.last.text)
    calls = _next_calls(request, conversation)
    if calls:
        return call(*calls)
    text = _closing_words(request, conversation)
    is_first = len(conversation.prompts) == 1 and "candor-demo" not in text
    return say(f"{text}\n\n{_SCRIPTED[request.language]}" if is_first else text)


def _next_calls(request: PlainRequest, conversation: Conversation) -> Sequence[ToolCall]:
    """Return the calls to make after the outcomes so far; empty when the request is done or has failed."""
    outcomes = conversation.last.outcomes
    fields = request.fields
    match request.kind:
        case "write":
            return _write(fields["path"], fields["text"], outcomes)
        case "remember":
            return _note(fields["text"], outcomes)
        case "skill":
            return _follow_skill(fields["name"], fields["text"], outcomes)
        case "recall" if not conversation.memory:
            return _read_notes(outcomes)
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


def _note(fact: str, outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    """Add a line to the notes. Reading a missing file would be a failed call, so they are looked for first."""
    if not outcomes:
        return (ToolCall("Glob", {"pattern": NOTES_PATH}),)
    if outcomes[-1].is_error or outcomes[-1].name == "Write":
        return ()
    if outcomes[-1].name == "Glob" and NOTES_PATH in outcomes[-1].text:
        return (_read(NOTES_PATH),)
    is_read = outcomes[-1].name == "Read"
    lines = _NUMBERED_LINE.findall(outcomes[-1].text)
    notes = "\n".join(lines).rstrip() if is_read else "# Notes\n"
    text = f"{notes}\n- {fact}\n"
    return (ToolCall("Write", {"file_path": NOTES_PATH, "content": text}),)


def _follow_skill(name: str, text: str, outcomes: Sequence[ToolOutcome]) -> Sequence[ToolCall]:
    """Launch the skill; memory-capture is followed by noting the text that came with it."""
    if not outcomes:
        return (ToolCall("Skill", {"skill": name}),)
    if outcomes[0].is_error or name != "memory-capture" or not text:
        return ()
    return _note(text, outcomes[1:])


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


_SINGLE_CALLS: Mapping[Kind, Callable[[Mapping[str, str]], ToolCall]] = {
    "list": lambda fields: _bash("ls -la", fields.get("path", "")),
    "read": lambda fields: _read(fields["path"]),
    "move": lambda fields: _bash("mv", fields["path"], fields["target"]),
    "delete": lambda fields: _bash("rm", fields["path"]),
}


def _closing_words(request: PlainRequest, conversation: Conversation) -> str:
    index = ("en", "zh").index(request.language)
    outcomes = conversation.last.outcomes
    if request.kind == "what_is_my":
        return _tell_value(request.fields["key"], conversation, index)
    if not outcomes:
        shown = _quote_memory(conversation.memory)
        if request.kind == "recall":
            return f"{_SHOWN[index]}\n\n{shown}" if shown else _NOTHING_NOTED[index]
        if request.kind == "help":
            help_text = _HELP[request.language]
            return f"{help_text}\n\n{_SHOWN[index]}\n\n{shown}" if shown else help_text
        return _DONE[request.kind][index].format(**request.fields)
    if request.kind == "recall" and len(outcomes) == 1 and not outcomes[0].is_error:
        return _NOTHING_NOTED[index]
    reported = outcomes[1:] if request.kind == "recall" else outcomes[-1:]
    has_failed = any(outcome.is_error for outcome in reported or outcomes)
    lead = _FAILED[index] if has_failed else _DONE[request.kind][index].format(**request.fields)
    quotes = [_quote(outcome, request.language) for outcome in reported or outcomes]
    return "\n\n".join([lead, *quotes])


def _tell_value(key: str, conversation: Conversation, index: int) -> str:
    for prompt in reversed(conversation.prompts[:-1]):
        value = find_value(key, prompt.text)
        if value is not None:
            return _VALUE[index].format(key=key, value=value)
    return _NO_VALUE[index].format(key=key)


def _quote_memory(memory: str) -> str:
    """Return the notes and finds in the memory shown with a prompt; empty if there are none."""
    shown = _NOT_FOR_PEOPLE.sub("", memory).strip()
    return shown[:_MAX_QUOTED_CHARS] if _HEADINGS.sub("", f"{shown}\n").strip() else ""


def _quote(outcome: ToolOutcome, language: Language) -> str:
    """Return an outcome in the tool's own words, a file without its line numbers."""
    what = next((str(value) for value in outcome.arguments.values()), outcome.name)
    text = _NUMBERED_LINE.sub(r"\1", outcome.text) if outcome.name == "Read" else outcome.text
    verb = {"en": ("returned:", "failed:"), "zh": ("返回：", "失败了：")}[language][
        outcome.is_error
    ]
    fence = "````" if "```" in text else "```"
    return f"`{what}` {verb}\n{fence}\n{text.strip()[:_MAX_QUOTED_CHARS]}\n{fence}"
