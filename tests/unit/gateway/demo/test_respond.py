import pytest

from gateway.demo.model import DemoModel
from tests.unit.gateway.demo.dialogue import (
    assistant,
    calls_of,
    read,
    system,
    tool_result,
    tool_use,
    user,
    words_of,
)

MODEL = DemoModel()
ENVIRONMENT = "# Environment\n - Primary working directory: /w\n"


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("list the files", "Bash", {"command": "ls -la"}),
        ("列出 docs 里的文件", "Bash", {"command": "ls -la docs"}),
        ("read notes.md", "Read", {"file_path": "/w/notes.md"}),
        ("read /etc/passwd", "Read", {"file_path": "/etc/passwd"}),
        ("把 你好 写入 a.txt", "Write", {"file_path": "/w/a.txt", "content": "你好"}),
        ('move "a b.txt" to docs', "Bash", {"command": "mv 'a b.txt' docs"}),
        ("copy a.txt to b.txt", "Bash", {"command": "cp a.txt b.txt"}),
        ('delete "x; rm -rf ~"', "Bash", {"command": "rm 'x; rm -rf ~'"}),
        ("delete -rf", "Bash", {"command": "rm ./-rf"}),
        ("delete the folder docs", "Bash", {"command": "rm -r docs"}),
        ("新建文件夹 docs", "Bash", {"command": "mkdir -p docs"}),
        ("run `git status`", "Bash", {"command": "git status"}),
        (
            "find 'a.b' in files",
            "Grep",
            {"pattern": r"a\.b", "path": "/w", "output_mode": "content", "-n": True},
        ),
        ("use the memory-summarize skill", "Skill", {"skill": "memory-summarize"}),
        ("remember that tea is good", "Glob", {"pattern": "memory/notes.md"}),
        ("add tea to a.txt", "Glob", {"pattern": "a.txt"}),
        ("add tea to /w/a.txt", "Read", {"file_path": "/w/a.txt"}),
        ("replace tea with milk in a.txt", "Read", {"file_path": "/w/a.txt"}),
        ("what do you remember", "Glob", {"pattern": "memory/*"}),
        ("记忆系统里有什么？", "Glob", {"pattern": "memory/*"}),
        ("把 你好 写到 文件.txt", "Write", {"file_path": "/w/文件.txt", "content": "你好"}),
        ("读取 文件.txt", "Read", {"file_path": "/w/文件.txt"}),
    ],
)
def test_a_request_becomes_a_real_call(
    prompt: str, name: str, arguments: dict[str, object]
) -> None:
    assert calls_of(MODEL.reply(read(user(prompt), system(ENVIRONMENT)))) == [(name, arguments)]


def test_without_the_usual_tools_another_is_taken_or_its_want_is_told() -> None:
    listing = MODEL.reply(read(user("list the files"), tools=["Glob"]))
    assert calls_of(listing) == [("Glob", {"pattern": "*", "path": "."})]
    reading = MODEL.reply(read(user("read a.txt"), tools=["Bash"]))
    assert calls_of(reading) == [("Bash", {"command": "cat a.txt"})]
    assert "not available" in words_of(MODEL.reply(read(user("delete a.txt"), tools=["Read"])))
    assert "没有提供" in words_of(MODEL.reply(read(user("搜索案例 磁盘"))))


def test_cases_are_searched_with_the_offered_tool() -> None:
    tools = ["mcp__memory_case__memory_case_search"]
    reply = MODEL.reply(read(user("search cases about disk full"), tools=tools))
    assert calls_of(reply) == [(tools[0], {"query": "disk full"})]


def test_the_closing_words_quote_the_result() -> None:
    reply = MODEL.reply(
        read(
            user("read notes.md"),
            assistant(tool_use("t", "Read", file_path="notes.md")),
            user(tool_result("t", "1\tone\n2\ttwo")),
        )
    )
    assert "This is notes.md." in words_of(reply)
    assert "```\none\ntwo\n```" in words_of(reply)


@pytest.mark.parametrize(
    ("prompt", "claim", "confession"),
    [("delete a.txt", "I deleted", "That did not work."), ("删除 a.txt", "已删除", "没有成功。")],
)
def test_a_failure_is_never_reported_as_success(prompt: str, claim: str, confession: str) -> None:
    reply = MODEL.reply(
        read(
            user(prompt),
            assistant(tool_use("t", command="rm a.txt")),
            user(tool_result("t", "blocked by the policy", is_error=True)),
        )
    )
    assert claim not in words_of(reply)
    assert words_of(reply).startswith(confession)
    assert "blocked by the policy" in words_of(reply)


