from pathlib import Path
from string import Formatter

import pytest

from gateway.turns import sentences
from gateway.turns.sentences import (
    PROMPTS,
    SENTENCES,
    describe_concerns,
    language_of,
)
from policies.configuration import Concern

MADE_OF_PARTS = {
    *(f"tool_line_{item}" for item in ("ok", "failed", "denied", "interrupted", "unknown")),
    *(f"stopped_{item}" for item in ("doom_loop", "max_turns", "timeout", "budget")),
    *(f"api_{item}" for item in (400, 401, 403, 404, 429)),
    *(f"config_{item}" for item in ("link", "unreadable", "too_large", "too_many")),
    *(f"config_{item}" for item in ("syntax", "unknown_kind")),
    "what_429",
    "what_529",
}
"""Keys that the code puts together."""


def places(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def test_both_languages_have_the_same_sentences_with_the_same_places_and_use_them_all() -> None:
    assert SENTENCES["en"].keys() == SENTENCES["zh"].keys()
    folder = Path(sentences.__file__).parent
    files = [file for file in folder.glob("*.py") if file.name != "sentences.py"]
    code = "".join(file.read_text(encoding="utf-8") for file in files)
    for key, sentence in SENTENCES["en"].items():
        assert places(sentence) == places(SENTENCES["zh"][key]), key
        assert key in MADE_OF_PARTS or f'"{key}"' in code, key
    assert PROMPTS["en"].keys() == PROMPTS["zh"].keys()


def test_chinese_sentences_are_chinese_and_english_ones_are_not() -> None:
    for key in SENTENCES["en"]:
        assert any("\u4e00" <= item <= "\u9fff" for item in SENTENCES["zh"][key]), key
        assert not any("\u4e00" <= each_item <= "\u9fff" for each_item in SENTENCES["en"][key]), key


@pytest.mark.parametrize(
    ("message", "language"),
    [
        ("list the files", "en"),
        ("", "en"),
        ("42 !?", "en"),
        ("列出文件", "zh"),
        ("请列出 memory/ 下的文件 a.txt", "zh"),
        ("please translate 你好 into English for the whole team, thank you very much", "en"),
        ("bonjour", "en"),
        (
            "请帮我看看这是什么错误，谢谢。\n```\n" + "connection refused by peer\n" * 30 + "```",
            "zh",
        ),
        ("怎么回事？\n~~~log\n" + "connection refused by peer\n" * 30, "zh"),
        ("What does this say?\n```\n" + "连接被拒绝\n" * 30 + "```\nThank you.", "en"),
    ],
)
def test_the_language_is_the_messages(message: str, language: str) -> None:
    assert language_of(message) == language


def test_what_was_not_approved_is_named_in_the_persons_language() -> None:
    concerns = [
        Concern(path=".claude/settings.json", what="hooks.Stop, env.PATH"),
        Concern(path=".mcp.json", what="link"),
    ]
    told = describe_concerns(concerns, "en")
    assert told == ".claude/settings.json: hooks.Stop, env.PATH; .mcp.json: a link"
    told = describe_concerns(concerns, "zh")
    assert told == ".claude/settings.json：hooks.Stop, env.PATH；.mcp.json：链接"
    many = describe_concerns(concerns * 3, "en")
    assert many.count(";") == 4
    assert many.endswith("; …")


def test_a_name_that_somebody_hostile_chose_is_shown_plainly() -> None:
    path = ".claude/\n\u202e`x`" + "y" * 200
    told = describe_concerns([Concern(path=path, what="unknown_kind")], "en")
    assert told.isprintable()
    assert "`" not in told
    assert len(told) < 160
