"""The demo model: reading the conversation, plain requests, and answers."""

import pytest

from gateway.demo.respond import recognise
from gateway.demo.server import DemoModel
from tests.support.tables import read_pairs
from tests.unit.gateway.demo.dialogue import (
    EMPTY_NOTICE,
    HOOK,
    assistant,
    called,
    calls_of,
    read,
    system,
    tool_result,
    tool_use,
    user,
    words_of,
)

MODEL = DemoModel()
CAPTURE = [user("use the memory-capture skill: tea is good"), *called("Skill", "launched")]
"""The one request that writes into the notes, which all people of the workspace read."""


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("list the files", "Bash", {"command": "ls -la"}),
        ("列出 docs 里的文件", "Bash", {"command": "ls -la docs"}),
        ("read notes.md", "Read", {"file_path": "notes.md"}),
        ("把 你好 写入 a.txt", "Write", {"file_path": "a.txt", "content": "你好"}),
        ('move "a b.txt" to docs', "Bash", {"command": "mv 'a b.txt' docs"}),
        ('delete "x; rm -rf ~"', "Bash", {"command": "rm 'x; rm -rf ~'"}),
        ("delete -rf", "Bash", {"command": "rm ./-rf"}),
        ("what do you remember", "Glob", {"pattern": "memory/*"}),
        ("search cases for X", "mcp__c__memory_case_search", {"query": "X"}),
        ("use the memory-summarize skill", "Skill", {"skill": "memory-summarize"}),
    ],
)
def test_a_request_becomes_a_real_call(
    prompt: str, name: str, arguments: dict[str, object]
) -> None:
    conversation = read(user(prompt), tools=["Bash", "mcp__c__memory_case_search"])
    assert calls_of(MODEL.reply(conversation)) == [(name, arguments)]


@pytest.mark.parametrize(
    ("prompt", "claim", "confession"),
    [("delete a.txt", "I deleted", "That did not work."), ("删除 a.txt", "已删除", "没有成功。")],
)
def test_a_failure_is_never_reported_as_success(prompt: str, claim: str, confession: str) -> None:
    failed = called("Bash", "blocked by the policy", is_error=True)
    reply = words_of(MODEL.reply(read(user(prompt), *failed)))
    assert reply.startswith(confession)
    assert claim not in reply
    assert "blocked by the policy" in reply


def test_a_denied_call_is_quoted_without_the_agent_programs_prefix() -> None:
    denied = called("Read", "PreToolUse:Read hook error: a.txt is outside.", is_error=True)
    reply = words_of(MODEL.reply(read(user("read a.txt"), *denied)))
    assert "\na.txt is outside.\n" in reply


REMINDER = "<system-reminder>Warning: the file\nis old.</system-reminder>"
STATE = " (file state is current in your context — no need to Read it back)"
OWN = "<system-reminder>mine</system-reminder>"
OWN_TAG = "1\t<system-reminder>\n2\tmine</system-reminder>"


@pytest.mark.parametrize(
    ("prompt", "name", "result", "quoted"),
    [
        ("write x to a.txt", "Write", f"Created: a.txt{STATE}", "```\nCreated: a.txt\n```"),
        ("把 x 写入 a.txt", "Write", f"Updated: a.txt{STATE}", "```\nUpdated: a.txt\n```"),
        ("read a.txt", "Read", f"{REMINDER}\n1\told", "```\nold\n```"),
        ("read a.txt", "Read", f"1\told\n\n{REMINDER}\n{REMINDER}\n", "```\nold\n```"),
        ("list the files", "Bash", f"a.txt\n\n{REMINDER}", "```\na.txt\n```"),
        ("read a.txt", "Read", REMINDER, "`Read` returned nothing."),
        ("读取 a.txt", "Read", REMINDER, "`Read` 没有返回内容。"),
        # the words of a file or a program stay
        ("list the files", "Bash", f"a\n{OWN}\nb", f"```\na\n{OWN}\nb\n```"),
        ("read a.txt", "Read", f"1\ta{STATE}", f"```\na{STATE}\n```"),
        ("read a.txt", "Read", OWN_TAG, "```\n<system-reminder>\nmine</system-reminder>\n```"),
    ],
)
def test_what_the_agent_program_put_into_a_result_is_not_quoted(
    prompt: str, name: str, result: str, quoted: str
) -> None:
    reply = words_of(MODEL.reply(read(user(prompt), *called(name, result))))
    assert quoted in reply
    assert "is old" not in reply
    if STATE not in quoted:
        assert STATE not in reply


