"""The bodies of the memory routes. None of them names the owner."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator

from gateway.errors import GatewayError
from gateway.http.bodies import parse_body
from gateway.http.schemas import Body, Label, Message, Name
from memory.cases.case import Signal
from memory.episodes.episode import EpisodeDraft, EpisodeType, Sections
from memory.facts.gate import MAX_FACT_CHARS
from memory.facts.profile import MAX_PROFILE_CHARS
from memory.facts.told import Earlier, texts_of
from memory.items.scope import Scope
from memory.recall.query import DEFAULT_BUDGET_CHARS, RECALLED_KINDS, Mode, QueryPack

_MAX_EARLIER = 100
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("must be one line")
    return text


def _with_letters(text: str) -> str:
    if not any(map(str.isalnum, text)):
        raise ValueError("must hold a letter or a digit")
    return text


def _rfc_3339(moment: object) -> object:
    """Refuse numbers, which pydantic reads as seconds since 1970."""
    if not isinstance(moment, str) or not _RFC_3339.fullmatch(moment):
        raise ValueError("must be a valid date-time with a time zone, such as 2026-01-31T09:30:00Z")
    return moment


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as exc:
        raise ValueError("must be a date-time within the years 1 to 9999 in UTC") from exc


def _few(earlier: Earlier) -> Earlier:
    if len(texts_of(earlier)) > _MAX_EARLIER:
        raise ValueError(f"must hold at most {_MAX_EARLIER} texts")
    return earlier


Title = Annotated[Name, AfterValidator(_one_line)]
Moment = Annotated[
    AwareDatetime, Field(strict=False), BeforeValidator(_rfc_3339), AfterValidator(_in_utc)
]
FactText = Annotated[
    str, Field(min_length=1, max_length=MAX_FACT_CHARS), AfterValidator(_with_letters)
]
ExportedLine = Annotated[str, Field(max_length=1_000_000)]
Section = Annotated[str, Field(max_length=200_000)]


class ScopeBody(Body):
    """Labels that narrow the caller's memory."""

    user_id: Name | None = None
    agent_id: Name | None = None
    project_id: Name | None = None
    workflow_id: Name | None = None
    app_code: Name | None = None
    environment: Name | None = None

    def scope(self, owner_id: str) -> Scope:
        """Return the scope of these labels in the owner's memory."""
        return Scope(owner_id=owner_id, **self.model_dump())


class QueryBody(Body):
    """`POST /memory/context`."""

    queries: Annotated[list[Message], Field(min_length=1, max_length=20)]
    scope: ScopeBody = ScopeBody()
    mode: Mode = "rag"
    budget_chars: Annotated[int, Field(ge=200, le=100_000)] = DEFAULT_BUDGET_CHARS
    conversation_id: Name | None = None

    def query(self, owner_id: str) -> QueryPack:
        """Return the query pack."""
        return QueryPack(
            **self.model_dump(exclude={"scope"}),
            scope=self.scope.scope(owner_id),
            kinds=RECALLED_KINDS,
        )


class FactBody(Body):
    """`POST /memory/facts`."""

    text: FactText
    project_id: Name | None = None
    lasting: bool = False
    earlier: Annotated[
        list[FactText | list[list[FactText]]], AfterValidator(_few), Field(default_factory=list)
    ]
    replaces: Annotated[list[Name], Field(max_length=_MAX_EARLIER, default_factory=list)]


class FactChangeBody(Body):
    """`PATCH /memory/items/{id}`."""

    text: FactText | None = None
    lasting: bool | None = None

    @model_validator(mode="after")
    def _refuse_empty(self) -> "FactChangeBody":
        if self.text is None and self.lasting is None:
            raise ValueError("must hold `text` or `lasting`")
        return self


class ProfileBody(Body):
    """`PUT /memory/profile`."""

    text: Annotated[str, Field(max_length=MAX_PROFILE_CHARS)]


class ImportBody(Body):
    """`POST /memory/import`."""

    lines: Annotated[list[ExportedLine], Field(max_length=10_000)]


class SectionsBody(Body):
    """The sections of an episode; at least one is not blank."""

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
    """`POST /memory/cases`. The case book validates `case`."""

    case: dict[str, Any]
    app_code: Label | None = None
    environment: Label | None = None
    conversation_id: Name | None = None


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
    tags: Annotated[list[Name], Field(max_length=50, default_factory=list)]
    source_refs: Annotated[list[Name], Field(max_length=1000, default_factory=list)]
    occurred_at: Moment | None = None

    def draft(self, owner_id: str) -> EpisodeDraft:
        """Return the episode to be written."""
        return EpisodeDraft(
            episode_type=self.episode_type,
            title=self.title,
            scope=self.scope.scope(owner_id),
            sections=Sections(**self.sections.model_dump()),
            tags=tuple(self.tags),
            source_refs=tuple(self.source_refs),
            occurred_at=self.occurred_at,
        )


def read_episode(raw: bytes, owner_id: str) -> EpisodeDraft:
    """Read JSON from outside HTTP as an episode of an owner.

    Raise `ValueError` if it is not valid; the text is the sentence for a person.
    """
    if not raw.strip():
        raise ValueError("There is nothing to read; send a JSON object.")
    try:
        return parse_body(raw, EpisodeBody).draft(owner_id)
    except GatewayError as exc:
        sentence = exc.message.replace("The body", "The input").replace("`body`", "The input")
        raise ValueError(sentence) from None
