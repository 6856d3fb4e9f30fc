"""Keeps facts: what persons ask to be remembered, correct, write over HTTP, or ask to be forgotten.

Each change is one transaction with its intent, the searchable item, its deliveries and the person's profile.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

import anyio.to_thread

from memory.clock import Now
from memory.facts import matching
from memory.facts.fact import MAX_FACT_CHARS, Fact, Origin
from memory.facts.profile import Profile, with_fact
from memory.facts.requests import Wished, read_wishes
from memory.facts.told import Kept, Learn, NewFact, ToldTurn
from memory.forget_requests import ForgetRequests
from memory.forgetting import Forgetting
from memory.ids import derived_id, opaque_id
from memory.intents.builders import Happening, intent_from_memory_saved
from memory.intents.chronicle import Recording
from memory.intents.masking import Mask
from memory.intents.registry import MemoryIntent
from memory.scope import Scope
from memory.stores.sqlite.chronicle import record_blocking
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.facts import (
    SqliteFactStore,
    fact_blocking,
    forgotten_on_request_blocking,
    holding_blocking,
    profile_blocking,
    put_fact_blocking,
    put_profile_blocking,
)
from memory.text_lines import flat, one_line
from memory.wording import contradicts, subject_of, words_of

_MAX_LINE_CHARS: Final = 300


class FactKeeper:
    """Writes facts and profiles. A method that raises `StoreUnavailable` has written nothing."""

    def __init__(
        self,
        database: Database,
        *,
        deliver_to: Sequence[str],
        recording: Callable[[MemoryIntent], Recording],
        mask: Mask,
        now: Now,
        forgetting: Forgetting,
        learns: Learn = "explicit",
        on_written: Callable[[Sequence[Origin]], None] = lambda _: None,
    ) -> None:
        self._database = database
        self.store = SqliteFactStore(database)
        self._deliver_to = tuple(deliver_to)
        self._recording = recording
        self._mask = mask
        self._now = now
        self._forgetting = forgetting
        self._learns = learns
        self._on_written = on_written

    async def keep_told(self, turn: ToldTurn) -> Kept:
        """Do what a turn's message asks of memory; return what was written and forgotten.

        A second call for the same turn writes and forgets nothing more and returns the same facts. What is to
        be forgotten is chosen once, and forgotten in the transaction that stores the choice.
        """
        if self._learns == "off":
            return Kept()
        new: list[NewFact] = []
        wishes = await anyio.to_thread.run_sync(_wishes_blocking, turn)
        asks = {wish.wish for wish in wishes} & {"forget", "undo"}
        done = await self.store.forgotten_on_request(turn.turn_id) if asks else []
        find = self._forgetting.find
        requests = ForgetRequests(store=self.store, find=find, turn=turn, told=[*done])
        for wish in wishes:
            match wish.wish:
                case "undo" if new:
                    del new[-1]
                case "undo" | "forget" if done:
                    pass
                case "undo":
                    await requests.choose_turn_before(wish)
                case "forget":
                    await requests.choose(wish)
                case origin:
                    new.append(await self._new_fact(wish, origin, turn))
        if requests.ids:
            told, names_it = requests.told, "forget" in asks
            note = partial(forgotten_on_request_blocking, turn=turn, told=told, names_it=names_it)
            await self._forgetting.forget_all(requests.ids, turn.scope.owner_id, note)
            self._on_written([])
        await requests.look_for_copies()
        saved = await self.keep(new, turn) if new else ()
        return Kept(saved=saved, forgotten=requests.told, unmet=requests.unmet)

    async def keep(self, new: Sequence[NewFact], turn: ToldTurn) -> Sequence[Fact]:
        """Keep statements of a turn; return the facts that were written, each once."""
        source = _source(turn.scope, turn.occurred_at, turn.conversation_id, turn.turn_id)
        masked = [replace(fact, text=self._clean(fact.text)) for fact in new]
        return await self._write(masked, source)

    async def write(
        self, text: str, scope: Scope, *, lasting: bool = False, earlier: Sequence[str] = ()
    ) -> Fact:
        """Keep what a person wrote; return the fact, or the one that says the same already.

        `earlier` are statements to keep as superseded by it, oldest first.
        """
        clean = [self._clean(old) for old in earlier]
        fact = NewFact(self._clean(text), "person", lasting=lasting, earlier=clean)
        written = await self._write([fact], _source(scope, self._now()))
        if written:
            return written[0]
        held = [fact for fact in await self.store.holding(scope.owner_id) if fact.scope == scope]
        known = matching.repeated(fact.text, held)
        assert known is not None, "it was not written because it is there"
        return known

    async def restore(self, fact: Fact) -> bool:
        """Keep an exported fact, under its id if that is free; return False if it or a newer one is held."""
        return bool(await self._write([NewFact(self._clean(fact.text), fact.origin)], fact))

    async def edit(
        self, fact_id: str, scope: Scope, *, text: str | None = None, lasting: bool | None = None
    ) -> Fact | None:
        """Change a fact in place; return it, or None if the scope covers no such fact."""
        given = {"text": None if text is None else self._clean(text), "lasting": lasting}
        changes = {name: value for name, value in given.items() if value is not None}
        now = self._now()
        return await self._database.write(
            lambda writer: self._edit_blocking(writer, fact_id, scope, changes, now)
        )

    async def put_profile(self, owner_id: str, text: str) -> Profile:
        """Replace a person's profile; secrets are masked."""
        clean, now = self._mask(text).strip(), self._now()
        await self._database.write(
            lambda writer: put_profile_blocking(writer, owner_id, clean, now)
        )
        return Profile(text=clean, updated_at=now)

    async def _new_fact(self, wish: Wished, origin: Origin, turn: ToldTurn) -> NewFact:
        """Return what to keep, with the line of a note or an earlier turn that it may correct."""
        line = None
        if origin == "correction":
            lines = await self.store.lines_before(turn.scope, turn.conversation_id)
            least = matching.MIN_SHARED_LINE if wish.is_firm else None
            near = matching.MIN_SHARED if wish.is_firm else matching.MIN_SHARED_CHANGED_LINE
            line = await anyio.to_thread.run_sync(matching.corrected, wish.text, lines, least, near)
        return NewFact(
            wish.text,
            origin,
            lasting=wish.lasting,
            is_firm=wish.is_firm,
            stands_alone=wish.stands_alone,
            note_line=line,
        )

    async def _write(self, new: Sequence[NewFact], source: Fact) -> Sequence[Fact]:
        now = self._now()
        written = await self._database.write(
            lambda writer: self._write_blocking(writer, new, source, now)
        )
        self._on_written([fact.origin for fact in written])
        return written

    def _write_blocking(
        self,
        connection: sqlite3.Connection,
        new: Sequence[NewFact],
        source: Fact,
        now: datetime,
    ) -> list[Fact]:
        written: dict[str, Fact] = {}
        for told in new:
            known = fact_blocking(connection, fact_id := _id_of(told, source))
            if known is not None and not source.id:  # an earlier call for the same turn wrote it
                written[known.id] = known
                continue
            held = [
                fact
                for fact in holding_blocking(connection, source.scope.owner_id)
                if fact.scope == source.scope
            ]
            change = _change(told, held, source)
            if change is None or any(old.valid_from > source.valid_from for old in change[1]):
                continue
            fact = replace(change[0], id=fact_id if known is None else opaque_id("fac"))
            self._put(connection, fact, change[1], now)
            self._put_earlier(connection, fact, told.earlier, now)
            told_in = replace(fact, conversation_id=None, turn_id=None) if source.id else fact
            self._record(connection, told_in, [old.id for old in change[1]])
            written[fact.id] = fact
        return list(written.values())

    def _put(
        self, connection: sqlite3.Connection, fact: Fact, replaced: Sequence[Fact], now: datetime
    ) -> None:
        owner_id = fact.scope.owner_id
        profile = text = profile_blocking(connection, owner_id)
        for old in replaced:
            put_fact_blocking(
                connection, old.until(fact.valid_from, fact.id), self._deliver_to, now
            )
        if fact.lasting:
            olds = [old.text for old in replaced if old.lasting]
            text = with_fact(profile, fact.text, olds[0] if olds else None)
        if text != profile:
            put_profile_blocking(connection, owner_id, text, now)
        put_fact_blocking(connection, fact, self._deliver_to, now)

    def _put_earlier(
        self, connection: sqlite3.Connection, fact: Fact, texts: Sequence[str], now: datetime
    ) -> None:
        for text in reversed(texts):
            old = replace(fact, id=opaque_id("fac"), text=text).until(fact.valid_from, fact.id)
            put_fact_blocking(connection, old, self._deliver_to, now)
            self._record(connection, old)
            fact = old

    def _record(
        self, connection: sqlite3.Connection, fact: Fact, replaced: Sequence[str] = ()
    ) -> None:
        happening = Happening(
            owner_id=fact.scope.owner_id,
            occurred_at=fact.updated_at,
            conversation_id=fact.conversation_id,
            turn_id=fact.turn_id,
        )
        intent = intent_from_memory_saved(
            happening,
            item_kind="fact",
            item_id=fact.id,
            revision=fact.revision,
            text=fact.text,
            origin=fact.origin,
            supersedes=replaced,
            evidence=fact.evidence,
        )
        record_blocking(connection, [self._recording(intent)])

    def _edit_blocking(
        self,
        connection: sqlite3.Connection,
        fact_id: str,
        scope: Scope,
        changes: Mapping[str, Any],
        now: datetime,
    ) -> Fact | None:
        fact = fact_blocking(connection, fact_id)
        if fact is None or fact.scope.owner_id != scope.owner_id or not scope.covers(fact.scope):
            return None
        edited = replace(fact, updated_at=now, revision=fact.revision + 1, **changes)
        if edited.lasting and edited.valid_until is None:
            profile = profile_blocking(connection, fact.scope.owner_id)
            changed = with_fact(profile, edited.text, fact.text if fact.lasting else None)
            if changed != profile:
                put_profile_blocking(connection, fact.scope.owner_id, changed, now)
        put_fact_blocking(connection, edited, self._deliver_to, now)
        self._record(connection, edited)
        return edited

    def _clean(self, text: str) -> str:
        return flat(self._mask(text))[:MAX_FACT_CHARS]


