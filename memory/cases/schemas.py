"""The four tools as a model sees them: names, descriptions, JSON Schemas.

Owner, app, environment and conversation are no arguments: the server knows them. Required fields and
allowed values are said in words, so that a wrong call is answered with our code and sentence and not with a
validator's, and unknown fields are accepted and named as ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memory.cases.case import FAILURE_LAYERS, SIGNALS
from memory.cases.results import DEFAULT_TOP_K, MAX_RENDERED, MAX_TOP_K

SERVER: Final = "memory_case"
SKILL: Final = "memory-case"
"""The skill that explains when to use them."""


@dataclass(frozen=True, slots=True)
class ToolForm:
    """One tool's name, description and arguments."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


def _text(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": description}


def _texts(description: str) -> dict[str, Any]:
    return {"type": ["array", "string", "null"], "description": f"{description} A list of texts."}


def _number(description: str) -> dict[str, Any]:
    return {"type": ["number", "string", "null"], "description": description}


def _one_of(names: Sequence[str], description: str) -> dict[str, Any]:
    return _text(f"{description} One of {', '.join(names)}.")


_METADATA: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "What surrounds the incident; leave out what is not known.",
    "properties": {
        "failure_layer": _one_of(FAILURE_LAYERS, "Where the root cause lies."),
        "runtime": _text("Runtime and version, such as `jdk17` or `python3.11`."),
        "related_services": _texts("Services that took part, by name."),
        "middleware": _text("Middleware that took part, such as `redis` or `kafka`."),
        "application_name": _text("The application as people call it."),
        "region": _text("Where it ran."),
        "tags": _texts("A few words to find it by."),
    },
}

_CASE: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": (
        "Required. A new case needs symptom_summary, diagnosis, resolution and confidence. With case_id an existing"
        " one is updated: only what is sent changes."
    ),
    "properties": {
        "case_id": _text("Of the case to update; leave it out to record a new one."),
        "symptom_summary": _text("What was seen, in one or two sentences, with the exact error."),
        "diagnosis": _text("How it was found out: what was looked at, what it showed. Markdown."),
        "root_cause": _text("The cause in one sentence; leave it out while it is a guess."),
        "resolution": _text("What mended it, and how that was verified."),
        "confidence": _number(
            "How sure the diagnosis is, 0 to 1: 0.9 verified, 0.7 likely, 0.5 a guess."
        ),
        "metadata": _METADATA,
    },
}

SEARCH: Final = ToolForm(
    "memory_case_search",
    "Find troubleshooting cases of earlier conversations, best first, as short summaries. Search before"
    " digging, with the symptom or error in a few words, in English or Chinese; render what looks right.",
    {
        "type": "object",
        "properties": {
            "query": _text("Required. Symptom, error, component: the words that matter."),
            "top_k": _number(f"How many, 1 to {MAX_TOP_K}; {DEFAULT_TOP_K} unless said."),
        },
    },
)
RENDER: Final = ToolForm(
    "memory_case_render",
    f"Read whole cases by their ids, at most {MAX_RENDERED}, with the cases that are related to them.",
    {
        "type": "object",
        "properties": {"case_ids": _texts("Required. Ids out of a search, or of related cases.")},
    },
)
UPSERT: Final = ToolForm(
    "memory_case_upsert",
    "Record what an incident taught, once its diagnosis stands, or correct a case that is recorded. One"
    " that tells the same as a recorded one is merged into it. Scope, votes, relations and lifecycle are"
    " the server's: what is sent of them is left out. Judge the cases that come back as unreviewed.",
    {"type": "object", "properties": {"case": _CASE}},
)
FEEDBACK: Final = ToolForm(
    "memory_case_feedback",
    "Judge a case after it was used. One conversation has one vote a case; a later one replaces it.",
    {
        "type": "object",
        "properties": {
            "case_id": _text("Required. Of the case that is judged."),
            "helpful": {
                "type": ["boolean", "string", "null"],
                "description": "Whether it led to the cause or the resolution: true or false.",
            },
            "signal": _one_of(
                SIGNALS,
                "success: its resolution worked here; rollback: it had to be undone; stale: no longer"
                " true; conflict: contradicts what was seen; high_risk: dangerous to follow.",
            ),
        },
    },
)

TOOLS: Final = (SEARCH, RENDER, UPSERT, FEEDBACK)