def test_steps_follow_one_another_and_stop_at_the_first_failure() -> None:
    talk = [user("list the files, then read no.txt, then read notes.md")]
    talk += [assistant(tool_use("t1", command="ls -la")), user(tool_result("t1", "notes.md"))]
    assert calls_of(MODEL.reply(read(*talk))) == [("Read", {"file_path": "no.txt"})]
    talk += [
        assistant(tool_use("t2", "Read", file_path="no.txt")),
        user(tool_result("t2", "File does not exist.", is_error=True)),
    ]
    reply = MODEL.reply(read(*talk))
    assert calls_of(reply) == []
    assert "The 1 step(s) after that were not attempted." in words_of(reply)


def test_a_write_that_needs_reading_first_reads_and_writes_again() -> None:
    talk = [user("write hi to a.txt"), assistant(tool_use("t1", "Write", file_path="a.txt"))]
    talk += [user(tool_result("t1", "File has not been read yet.", is_error=True))]
    assert calls_of(MODEL.reply(read(*talk))) == [("Read", {"file_path": "a.txt"})]
    talk += [assistant(tool_use("t2", "Read")), user(tool_result("t2", "1\told"))]
    assert calls_of(MODEL.reply(read(*talk))) == [
        ("Write", {"file_path": "a.txt", "content": "hi"})
    ]
    talk += [assistant(tool_use("t3", "Write", file_path="a.txt")), user(tool_result("t3", "ok"))]
    assert words_of(MODEL.reply(read(*talk))).startswith("I wrote a.txt.")


@pytest.mark.parametrize(
    ("result", "is_error", "name", "arguments"),
    [
        (
            "File does not exist.",
            True,
            "Write",
            {"file_path": "memory/notes.md", "content": "# Notes\n\n- tea is good\n"},
        ),
        (
            "1\t# Notes\n2\t\n3\t- a\n4\t",
            False,
            "Edit",
            {
                "file_path": "memory/notes.md",
                "old_string": "- a",
                "new_string": "- a\n- tea is good",
            },
        ),
        (
            "1\t- a\n2\t- a",
            False,
            "Write",
            {"file_path": "memory/notes.md", "content": "- a\n- a\n- tea is good\n"},
        ),
    ],
)
def test_a_fact_is_added_to_the_notes(
    result: str,
    is_error: bool,  # noqa: FBT001
    name: str,
    arguments: dict[str, object],
) -> None:
    reply = MODEL.reply(
        read(
            user("remember that tea is good"),
            assistant(tool_use("t", "Read", file_path="memory/notes.md")),
            user(tool_result("t", result, is_error=is_error)),
        )
    )
    assert calls_of(reply) == [(name, arguments)]


@pytest.mark.parametrize(
    ("result", "is_error", "expected"),
    [
        ("denied by policy", True, "That did not work."),
        ("1\t- tea is good", False, "says it already"),
    ],
)
def test_notes_that_cannot_or_need_not_be_written_are_left_alone(
    result: str,
    is_error: bool,  # noqa: FBT001
    expected: str,
) -> None:
    reply = MODEL.reply(
        read(
            user("remember that tea is good"),
            assistant(tool_use("t", "Read", file_path="memory/notes.md")),
            user(tool_result("t", result, is_error=is_error)),
        )
    )
    assert calls_of(reply) == []
    assert expected in words_of(reply)


def after_looking(found: str, *more: dict[str, object]) -> list[dict[str, object]]:
    """Give a talk in which the notes were looked for, with what was found."""
    return [
        user("remember that tea is good"),
        assistant(tool_use("look", "Glob", pattern="memory/notes.md")),
        user(tool_result("look", found)),
        *more,
    ]


def test_notes_that_are_not_there_yet_are_written_without_reading_them() -> None:
    """Reading what is missing would be a failure of the turn, which nobody asked for."""
    talk = after_looking("No files found")
    first = {"file_path": "memory/notes.md", "content": "# Notes\n\n- tea is good\n"}
    assert calls_of(MODEL.reply(read(*talk))) == [("Write", first)]
    talk += [assistant(tool_use("w", "Write", **first)), user(tool_result("w", "created"))]
    assert calls_of(MODEL.reply(read(*talk))) == []
    assert words_of(MODEL.reply(read(*talk))).startswith("I wrote it down")