def test_the_result_of_an_allowed_call_is_told_without_it_too() -> None:
    prompt = '```tool-call\n{"name": "Write", "input": {"file_path": "a.txt"}}\n```'
    talk = [user(prompt), *called("Write", f"Created: a.txt{STATE}\n\n{REMINDER}")]
    assert words_of(MODEL.reply(read(*talk))) == "Write: Created: a.txt"


MEMORY = [f"mcp__memory__memory_{name}" for name in ("search", "remember", "forget")]
LOCKER = '{"items": [{"id": "fac_1", "kind": "fact", "title": "my locker number is 12"}]}'
ZH_LOCKER = '{"items": [{"id": "fac_1", "kind": "fact", "title": "我的柜子号是12"}]}'
OTHER = '{"items": [{"id": "fac_2", "kind": "fact", "title": "the gate is shut on Sundays"}]}'
FORGET = "please forget my locker number"


@pytest.mark.parametrize(
    ("prompt", "found", "call"),
    [
        ("remember that tea is good", OTHER, ("remember", "tea is good", [])),
        ("my locker number is 14", LOCKER, ("remember", "my locker number is 14", ["fac_1"])),
        ("我的柜子号是14", ZH_LOCKER, ("remember", "我的柜子号是14", ["fac_1"])),
        ("no, my locker number is 14", LOCKER, ("remember", "my locker number is 14", ["fac_1"])),
        (FORGET, LOCKER, ("forget", FORGET, ["fac_1"])),
        ("把柜子号忘掉", ZH_LOCKER, ("forget", "把柜子号忘掉", ["fac_1"])),
        (FORGET, OTHER, None),
    ],
)
def test_what_is_to_be_kept_or_forgotten_is_searched_first(
    prompt: str, found: str, call: tuple[str, str, list[str]] | None
) -> None:
    assert calls_of(MODEL.reply(read(user(prompt), tools=MEMORY)))[0][0] == MEMORY[0]
    talk = [user(prompt), *called(MEMORY[0], found)]
    reply = MODEL.reply(read(*talk, tools=MEMORY))
    if call is None:
        assert "nothing in memory" in words_of(reply)
        return
    ((name, arguments),) = calls_of(reply)
    tool, words, ids = call
    assert name == f"mcp__memory__memory_{tool}"
    assert arguments["evidence"] == words
    assert arguments["replaces" if tool == "remember" else "ids"] == ids


def test_what_is_remembered_is_asked_of_memory() -> None:
    found = '{"items": [{"kind": "fact", "title": "likes tea", "date": "2026-11-28"}]}'
    for answer, said in (
        (found, "- likes tea (fact, 2026-11-28)"),
        ('{"items": []}', "nothing yet"),
    ):
        talk = [user("what do you remember?"), *called(MEMORY[0], answer)]
        assert calls_of(MODEL.reply(read(talk[0], tools=MEMORY))) == [(MEMORY[0], {})]
        assert said in words_of(MODEL.reply(read(*talk, tools=MEMORY)))


@pytest.mark.parametrize("prompt", [FORGET, "不对，是14号"])
def test_without_the_tools_nothing_is_claimed(prompt: str) -> None:
    said = words_of(MODEL.reply(read(user(prompt))))
    assert said.startswith(("This conversation has no tool", "这次对话没有"))


def test_a_write_that_needs_reading_first_reads_and_writes_again() -> None:
    talk = [
        user("write hi to a.txt"),
        *called("Write", "File has not been read yet.", is_error=True),
    ]
    assert calls_of(MODEL.reply(read(*talk))) == [("Read", {"file_path": "a.txt"})]
    talk += called("Read", "1\told")
    write = ("Write", {"file_path": "a.txt", "content": "hi"})
    assert calls_of(MODEL.reply(read(*talk))) == [write]
    talk += called("Write", "ok")
    assert words_of(MODEL.reply(read(*talk))).startswith("I wrote a.txt.")


def test_notes_are_begun_where_there_are_none_and_keep_what_they_hold() -> None:
    """Reading a missing file would be a failed call of the turn."""
    talk = [*CAPTURE, *called("Glob", "No files found")]
    first = {"file_path": "memory/notes.md", "content": "# Notes\n\n- tea is good\n"}
    assert calls_of(MODEL.reply(read(*talk))) == [("Write", first)]
    talk += called("Write", "created")
    assert words_of(MODEL.reply(read(*talk))).startswith("I followed the skill")
    talk = [*CAPTURE, *called("Glob", "/w/memory/notes.md")]
    assert calls_of(MODEL.reply(read(*talk))) == [("Read", {"file_path": "memory/notes.md"})]
    talk += called("Read", "1\t# Notes\n2\t- a\n3\t")
    [(_, arguments)] = calls_of(MODEL.reply(read(*talk)))
    assert arguments["content"] == "# Notes\n- a\n- tea is good\n"


