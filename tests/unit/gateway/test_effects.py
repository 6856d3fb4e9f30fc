"""What a turn did, in words, from the figures of its result."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.observability.effects import describe_effects
from gateway.turns.file_changes import NO_CHANGES


def tools(*statuses: str) -> list[dict[str, str]]:
    return [{"status": status} for status in statuses]


def changed(files: int, *, complete: bool = True, added: int = 5, removed: int = 1) -> Any:
    return {"files": files, "added": added, "removed": removed, "complete": complete}


@pytest.mark.parametrize(
    ("called", "changes", "told"),
    [
        ([], NO_CHANGES, "no tool was called; no file was changed"),
        (tools("ok"), NO_CHANGES, "1 call; no file was changed"),
        (tools("ok", "failed", "ok"), changed(1), "3 calls, 1 failed; 1 file changed (+5 -1)"),
        (
            tools("denied", "unknown", "denied"),
            changed(2, complete=False),
            "3 calls, 2 denied, 1 unknown; at least 2 files changed (+5 -1)",
        ),
        (
            tools("unknown"),
            changed(0, complete=False),
            "1 call, 1 unknown; which files were changed is not known",
        ),
        (tools("ok"), None, "1 call; which files were changed is not known"),
    ],
)
def test_calls_and_changes_are_told_and_what_is_not_known_is_not_denied(
    called: Any, changes: Any, told: str
) -> None:
    assert describe_effects({"tools": called, "changes": changes}) == told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["status", "files", "complete", "x"]), inner)
    ),
)


@given(called=JSON, changes=JSON)
def test_a_damaged_result_never_says_that_nothing_was_changed_unless_it_says_so(
    called: Any, changes: Any
) -> None:
    told = describe_effects({"tools": called, "changes": changes})
    if "no file was changed" in told:
        assert (changes["files"], changes["complete"]) == (0, True)
