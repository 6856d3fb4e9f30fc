"""What is written with a fact, within the caller's transaction: its row and item, what it replaces,
the person's profile, deliveries and the intent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory.facts.fact import Fact
from memory.facts.gate import FactConflict, replaced_already
from memory.facts.profile import MAX_PROFILE_CHARS, with_fact, without_fact
from memory.facts.rows import (
    fact_blocking,
    holding_blocking,
    profile_blocking,
    put_fact_blocking,
    put_profile_blocking,
    says_same,
)
from memory.facts.told import Earlier, NewFact
from memory.intents.builders import Happening, intent_from_memory_saved
from memory.intents.chronicle import Recording, record_blocking
from memory.intents.registry import MemoryIntent
from memory.items.ids import derived_id, opaque_id
from memory.items.scope import Scope
from memory.stores.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class FactWrites:
    """Writes facts within a transaction."""

    deliver_to: Sequence[str]
    recording: Callable[[MemoryIntent], Recording]

    def write_blocking(
        self, connection: Connection, new: NewFact, source: Fact, now: datetime
    ) -> tuple[Fact, bool]:
        """Write a fact, and end those that it replaces; return it, and whether it is new.

        The same statement in its scope, or in that of all projects, is one fact. If it replaces
        others, it replaces what an earlier turn kept of it, too: forgetting it restores them all. A
        fact that lasts is of no project: it stands in each prompt, and can be found and forgotten
        wherever it does. Raise `FactConflict` if the profile has no room for its line.
        """
        fact = replace(
            source,
            id=_id_of(new, source),
            text=new.text,
            scope=_everywhere(source.scope) if new.lasting else source.scope,
            origin=new.origin,
            lasting=new.lasting,
            evidence=new.evidence,
        )
        scopes = (fact.scope, source.scope, _everywhere(source.scope))
        held = holding_blocking(connection, source.scope.owner_id)
        same = [old for old in held if old.scope in scopes and old.form == fact.form]
        replaced = [old for old in held if old.id in new.replaces and old not in same]
        is_known = not replaced or fact.saved_turn_id in {old.saved_turn_id for old in same}
        known = same[0] if same and is_known else None
        if known is not None:
            is_more = fact.lasting and not known.lasting
            revision = known.revision + 1
            revised = replace(
                known, lasting=True, scope=fact.scope, updated_at=now, revision=revision
            )
            fact = revised if is_more else known
        else:
            replaced = [*same, *replaced] if replaced else []
            if fact_blocking(connection, fact.id) is not None:
                fact = replace(fact, id=opaque_id("fac"))  # the turn kept and replaced it before
            if any(old.lasting for old in replaced):
                fact = replace(fact, lasting=True, scope=_everywhere(fact.scope))
        if known is not fact:
            fact = self._put(connection, fact, replaced, now, is_asked_to_last=new.lasting)
            self._put_earlier(connection, fact, new.earlier, now)
            self._record(connection, fact, [old.id for old in replaced])
        elif replaced:
            fact = self._put(connection, fact, replaced, now, is_asked_to_last=new.lasting)
        return fact, known is None

    def _put(
        self,
        connection: Connection,
        fact: Fact,
        replaced: Sequence[Fact],
        now: datetime,
        *,
        is_asked_to_last: bool,
    ) -> Fact:
        """Write a fact, the ends of those that it replaces, and the profile; return what it became.

        One that would last only since the replaced ones did does not, if the profile has no room.
        """
        owner_id = fact.scope.owner_id
        profile = text = profile_blocking(connection, owner_id)
        for old in replaced:
            until = old.until(max(old.valid_from, fact.valid_from), fact.id)
            put_fact_blocking(connection, until, self.deliver_to, now)
        lines = [old.text for old in replaced if old.lasting and old.text != fact.text]
        for line in lines[1:] if fact.lasting else lines:
            text = without_fact(text, line)
        if fact.lasting:
            first = lines[0] if lines else None
            lined = with_fact(text, fact.text, first)
            if lined is None and is_asked_to_last:
                raise _full()
            if lined is None:
                fact = replace(fact, lasting=False)
                lined = text if first is None else without_fact(text, first)
            text = lined
        if text != profile:
            put_profile_blocking(connection, owner_id, text, now)
        put_fact_blocking(connection, fact, self.deliver_to, now)
        return fact

    def _put_earlier(
        self, connection: Connection, fact: Fact, earlier: Earlier, now: datetime
    ) -> None:
        for entry in reversed(earlier):
            if not isinstance(entry, str):
                for texts in entry:
                    self._put_earlier(connection, fact, texts, now)
                continue
            old = replace(fact, id=opaque_id("fac"), text=entry).until(fact.valid_from, fact.id)
            put_fact_blocking(connection, old, self.deliver_to, now)
            self._record(connection, old)
            fact = old

    def restore_blocking(
        self, connection: Connection, fact: Fact, now: datetime, *, with_line: bool
    ) -> bool:
        """Write an exported fact, under its id if that is free; return False if it is held.

        `with_line` adds the line of a lasting one to the profile; if there is no room, it does not
        last.
        """
        held = holding_blocking(connection, fact.scope.owner_id)
        if any(says_same(old, fact) for old in held):
            return False
        if fact_blocking(connection, fact.id) is not None:
            fact = replace(fact, id=opaque_id("fac"))
        if fact.lasting and with_line:
            profile = profile_blocking(connection, fact.scope.owner_id)
            changed = with_fact(profile, fact.text)
            if changed is None:
                fact = replace(fact, lasting=False)
            else:
                put_profile_blocking(connection, fact.scope.owner_id, changed, now)
        if fact.lasting:
            fact = replace(fact, scope=_everywhere(fact.scope))
        put_fact_blocking(connection, fact, self.deliver_to, now)
        # its conversation may be of another server
        self._record(connection, replace(fact, conversation_id=None, turn_id=None))
        return True

    def _record(self, connection: Connection, fact: Fact, replaced: Sequence[str] = ()) -> None:
        happening = Happening(
            owner_id=fact.scope.owner_id,
            occurred_at=fact.updated_at,
            conversation_id=fact.conversation_id,
            turn_id=fact.saved_turn_id or fact.turn_id,
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
        record_blocking(connection, [self.recording(intent)])

    def edit_blocking(
        self,
        connection: Connection,
        fact_id: str,
        scope: Scope,
        changes: Mapping[str, Any],
        now: datetime,
    ) -> Fact | None:
        """Change fields of a fact; return it, or None if the scope covers no such fact.

        Raise `FactConflict` if it is superseded, another fact says the same, or the profile has no
        room for its line.
        """
        fact = fact_blocking(connection, fact_id)
        if fact is None or fact.scope.owner_id != scope.owner_id or not scope.covers(fact.scope):
            return None
        if fact.valid_until is not None:
            raise replaced_already(fact_id)
        edited = replace(fact, updated_at=now, revision=fact.revision + 1, **changes)
        if edited.text != fact.text:  # by the person, whose earlier words said something else
            edited = replace(edited, evidence=None)
        if edited.lasting:
            edited = replace(edited, scope=_everywhere(fact.scope))
        held = holding_blocking(connection, fact.scope.owner_id)
        same = next((old for old in held if old.id != fact_id and says_same(old, edited)), None)
        if same is not None and (edited.form, edited.scope) != (fact.form, fact.scope):
            raise FactConflict(
                f"The fact {same.id} says the same already: forget one of the two instead."
            )
        profile = changed = profile_blocking(connection, fact.scope.owner_id)
        if edited.lasting:
            changed = _with_line(profile, edited.text, fact.text if fact.lasting else None)
        elif fact.lasting:
            changed = without_fact(profile, fact.text)
        if changed != profile:
            put_profile_blocking(connection, fact.scope.owner_id, changed, now)
        put_fact_blocking(connection, edited, self.deliver_to, now)
        self._record(connection, edited)
        return edited


def _with_line(profile: str, fact: str, instead_of: str | None) -> str:
    """Return the profile with a fact's line; raise `FactConflict` if there is no room."""
    text = with_fact(profile, fact, instead_of)
    if text is None:
        raise _full()
    return text


def _full() -> FactConflict:
    return FactConflict(
        f"The profile is full ({MAX_PROFILE_CHARS:,} characters): keep this without `lasting`,"
        " or shorten the profile or forget a lasting fact first."
    )


def _everywhere(scope: Scope) -> Scope:
    return Scope(owner_id=scope.owner_id)


def _id_of(new: NewFact, source: Fact) -> str:
    """Return the id of a new fact; the same one if the same turn keeps it again."""
    if source.saved_turn_id is None:
        return opaque_id("fac")
    return derived_id("fac", source.scope.owner_id, source.saved_turn_id, new.text)
