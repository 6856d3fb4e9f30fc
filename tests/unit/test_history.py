"""The judge of histories: a good one passes, and one for each violation does not."""

import json
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from bench.history.checks import judge
from bench.history.records import NEEDED, HistoryError, read_history
from tests.support.program import ROOT

Rows = list[dict[str, Any]]
KINDS = ("turn.queued", "turn.started", "text.delta", "turn.completed")


def event(turn_id: str, n: int, seq: int, **more: Any) -> dict[str, Any]:
    data = {"turn_id": turn_id, "n": n}
    row = {"conversation_id": "cnv_1", "turn_id": turn_id, "n": n, "seq": seq, "data": data}
    return {"kind": "event", **row, "type": KINDS[n - 1], "epoch": 1, "writer": "a", **more}


def read(turn_id: str, n: int, reader: str = "r") -> dict[str, Any]:
    row = {"id": f"{turn_id}:{n}", "type": KINDS[n - 1], "data": {"turn_id": turn_id, "n": n}}
    return {"kind": "read", "reader": reader, **row}


def message(text: str, turn_id: str, where: str = "cnv_1", **more: Any) -> dict[str, Any]:
    row = {"kind": "message", "text": text, "status": 200}
    return {**row, "conversation_id": where, "turn_id": turn_id, **more}


def connection(after: str | None) -> dict[str, Any]:
    return {"kind": "connection", "reader": "r", "conversation_id": "cnv_1", "after": after}


def turn(turn_id: str, text: str, **more: Any) -> dict[str, Any]:
    row = {"kind": "turn", "turn_id": turn_id, "conversation_id": "cnv_1", "text": text}
    return {**row, "state": "completed", **more}


def good() -> Rows:
    """Return a history in which the second server takes over, and nothing is wrong.

    The second message waits behind the first and was asked about at two servers; a third got no
    answer and is no turn; another conversation was deleted.
    """
    ending = {"turn_id": "trn_2", "n": 4}
    return [
        {"kind": "message", "text": "lost on the way", "status": None},
        message("first", "trn_1"),
        connection("trn_1:0"),
        *(read("trn_1", n) for n in (1, 2)),
        {"kind": "fault", "fault": "killed", "node": "a"},
        connection("trn_1:2"),
        message("second", "trn_2", node="b"),
        message("second", "trn_2", node="c", answer=ending),
        message("gone", "trn_9", where="cnv_9"),
        {"kind": "list", "node": "b", "conversation_ids": ["cnv_1", "cnv_9"]},
        {"kind": "deletion", "conversation_id": "cnv_9"},
        {"kind": "deleted", "conversation_id": "cnv_9"},
        *(read(*place) for place in (("trn_2", 1), ("trn_1", 3), ("trn_1", 4))),
        *(read("trn_2", n) for n in (2, 3, 4)),
        {"kind": "reader_end", "reader": "r"},
        {"kind": "agents", "conversation_id": "cnv_1", "agents": [{"pid": 7, "node": "b"}]},
        {"kind": "delivery", "message_id": "msg_1", "status": 200},
        {"kind": "healed", "fault": "killed", "node": "a"},
        {"kind": "delivery", "message_id": "msg_1", "status": 200},  # nobody knew that it had come
        {"kind": "lookup", "node": "b", "conversation_id": "cnv_1", "status": 200},
        {"kind": "lookup", "node": "b", "conversation_id": "cnv_9", "status": 404},
        {"kind": "lookup", "node": "a", "conversation_id": "cnv_1", "status": 503},
        {"kind": "list", "node": "c", "conversation_ids": ["cnv_1"]},
        {"kind": "conversation", "conversation_id": "cnv_1"},
        turn("trn_1", "first", schedule_id="sch_1", due_at="2026-01-01T00:00:00Z"),
        turn("trn_2", "second", schedule_id="sch_1", due_at="2026-01-01T00:01:00Z"),
        *(event("trn_1", n, n) for n in (1, 2)),
        event("trn_2", 1, 3),
        *(event("trn_1", n, n + 1, epoch=2, writer="b") for n in (3, 4)),
        *(event("trn_2", n, n + 4, epoch=2, writer="b") for n in (2, 3, 4)),
        {"kind": "webhook_message", "message_id": "msg_1"},
    ]


def codes(rows: Rows) -> set[str]:
    return {found.code for found in judge(read_history(json.dumps(row) for row in rows))}


def test_a_good_history_has_no_violation() -> None:
    assert codes(good()) == set()


Change = Callable[[Rows], Any]


def find(rows: Rows, **wanted: Any) -> dict[str, Any]:
    return next(row for row in rows if wanted.items() <= row.items())


def drop(**wanted: Any) -> Change:
    return lambda rows: rows.remove(find(rows, **wanted))


def change(changes: dict[str, Any], **wanted: Any) -> Change:
    return lambda rows: find(rows, **wanted).update(changes)


def add(*more: dict[str, Any]) -> Change:
    return lambda rows: rows.extend(more)


def again(**wanted: Any) -> Change:
    """Note the same once more behind it."""

    def repeat(rows: Rows) -> None:
        row = find(rows, **wanted)
        rows.insert(rows.index(row), deepcopy(row))

    return repeat


