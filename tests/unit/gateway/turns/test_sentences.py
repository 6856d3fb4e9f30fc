"""Sentences, sanitized text, and typed commands."""

import threading
from functools import partial
from pathlib import Path
from string import Formatter
from typing import get_args

import anyio
import pytest

from gateway.conversations.model import starts_afresh
from gateway.files.picture import PictureFault
from gateway.observability.paths import HIDDEN, PathView, make_path_view_blocking
from gateway.turns import sentences
from gateway.turns.evidence import StopReason
from gateway.turns.reply import Cause
from gateway.turns.sanitizer import OUTPUT_CHARS, SUMMARY_CHARS, OutputSanitizer, off_loop
from gateway.turns.sentences import PROMPTS, SENTENCES, describe_concerns, describe_end, language_of
from gateway.turns.typed_commands import (
    CompactRequest,
    GatewayAnswer,
    SkillRequest,
    read_command,
)
from policies.configuration import Concern
from policies.secrets import mask_secrets

MADE_OF_PARTS = {
    *(
        f"tool_line_{item}"
        for item in ("ok", "failed", "denied", "interrupted", "not_begun", "unknown")
    ),
    *(f"stopped_{item}" for item in ("doom_loop", "max_turns", "timeout", "budget")),
    *(f"api_{item}" for item in (400, 401, 403, 404, 429)),
    *(f"config_{item}" for item in ("link", "unreadable", "too_large", "too_many")),
    *(f"config_{item}" for item in ("syntax", "unknown_kind")),
    *(f"what_{item}" for item in (429, 529, "not_messages", "relay_lost")),
    *(f"picture_{item}" for item in ("large", "many", *get_args(PictureFault))),
    *("hours", "minutes", "seconds", "kept_verbatim", "nothing_forgotten"),
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


def test_what_ended_a_turn_names_the_person_only_if_the_person_ended_it() -> None:
    for stop_reason in {*get_args(StopReason)} - {"end_turn", "refusal"}:
        for cause in (None, *get_args(Cause)):
            told = describe_end(stop_reason, cause)
            assert told.partition(" The person did not")[0].endswith("."), (stop_reason, cause)
            by_person = stop_reason == "user_interrupt"
            assert ("The person did not interrupt it" in told) != by_person, told
    assert describe_end("user_interrupt", None) == "The person stopped it."
    assert describe_end("user_interrupt", "left").startswith("The person left")


def test_chinese_sentences_are_chinese_and_english_ones_are_not() -> None:
    for key in SENTENCES["en"]:
        assert any("\u4e00" <= item <= "\u9fff" for item in SENTENCES["zh"][key]), key
        assert not any("\u4e00" <= each_item <= "\u9fff" for each_item in SENTENCES["en"][key]), key


REFUSED = "connection refused by peer\n" * 30
ENGLISH = [
    *("list the files", "", "42 !?", "bonjour"),
    "please translate 你好 into English for the whole team, thank you very much",
    f"What does this say?\n```\n{'连接被拒绝' * 30}\n```\nThank you.",
]
CHINESE = [
    *("列出文件", "请列出 memory/ 下的文件 a.txt"),
    f"请帮我看看这是什么错误，谢谢。\n```\n{REFUSED}```",
    f"怎么回事？\n~~~log\n{REFUSED}",
    f"请帮我看看这个报错\n{REFUSED}",
]


def test_the_language_is_the_messages() -> None:
    assert {language_of(message) for message in ENGLISH} == {"en"}
    assert {language_of(message) for message in CHINESE} == {"zh"}


def test_a_message_without_words_is_in_the_language_of_its_conversation() -> None:
    for message in ("/compact", "／compact", "42 !?", ""):
        assert language_of(message, "列出文件") == "zh"
        assert language_of(message, "list the files") == "en"
    assert language_of("/compact 保留要点", "list the files") == "zh"
    assert language_of("list the files", "列出文件") == "en"


def test_what_was_not_approved_is_named_plainly_in_the_persons_language() -> None:
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
    path = ".claude/\n\u202e`x`" + "y" * 200
    told = describe_concerns([Concern(path=path, what="unknown_kind")], "en")
    assert told.isprintable()
    assert "`" not in told
    assert len(told) < 160


KEY = "sk-ant-api03-abcdefghijklmnop0123456789"
PATHS = PathView(["/srv/app/ws"], ["/srv/app", "/var/candor data"])
SANITIZER = OutputSanitizer(PATHS, partial(mask_secrets, known=("known-secret-4711",)))


SHOWN = {
    "/srv/app/ws/a.txt": "a.txt",
    "rm '/srv/app/ws/a b.txt'": "rm 'a b.txt'",
    "/srv/app/ws": ".",
    "/srv/app/ws/": ".",
    "look into /srv/app/ws.": "look into the workspace.",
    "'/srv/app/ws/'": "'.'",
    "file:///srv/app/ws/a.txt": "file://a.txt",
    "/srv/app/ws/.env and /srv/app/ws/记忆.md": ".env and 记忆.md",
    "/srv/app/ws2/a.txt": HIDDEN,
    "/srv/app/ws-old, gone": f"{HIDDEN}, gone",
    "saved to: /srv/app/.candor/记录/x.txt\nText": f"saved to: {HIDDEN}\nText",
    "'/var/candor data/a'": f"'{HIDDEN}'",
    "in /srv/app.": f"in {HIDDEN}.",
    **{text: text for text in ("/srv/apple and /mnt/srv/app2", "nothing here", "")},
}


def test_paths_are_told_from_the_workspace_and_the_servers_not_at_all() -> None:
    assert {text: SANITIZER.text(text) for text in SHOWN} == SHOWN


def test_a_workspace_behind_a_link_is_known_by_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    paths = make_path_view_blocking(tmp_path / "link")
    assert paths.shown(f"{tmp_path}/link/a {tmp_path}/real/b") == "a b"


def test_secrets_are_masked_and_surrogates_replaced() -> None:
    assert "known-secret-4711" not in SANITIZER.text("it is known-secret-4711.")
    assert KEY not in SANITIZER.text(f"key {KEY}")
    assert SANITIZER.text("a\ud800b") == "a\ufffdb"


def test_a_secret_at_the_cut_is_masked_before_the_text_is_cut() -> None:
    for before in range(OUTPUT_CHARS // 2 - 30, OUTPUT_CHARS // 2 + 4, 3):
        shown = SANITIZER.clipped(f"{'x' * before} known-secret-4711 {'y ' * OUTPUT_CHARS}")
        assert "known-" not in shown, before
        assert "characters left out" in shown


SUMMARIES: list[tuple[dict[str, object], str]] = [
    ({"command": "mv a.txt b.txt", "description": "Move"}, "mv a.txt b.txt"),
    ({"file_path": "/srv/app/ws/notes/a.md"}, "notes/a.md"),
    ({"pattern": "*.md", "path": "/srv/app/ws"}, "*.md"),
    ({"command": "ls\n  -l"}, "ls -l"),
    ({"command": "  ", "file_path": "a"}, "a"),
    ({"todos": [{"content": "写"}]}, '{"todos":[{"content":"写"}]}'),
    ({}, ""),
    ({"command": "x" * 900}, "x" * (SUMMARY_CHARS - 1) + "…"),
]


def test_a_call_is_told_in_one_line() -> None:
    for tool_input, summary in SUMMARIES:
        assert SANITIZER.summary(tool_input) == summary


def test_a_tools_input_is_shown_without_secrets_server_paths_and_endless_texts() -> None:
    shown = SANITIZER.input(
        {
            "file_path": "/srv/app/ws/a.txt",
            "edits": [{"new": f"key={KEY}", "at": {"path": "/srv/app/ws/b"}}],
            "content": "z" * 50_000,
            "count": 3,
            "flag": True,
        }
    )
    assert shown["file_path"] == "a.txt"
    assert KEY not in str(shown)
    assert shown["edits"][0]["at"] == {"path": "b"}
    assert len(shown["content"]) < OUTPUT_CHARS + 100
    assert (shown["count"], shown["flag"]) == (3, True)


@pytest.mark.anyio
async def test_a_long_text_is_masked_in_a_worker_thread_and_a_short_one_at_once() -> None:
    loop_thread = threading.get_ident()

    def where(_: object) -> int:
        return threading.get_ident()

    assert await off_loop(where, "短 short") == loop_thread
    assert await off_loop(where, "x" * 2_000) != loop_thread
    assert await off_loop(where, {"edits": [{"new": "x" * 500, "x" * 600: 1}]}) != loop_thread
    assert await off_loop(where, {"items": [0] * 2_000}) != loop_thread


async def test_two_threads_at_most_compute_so_that_the_loop_has_the_interpreter() -> None:
    threads: set[int] = set()
    both = threading.Barrier(2)

    def note(_: object) -> None:
        threads.add(threading.get_ident())
        both.wait(10)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(off_loop, note, "x" * 2_000)
    assert len(threads) == 2


SKILLS = ("memory-capture", "deploy_it")


ASKED: dict[str, SkillRequest | CompactRequest | GatewayAnswer | None] = {
    **dict.fromkeys(("/memory-capture", " /memory-capture\n"), SkillRequest("memory-capture", "")),
    "/memory-capture the\nport  is 1": SkillRequest("memory-capture", "the\nport  is 1"),
    "/deploy_it 到测试环境": SkillRequest("deploy_it", "到测试环境"),
    **dict.fromkeys(("/clear", "／clear"), GatewayAnswer("command_clear", "clear")),
    "/CLEAR": GatewayAnswer("command_clear", "CLEAR"),
    "/compact": CompactRequest(""),
    "/compact keep the names": CompactRequest("keep the names"),
    "/Memory-Capture": GatewayAnswer("command_unknown", "Memory-Capture"),
    "/nonsense": GatewayAnswer("command_unknown", "nonsense"),
    **dict.fromkeys(("/etc/hosts is wrong", "/etc/hosts", "/tmp is full", "/clear the table")),
    **dict.fromkeys(("use /memory-capture", "//memory-capture", "/", "/ clear", "/你好", "")),
}


def test_a_command_is_one_word_after_a_slash() -> None:
    for message, asked in ASKED.items():
        assert read_command(message, SKILLS) == asked, message
        assert starts_afresh(message) is (message.lower() in {"/clear", "／clear"})


NEAR: dict[str, str | None] = {
    "/memory-captur the port": "memory-capture",
    "/Memory-Capture the port": "memory-capture",
    "／deploy_itt 到测试环境": "deploy_it",
    "/compct keep the names": "compact",
    **dict.fromkeys(("/etc/hosts is wrong", "/nonexistent foo", "/plane is late", "/tmp is full")),
    **dict.fromkeys(("/clear the table", "/cleared the table", "/memory-captur/x is gone")),
}


def test_a_misspelt_command_with_words_after_it_is_answered_with_the_one_that_was_meant() -> None:
    for message, meant in NEAR.items():
        asked = read_command(message, SKILLS)
        name = message.split()[0][1:]
        assert asked == (meant and GatewayAnswer("command_near", name, meant)), message


def test_a_summary_shows_no_value_below_a_secret_name() -> None:
    tool_input = {"user": "ann", "password": {"value": ["letmein"]}}
    assert SANITIZER.summary(tool_input) == '{"user":"ann","password":{"value":["…[masked]"]}}'