def _wishes_blocking(turn: ToldTurn) -> list[Wished]:
    """Return what the message asks, without what the agent wrote into a note already."""
    noted = [set(words_of(text)) for text in turn.notes]
    return [
        wish
        for wish in read_wishes(turn.message)
        if not any(set(words_of(wish.text)) <= words for words in noted)
    ]


def _source(
    scope: Scope, at: datetime, conversation_id: str | None = None, turn_id: str | None = None
) -> Fact:
    """Return what new facts of one source have in common: a fact without id and text."""
    return Fact(
        id="",
        text="",
        scope=scope,
        origin="request",
        valid_from=at,
        updated_at=at,
        conversation_id=conversation_id,
        turn_id=turn_id,
    )


def _id_of(told: NewFact, source: Fact) -> str:
    if source.turn_id is None or source.id:
        return source.id or opaque_id("fac")
    return derived_id("fac", source.scope.owner_id, source.turn_id, told.text)


def _change(
    told: NewFact, held: Sequence[Fact], source: Fact
) -> tuple[Fact, Sequence[Fact]] | None:
    """Return what a statement becomes, and the facts that it replaces; None if it changes nothing."""
    text = told.text
    replaced: list[Fact] = []
    is_empty = told.origin != "person" and not words_of(text)
    if is_empty or matching.repeated(text, held) is not None:
        return None
    if told.origin == "correction":
        firm, unsaid = (
            (matching.MIN_SHARED,) * 2,
            (matching.MIN_SHARED_UNSAID, matching.MIN_SHARED_CHANGE),
        )
        known = [fact.text for fact in held]
        about = matching.corrected(text, known, *(firm if told.is_firm else unsaid))
        replaced = [fact for fact in held if fact.text == about]
        if replaced and not subject_of(text):
            text = f"{text} [earlier: {about}]"  # it may not say by itself what it is about
    others = [fact for fact in held if fact not in replaced]
    replaced += [fact for fact in others if contradicts(told.text, fact.text)]
    if not replaced and told.note_line is not None:
        text = f"{text} [earlier: {one_line(told.note_line, _MAX_LINE_CHARS)}]"
    elif not replaced and not told.stands_alone:
        return None
    lasting = told.lasting or any(old.lasting for old in replaced)
    fact = replace(source, text=text, origin=told.origin, lasting=lasting, evidence=told.evidence)
    return fact, replaced
