"""The list of tasks that an agent keeps with the tools TaskCreate, TaskUpdate and so on.

It is read from a turn's calls that succeeded. What an earlier turn created is known by its number
alone until the agent looks at it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gateway.turns.evidence import ToolUse
from policies.calls import TASK_LIST_TOOLS

_STATES: Final = ("pending", "in_progress", "completed")
_DELETED = "deleted"

_CREATED = re.compile(r"Task #(\d{1,9}) created successfully")
"""The number that TaskCreate gave a task; what it returns begins with it."""
_ROW = re.compile(r"^#(\d{1,9}) \[(\w+)\] (.*)$", re.MULTILINE)
"""One task in what TaskList returns, as `#1 [in_progress] Write the test`."""
_SHOWN = re.compile(r"^Task #(\d{1,9}): (.*)\nStatus: (\w+)$", re.MULTILINE)
"""The head of what TaskGet returns."""
_NUMBER = re.compile(r"\d{1,9}")


def tasks_of(uses: Iterable[ToolUse]) -> list[dict[str, Any]]:
    """Return the tasks that these calls tell of, by number: `id`, `subject` and `status`.

    `subject` is None if no call told it.
    """
    tasks: dict[str, dict[str, Any]] = {}
    for use in uses:
        if use.status == "ok" and use.name in TASK_LIST_TOOLS:
            for number, changes in _told(use):
                if changes.get("status") == _DELETED:
                    tasks.pop(number, None)
                    continue
                new = {"id": number, "subject": None, "status": "pending"}
                tasks[number] = {**tasks.get(number, new), **changes}
    return [tasks[number] for number in sorted(tasks, key=int)]


def _told(use: ToolUse) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the number of each task that a call tells of, with what it tells."""
    match use.name:
        case "TaskCreate" if found := _CREATED.match(use.output):
            yield found[1], {"subject": use.input.get("subject"), "status": "pending"}
        case "TaskUpdate":
            number = use.input.get("taskId")
            if isinstance(number, str) and _NUMBER.fullmatch(number):
                yield number, dict(_updated(use.input))
        case "TaskList":
            for number, status, subject in _ROW.findall(use.output):
                yield number, {"subject": subject, **_known(status)}
        case "TaskGet" if found := _SHOWN.match(use.output):
            yield found[1], {"subject": found[2], **_known(found[3])}


def _updated(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(given.get("subject"), str):
        yield "subject", given["subject"]
    if given.get("status") in {*_STATES, _DELETED}:
        yield "status", given["status"]


def _known(status: str) -> dict[str, str]:
    return {"status": status} if status in _STATES else {}
