"""Chooses what a message asks to be forgotten, and finds where that is still said."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Final

from memory.errors import StoreUnavailable
from memory.facts.fact import Fact, to_item
from memory.facts.matching import (
    MIN_SHARED_LINE,
    MIN_SHARED_UNSAID,
    MIN_TO_FORGET,
    asks_for_all,
    nearest,
    says,
)
from memory.facts.requests import Wished
from memory.facts.told import Forgotten, ToldTurn, Unmet
from memory.forgetting import Find
from memory.items import Item
from memory.notes.index import NoteIndex
from memory.recall.search import MemorySearch
from memory.scope import Scope, SearchScope
from memory.stores.sqlite.facts import SqliteFactStore
from memory.text_lines import one_line, without_marks

_MAX_COPIES: Final = 5
_MAX_LINE_CHARS: Final = 120


@dataclass(slots=True, kw_only=True)
class ForgetRequests:
    """The requests of one message."""

    store: SqliteFactStore
    find: Find | None
    turn: ToldTurn
    told: list[Forgotten]
    """What is forgotten; at first what was, before the server was killed."""
    ids: list[str] = field(default_factory=list)
    """Of all items to delete; a fact comes after those that it superseded."""
    unmet: dict[Unmet, list[str]] = field(default_factory=dict)
    _asked: list[str] = field(default_factory=list)

    @property
    def _scope(self) -> Scope:
        return SearchScope(**asdict(self.turn.scope), or_without=("project_id",))

    async def choose(self, wish: Wished) -> None:
        """Choose the fact that a request means, with all that it superseded.

        If several fit equally well none is chosen, unless the request is for all of them. What may be no request
        at all (it does not stand alone) is done if it fits one fact, and otherwise ignored.
        """
        held = await self.store.holding(self.turn.scope.owner_id)
        seen = [fact for fact in held if self._scope.covers(fact.scope)]
        least = MIN_TO_FORGET if wish.is_firm else MIN_SHARED_UNSAID
        texts = nearest(wish.text, [fact.text for fact in seen], least)
        found = [fact for fact in seen if fact.text in texts]
        if len(found) != 1 and not wish.stands_alone:
            return
        self._asked.append(wish.text)
        if len(found) > 1 and not asks_for_all(wish.text):
            self.unmet["forget_unclear"] = [f"“{to_item(fact).title}”" for fact in found]
            return
        for fact in found:
            older = await self.store.older(fact.id)
            self.told.append(_forgotten(to_item(fact), fact, [old.text for old in older]))
            self.ids += [old.id for old in (*older, fact)]

    async def choose_turn_before(self, wish: Wished) -> None:
        """Choose what was made of the turn before this one in its conversation.

        A turn that told no fact is chosen only if the request names memory: "undo that" may mean a file.
        """
        made = await self.store.made_of_turn_before(self.turn)
        facts = [item for item in made if item.kind == "fact"]
        if not facts and not wish.names_memory:
            return
        self.told += [_forgotten(item) for item in facts or made[:1]]
        self.ids += [item.id for item in made]

    async def look_for_copies(self) -> None:
        """Note in `unmet` where notes, turns and episodes say what was forgotten, or notes what was asked for."""
        told = [text for told in self.told if told.text for text in (told.text, *told.earlier)]
        asked = self._asked if "forget_unclear" not in self.unmet else []
        if self.find is None or not (told or asked):
            return
        found = await self.find([*asked, *told], self._scope)
        said = [(item, line) for item in found for line in without_marks(item.body)]
        notes = [line for item, line in said if item.kind == "note"]
        meant = {line for text in asked for line in nearest(text, notes, MIN_SHARED_LINE)}
        copies = [
            _copy(item, line)
            for item, line in said
            if (item.kind == "note" and line in meant) or any(says(line, text) for text in told)
        ]
        if copies:
            self.unmet["still_remembered"] = list(dict.fromkeys(copies))[:_MAX_COPIES]
        elif self._asked and not self.told and not self.unmet:
            self.unmet["forget_found_nothing"] = self._asked


def _forgotten(item: Item, fact: Fact | None = None, earlier: Sequence[str] = ()) -> Forgotten:
    return Forgotten(
        id=item.id,
        kind=item.kind,
        title=item.title,
        text=item.body if item.kind == "fact" else None,
        project_id=item.scope.project_id,
        lasting=fact is not None and fact.lasting,
        earlier=earlier,
    )


def _copy(item: Item, line: str) -> str:
    said = f"“{one_line(line, _MAX_LINE_CHARS)}”"
    return f"{item.source}: {said}" if item.kind == "note" else said


def find_with(notes: NoteIndex, search: MemorySearch) -> Find:
    """Return what finds items for `Forgetting`, in notes as they are now."""

    async def find(texts: Sequence[str], scope: Scope) -> Sequence[Item]:
        with suppress(StoreUnavailable):
            await notes.scan()  # the turn itself may have changed them
        found = await search.search(texts, scope=scope, kinds=("note", "turn", "episode"))
        return [hit.item for hit in found.hits]

    return find
