"""The four tools as a model sees them: names, descriptions, JSON Schemas, read from `schemas.json`.

Owner, app, environment and conversation are no arguments: the server knows them. Required fields and
allowed values are said in words, so that a wrong call is answered with our code and sentence and not with a
validator's, and unknown fields are accepted and named as ignored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SERVER: Final = "memory_case"
SKILL: Final = "memory-case"
"""The skill that explains when to use them."""


@dataclass(frozen=True, slots=True)
class ToolForm:
    """One tool's name, description and arguments."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


def _read_tools() -> tuple[ToolForm, ...]:
    told = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return tuple(ToolForm(name, **form) for name, form in told.items())


TOOLS: Final = _read_tools()
SEARCH, RENDER, UPSERT, FEEDBACK = TOOLS
