"""The bodies of the memory's routes. Whose memory it is stands in none of them."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator

from gateway.http.schemas import Body, Label, Message, Name, without_nul
from gateway.http.validation_errors import bad_field, field_name
from memory.cases.case import Signal
from memory.episodes.episode import EpisodeDraft, EpisodeType, Sections
from memory.recall.query import DEFAULT_BUDGET_CHARS, RECALLED_KINDS, Mode, QueryPack
from memory.scope import Scope

MIN_BUDGET_CHARS = 200
MAX_BUDGET_CHARS = 100_000
MAX_QUERIES = 20
MAX_TAGS = 50
MAX_SOURCES = 1000
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("must be one line")
    return text


def _written_out(moment: object) -> object:
    """Refuse numbers, which pydantic takes for seconds since 1970."""
    if not isinstance(moment, str) or not _RFC_3339.fullmatch(moment):
        raise ValueError("must be a date and time with its zone, as in 2026-01-31T09:30:00Z")
    return moment


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as exc:
        raise ValueError("must be a moment that UTC can tell") from exc


Title = Annotated[Name, AfterValidator(_one_line)]
Moment = Annotated[
    AwareDatetime,
    Field(strict=False),
    BeforeValidator(_written_out),
    AfterValidator(_in_utc),
]
Section = Annotated[str, Field(max_length=200_000), AfterValidator(without_nul)]


class ScopeBody(Body):
    """Which part of the caller's memory."""

    user_id: Name | None = None
    agent_id: Name | None = None
    project_id: Name | None = None
    workflow_id: Name | None = None
    app_code: Name | None = None
    environment: Name | None = None

    def scope(self, owner_id: str) -> Scope:
        """Give the scope; whose memory it is, the server says."""
        return Scope(owner_id=owner_id, **self.model_dump())


class QueryBody(Body):
    """`POST /memory/context`."""

    queries: Annotated[list[Message], Field(min_length=1, max_length=MAX_QUERIES)]
    scope: ScopeBody = ScopeBody()
    mode: Mode = "rag"
    budget_chars: Annotated[int, Field(ge=MIN_BUDGET_CHARS, le=MAX_BUDGET_CHARS)] = (
        DEFAULT_BUDGET_CHARS
    )
    conversation_id: Name | None = None

    def query(self, owner_id: str, active_tools: tuple[str, ...]) -> QueryPack:
        """Give what is asked."""
        return QueryPack(
            queries=self.queries,
            scope=self.scope.scope(owner_id),
            mode=self.mode,
            kinds=RECALLED_KINDS,
            budget_chars=self.budget_chars,
            conversation_id=self.conversation_id,
            active_tools=active_tools,
        )


class SectionsBody(Body):
    """The seven sections of an episode; at least one says something."""

    context: Section = ""
    actions: Section = ""
    decisions: Section = ""
    pitfalls: Section = ""
    recipe: Section = ""
    verification: Section = ""
    links: Section = ""

    @model_validator(mode="after")
    def _refuse_empty(self) -> "SectionsBody":
        if not any(text.strip() for text in self.model_dump().values()):
            raise ValueError("must hold text in at least one section")
        return self


class CaseBody(Body):
    """`POST /memory/cases`. What may stand in `case` is said where it is read: more is left out and told."""

    case: dict[str, Any]
    app_code: Label | None = None
    environment: Label | None = None
    conversation_id: Name | None = None

    def refuse_what_is_no_text(self) -> None:
        """Refuse NUL and half characters anywhere in the case.

        Raises:
            UnprocessableEntity: there is one; it names the field.
        """
        left: list[tuple[tuple[str | int, ...], Any]] = [(("case",), self.case)]
        while left:
            loc, value = left.pop()
            if isinstance(value, dict):
                left += [(loc, name) for name in value]
                left += [((*loc, name), one) for name, one in value.items()]
            elif isinstance(value, list):
                left += [(loc, one) for one in value]
            elif isinstance(value, str) and (wrong := _NO_TEXT.search(value)):
                reason = "a NUL character" if wrong[0] == "\0" else "half of a character"
                name = field_name(loc)
                raise bad_field(name, f"`{name}` holds {reason}, which is no valid text.")


class FeedbackBody(Body):
    """`POST /memory/cases/{id}/feedback`."""

    helpful: bool | None = None
    signal: Signal | None = None
    app_code: Label | None = None
    environment: Label | None = None
    conversation_id: Name | None = None


class EpisodeBody(Body):
    """`POST /memory/episodes`."""

    episode_type: EpisodeType
    title: Title
    sections: SectionsBody
    scope: ScopeBody = ScopeBody()
    tags: Annotated[list[Name], Field(max_length=MAX_TAGS, default_factory=list)]
    source_refs: Annotated[list[Name], Field(max_length=MAX_SOURCES, default_factory=list)]
    occurred_at: Moment | None = None

    def draft(self, owner_id: str) -> EpisodeDraft:
        """Give what is to be written."""
        occurred_at: datetime | None = self.occurred_at
        return EpisodeDraft(
            episode_type=self.episode_type,
            title=self.title,
            scope=self.scope.scope(owner_id),
            sections=Sections(**self.sections.model_dump()),
            tags=tuple(self.tags),
            source_refs=tuple(self.source_refs),
            occurred_at=occurred_at,
        )
