"""Facts and profiles in SQLite, written within a caller's transaction."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Final

from memory.clock import rfc3339
from memory.facts.fact import Fact, to_item
from memory.facts.profile import Profile, with_fact, without_fact
from memory.facts.told import Earlier, Forgotten, ToldTurn, texts_of
from memory.intents.chronicle import scrub_blocking
from memory.items.scope import Scope
from memory.outbox.store import deliver_item_blocking
from memory.record.store import forget_copies_blocking, words_of_turns_blocking
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.forgotten import note_forgotten_blocking
from memory.stores.sqlite.items import COLUMNS, item_of, put_item_blocking
from memory.stores.sqlite.row_values import Row, read_value
from memory.stores.sqlite.statements import insert_blocking, placeholders, upsert_blocking

MAX_HELD: Final = 2_000
"""Facts of one owner that are compared with a new one: the newest."""

_OWN: Final = ("form", "origin", "lasting", "evidence", "superseded_by", "saved_turn_id")
_ON_CONFLICT: Final = (
    f"ON CONFLICT (fact_id) DO UPDATE SET (owner_id, {', '.join(_OWN)})"
    f" = (excluded.owner_id, {', '.join(f'excluded.{name}' for name in _OWN)})"
)
_SELECT: Final = (
    f"SELECT {', '.join(f'items.{name} AS {name}' for name in COLUMNS.split(', '))},"  # noqa: S608  names of our own
    " origin, lasting, evidence, superseded_by, saved_turn_id"
    " FROM facts JOIN items ON items.id = fact_id"
)

_OLDER: Final = (
    "WITH RECURSIVE older (old_id, steps) AS"  # noqa: S608  names of our own
    " (SELECT fact_id, 1 FROM facts WHERE superseded_by = ?"
    " UNION ALL SELECT fact_id, steps + 1 FROM facts JOIN older ON superseded_by = old_id)"
    f" {_SELECT} JOIN older ON fact_id = old_id ORDER BY steps DESC, items.seq"
)


class SqlFactStore:
    """Reads facts and profiles of the memory's database."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def get(self, fact_id: str, scope: Scope) -> Fact | None:
        """Return a fact, also one that is superseded; None if the scope covers none of this id."""
        fact = await self._database.value(fact_of, f"{_SELECT} WHERE fact_id = ?", (fact_id,))
        return fact if fact is not None and scope.covers(fact.scope) else None

    async def holding(self, owner_id: str) -> Sequence[Fact]:
        """Return the facts of an owner that hold, newest first, at most 2 000."""
        return await self._database.values(fact_of, *_holding(owner_id))

    async def older(self, fact_id: str) -> list[Fact]:
        """Return all facts that this one superseded, directly or not, oldest first."""
        return await self._database.values(fact_of, _OLDER, (fact_id,))

    async def earlier(self, fact_id: str) -> Earlier:
        """Return the statements that a fact superseded, directly or not."""
        replaced: dict[str | None, list[Fact]] = {}
        for old in await self.older(fact_id):
            replaced.setdefault(old.superseded_by, []).append(old)
        return _earlier_of(fact_id, replaced)

    async def evidence_of(self, fact_ids: Sequence[str]) -> list[str]:
        """Return the words by which facts, and what they superseded, were told."""
        older = [old.id for fact_id in fact_ids for old in await self.older(fact_id)]
        sql = (
            "SELECT DISTINCT evidence FROM facts WHERE evidence IS NOT NULL"
            " AND fact_id IN (SELECT value FROM json_each(?)) ORDER BY evidence"
        )
        rows = await self._database.rows(sql, (json.dumps([*fact_ids, *older]),))
        return [row["evidence"] for row in rows]

    async def replaced_by(self, fact_id: str) -> list[str]:
        """Return the ids of the facts in whose place this one came, oldest first."""
        sql = "SELECT fact_id FROM facts JOIN items ON items.id = fact_id WHERE superseded_by = ?"
        rows = await self._database.rows(f"{sql} ORDER BY items.seq", (fact_id,))
        return [row["fact_id"] for row in rows]

    async def saved_in(self, turn_id: str) -> list[Fact]:
        """Return the facts that were kept in a turn and still hold, oldest first."""
        sql = (
            f"{_SELECT} WHERE saved_turn_id = ? AND superseded_by IS NULL AND valid_until IS NULL"
            " ORDER BY items.seq"
        )
        return await self._database.values(fact_of, sql, (turn_id,))

    async def episodes_of(self, owner_id: str, turn_ids: Iterable[str | None]) -> list[str]:
        """Return the ids of an owner's episodes that were made of these turns."""
        sql = (
            "SELECT id FROM items WHERE owner_id = ? AND kind = 'episode'"
            " AND turn_id IN (SELECT value FROM json_each(?)) ORDER BY seq"
        )
        rows = await self._database.rows(sql, (owner_id, json.dumps(list(turn_ids))))
        return [row["id"] for row in rows]

    async def forgotten_on_request(self, turn_id: str) -> list[Forgotten]:
        """Return what was forgotten in a turn; nothing once the turn is recorded."""
        sql = "SELECT told FROM forgotten_on_request WHERE turn_id = ?"
        told = await self._database.scalar(sql, (turn_id,))
        return [] if told is None else [Forgotten(**fields) for fields in json.loads(told)]

    async def profile(self, owner_id: str) -> Profile:
        """Return a person's profile; an empty one if there is none."""
        sql = "SELECT * FROM profiles WHERE owner_id = ?"
        read = partial(read_value, Profile)
        return await self._database.value(read, sql, (owner_id,)) or Profile()

    async def profile_text(self, owner_id: str) -> str:
        """Return the text of a person's profile."""
        return (await self.profile(owner_id)).text

    async def profiles(self, owner_ids: Sequence[str] = ()) -> Mapping[str, Profile]:
        """Return the profiles of these owners, or of all, that are not empty."""
        owned = f" AND owner_id IN ({placeholders(owner_ids)})" if owner_ids else ""
        sql = f"SELECT * FROM profiles WHERE text != ''{owned} ORDER BY owner_id"  # noqa: S608
        rows = await self._database.rows(sql, owner_ids)
        return {row["owner_id"]: read_value(Profile, row) for row in rows}


