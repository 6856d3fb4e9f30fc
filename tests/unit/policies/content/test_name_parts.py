"""Name parts: a text without any of them names no tool, in any spelling."""

from hypothesis import given
from hypothesis import strategies as st

from policies.content.name_parts import NameParts
from policies.content.tool_names import normalize
from policies.content.tool_usage import ActiveTools

TOOLS = (
    "Grep(head_limit, pattern, -A)",
    "WebFetch(url)",
    "mcp__prom__query_range(max-results, endTime)",
    "logs::tail_log",
    "getUserName2",
    "mcp__memory__memory_search(query, kinds)",
)
ACTIVE = ActiveTools.of(TOOLS)
PIECES = (
    *("Grep", "grep", "head_limit", "headLimit", "HEAD", "pattern", "WebFetch", "web-fetch"),
    *("webfetch", "Web", "Fetch", "url", "mcp", "prom", "query", "range", "Range", "QueryRange"),
    *("max", "results", "endTime", "logs", "tail", "log", "get", "User", "Name2", "memory"),
    *("search", "tool", "set", "用", "参数", "l\u0131m\u0131t", "\u0130"),
)
JOINTS = ("_", "__", "-", "::", "", " ", "=", ": ", "`", "。")
WRITTEN = st.lists(st.sampled_from((*PIECES, *JOINTS)), max_size=9).map("".join)


@given(WRITTEN)
def test_every_text_in_which_a_name_is_found_may_have_one(text: str) -> None:
    whole = normalize(text)
    assert ACTIVE.mark(whole) == whole or ACTIVE.parts.may_be_in(whole)


def test_most_texts_have_none_and_names_in_other_scripts_are_looked_for_everywhere() -> None:
    assert not ACTIVE.parts.may_be_in("The lab opens at half past seven; 实验室七点半开门。")
    assert NameParts.of(["查询"]).may_be_in("The lab opens.")
    assert ActiveTools.of(["查询"]).is_stale("", "Call 查询 with the parameters `a` and `b`.")
