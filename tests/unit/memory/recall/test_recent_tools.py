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


def test_of_too_many_conversations_the_one_silent_longest_is_forgotten() -> None:
    recent = RecentTools(max_conversations=2)
    for conversation in ("cnv_1", "cnv_2", "cnv_1", "cnv_3"):
        recent.note(conversation, "Read")
    assert [recent.known(conversation) for conversation in ("cnv_1", "cnv_2", "cnv_3")] == [
        True,
        False,
        True,
    ]
