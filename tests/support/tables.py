"""Tables of cases that are kept as data, in `tests/corpus/tables`."""

import json
from pathlib import Path
from typing import Any

_TABLES = Path(__file__).parents[1] / "corpus" / "tables"


def read_table_text(name: str) -> str:
    """Return a table as it stands in its file; the tests say how its lines are read."""
    return (_TABLES / f"{name}.txt").read_text(encoding="utf-8")


def read_rows(name: str) -> list[Any]:
    """Return the rows of a table, each a tuple."""
    lines = (_TABLES / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [tuple(json.loads(line)) for line in lines if line]


def read_pairs(name: str) -> dict[str, Any]:
    """Return a table of pairs: what is given, and what comes of it, a list of that as a tuple."""
    return {
        given: tuple(told) if isinstance(told, list) else told for given, told in read_rows(name)
    }
