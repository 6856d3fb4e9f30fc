from tests.unit.gateway.demo.dialogue import (
    EMPTY_NOTICE,
    HOOK,
    assistant,
    read,
    reminder,
    system,
    tool_result,
    tool_use,
    user,
)


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
        user("one"),
        system(f"{HOOK}old"),
        assistant("a"),
        user("two"),
        system(f"# Environment\n\n{HOOK}likes green\n\nToday's date is X."),
        assistant(tool_use("t1")),
        user(tool_result("t1", "ok")),
        system("PostToolUse:Bash hook additional context: later"),
    )
    assert conversation.last.text == "two"
    assert conversation.memory == "likes green"
    assert "later" not in "".join(conversation.context)


def test_an_empty_answer_is_counted_by_the_notice_it_caused() -> None:
    conversation = read(user("say nothing\n", EMPTY_NOTICE))
    assert (conversation.last.text, conversation.last.answered_count) == ("say nothing", 1)
    after_tool = [assistant(tool_use("t1")), user(tool_result("t1", "ok"), EMPTY_NOTICE)]
    assert read(user("go"), *after_tool).last.answered_count == 2


def test_a_notice_after_an_answer_that_left_a_message_is_not_counted_twice() -> None:
    notice = user("Output token limit hit. Resume directly — no apology.")
    conversation = read(user("go on"), assistant("cut"), notice)
    assert (conversation.last.text, conversation.last.answered_count) == ("go on", 1)


def test_parallel_calls_and_adjacent_messages_are_one_answer() -> None:
    conversation = read(
        user("go"),
        assistant("words"),
        assistant(tool_use("t1", command="a"), tool_use("t2", "Read", file_path="b")),
        user(tool_result("t1", "A"), tool_result("t2", "B", is_error=True)),
    )
    assert conversation.last.answered_count == 1
    outcomes = [(o.name, o.text, o.is_error) for o in conversation.last.outcomes]
    assert outcomes == [("Bash", "A", False), ("Read", "B", True)]


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


def test_a_reminder_inside_a_failed_result_is_taken_out_of_it() -> None:
    appended = "denied\n\n<system-reminder>\n5 tokens left\n</system-reminder>"
    conversation = read(
        user("go"), assistant(tool_use("t1")), user(tool_result("t1", appended, is_error=True))
    )
    assert conversation.last.outcomes[0].text == "denied"


def test_what_comes_before_a_compaction_is_not_a_prompt() -> None:
    continued = (
        "This session is being continued from a previous conversation that ran out of context."
    )
    conversation = read(
        user(continued),
        assistant("kept"),
        user("<local-command-stdout>Compacted </local-command-stdout>\n", "next"),
    )
    assert [prompt.text for prompt in conversation.prompts] == ["next"]


def test_the_text_of_a_skill_and_the_note_that_it_is_loaded_are_not_prompts() -> None:
    texts = (
        "Base directory for this skill: /w/.claude/skills/heron\n\nLook at the water.",
        "Skill /heron is already loaded above; instructions unchanged.",
    )
    for text in texts:
        conversation = read(
            user("go"), assistant(tool_use("t1", "Skill")), user(tool_result("t1", "ok"), text)
        )
        assert [prompt.text for prompt in conversation.prompts] == ["go"]
