"""Recognises the few plain requests that the demo model understands, in English and Chinese.

A pattern must fit the whole message, so that a sentence that merely mentions a file is not taken for a request.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

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