def _earlier_of(fact_id: str, replaced: Mapping[str | None, Sequence[Fact]]) -> Earlier:
    """Return the statements that a fact superseded; `replaced` has facts by what came in their
    place.
    """
    texts: list[str] = []
    while len(olds := replaced.get(fact_id, ())) == 1:
        texts.append(olds[0].text)
        fact_id = olds[0].id
    chains = [[*texts_of(_earlier_of(old.id, replaced)), old.text] for old in olds]
    return [*([chains] if chains else []), *reversed(texts)]


def holding_blocking(connection: Connection, owner_id: str) -> list[Fact]:
    """Return the facts of an owner that hold, newest first, at most 2 000."""
    return [fact_of(row) for row in connection.execute(*_holding(owner_id))]


def fact_blocking(connection: Connection, fact_id: str) -> Fact | None:
    """Return a fact, whoever owns it."""
    row = connection.execute(f"{_SELECT} WHERE fact_id = ?", (fact_id,)).fetchone()
    return None if row is None else fact_of(row)


def put_fact_blocking(
    connection: Connection, fact: Fact, deliver_to: Sequence[str], now: datetime
) -> None:
    """Write a fact or its new state, with its item and its deliveries."""
    own = {name: getattr(fact, name) for name in _OWN}
    row = own | {"fact_id": fact.id, "owner_id": fact.scope.owner_id}
    insert_blocking(connection, "facts", row, _ON_CONFLICT)
    item = to_item(fact)
    put_item_blocking(connection, item)
    deliver_item_blocking(connection, item, deliver_to, now)


def says_same(held: Fact, fact: Fact) -> bool:
    """Return whether `held` is the same statement in the scope of `fact`, or in all projects."""
    scopes = (fact.scope, Scope(owner_id=fact.scope.owner_id))
    return held.form == fact.form and held.scope in scopes


def take_fact_blocking(
    connection: Connection, fact_id: str, deliver_to: Sequence[str], now: datetime
) -> Fact | None:
    """Delete a fact and its line in the profile, but not its item; return it, None if there is
    none. The line stays if a lasting fact that holds has the same.

    The facts that it had replaced hold again; a lasting one for which the profile has no room does
    not last. One that was told again meanwhile stays superseded, by that.
    """
    fact = fact_blocking(connection, fact_id)
    if fact is None:
        return None
    profile = profile_blocking(connection, fact.scope.owner_id)
    connection.execute("DELETE FROM facts WHERE fact_id = ?", (fact_id,))
    held = holding_blocking(connection, fact.scope.owner_id)
    has_line = any(new.lasting and new.text == fact.text for new in held)
    text = profile if has_line else without_fact(profile, fact.text)
    olds = _superseded(connection, fact_id)
    for at, old in enumerate(olds):
        same = [new for new in held if says_same(new, old)]
        same += [new for new in olds[at + 1 :] if (new.form, new.scope) == (old.form, old.scope)]
        stands = fact.superseded_by or (same[0].id if same else None)
        later = None if stands is None else fact_blocking(connection, stands)
        if later is not None:  # what came later still stands in its place
            put_fact_blocking(connection, _passed_on(old, later), deliver_to, now)
            continue
        lined = with_fact(text, old.text) if old.lasting else text
        again = replace(old.again(now), lasting=old.lasting and lined is not None)
        put_fact_blocking(connection, again, deliver_to, now)
        text = text if lined is None else lined
    if text != profile:
        put_profile_blocking(connection, fact.scope.owner_id, text, now)
    return fact


