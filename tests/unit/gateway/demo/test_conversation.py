import pytest

from gateway.demo.conversation import read_conversation
from tests.unit.gateway.demo.dialogue import (
    EMPTY_NOTICE,
    assistant,
    read,
    reminder,
    system,
    text,
    tool_result,
    tool_use,
    user,
)

HOOK = "UserPromptSubmit hook additional context: "


def test_reminders_around_the_prompt_are_not_the_prompt() -> None:
    conversation = read(
        user(reminder("Attribution for git"), reminder(f"{HOOK}likes green"), "list the files"),
        assistant(tool_use("t1")),
        user(
            tool_result("t1", "notes.md"), reminder("PostToolUse:Bash hook additional context: x")
        ),
    )
    assert [prompt.text for prompt in conversation.prompts] == ["list the files"]
    assert conversation.memory == "likes green"


def test_system_messages_after_the_prompt_carry_the_hooks_context() -> None:
    """The agent sends hook context this way to models it does not know, `candor-demo` among them."""
    conversation = read(
        user("hello"),
        system(
            f"# Environment\n - Primary working directory: /w\n\n{HOOK}likes green\n\nToday's date is X."
        ),
    )
    assert conversation.last.text == "hello"
    assert conversation.memory == "likes green"
    assert conversation.cwd == "/w"


def test_only_the_last_prompts_context_counts() -> None:
    conversation = read(
        user("one"), system(f"{HOOK}old"), assistant("a"), user("two"), system(f"{HOOK}new")
    )
    assert conversation.memory == "new"


def test_context_that_comes_with_a_tool_result_is_not_the_prompts() -> None:
    conversation = read(
        user("one"),
        system(f"{HOOK}memory"),
        assistant(tool_use("t1")),
        user(tool_result("t1", "ok")),
        system("PostToolUse:Bash hook additional context: later"),
    )
    assert conversation.context == (f"{HOOK}memory",)


def test_an_empty_answer_is_counted_by_the_notice_it_caused() -> None:
    conversation = read(user("say nothing\n", EMPTY_NOTICE))
    assert conversation.last.text == "say nothing"
    assert conversation.last.answered_count == 1


def test_a_notice_after_an_answer_that_left_a_message_is_not_counted_twice() -> None:
    conversation = read(
        user("go on"),
        assistant("cut"),
        user("Output token limit hit. Resume directly — no apology."),
    )
    assert conversation.last.text == "go on"
    assert conversation.last.answered_count == 1


def test_an_empty_answer_after_tools_is_counted_too() -> None:
    conversation = read(
        user("go"), assistant(tool_use("t1")), user(tool_result("t1", "ok"), EMPTY_NOTICE)
    )
    assert conversation.last.answered_count == 2


def test_parallel_calls_are_one_answer_and_one_round() -> None:
    conversation = read(
        user("go"),
        assistant(tool_use("t1", command="a"), tool_use("t2", "Read", file_path="b")),
        user(tool_result("t1", "A"), tool_result("t2", "B", is_error=True)),
    )
    assert conversation.last.answered_count == 1
    [outcomes] = conversation.last.rounds
    assert [(o.name, o.text, o.is_error) for o in outcomes] == [
        ("Bash", "A", False),
        ("Read", "B", True),
    ]


def test_adjacent_assistant_messages_are_one_answer() -> None:
    conversation = read(user("go"), assistant("words"), assistant(tool_use("t1")))
    assert conversation.last.answered_count == 1


def test_a_prompt_after_an_interruption_is_found_in_the_merged_message() -> None:
    conversation = read(
        user("first"),
        assistant(tool_use("t1")),
        user(
            tool_result("t1", "rejected", is_error=True),
            "[Request interrupted by user for tool use]\n",
            "second\n",
            "[Request interrupted by user]\n",
            "third",
        ),
    )
    assert [prompt.text for prompt in conversation.prompts] == ["first", "second", "third"]
    assert [prompt.answered_count for prompt in conversation.prompts] == [1, 0, 0]
    assert len(conversation.prompts[0].rounds) == 1


def test_a_typed_skill_becomes_the_slash_command_again() -> None:
    conversation = read(
        user(
            "<command-message>memory-capture</command-message>\n<command-name>/memory-capture</command-name>\n"
            "<command-args>the sky is blue</command-args>\n",
            "Base directory for this skill: /w/.claude/skills/memory-capture\n\nAppend it.",
        )
    )
    assert conversation.last.text == "/memory-capture the sky is blue"
    assert conversation.last.is_expanded_skill


def test_a_message_sent_in_mid_turn_is_an_aside() -> None:
    conversation = read(
        user("go"),
        assistant(tool_use("t1")),
        user(tool_result("t1", "ok")),
        system(
            "The user sent a new message while you were working:\nand hurry\n\nThis is how Claude Code surfaces it."
        ),
    )
    assert conversation.last.text == "go"
    assert conversation.last.asides == ["and hurry"]


def test_reminders_inside_a_failed_result_are_taken_out_of_it() -> None:
    conversation = read(
        user("go"),
        assistant(tool_use("t1")),
        user(
            tool_result(
                "t1",
                "denied\n\n<system-reminder>\n5 tokens left\n</system-reminder>",
                is_error=True,
            )
        ),
    )
    assert conversation.last.rounds[0][0].text == "denied"


def test_what_comes_before_a_compaction_is_no_prompt() -> None:
    conversation = read(
        user(
            "This session is being continued from a previous conversation that ran out of context."
        ),
        assistant("kept"),
        user("<local-command-stdout>Compacted </local-command-stdout>\n", "next"),
    )
    assert [prompt.text for prompt in conversation.prompts] == ["next"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"system": "Generate a concise, sentence-case title (3-7 words)"}, True),
        ({"max_tokens": 1}, True),
        ({"output_config": {"format": {"type": "json_schema"}}}, True),
        ({}, False),
        ({"max_tokens": 1, "tools": [{"name": "Bash"}]}, False),
    ],
)
def test_side_calls_are_recognised(changes: dict[str, object], expected: bool) -> None:  # noqa: FBT001
    request: dict[str, object] = {"messages": [user("hello")], "max_tokens": 1000, **changes}
    assert read_conversation(request).is_side_call is expected


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        [None],
        [{}],
        [{"role": "user"}],
        [{"role": "user", "content": [None, 3, {"type": 1}]}],
        "x",
    ],
)
def test_odd_shapes_are_read_as_nothing(messages: object) -> None:
    assert read_conversation({"messages": messages, "tools": "x", "system": 3}).prompts == ()


def test_the_session_is_found_in_the_metadata_where_no_header_names_it() -> None:
    request: dict[str, object] = {
        "messages": [user(text("hi"))],
        "metadata": {"user_id": '{"session_id": "abc"}'},
    }
    assert read_conversation(request).session == "abc"
    assert read_conversation(request, session="header").session == "header"