@pytest.mark.parametrize("steps", [[], called("Glob", "memory/notes.md")])
def test_notes_that_cannot_be_read_are_left_alone(steps: list[dict[str, object]]) -> None:
    reply = MODEL.reply(read(*CAPTURE, *steps, *called("Read", "denied", is_error=True)))
    assert calls_of(reply) == []
    assert words_of(reply).startswith("That did not work.")


@pytest.mark.parametrize(
    ("prompt", "is_off", "is_not_kept"),
    [
        (
            "remember that tea is good",
            "Memory is switched off for this conversation. I kept nothing.",
            "Keeping facts is switched off on this server. I kept nothing.",
        ),
        (
            "记住：他什么都不吃",
            "这次对话的记忆已关闭，我什么也没有保存。",
            "这台服务器已关闭保存事实的功能，我什么也没有保存。",
        ),
    ],
)
def test_without_memory_a_request_to_remember_calls_no_tool_and_says_so(
    prompt: str, is_off: str, is_not_kept: str
) -> None:
    for tools, said in (
        (["Bash", "Read", "Write", "Glob"], is_off),
        ([*MEMORY[:1], "Write"], is_not_kept),
    ):
        reply = MODEL.reply(read(user(prompt), tools=tools))
        assert calls_of(reply) == []
        assert words_of(reply).startswith(said)


def test_memory_shown_with_the_prompt_is_told_without_the_folders_own_text() -> None:
    shown = f"{HOOK}The message asks about memory. Answer from them."
    readme = "memory/README.md:\n> # Memory\n> \n> - One file a topic."
    told = words_of(
        MODEL.reply(
            read(
                user("what do you remember?"),
                system(f"{shown}\n\nmemory/notes.md:\n> - tea is good\n\n{readme}"),
            )
        )
    )
    assert "> - tea is good" in told
    assert "The message asks" not in told
    assert "One file a topic" not in told
    for notes in ("", "memory/notes.md:\n> # Notes\n> \n\n"):
        empty = MODEL.reply(read(user("你记得什么"), system(f"{shown}\n\n{notes}{readme}")))
        assert calls_of(empty) == []
        assert words_of(empty).startswith("记忆里还没有内容。")


def test_what_is_not_understood_is_answered_with_help_and_what_memory_found() -> None:
    found = "Memory, found for this message.\n> - [a, memory/notes.md, 2026-11-21] tea is good"
    told = words_of(MODEL.reply(read(user("how good is tea?"), system(HOOK + found))))
    assert told.startswith("I am the demo model, `candor-demo`")
    assert "tea is good" in told
    assert words_of(MODEL.reply(read(user("你好")))).startswith("我是演示模型 `candor-demo`")


@pytest.mark.parametrize(
    ("told", "asked", "expected"),
    [
        ("my codeword is plum. Keep it.", "what is my codeword?", "Your codeword is plum."),
        ("我的暗号是李子", "我的暗号是什么", "你的暗号是李子。"),
    ],
)
def test_what_was_said_earlier_is_known_and_otherwise_not(
    told: str, asked: str, expected: str
) -> None:
    known = read(user(told), assistant("ok"), user(asked))
    assert words_of(MODEL.reply(known)) == expected
    unknown = read(user("hi"), assistant("ok"), user(asked))
    assert words_of(MODEL.reply(unknown)).startswith(("I do not know", "我不知道"))


BOAT_TOLD, BOAT_ASKED, BOAT_KNOWN = "记住：我的船是绿色的", "我的船是什么颜色？", "你的船是绿色的。"
NAME_TOLD, NAME_ASKED, NAME_KNOWN = (
    "remember that my name is Ann",
    "my name is what?",
    "Your name is Ann.",
)


@pytest.mark.parametrize(
    ("told", "asked", "known"),
    [
        (BOAT_TOLD, BOAT_ASKED, BOAT_KNOWN),
        ("记住：我的自行车是红色的", "我的自行车是哪种颜色", "你的自行车是红色的。"),
        (NAME_TOLD, NAME_ASKED, NAME_KNOWN),
        ("no, my name is Ann", NAME_ASKED, NAME_KNOWN),
    ],
)
def test_a_question_in_the_form_of_a_statement_is_answered_and_not_kept(
    told: str, asked: str, known: str
) -> None:
    reply = MODEL.reply(read(user(told), assistant("ok"), user(asked), tools=MEMORY))
    assert (calls_of(reply), words_of(reply)) == ([], known)


