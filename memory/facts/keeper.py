"""Keeps facts: what the agent is asked to remember or forget, and what persons write over HTTP.

Each change is one transaction with its intent, the searchable item, its deliveries and the person's
profile.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Final

import anyio.to_thread

from memory.clock import Now
from memory.facts.evidence import Prove
from memory.facts.fact import Fact, Origin
from memory.facts.gate import MAX_FACT_CHARS, FactRefused, quotable, replaced_already, savable
from memory.facts.openings import asks_to_forget, asks_to_remember, says_more_than_secrets
from memory.facts.profile import MAX_PROFILE_CHARS, Profile
from memory.facts.rows import (
    SqlFactStore,
    fact_blocking,
    forgotten_on_request_blocking,
    put_profile_blocking,
)
from memory.facts.told import (
    Earlier,
    Forgotten,
    Kept,
    NewFact,
    ToldTurn,
    Verbatim,
    texts_of,
    with_texts,
)
from memory.facts.writes import FactWrites
from memory.intents.chronicle import Guard, Recording, unguarded
from memory.intents.masking import Mask
from memory.intents.registry import MemoryIntent
from memory.items.item import Item
from memory.items.scope import Scope, SearchScope
from memory.items.store import ItemStore
from memory.record.store import cut_outdated_blocking
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.forgotten import find_mentions, mentions_since_blocking
from memory.text.lines import flat

MAX_IDS: Final = 50
"""How many items one call may replace or forget."""
_MAX_REFUSED: Final = 1_000
_FORGETTABLE: Final = frozenset({"fact", "turn", "episode"})


ForgetAll = Callable[[Sequence[str], str, Callable[[Connection], object]], Awaitable[bool]]
"""Forgets items of an owner in one transaction, in which a function is called before; see
`Forgetting.forget_all`.
"""


class FactKeeper:
    """Writes facts and profiles. A method that raises has written nothing."""

    def __init__(
        self,
        database: SqlDatabase,
        *,
        items: ItemStore,
        deliver_to: Sequence[str],
        recording: Callable[[MemoryIntent], Recording],
        mask: Mask,
        now: Now,
        forget_all: ForgetAll,
        on_written: Callable[[Sequence[Origin]], None] = lambda _: None,
    ) -> None:
        self._database = database
        self.store = SqlFactStore(database)
        self._items = items
        self._writes = FactWrites(deliver_to=tuple(deliver_to), recording=recording)
        self._mask = mask
        self._now = now
        self._forget_all = forget_all
        self._on_written = on_written
        self._had_secrets: deque[str] = deque(maxlen=_MAX_REFUSED)
        """Turns in which a statement was refused because it held a secret."""

    async def remember(self, new: NewFact, turn: ToldTurn, prove: Prove) -> Fact:
        """Keep a statement for whose evidence a message is found; return the fact, or the one that
        is there.

        It comes in the place of the facts that it replaces, in whose scope it is kept.

        Raises:
            FactRefused: it holds a secret or nothing of use, is too long, nobody said it, replaces
                no fact that holds, or lasts although the profile has no room for it.
        """
        told_in = await self._proven(new.evidence or "", prove)
        if len(new.text) > MAX_FACT_CHARS:
            raise FactRefused(f"The text is longer than {MAX_FACT_CHARS} characters. Shorten it.")
        text = await anyio.to_thread.run_sync(savable, new.text)
        quoted = await anyio.to_thread.run_sync(quotable, new.evidence or "")
        (clean, evidence) = await self._clean([text, quoted])
        if clean != flat(text):
            self._had_secrets.append(turn.turn_id)
            raise FactRefused("The text holds a secret, which is never kept. Leave it out.")
        replaced = await self._to_replace(new.replaces, turn.scope)
        source = replace(
            _source(replaced[0].scope if replaced else turn.scope, turn.occurred_at),
            conversation_id=turn.conversation_id,
            turn_id=told_in,
            saved_turn_id=turn.turn_id,
        )
        clean_fact = replace(new, text=clean, evidence=evidence or None)
        return await self._write(clean_fact, source, turn.guard)

    async def forget(
        self, item_ids: Sequence[str], evidence: str, turn: ToldTurn, prove: Prove
    ) -> Sequence[Forgotten]:
        """Forget facts, turns and episodes; a fact with all that it had superseded and the turns
        that told it.

        The turn itself stays out of the record.

        Raises:
            FactRefused: nobody said it, or an id is of no item that can be forgotten in this way.
        """
        await self._proven(evidence, prove)
        items = [await self._to_forget(item_id, turn.scope) for item_id in _ids(item_ids)]
        told: dict[str, Forgotten] = {}
        order: dict[str, None] = {}
        for item in items:
            fact = await self.store.get(item.id, _seen(turn.scope)) if item.kind == "fact" else None
            older = [] if fact is None else await self.store.older(fact.id)
            facts = [] if fact is None else [*older, fact]
            turns = {turn_id for fact in facts for turn_id in (fact.turn_id, fact.saved_turn_id)}
            episodes = await self.store.episodes_of(turn.scope.owner_id, turns - {None})
            order |= dict.fromkeys([*(old.id for old in older), item.id, *episodes])
            earlier = [] if fact is None else await self.store.earlier(fact.id)
            told[item.id] = _forgotten(item, fact, earlier)
        note = partial(
            forgotten_on_request_blocking, turn=turn, told=list(told.values()), now=self._now()
        )
        await self._forget_all(list(order), turn.scope.owner_id, note)
        self._on_written([])
        return list(told.values())

    async def conclude(self, turn: ToldTurn, *, remembered: bool, forgot: bool) -> Kept:
        """Return what a turn kept and forgot; `remembered` and `forgot` if a call for it succeeded.

        A message that begins with a request to remember, and for which nothing was done, is kept
        itself, unless what the agent was to keep was refused because of a secret. A second call for
        the same turn returns the same.
        """
        saved: Sequence[Fact] = await self.store.saved_in(turn.turn_id)
        forgotten = await self.store.forgotten_on_request(turn.turn_id)
        verbatim: Verbatim | None = None
        was_refused = turn.turn_id in self._had_secrets
        if asks_to_remember(turn.message) and not (remembered or was_refused):
            message, extent = await self._message(turn)
            if not saved or [fact.text for fact in saved] == message:
                saved = [await self._keep_message(text, turn) for text in message]
                verbatim = extent if saved else None
        return Kept(
            saved=saved,
            forgotten=forgotten,
            kept_verbatim=verbatim,
            nothing_forgotten=asks_to_forget(turn.message) and not (forgot or forgotten),
        )

    async def write(
        self,
        text: str,
        scope: Scope,
        *,
        lasting: bool = False,
        earlier: Earlier = (),
        replaces: Sequence[str] = (),
    ) -> Fact:
        """Keep what a person wrote; return the fact, or the one that is there.

        `earlier` are statements to keep as superseded by it; those of which nothing may be kept are
        left out. Of the ids that it `replaces`, those of the person's facts that hold count.

        Raises:
            FactRefused: it holds nothing that may be kept, or the profile has no room for it.
        """
        saved = await anyio.to_thread.run_sync(savable, text)
        older = list(dict.fromkeys(texts_of(earlier)))
        kept = await anyio.to_thread.run_sync(_savable_alone, older)
        clean, *cleaned = await self._clean([saved, *kept.values()])
        before = with_texts(earlier, dict(zip(kept, cleaned, strict=True)))
        held = {old.id for old in await self.store.holding(scope.owner_id)} if replaces else set()
        fact = NewFact(
            text=clean,
            origin="person",
            lasting=lasting,
            earlier=before,
            replaces=[fact_id for fact_id in replaces if fact_id in held],
        )
        return await self._write(fact, _source(scope, self._now()))

    async def restore(self, fact: Fact, *, with_line: bool = True) -> bool:
        """Keep an exported fact, under its id if that is free; return False if it is held.

        `with_line` adds the line of a lasting one to the profile.

        Raises:
            FactRefused: it holds nothing that may be kept.
        """
        saved = await anyio.to_thread.run_sync(savable, fact.text)
        quoted = await anyio.to_thread.run_sync(quotable, fact.evidence or "")
        (text, evidence) = await self._clean([saved, quoted])
        clean = replace(fact, text=text, evidence=evidence or None)
        return await self._database.write(
            lambda writer: self._writes.restore_blocking(
                writer, clean, self._now(), with_line=with_line
            )
        )

    async def edit(
        self, fact_id: str, scope: Scope, *, text: str | None = None, lasting: bool | None = None
    ) -> Fact | None:
        """Change a fact in place; return it, or None if the scope covers no such fact.

        Raises:
            FactRefused: the text holds nothing that may be kept, or it cannot be what memory holds.
        """
        clean = None
        if text is not None:
            saved = await anyio.to_thread.run_sync(savable, text)
            (clean,) = await self._clean([saved])
        given = {"text": clean, "lasting": lasting}
        changes = {name: value for name, value in given.items() if value is not None}
        now, changed = self._now(), [] if clean is None else [fact_id]
        mentions = await find_mentions(self._database, changed, scope.owner_id)

        def work(writer: Connection) -> Fact | None:
            before = fact_blocking(writer, fact_id)
            fact = self._writes.edit_blocking(writer, fact_id, scope, changes, now)
            if before is not None and fact is not None:
                telling = mentions_since_blocking(writer, mentions, changed, scope.owner_id)
                cut_outdated_blocking(writer, telling, [(before.text, fact.text)], now)
            return fact

        return await self._database.write(work)

    async def put_profile(self, owner_id: str, text: str) -> Profile:
        """Replace a person's profile; secrets are masked.

        Raises:
            FactRefused: it is too long.
        """
        masked, now = await anyio.to_thread.run_sync(self._mask, text), self._now()
        clean = masked.strip()
        if len(clean) > MAX_PROFILE_CHARS:
            raise FactRefused(
                f"The profile has {len(clean):,} characters with its secrets masked, and at most"
                f" {MAX_PROFILE_CHARS:,} are kept. Shorten it."
            )
        await self._database.write(
            lambda writer: put_profile_blocking(writer, owner_id, clean, now)
        )
        return Profile(text=clean, updated_at=now)

    async def _message(self, turn: ToldTurn) -> tuple[list[str], Verbatim]:
        """Return a turn's message without what is never kept, and how much that is; no text if
        nothing is left.
        """
        try:
            text = await anyio.to_thread.run_sync(savable, turn.message)
        except FactRefused:
            return [], "in_part"
        (clean,) = await self._clean([text])
        is_cut = len(flat(text)) > len(clean) == MAX_FACT_CHARS
        if is_cut or _letters(text) != _letters(turn.message):
            extent: Verbatim = "in_part"
        else:
            extent = "whole" if clean == flat(text) else "without_secrets"
        return [clean] if says_more_than_secrets(clean) else [], extent

    async def _keep_message(self, text: str, turn: ToldTurn) -> Fact:
        source = replace(
            _source(turn.scope, turn.occurred_at),
            conversation_id=turn.conversation_id,
            turn_id=turn.turn_id,
            saved_turn_id=turn.turn_id,
        )
        return await self._write(NewFact(text=text, origin="request"), source, turn.guard)

    async def _proven(self, evidence: str, prove: Prove) -> str:
        """Return the turn in which the person said this; raise `FactRefused` if they did not."""
        message = await prove(evidence)
        if message is None:
            raise FactRefused(
                "The evidence is in none of the person's messages of this conversation. Copy their"
                " own words, some six letters at least; words of files and of results are not"
                " theirs."
            )
        return message.turn_id

    async def _to_replace(self, fact_ids: Sequence[str], scope: Scope) -> list[Fact]:
        found = []
        for fact_id in _ids(fact_ids):
            fact = await self.store.get(fact_id, _seen(scope))
            if fact is None or fact.scope.owner_id != scope.owner_id:
                raise FactRefused(f"{fact_id} is no fact in this person's memory.")
            if fact.valid_until is not None:
                raise replaced_already(fact_id)
            found.append(fact)
        return found

    async def _to_forget(self, item_id: str, scope: Scope) -> Item:
        item = await self._items.get(item_id, _seen(scope))
        if item is not None and item.kind == "note":
            raise FactRefused(
                f"{item_id} is a note in {item.source}, which belongs to the workspace. Edit the"
                " file."
            )
        if item is None or item.kind not in _FORGETTABLE or item.scope.owner_id != scope.owner_id:
            raise FactRefused(
                f"{item_id} is nothing in this person's memory that can be forgotten."
            )
        return item

    async def _write(self, new: NewFact, source: Fact, guard: Guard = unguarded) -> Fact:
        now, owner_id = self._now(), source.scope.owner_id
        mentions = await find_mentions(self._database, new.replaces, owner_id)

        def work(writer: Connection) -> tuple[Fact, bool]:
            guard(writer)
            fact, is_new = self._writes.write_blocking(writer, new, source, now)
            old = [
                it.text for id_ in new.replaces if (it := fact_blocking(writer, id_)) is not None
            ]
            telling = mentions_since_blocking(writer, mentions, new.replaces, owner_id)
            cut_outdated_blocking(writer, telling, [(text, fact.text) for text in old], now)
            return fact, is_new

        fact, is_new = await self._database.write(work)
        self._on_written([fact.origin] if is_new else [])
        return fact

    async def _clean(self, texts: Sequence[str]) -> list[str]:
        """Mask and shorten statements, in a worker thread because that takes time.

        As one line they are masked again: a secret may stand on the line after its name.
        """
        return await anyio.to_thread.run_sync(
            lambda: [self._mask(flat(self._mask(text)))[:MAX_FACT_CHARS] for text in texts]
        )


def _savable_alone(texts: Sequence[str]) -> dict[str, str]:
    """Return what may be kept of each text; a text of which nothing may be is left out."""
    kept = {}
    for text in texts:
        with suppress(FactRefused):
            kept[text] = savable(text)
    return kept


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _ids(item_ids: Sequence[str]) -> list[str]:
    if len(item_ids) > MAX_IDS:
        raise FactRefused(f"At most {MAX_IDS} ids in one call.")
    return list(dict.fromkeys(item_ids))


def _seen(scope: Scope) -> SearchScope:
    """Return what a conversation with this scope sees: also what belongs to no project."""
    return SearchScope(**asdict(scope), or_without=("project_id",))


def _source(scope: Scope, at: datetime) -> Fact:
    """Return what a new fact has of its source: a fact without id and text."""
    return Fact(id="", text="", scope=scope, origin="request", valid_from=at, updated_at=at)


def _forgotten(item: Item, fact: Fact | None, earlier: Earlier) -> Forgotten:
    return Forgotten(
        id=item.id,
        kind=item.kind,
        title=item.title,
        text=None if fact is None else fact.text,
        project_id=item.scope.project_id,
        lasting=fact is not None and fact.lasting,
        earlier=earlier,
    )
