"""The four tools: what was sent is checked, the time is bounded, and everything that goes wrong is an answer.

Whose cases they are, and in which conversation a tool is called, says the caller that the server gives;
no argument does.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol, TypeVar

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
)
from memory.errors import StoreUnavailable

LIMIT_S: Final = 10.0
_MAX_CASE_ID_CHARS: Final = 100
"""Longer ones are nobody's; so much of them is told."""
_SEARCH_SHARE: Final = 0.8
"""Of the limit; by then search answers with what it has."""

T = TypeVar("T")


class Finder(Protocol):
    """What searches cases; see `CaseFinder`."""

    async def find(
        self,
        caller: CaseCaller,
        query: object,
        top_k: object = DEFAULT_TOP_K,
        *,
        deadline_s: float | None = None,
    ) -> SearchAnswer:
        """Find cases, best first; refuses what is no question or number."""
        ...


class CaseTools:
    """Search, upsert, feedback and render. Each gives its answer, or a `Refusal`; nothing else is raised for them.

    Arguments are taken as they come from a model: their types are checked here.
    """

    def __init__(
        self, book: CaseBook, finder: Finder, reading: CaseReader, *, limit_s: float = LIMIT_S
    ) -> None:
        self._book = book
        self._finder = finder
        self._reading = reading
        self._limit_s = limit_s

    async def search(
        self, caller: CaseCaller, query: object, top_k: object = DEFAULT_TOP_K
    ) -> SearchAnswer | Refusal:
        """Find what fits a query: summaries, best first."""

        async def find(known: CaseCaller) -> SearchAnswer:
            count = DEFAULT_TOP_K if top_k is None else top_k
            return await self._finder.find(
                known, query, count, deadline_s=self._limit_s * _SEARCH_SHARE
            )

        return await self._answered(caller, find)

    async def upsert(self, caller: CaseCaller, case: object) -> UpsertAnswer | Refusal:
        """Record a case, or update the one that it names."""
        return await self._answered(caller, partial(self._upsert, case=case))

    async def feedback(
        self,
        caller: CaseCaller,
        case_id: object,
        helpful: object = None,
        signal: object = None,
    ) -> FeedbackAnswer | Refusal:
        """Judge a case that was used."""

        async def vote(known: CaseCaller) -> FeedbackAnswer:
            judged = _case_id(case_id)
            was_helpful, given = _helpful(helpful), _signal(signal)
            if was_helpful is None and given is None:
                raise CaseRefused(
                    "INVALID_FEEDBACK", "Say whether it was `helpful`, or give a `signal`."
                )
            return await self._book.vote(known, judged, helpful=was_helpful, signal=given)

        return await self._answered(caller, vote)

    async def render(self, caller: CaseCaller, case_ids: object) -> RenderAnswer | Refusal:
        """Give cases whole, as Markdown too."""

        async def read(known: CaseCaller) -> RenderAnswer:
            wanted = _case_ids(case_ids)
            cases, missing = await self._reading.whole(known, wanted)
            if not cases:
                raise _NoneFound(missing)
            return RenderAnswer(cases=tuple(cases), missing=tuple(missing))

        return await self._answered(caller, read)

    async def _upsert(self, caller: CaseCaller, case: object) -> UpsertAnswer:
        return await self._book.upsert(caller, case)

    async def _answered(
        self, caller: CaseCaller, work: Callable[[CaseCaller], Awaitable[T]]
    ) -> T | Refusal:
        with anyio.move_on_after(self._limit_s):
            try:
                return await work(normalised(caller))
            except _NoneFound as exc:
                return Refusal(
                    code=exc.code, message=str(exc), details={"missing": list(exc.missing)}
                )
            except CaseRefused as exc:
                return Refusal(code=exc.code, message=str(exc), about=exc.field)
            except StoreUnavailable as exc:
                return Refusal(code="STORE_UNAVAILABLE", message=str(exc))
        return Refusal(
            code="TOOL_TIMEOUT",
            message=f"Case memory did not answer within {self._limit_s:g} seconds; go on without it.",
        )


class _NoneFound(CaseRefused):
    def __init__(self, missing: list[str]) -> None:
        super().__init__(
            "CASE_NOT_FOUND", "There are no such cases; use ids that a search or an upsert gave."
        )
        self.missing = missing


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


def _helpful(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise CaseRefused("INVALID_FEEDBACK", "`helpful` must be true, false or null.")


def _signal(value: object) -> Signal | None:
    if value is None or value == "":
        return None
    found = next((name for name in SIGNALS if name == value), None)
    if found is None:
        told = ", ".join(SIGNALS)
        raise CaseRefused("INVALID_FEEDBACK", f"`signal` must be one of: {told}.")
    return found