@pytest.mark.parametrize(
    ("fact", "asked", "known"),
    [("我的船是绿色的", BOAT_ASKED, BOAT_KNOWN), ("my name is Ann", NAME_ASKED, NAME_KNOWN)],
)
def test_such_a_question_is_answered_from_memory(fact: str, asked: str, known: str) -> None:
    shown = system(f"{HOOK}memory/facts.md:\n> - [fac_1, fact, 2026-11-28] {fact}")
    reply = MODEL.reply(read(user(asked), shown, tools=MEMORY))
    assert calls_of(reply) == []
    assert words_of(reply).startswith(known)


@pytest.mark.parametrize(
    ("told", "forget", "asked", "unknown"),
    [
        (BOAT_TOLD, "忘掉我的船", BOAT_ASKED, "我不知道"),
        (NAME_TOLD, "please forget my name", NAME_ASKED, "I do not know"),
    ],
)
def test_what_was_to_be_forgotten_is_not_told_from_earlier_messages(
    told: str, forget: str, asked: str, unknown: str
) -> None:
    talk = [user(told), assistant("ok"), user(forget), assistant("ok")]
    assert words_of(MODEL.reply(read(*talk, user(asked)))).startswith(unknown)
    again = [user(told), assistant("ok")]
    assert not words_of(MODEL.reply(read(*talk, *again, user(asked)))).startswith(unknown)


def test_what_memory_shows_is_an_answer_or_stands_beside_it() -> None:
    memory = system(f"{HOOK}memory/notes.md:\n> - my locker is number 12\n> - 我的车牌是粤B1")
    for asked, expected in (
        ("what is my locker?", "Your locker is number 12."),
        ("我的车牌是什么？", "你的车牌是粤B1。"),
        ("what is my locker number?", "> - my locker is number 12"),
    ):
        assert expected in words_of(MODEL.reply(read(user(asked), memory)))


CONTINUED = "This session is being continued from a previous conversation that ran out of context."
LIMIT = "Output token limit hit. Resume directly — no apology."
AFTER_TOOL = [user("go"), assistant(tool_use("t1")), user(tool_result("t1", "ok"), EMPTY_NOTICE)]
LOADED = (
    "Base directory for this skill: /w/.claude/skills/heron\n\nLook at the water.",
    "Skill /heron is already loaded above; instructions unchanged.",
)
LAST: list[tuple[list[dict[str, object]], str, int]] = [
    # an empty answer is counted by the notice that it caused, one that left a message is not counted twice
    ([user("say nothing\n", EMPTY_NOTICE)], "say nothing", 1),
    (AFTER_TOOL, "go", 2),
    ([user("go on"), assistant("cut"), user(LIMIT)], "go on", 1),
    # neither what comes before a compaction nor the text of a skill is a prompt
    (
        [
            *(user(CONTINUED), assistant("kept")),
            user("<local-command-stdout>Compacted </local-command-stdout>\n", "next"),
        ],
        "next",
        0,
    ),
    *(
        (
            [user("go"), assistant(tool_use("t1", "Skill")), user(tool_result("t1", "ok"), text)],
            "go",
            1,
        )
        for text in LOADED
    ),
]


def test_what_the_agent_program_adds_to_a_conversation_is_no_prompt() -> None:
    for messages, prompt, answered_count in LAST:
        conversation = read(*messages)
        assert [each.text for each in conversation.prompts] == [prompt]
        assert conversation.last.answered_count == answered_count, prompt


UNDERSTOOD: dict[str, tuple[str, str, dict[str, str]]] = read_pairs("plain-requests")
NOT_UNDERSTOOD = {
    "why is the sky blue?": "en",
    "The agent read notes.md yesterday": "en",
    "create a folder docs": "en",
    "no, what did I say?": "en",
    "remember my boat?": "en",
    "其实谁有钥匙？": "zh",
    "hello": "en",
    "天气怎么样": "zh",
    "你好": "zh",
}


def test_plain_requests_are_recognised_in_both_languages() -> None:
    found = {prompt: recognise(prompt) for prompt in UNDERSTOOD}
    parts = {prompt: (one.kind, one.language, one.fields) for prompt, one in found.items()}
    assert parts == UNDERSTOOD


def test_everything_else_asks_for_help() -> None:
    found = {prompt: recognise(prompt) for prompt in NOT_UNDERSTOOD}
    assert {item.kind for item in found.values()} == {"help"}
    assert {prompt: one.language for prompt, one in found.items()} == NOT_UNDERSTOOD
    assert recognise(f"read {'x' * 5000}").kind == "help"
