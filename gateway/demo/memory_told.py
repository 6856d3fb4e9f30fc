"""Tells a person what memory the gateway showed with the message, without the words that are meant for a model."""

import re

from gateway.demo.intents import Language
from gateway.demo.report import clip

_MAX_CHARS = 3000
_MAX_ITEM_CHARS = 240
_MAX_ITEMS = 5

_LEAD = re.compile(r"\AThe message asks about memory\.[^\n]*\s*")
_FOUND = re.compile(
    r"(?:\A|\n+)Memory, found for this message\.[^\n]*\n(?P<items>(?:> - [^\n]*\n?)*)"
)
_ITEM = re.compile(r"> - \[(?P<source>[^\]\n]*)\] (?P<words>[^\n]*)")
_README_QUOTED = re.compile(r"^memory/README\.md:\n(?:>[^\n]*(?:\n|\Z))*\n*", re.MULTILINE)
_NO_WORDS = re.compile(r"(?:memory/\S+:|>?\s*(?:#.*)?)")
_OWN_README = "memory/README.md"


def tell_memory(memory: str, language: Language) -> str:
    """What memory has, quoted; a plain word where it has nothing."""
    told = quote_memory(memory, language)
    if told:
        return told
    if language == "zh":
        return "记忆里还没有内容。要记下什么，请说“记住……”。"
    return "Nothing is noted in memory yet. To note something, say “remember that …”."


def quote_memory(memory: str, language: Language) -> str:
    """The notes and what was found; empty where there is no more than the memory folder's own README."""
    found = _FOUND.search(memory)
    before = memory[: found.start()] if found is not None else memory
    lead = _LEAD.match(before)
    notes = _README_QUOTED.sub("", before[lead.end() :] if lead is not None else before).strip()
    if all(_NO_WORDS.fullmatch(line) for line in notes.splitlines()):
        notes = ""  # headings alone
    items = _items(found["items"], language) if found is not None else ""
    parts: list[str] = []
    if notes:
        parts.append(
            "随这条消息给我的记忆是："
            if language == "zh"
            else "This is the memory I was shown with your message:"
        )
        parts.append(clip(notes, _MAX_CHARS, language))
    if items:
        parts.append("记忆里找到的：" if language == "zh" else "Found in memory for your message:")
        parts.append(items)
    return "\n\n".join(parts)


def _items(lines: str, language: Language) -> str:
    found = [(one["source"], one["words"]) for one in _ITEM.finditer(lines)]
    own = [(source, words) for source, words in found if _OWN_README not in source]
    return "\n".join(
        f"- {clip(words.lstrip('# '), _MAX_ITEM_CHARS, language)} ({source.split(',')[0]})"
        for source, words in own[:_MAX_ITEMS]
    )
