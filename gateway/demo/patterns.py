"""The pieces that the phrasebook's patterns are made of: names of files and folders, quoted or not, and free text."""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from gateway.demo.intents import Intent

Fields: TypeAlias = dict[str, str]
Build: TypeAlias = Callable[[Fields], Intent]

QUOTES = "`'\"“”‘’「」『』《》"
# Names have a bound, so that patterns with several of them stay quick on any input.
_MAX_NAME_CHARS = 300
_HERE = frozenset(
    {
        "",
        ".",
        "here",
        "this",
        "folder",
        "directory",
        "workspace",
        "current",
        "it",
        "there",
        "当前",
        "这里",
        "工作区",
        "工作",
        "文件夹",
        "目录",
    }
)


def name(group: str) -> str:
    """A pattern for a file name: quoted with anything in it, or a bare word; "the", "file" and "folder" around it are skipped."""
    return (
        rf"(?:the\s+|a\s+|my\s+)?(?:(?:file|folder|directory)\s+)?"
        rf"(?:[{QUOTES}](?P<{group}_quoted>[^{QUOTES}]+)[{QUOTES}]|(?P<{group}>[^\s{QUOTES}，。！？；：]+))"
        r"(?:\s+(?:file|folder|directory))?"
    )


_NOUN_ZH = r"(?:文件夹|文件(?!夹)|目录)"
# "文件" is part of the name in "文件.txt", "文件夹/a" and "文件1"; where a space goes before it, in "文件甲" too.
_BEFORE_NAME_ZH = (
    rf"(?:{_NOUN_ZH}(?=[\s{QUOTES}])|(?<!\s){_NOUN_ZH}(?=[^\s{QUOTES}./\d，。！？；：]))?\s*"
)


def name_zh(group: str) -> str:
    """The same in a Chinese sentence, where nouns stand before or behind a name without a space."""
    return (
        rf"{_BEFORE_NAME_ZH}(?:[{QUOTES}](?P<{group}_quoted>[^{QUOTES}]+)[{QUOTES}]|"
        rf"(?P<{group}>[^\s{QUOTES}，。！？；：]{{1,{_MAX_NAME_CHARS}}}?))\s*(?:这个)?{_NOUN_ZH}?"
    )


def path_of(fields: Fields, group: str) -> str:
    """The name that a pattern caught, without the sentence's own stop."""
    quoted = fields.get(f"{group}_quoted", "")
    bare = fields.get(group, "")
    return quoted or (bare if bare in {".", ".."} else bare.rstrip(".?!,:;"))


def folder_of(fields: Fields, group: str = "folder") -> str:
    """The same for a folder; the workspace where none is named, or itself is."""
    name = path_of(fields, group)
    return "." if name.lower() in _HERE else name


def words_of(fields: Fields, group: str = "text") -> str:
    """A text that a pattern caught, out of its quotation marks or its fence."""
    text = fields.get(group, "").strip()
    fence = re.fullmatch(r"```[^\n]*\n(.*?)\n?```", text, re.DOTALL)
    if fence is not None:
        return fence[1]
    if len(text) > 1 and text[0] in QUOTES and text[-1] in QUOTES:
        return text[1:-1]
    return text


def rules(build: Build, *patterns: str) -> list[tuple[re.Pattern[str], Build]]:
    """Patterns that must fit a whole request, and what is made of those that do."""
    return [
        (
            re.compile(
                rf"(?:{pattern})[\s.?!。？！]*(?:please\W*|吗[\s?？]*)?", re.IGNORECASE | re.DOTALL
            ),
            build,
        )
        for pattern in patterns
    ]


def joined(
    rules: Sequence[list[tuple[re.Pattern[str], Build]]],
) -> list[tuple[re.Pattern[str], Build]]:
    """All the rules, in order."""
    return [rule for group in rules for rule in group]
