"""What sessions cost so far is read from their end, and nothing but the session is deleted."""

import json
from pathlib import Path

import pytest

from gateway.engine import sdk

ONE = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"


def write(root: Path, session_id: str, *entries: object) -> Path:
    path = root / "projects" / "-ws" / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def cost(usd: object) -> dict[str, object]:
    return {"type": "cost-state", "sessionId": ONE, "totalCostUSD": usd}


@pytest.mark.parametrize("padding", [0, 10, 1 << 16, 300_000])
def test_the_last_cost_counts_wherever_blocks_end(tmp_path: Path, padding: int) -> None:
    text = {"type": "user", "text": "x" * padding}
    write(tmp_path, ONE, cost(1), text, cost(2.5), text, text)
    assert sdk.spent_usd_blocking(tmp_path, ONE) == 2.5


def test_what_only_looks_like_a_cost_is_none(tmp_path: Path) -> None:
    write(tmp_path, ONE, cost(1), {"text": '"cost-state"'}, '{"type":"cost-state"', cost("much"))
    assert sdk.spent_usd_blocking(tmp_path, ONE) == 1


def test_without_a_cost_or_a_session_nothing_was_spent(tmp_path: Path) -> None:
    write(tmp_path, ONE)
    for session_id in (ONE, OTHER, "*", "../x", ""):
        assert sdk.spent_usd_blocking(tmp_path, session_id) == 0


def test_only_the_session_is_forgotten(tmp_path: Path) -> None:
    gone, kept = write(tmp_path, ONE, cost(1)), write(tmp_path, OTHER, cost(1))
    for transcript in (gone, kept):
        beside = transcript.with_suffix("") / "tool-results"
        beside.mkdir(parents=True)
        (beside / "a.txt").write_text("a", encoding="utf-8")
    for session_id in (ONE, "*", "..", "", "?" * 36):
        sdk.forget_blocking(tmp_path, session_id)
    assert sorted(entry.name for entry in gone.parent.iterdir()) == [OTHER, f"{OTHER}.jsonl"]