def test_notes_that_are_there_keep_what_they_hold() -> None:
    talk = after_looking("/w/memory/notes.md")
    assert calls_of(MODEL.reply(read(*talk))) == [("Read", {"file_path": "memory/notes.md"})]
    talk += [assistant(tool_use("r", "Read")), user(tool_result("r", "1\t# Notes\n2\t- a"))]
    change = {"old_string": "- a", "new_string": "- a\n- tea is good"}
    assert calls_of(MODEL.reply(read(*talk))) == [
        ("Edit", {"file_path": "memory/notes.md", **change})
    ]
    talk += [assistant(tool_use("e", "Edit", **change)), user(tool_result("e", "updated"))]
    assert calls_of(MODEL.reply(read(*talk))) == []


def test_notes_that_cannot_be_looked_for_are_left_alone() -> None:
    talk = [user("remember that tea is good"), assistant(tool_use("look", "Glob"))]
    talk += [user(tool_result("look", "denied by policy", is_error=True))]
    assert calls_of(MODEL.reply(read(*talk))) == []
    assert words_of(MODEL.reply(read(*talk))).startswith("That did not work.")


@pytest.mark.parametrize(
    ("notes", "written"),
    [
        ("1\t# Notes\n2\t- Tea is good\n3\t- team", "# Notes\n- team\n"),
        ("1\t# Notes on tea\n2\t- milk", None),
    ],
)
def test_notes_that_name_it_are_taken_out(notes: str, written: str | None) -> None:
    talk = [user("forget tea"), assistant(tool_use("look", "Glob"))]
    nothing = MODEL.reply(read(*talk, user(tool_result("look", "No files found"))))
    assert words_of(nothing).startswith("memory/notes.md holds nothing on “tea”.")
    talk += [user(tool_result("look", "memory/notes.md"))]
    assert calls_of(MODEL.reply(read(*talk))) == [("Read", {"file_path": "memory/notes.md"})]
    talk += [assistant(tool_use("r", "Read")), user(tool_result("r", notes))]
    reply = MODEL.reply(read(*talk))
    if written is None:
        assert "holds nothing on “tea”" in words_of(reply)
    else:
        assert calls_of(reply) == [("Write", {"file_path": "memory/notes.md", "content": written})]


def test_a_text_is_replaced_only_in_a_file_that_holds_it() -> None:
    talk = [user("replace tea with milk in a.txt"), assistant(tool_use("r", "Read"))]
    held = [*talk, user(tool_result("r", "1\ttea"))]
    change = {"old_string": "tea", "new_string": "milk", "replace_all": True}
    assert calls_of(MODEL.reply(read(*held))) == [("Edit", {"file_path": "a.txt", **change})]
    other = MODEL.reply(read(*talk, user(tool_result("r", "1\tjuice"))))
    assert calls_of(other) == []
    assert "I changed nothing" in words_of(other)


def test_memory_files_are_listed_and_then_read_together() -> None:
    talk = [user("what do you remember"), assistant(tool_use("t", "Glob", pattern="memory/*"))]
    talk += [user(tool_result("t", "memory/notes.md\nmemory/plan.yaml\nmemory/picture.png"))]
    assert calls_of(MODEL.reply(read(*talk))) == [
        ("Read", {"file_path": "memory/notes.md"}),
        ("Read", {"file_path": "memory/plan.yaml"}),
    ]


def test_memory_shown_with_the_prompt_is_quoted_without_tools() -> None:
    reply = MODEL.reply(
        read(user("你记得什么"), system("UserPromptSubmit hook additional context: 喜欢绿色"))
    )
    assert "喜欢绿色" in words_of(reply)
    assert calls_of(reply) == []


def test_an_empty_memory_folder_is_told_as_no_memory() -> None:
    talk = [user("what do you remember"), assistant(tool_use("t", "Glob", pattern="memory/*"))]
    reply = MODEL.reply(read(*talk, user(tool_result("t", "No files found"))))
    assert calls_of(reply) == []
    assert words_of(reply).startswith("Nothing is noted in memory yet.")


SHOWN = "UserPromptSubmit hook additional context: The message asks about memory. Answer from them."
README = "memory/README.md:\n> # Memory\n> \n> - One file a topic."
FOUND = (
    "Memory, found for this message. It is quoted data.\n"
    "> - [not_a, memory/notes.md, 2026-11-21] # Notes - tea is good\n"
    "> - [not_b, memory/README.md, 2026-11-21] # Memory"
)


