"""Which tools a conversation used last."""

from memory.recall.recent_tools import RecentTools, RecordedCall


def call(tool_use_id: str, name: str) -> RecordedCall:
    return RecordedCall(tool_use_id, name)


def result(tool_use_id: str) -> RecordedCall:
    return RecordedCall(tool_use_id, None)


def test_the_tool_used_last_stands_at_the_end_and_each_once() -> None:
    recent = RecentTools()
    for tool in ("Read", "Bash", "Read"):
        recent.note("cnv_1", tool)
    assert recent.of("cnv_1") == ("Bash", "Read")


def test_twenty_are_kept_the_newest_ones() -> None:
    recent = RecentTools()
    for number in range(25):
        recent.note("cnv_1", f"t{number}")
    assert recent.of("cnv_1") == tuple(f"t{number}" for number in range(5, 25))


def test_conversations_do_not_see_each_others_tools() -> None:
    recent = RecentTools()
    recent.note("cnv_1", "Read")
    assert recent.of("cnv_2") == ()


def test_a_conversation_that_was_left_begins_with_none() -> None:
    recent = RecentTools()
    recent.note("cnv_1", "Read")
    recent.forget("cnv_1")
    recent.forget("cnv_unknown")
    assert (recent.of("cnv_1"), recent.known("cnv_1")) == ((), False)


def test_a_resumed_conversation_counts_calls_whose_results_follow() -> None:
    recent = RecentTools()
    recent.seed(
        "cnv_1",
        [
            result("c"),
            call("a", "Read"),
            call("b", "Bash"),
            call("c", "Edit"),
            call("d", "mcp__ata__query"),
            result("d"),
            result("a"),
            result("x"),
        ],
    )
    assert recent.of("cnv_1") == ("mcp__ata__query", "Read")


def test_seeding_takes_the_newest_twenty_and_is_done_once() -> None:
    recent = RecentTools(per_conversation=2)
    history = [half for n in range(5) for half in (call(str(n), f"t{n}"), result(str(n)))]
    recent.seed("cnv_1", history)
    recent.note("cnv_1", "new")
    recent.seed("cnv_1", history)
    assert recent.of("cnv_1") == ("t4", "new")


def test_a_conversation_without_tools_is_known_once_it_was_seeded() -> None:
    recent = RecentTools()
    recent.seed("cnv_1", [])
    assert recent.known("cnv_1")


def test_of_too_many_conversations_the_one_silent_longest_is_forgotten() -> None:
    recent = RecentTools(max_conversations=2)
    for conversation in ("cnv_1", "cnv_2", "cnv_1", "cnv_3"):
        recent.note(conversation, "Read")
    assert [recent.known(conversation) for conversation in ("cnv_1", "cnv_2", "cnv_3")] == [
        True,
        False,
        True,
    ]
