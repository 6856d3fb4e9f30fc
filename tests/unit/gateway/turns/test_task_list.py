"""The list of tasks, as the calls of a turn tell of it."""

from typing import Any

from gateway.engine.events import EngineEvent
from gateway.turns.task_list import tasks_of
from tests.support.builders import called, evidence_of, failed, returned


def told(*calls: tuple[str, dict[str, Any], str | None]) -> list[tuple[str, str | None, str]]:
    """Return the tasks after calls of a tool with an input that returned a text; None: failed."""
    events: list[EngineEvent] = []
    for number, (name, given, output) in enumerate(calls, 1):
        events.append(called(f"t{number}", name, **given))
        ended = failed if output is None else returned
        events.append(ended(output or "no", f"t{number}"))
    tasks = tasks_of(evidence_of(*events).tools.values())
    return [(task["id"], task["subject"], task["status"]) for task in tasks]


def test_tasks_are_made_changed_and_deleted_and_those_of_earlier_turns_are_found() -> None:
    made = "Task #{} created successfully: x"
    assert told(
        ("TaskCreate", {"subject": "Read", "description": "d"}, made.format(2)),
        ("TaskCreate", {"subject": "Write", "description": "d"}, made.format(10)),
        ("TaskCreate", {"subject": "Refused", "description": "d"}, None),
        ("TaskCreate", {"subject": "Drop", "description": "d"}, made.format(11)),
        ("TaskUpdate", {"taskId": "2", "status": "in_progress"}, "Updated task #2 status"),
        ("TaskUpdate", {"taskId": "2", "subject": "Read all"}, "Updated task #2 subject"),
        ("TaskUpdate", {"taskId": "10", "status": "completed"}, None),
        ("TaskUpdate", {"taskId": "11", "status": "deleted"}, "Updated task #11 deleted"),
        ("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status"),
        ("TaskUpdate", {"taskId": "a\nb", "status": "completed"}, "Updated"),
    ) == [("1", None, "completed"), ("2", "Read all", "in_progress"), ("10", "Write", "pending")]
    assert told(
        ("TaskGet", {"taskId": "3"}, "Task #3: Ask\nStatus: pending\nDescription: d"),
        ("TaskList", {"note": 1}, "#1 [completed] Read\n#2 [unheard] Write"),
        ("Bash", {"command": "cat x"}, "#7 [completed] No task"),
    ) == [("1", "Read", "completed"), ("2", "Write", "pending"), ("3", "Ask", "pending")]
