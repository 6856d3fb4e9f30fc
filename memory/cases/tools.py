"""The four case tools: they check what was sent, bound the time, and answer every failure with a
code.

The server passes the caller; no argument of a tool can change the owner, the scope or the
conversation. A model sees the tools as `tools.toml` has them: required fields and allowed values
are said in words, so that a wrong call is answered with our code and sentence and not with a
validator's, and unknown fields are named as ignored.
"""

import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio

from memory.cases.book import CaseBook
from memory.cases.caller import normalised
from memory.cases.case import SIGNALS, CaseCaller, Signal
from memory.cases.case_reader import CaseReader
from memory.cases.results import (
    DEFAULT_TOP_K,
    MAX_RENDERED,
    CaseRefused,
    FeedbackAnswer,
    Refusal,
    RenderAnswer,
    SearchAnswer,
    UpsertAnswer,
    sentence,
)
from memory.errors import StoreUnavailable

SERVER: Final = "memory_case"
SKILL: Final = "memory-case"
"""The skill that explains when to use them."""


@dataclass(frozen=True, slots=True)
class ToolForm:
    """One tool's name, description and arguments."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


def _schema_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return an argument as a JSON schema; its types are written as words, without null."""
    told = {"type": [*form["type"].split(), "null"], "description": form["description"]}
    return told | _properties_of(form) if "properties" in form else told


def _properties_of(form: Mapping[str, Any]) -> dict[str, Any]:
    return {"properties": {name: _schema_of(one) for name, one in form["properties"].items()}}


_TOLD: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TOOLS: Final = tuple(
    ToolForm(name, form["description"], {"type": "object", **_properties_of(form)})
    for name, form in _TOLD.items()
)
SEARCH, RENDER, UPSERT, FEEDBACK = TOOLS


LIMIT_S: Final = 10.0
_MAX_CASE_ID_CHARS: Final = 100
"""No case has a longer id."""
_SEARCH_SHARE: Final = 0.8
"""Part of the limit after which search answers with what it has."""

T = TypeVar("T")


Find = Callable[..., Awaitable[SearchAnswer]]
"""Searches cases; see `CaseFinder.find`."""


class CaseTools:
    """Search, upsert, feedback and render. Each returns its answer or a `Refusal`; only
    cancellation is raised.

    Arguments come from a model; their types are checked here.
    """

    def __init__(
        self, book: CaseBook, find: Find, reader: CaseReader, *, limit_s: float = LIMIT_S
    ) -> None:
        self._book = book
        self._find = find
        self._reader = reader
        self._limit_s = limit_s

    async def search(
        self, caller: CaseCaller, query: object, top_k: object = DEFAULT_TOP_K
    ) -> SearchAnswer | Refusal:
        """Return summaries of the cases that fit a query, best first."""

        async def find(known: CaseCaller) -> SearchAnswer:
            count = DEFAULT_TOP_K if top_k is None else top_k
            deadline_s = self._limit_s * _SEARCH_SHARE
            return await self._find(known, query, count, deadline_s=deadline_s)

        return await self._answered(caller, find)

    async def upsert(self, caller: CaseCaller, case: object) -> UpsertAnswer | Refusal:
        """Record a case, or update the case that it names."""
        return await self._answered(caller, lambda known: self._book.upsert(known, case))

    async def feedback(
        self, caller: CaseCaller, case_id: object, helpful: object = None, signal: object = None
    ) -> FeedbackAnswer | Refusal:
        """Count a vote on a case that was used."""

        async def vote(known: CaseCaller) -> FeedbackAnswer:
            judged = _case_id(case_id)
            if helpful is not None and not isinstance(helpful, bool):
                raise CaseRefused("INVALID_FEEDBACK", "`helpful` must be true, false or null.")
            given = _signal(signal)
            if helpful is None and given is None:
                raise CaseRefused("INVALID_FEEDBACK", sentence("refusals", "no_vote"))
            return await self._book.vote(known, judged, helpful=helpful, signal=given)

        return await self._answered(caller, vote)

    async def render(self, caller: CaseCaller, case_ids: object) -> RenderAnswer | Refusal:
        """Return whole cases, as Markdown too."""

        async def read(known: CaseCaller) -> RenderAnswer:
            cases, missing = await self._reader.whole(known, _case_ids(case_ids))
            if not cases:
                why = sentence("refusals", "no_such_cases")
                raise CaseRefused("CASE_NOT_FOUND", why, details={"missing": list(missing)})
            return RenderAnswer(cases=tuple(cases), missing=tuple(missing))

        return await self._answered(caller, read)

    async def _answered(
        self, caller: CaseCaller, work: Callable[[CaseCaller], Awaitable[T]]
    ) -> T | Refusal:
        with anyio.move_on_after(self._limit_s):
            try:
                return await work(normalised(caller))
            except CaseRefused as exc:
                return Refusal(
                    code=exc.code, message=str(exc), details=exc.details, about=exc.field
                )
            except StoreUnavailable as exc:
                return Refusal(code="STORE_UNAVAILABLE", message=str(exc))
        return Refusal(code="TOOL_TIMEOUT", message=sentence("refusals", "timeout", self._limit_s))


def _case_id(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()[:_MAX_CASE_ID_CHARS]
    raise CaseRefused("MISSING_CASE_ID", "Say in `case_id` which case is meant.")


def _case_ids(value: object) -> list[str]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple) or not value:
        raise CaseRefused("MISSING_CASE_ID", "Say in `case_ids` which cases are meant.")
    wanted = list(dict.fromkeys(map(_case_id, value)))
    if len(wanted) > MAX_RENDERED:
        raise CaseRefused("TOO_MANY_CASES", f"At most {MAX_RENDERED} cases are given at a time.")
    return wanted


def _signal(value: object) -> Signal | None:
    if value is None or value == "":
        return None
    found = next((name for name in SIGNALS if name == value), None)
    if found is None:
        raise CaseRefused("INVALID_FEEDBACK", f"`signal` must be one of: {', '.join(SIGNALS)}.")
    return found
