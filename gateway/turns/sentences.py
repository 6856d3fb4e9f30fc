"""The gateway's own sentences, in English and Chinese; `sentences.toml` has the texts."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from gateway.version import COMMAND
from policies.configuration import Concern
from policies.verdict import Deny

Language = Literal["en", "zh"]

_MANY_HAN = 0.15
"""The share of Han characters among the letters from which a message counts as Chinese."""

_READ_CHARS = 4000
"""Only the start of a message is read; the rest may be 200,000 characters of a log."""

_PASTED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
"""A fenced block: a log or code, in whatever language that is."""

_COMMAND = re.compile(r"\A\s*[/／][\w:-]+")


def language_of(message: str, title: str = "") -> Language:
    """Return the language of a message: Chinese if many of its letters are Han characters, or many
    of its first line's, after which a log or code may be pasted; else English.

    A message without words, such as `/compact`, is in the language of the conversation's title.
    """
    start = _COMMAND.sub("", _PASTED.sub("", message[:_READ_CHARS])).strip()
    if not any(char.isalpha() for char in start):
        return language_of(title) if title else "en"
    first_line = start.partition("\n")[0]
    return "zh" if _is_chinese(start) or _is_chinese(first_line) else "en"


def _is_chinese(text: str) -> bool:
    han = sum(1 for char in text if "\u3400" <= char <= "\u9fff")
    letters = sum(1 for char in text if char.isalpha())
    return bool(han) and han >= _MANY_HAN * letters


_CATALOGUE: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8")
)
LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")
SENTENCES: Final[dict[Language, dict[str, str]]] = {
    language: _CATALOGUE[language] for language in LANGUAGES
}
PROMPTS: Final[dict[Language, dict[str, str]]] = _CATALOGUE["prompts"]
"""What the agent is sent when its run stopped short."""
ENDED_BY: Final[dict[str, str]] = _CATALOGUE["ended_by"]
"""What ended a turn, for the model and the chronicle, by cause or stop reason."""
MEMORY_REFUSALS: Final[dict[str, str]] = _CATALOGUE["memory_refusals"]["zh"]
"""Why a call of memory was refused, by words of the English sentence, in Chinese."""
DENIALS: Final[dict[str, str]] = _CATALOGUE["denials"]["zh"]
"""Why a call was denied, by rule, in Chinese."""


def describe_end(stop_reason: str, cause: str | None) -> str:
    """Return for the model what ended a turn that was cut off, and that it was not the person if
    so.

    The agent program writes "interrupted by user" into its session whoever had it stopped.
    """
    what = ENDED_BY.get(cause or stop_reason, "")
    return (
        what if stop_reason == "user_interrupt" else f"{what} {ENDED_BY['not_the_person']}".strip()
    )


def describe_memory_refusal(error: str, language: Language) -> str:
    """Return why a call of memory was refused, for the person; in English it is what the model
    gets.
    """
    known = MEMORY_REFUSALS if language == "zh" else {}
    return next((told for words, told in known.items() if words in error), error)


def say(language: Language, key: str, **values: object) -> str:
    """Return a sentence with its placeholders filled."""
    return SENTENCES[language][key].format(command=COMMAND, **values)


_MAX_CONCERNS = 4


def describe_concerns(concerns: Sequence[Concern], language: Language) -> str:
    """Name the first few things that were not approved: the file, and what acts in it."""
    sentences, mark = SENTENCES[language], "：" if language == "zh" else ": "
    named = [
        f"{_shown(concern.path)}{mark}{sentences.get(f'config_{concern.what}', concern.what)}"
        for concern in concerns[:_MAX_CONCERNS]
    ]
    if len(concerns) > _MAX_CONCERNS:
        named.append("…")
    return ("；" if language == "zh" else "; ").join(named)


_SHOWN_CHARS = 120


def _shown(path: str) -> str:
    """Return a path, chosen by whoever wrote the folder, so that it can stand in a sentence."""
    plain = "".join(char if char.isprintable() and char != "`" else "?" for char in path)
    return plain if len(plain) <= _SHOWN_CHARS else f"{plain[:_SHOWN_CHARS]}…"


def describe_denial(verdict: Deny, language: Language) -> str:
    """Return the reason for the person; in English it is what the model gets."""
    reason = DENIALS.get(verdict.rule) if language == "zh" else None
    if reason is None:
        return verdict.message
    return reason if verdict.quoted is None else f"{reason}，并说：{verdict.quoted}"