@pytest.mark.parametrize(
    ("prompt", "nothing"),
    [
        ("what do you remember?", "Nothing is noted in memory yet."),
        ("记忆系统里有什么？", "记忆里还没有内容。"),
        ("你记得什么", "记忆里还没有内容。"),
    ],
)
def test_memory_itself_is_answered_from_what_came_with_the_message(
    prompt: str, nothing: str
) -> None:
    notes = f"{SHOWN}\n\nmemory/notes.md:\n> - tea is good\n\n{README}"
    told = words_of(MODEL.reply(read(user(prompt), system(notes))))
    assert "> - tea is good" in told
    assert "The message asks about memory" not in told
    assert "One file a topic" not in told
    for no_notes in ("", "memory/notes.md:\n> # Notes\n> \n\n"):
        empty = MODEL.reply(read(user(prompt), system(f"{SHOWN}\n\n{no_notes}{README}")))
        assert calls_of(empty) == []
        assert words_of(empty).startswith(nothing)


def test_what_is_not_understood_is_answered_with_what_memory_found_on_it() -> None:
    context = f"UserPromptSubmit hook additional context: {FOUND}"
    told = words_of(MODEL.reply(read(user("how good is tea?"), system(context))))
    assert "I do not understand that." in told
    assert "- Notes - tea is good (not_a)" in told  # a heading would be one on the page
    assert "not_b" not in told


def test_all_that_is_understood_is_listed_once_and_on_request() -> None:
    assert "replace hello" in words_of(MODEL.reply(read(user("xyzzy"))))
    again = words_of(MODEL.reply(read(user("xyzzy"), assistant("x"), user("xyzzy"))))
    assert "say “help”" in again
    assert "replace hello" not in again


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("thanks!", "You are welcome."),
        ("谢谢你", "不客气。"),
        ("bye", "Goodbye."),
        ("再见", "再见。"),
        ("ok", "All right."),
        ("好的", "好的。"),
        ("my codeword is plum", "Noted for this conversation: your codeword is plum."),
    ],
)
def test_small_talk_is_answered_in_kind(prompt: str, answer: str) -> None:
    reply = MODEL.reply(read(user("hi"), assistant("x"), user(prompt)))
    assert words_of(reply).startswith(answer)


@pytest.mark.parametrize(
    ("told", "asked", "expected"),
    [
        ("my codeword is plum. Keep it.", "what is my codeword?", "Your codeword is plum."),
        ("我的暗号是李子", "我的暗号是什么", "你的暗号是李子。"),
        ("我叫小明。", "我叫什么？", "你的名字是小明。"),
    ],
)
def test_what_was_said_earlier_is_known_and_otherwise_not(
    told: str, asked: str, expected: str
) -> None:
    known = read(user(told), assistant("ok"), user(asked))
    assert words_of(MODEL.reply(known)) == expected
    assert words_of(MODEL.reply(read(user("hi"), assistant("ok"), user(asked)))).startswith(
        ("I do not know", "我不知道")
    )


def test_what_i_said_before_is_quoted() -> None:
    reply = MODEL.reply(
        read(
            user("tea"), assistant("x"), user("milk"), assistant("x"), user("what did I say before")
        )
    )
    assert "“milk”" in words_of(reply)
    assert "“tea”" in words_of(reply)


def test_a_summary_quotes_what_the_tools_returned() -> None:
    reply = MODEL.reply(
        read(
            user("list the files"),
            assistant(tool_use("t", command="ls -la")),
            user(tool_result("t", "notes.md")),
            assistant("there"),
            user("Please summarise the results."),
        )
    )
    assert "notes.md" in words_of(reply)


def test_only_the_first_answer_and_help_say_that_they_are_scripted() -> None:
    first = words_of(MODEL.reply(read(user("count to 3"))))
    second = words_of(MODEL.reply(read(user("hi"), assistant("x"), user("count to 3"))))
    assert "scripted" in first
    assert second == "1, 2, 3"
    assert "ANTHROPIC_API_KEY" in words_of(MODEL.reply(read(user("你好"))))
    assert "do not understand" in words_of(MODEL.reply(read(user("why is the sky blue?"))))


def test_an_aside_is_admitted_not_to_have_been_acted_upon() -> None:
    reply = MODEL.reply(
        read(
            user("list the files"),
            assistant(tool_use("t", command="ls -la")),
            user(tool_result("t", "notes.md")),
            system(
                "The user sent a new message while you were working:\nhurry\n\nThis is how Claude Code"
            ),
        )
    )
    assert "“hurry”" in words_of(reply)


def test_a_compaction_is_answered_with_a_summary() -> None:
    reply = MODEL.reply(
        read(
            user("my codeword is plum"),
            assistant("ok"),
            user("Your task is to create a detailed summary of the conversation so far."),
        )
    )
    assert "my codeword is plum" in words_of(reply)
