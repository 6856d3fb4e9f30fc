"""What a turn did, in a few words for people, from the figures of its result. Pure; accepts any
result.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

NOT_KNOWN = "which files were changed is not known"


def describe_effects(result: Mapping[str, Any]) -> str:
    """Return what a turn called and changed: "3 calls, 1 failed; 2 files changed (+5 -1)"."""
    return f"{_calls(result.get('tools'))}; {_changes(result.get('changes'))}"


def _calls(tools: Any) -> str:
    statuses = Counter(
        str(tool.get("status"))
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, Mapping)
    )
    total = statuses.total()
    if not total:
        return "no tool was called"
    wrong = [f"{count} {status}" for status, count in statuses.items() if status != "ok"]
    return ", ".join([_count(total, "call"), *wrong])


def _changes(changes: Any) -> str:
    """Describe the field `changes`; results of earlier releases have none."""
    if not isinstance(changes, Mapping) or not isinstance(changes.get("files"), int):
        return NOT_KNOWN
    files, is_complete = changes["files"], changes.get("complete") is True
    if not files:
        return "no file was changed" if is_complete else NOT_KNOWN
    lines = f" (+{changes.get('added', 0)} -{changes.get('removed', 0)})"
    return f"{'' if is_complete else 'at least '}{_count(files, 'file')} changed{lines}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