WRONG: list[tuple[str, Change]] = [
    ("message_lost", add(message("third", "trn_3"))),
    ("message_ran_twice", change({"text": "first"}, kind="turn", turn_id="trn_2")),
    ("answers_differ", change({"turn_id": "trn_1"}, kind="message", node="b")),
    ("answers_differ", change({"answer": {"reply": "other"}}, kind="message", node="b")),
    ("answers_differ", change({"answer": {"reply": "other"}}, kind="message", node="c")),
    ("turn_unfinished", change({"state": "running"}, kind="turn", turn_id="trn_2")),
    ("completed_not_once", change({"type": "notice"}, kind="event", turn_id="trn_2", n=4)),
    (
        "completed_not_once",
        change({"type": "turn.completed"}, kind="event", turn_id="trn_2", n=3),
    ),
    ("event_after_completion", add({**event("trn_1", 4, 9), "n": 5, "type": "notice"})),
    ("event_gap", drop(kind="event", turn_id="trn_1", n=3)),
    ("event_gap", again(kind="event", turn_id="trn_2", n=3)),
    ("events_disordered", change({"seq": 0}, kind="event", turn_id="trn_1", n=2)),
    ("events_without_turn", drop(kind="turn", turn_id="trn_2")),
    ("epoch_fell", change({"epoch": 1}, kind="event", turn_id="trn_2", n=3)),
    ("two_writers", change({"writer": "a"}, kind="event", turn_id="trn_2", n=3)),
    ("two_running_turns", change({"type": "turn.started"}, kind="event", turn_id="trn_2", n=1)),
    (
        "two_agents",
        change({"agents": [{"pid": 7, "node": "b"}, {"pid": 8, "node": "a"}]}, kind="agents"),
    ),
    ("conversation_hidden", change({"status": 404}, kind="lookup", conversation_id="cnv_1")),
    ("conversation_hidden", change({"conversation_ids": []}, kind="list", node="c")),
    ("conversation_hidden", change({"conversation_ids": ["cnv_1"]}, kind="list", node="b")),
    ("conversation_lost", drop(kind="conversation")),
    ("conversation_back", change({"status": 200}, kind="lookup", conversation_id="cnv_9")),
    ("conversation_back", change({"conversation_ids": ["cnv_1", "cnv_9"]}, kind="list", node="c")),
    ("conversation_back", add({"kind": "conversation", "conversation_id": "cnv_9"})),
    ("event_read_twice", again(kind="read", id="trn_1:2")),
    ("event_missed", drop(kind="read", id="trn_1:1")),
    ("event_missed", drop(kind="read", id="trn_1:3")),
    ("event_missed", drop(kind="read", id="trn_2:4")),
    ("event_not_stored", change({"id": "trn_7:1"}, kind="read", id="trn_1:3")),
    ("event_differs", change({"data": {"text": "other"}}, kind="read", id="trn_1:3")),
    ("event_differs", change({"type": "notice"}, kind="read", id="trn_1:3")),
    (
        "schedule_ran_twice",
        change({"due_at": "2026-01-01T00:00:00Z"}, kind="turn", turn_id="trn_2"),
    ),
    ("webhook_twice", add({"kind": "delivery", "message_id": "msg_1", "status": 200})),
    ("webhook_lost", add({"kind": "webhook_message", "message_id": "msg_2"})),
]


@pytest.mark.parametrize(
    ("code", "spoil"), WRONG, ids=[f"{n}-{c}" for n, (c, _) in enumerate(WRONG)]
)
def test_each_violation_is_named(code: str, spoil: Change) -> None:
    rows = good()
    spoil(rows)
    assert code in codes(rows)


def test_a_reader_of_a_deleted_conversation_is_judged_by_the_order_of_each_turn() -> None:
    rows = [row for row in good() if row["kind"] not in {"conversation", "turn", "event"}]
    rows.insert(0, {"kind": "deletion", "conversation_id": "cnv_1"})
    rows[:] = [row for row in rows if row["kind"] not in {"list", "lookup"}]
    assert codes(rows) == set()
    drop(kind="read", id="trn_1:2")(rows)
    assert codes(rows) == {"event_missed"}


def test_a_violation_names_the_records_that_show_it(tmp_path: Path) -> None:
    rows = good()
    drop(kind="read", id="trn_1:3")(rows)
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    command = [sys.executable, "-m", "bench.history", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    first, *shown, last = done.stdout.splitlines()
    assert first == "event_missed: A reader missed events."
    numbers = [line.partition(":")[0].strip() for line in shown]
    missed = next(n for n, row in enumerate(rows, 1) if row["kind"] == "event" and row["n"] == 3)
    assert f"line {missed}" in numbers
    assert last.endswith(" 1 violations")


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"kind": "song"}', '{"kind": "turn", "turn_id": "trn_1"}']
)
def test_what_is_no_history_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(HistoryError, match="Line 1"):
        read_history([line])


def test_the_description_names_every_kind_and_every_violation() -> None:
    told = (ROOT / "bench" / "history" / "README.md").read_text("utf-8")
    assert [
        word for word in {*NEEDED, *(code for code, _ in WRONG)} if f"`{word}`" not in told
    ] == []