def earlier_tellings_blocking(connection: Connection, fact_id: str) -> list[str]:
    """Return the ids of facts that this one superseded and that say the same, directly or not; each
    comes after what it superseded.

    They would come back with the same words. What was superseded at once with something else is not
    among them: undoing that restores all of it.
    """
    fact = fact_blocking(connection, fact_id)
    if fact is None:
        return []
    replaced = _superseded(connection, fact_id)
    at_once = [old for old in replaced if old.valid_until == _ended_by(fact, old)]
    is_alone = all(old.form == fact.form for old in at_once)
    same = [old for old in replaced if old.form == fact.form and (is_alone or old not in at_once)]
    earlier = [[*earlier_tellings_blocking(connection, old.id), old.id] for old in same]
    return list(chain.from_iterable(earlier))


def _ended_by(fact: Fact, old: Fact) -> datetime:
    """Return until when `old` held if it is `fact` that replaced it."""
    return max(old.valid_from, fact.valid_from)


def _passed_on(old: Fact, later: Fact) -> Fact:
    """Return a fact as superseded by what stands in the place of the one that had replaced it, and
    ended at another moment than what that replaced itself: see `earlier_tellings_blocking`.
    """
    until = old.valid_until
    if until is not None and until == _ended_by(later, old):
        until += timedelta(milliseconds=1)
    return replace(old, superseded_by=later.id, valid_until=until, revision=old.revision + 1)


def words_of_facts_blocking(connection: Connection, fact_ids: Sequence[str]) -> list[str]:
    """Return the statements of some facts, and the words by which they were told."""
    facts = [fact_blocking(connection, fact_id) for fact_id in fact_ids]
    return [
        text for fact in facts if fact is not None for text in (fact.text, fact.evidence) if text
    ]


def forgotten_on_request_blocking(
    connection: Connection, *, turn: ToldTurn, told: Sequence[Forgotten], now: datetime
) -> None:
    """Add to what was forgotten in a turn until it ends, and keep the turn out of the record: it
    names what is forgotten. Of a turn that has ended the words are forgotten, too.

    What an agent elsewhere forgot is of no turn whose result will tell it.
    """
    turn.guard(connection)
    note_forgotten_blocking(connection, [turn.turn_id], turn.occurred_at)
    if _has_ended(connection, turn.turn_id):
        words = words_of_turns_blocking(connection, [turn.turn_id])
        scrub_blocking(connection, words, now, owner_id=turn.scope.owner_id)
        forget_copies_blocking(connection, [turn.turn_id], now)
    elif turn.conversation_id is not None:
        _add_forgotten(connection, turn.turn_id, told)


def _has_ended(connection: Connection, turn_id: str) -> bool:
    ended = "SELECT 1 FROM ended_turns WHERE turn_id = ?"
    return connection.execute(ended, (turn_id,)).fetchone() is not None


def _add_forgotten(connection: Connection, turn_id: str, told: Sequence[Forgotten]) -> None:
    sql = "SELECT told FROM forgotten_on_request WHERE turn_id = ?"
    row = connection.execute(sql, (turn_id,)).fetchone()
    before = [] if row is None else json.loads(row["told"])
    after = json.dumps([*before, *(asdict(fact) for fact in told)])
    values = {"turn_id": turn_id, "told": after}
    upsert_blocking(connection, "forgotten_on_request", values, "turn_id")


def profile_blocking(connection: Connection, owner_id: str) -> str:
    """Return the text of a person's profile."""
    row = connection.execute("SELECT text FROM profiles WHERE owner_id = ?", (owner_id,)).fetchone()
    return "" if row is None else str(row["text"])


def put_profile_blocking(connection: Connection, owner_id: str, text: str, now: datetime) -> None:
    """Replace a person's profile."""
    row = {"owner_id": owner_id, "text": text, "updated_at": rfc3339(now)}
    upsert_blocking(connection, "profiles", row, "owner_id")


def _superseded(connection: Connection, fact_id: str) -> list[Fact]:
    sql = f"{_SELECT} WHERE superseded_by = ? ORDER BY items.seq"
    return [fact_of(row) for row in connection.execute(sql, (fact_id,))]


def _holding(owner_id: str) -> tuple[str, tuple[object, ...]]:
    sql = (
        f"{_SELECT} WHERE facts.owner_id = ? AND superseded_by IS NULL AND valid_until IS NULL"
        " ORDER BY items.seq DESC LIMIT ?"
    )
    return sql, (owner_id, MAX_HELD)


def fact_of(row: Row) -> Fact:
    """Return the fact in a row of facts and items."""
    item = item_of(row)
    text = item.body.partition("\n")[0]  # see `Fact.body`
    return read_value(Fact, row, text=text, scope=item.scope, valid_from=item.occurred_at)
