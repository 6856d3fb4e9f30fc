"""Lets the facts and episodes fade that were shown least lately, once a person has too many of
them.

Nothing is deleted: what fades is kept, and holds no longer. Each step is one transaction with its
line in the log, so the process may be killed at any moment. A step can be undone, and is not done
again then.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

import anyio

from memory.clock import Now, from_rfc3339, rfc3339
from memory.facts.fact import Fact
from memory.facts.rows import SqliteFactStore, fact_blocking, put_fact_blocking
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.statements import insert_blocking

TidyAction = Literal["merged", "superseded", "faded"]
"""What the log may hold; the first two are of earlier releases."""

MAX_FACTS: Final = 1_000
"""Facts of a person that hold; beyond it those fade that were shown least lately. Lasting ones
stay.
"""
_EVERY_S: Final = 3_600.0
_MAX_EPISODES: Final = 5_000
"""Of an owner; those beyond that were shown, or happened, least lately fade."""
_SHOWN_INTENTS: Final = 2_000
"""The newest recalls that are read to learn when a fact was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TidiedFact:
    """One step of the log."""

    id: int
    action: TidyAction
    fact_id: str
    """Of a fact, or of an episode that faded."""
    by_id: str | None
    at: datetime
    undone_at: datetime | None


class FactTidier:
    """Tidies the facts of all owners; `run` it in a task group."""

    def __init__(
        self,
        database: Database,
        *,
        deliver_to: Sequence[str],
        now: Now,
        on_step: Callable[[TidyAction], None] = lambda _: None,
        most: int = MAX_FACTS,
        most_episodes: int = _MAX_EPISODES,
        every_s: float = _EVERY_S,
    ) -> None:
        self._database = database
        self._store = SqliteFactStore(database)
        self._deliver_to = tuple(deliver_to)
        self._now = now
        self._on_step = on_step
        self._most = most
        self._most_episodes = most_episodes
        self._every_s = every_s

    async def run(self) -> None:
        """Tidy now and every hour, until cancelled."""
        while True:
            await self.tidy()
            await anyio.sleep(self._every_s)

    async def tidy(self) -> int:
        """Tidy the facts and episodes of every owner once; return how many steps were done.

        Raise `StoreUnavailable` if it breaks off; the steps before were done.
        """
        rows = await self._database.rows(
            "SELECT owner_id FROM facts UNION"
            " SELECT owner_id FROM items WHERE kind = 'episode' AND valid_until IS NULL"
            " GROUP BY owner_id HAVING count(*) > ?",
            (self._most_episodes,),
        )
        return sum([await self._tidy_owner(row["owner_id"]) for row in rows])

    async def log(self, owner_id: str, *, limit: int) -> Sequence[TidiedFact]:
        """Return the last steps for an owner, newest first."""
        return await self._database.values(
            _step_of,
            "SELECT * FROM tidied_facts WHERE owner_id = ? ORDER BY id DESC LIMIT ?",
            (owner_id, limit),
        )

    async def undo(self, step_id: int, owner_id: str) -> TidiedFact | None:
        """Have the fact of a step hold again; return the step, or None if the owner has no such
        step.

        Raise `StoreUnavailable` if nothing was changed.
        """
        now = self._now()
        return await self._database.write(
            lambda writer: self._undo_blocking(writer, step_id, owner_id, now)
        )

    async def _tidy_owner(self, owner_id: str) -> int:
        facts = await self._store.holding(owner_id)
        shown_at = await self._shown_at(owner_id)
        now, done = self._now(), 0
        for fact in fading(facts, shown_at, most=self._most):
            if await self._database.write(partial(self._fade_blocking, fact_id=fact.id, now=now)):
                self._on_step("faded")
                done += 1
        return done + await self._fade_episodes(owner_id, shown_at, now)

    async def _fade_episodes(
        self, owner_id: str, shown_at: Mapping[str, datetime], now: datetime
    ) -> int:
        """Have the episodes beyond the bound hold no longer, but those that were brought back."""
        rows = await self._database.rows(
            "SELECT id, occurred_at FROM items WHERE owner_id = ? AND kind = 'episode'"
            " AND valid_until IS NULL AND id NOT IN (SELECT fact_id FROM tidied_facts"
            " WHERE undone_at IS NOT NULL)",
            (owner_id,),
        )
        used = {row["id"]: from_rfc3339(row["occurred_at"]) for row in rows}
        used |= {item_id: max(at, shown_at.get(item_id, at)) for item_id, at in used.items()}
        oldest = sorted(used, key=lambda item_id: used[item_id], reverse=True)
        for item_id in oldest[self._most_episodes :]:
            step = {"owner_id": owner_id, "at": rfc3339(now), "action": "faded", "fact_id": item_id}
            await self._database.write(partial(_fade_episode_blocking, step=step))
            self._on_step("faded")
        return max(0, len(oldest) - self._most_episodes)

    async def _shown_at(self, owner_id: str) -> Mapping[str, datetime]:
        rows = await self._database.rows(
            "SELECT one.value AS id, max(occurred_at) AS at FROM"
            " (SELECT payload, occurred_at FROM intents WHERE owner_id = ?"
            " AND key = 'memory.injected' AND payload IS NOT NULL ORDER BY seq DESC LIMIT ?),"
            " json_each(payload, '$.ids') AS one"
            " GROUP BY one.value",
            (owner_id, _SHOWN_INTENTS),
        )
        return {str(row["id"]): from_rfc3339(row["at"]) for row in rows}

    def _fade_blocking(
        self, connection: sqlite3.Connection, *, fact_id: str, now: datetime
    ) -> bool:
        """Have a fact hold no longer, unless it changed meanwhile or was brought back before."""
        fact = fact_blocking(connection, fact_id)
        was_undone = connection.execute(
            "SELECT 1 FROM tidied_facts WHERE fact_id = ? AND undone_at IS NOT NULL", (fact_id,)
        ).fetchone()
        if fact is None or fact.valid_until is not None or was_undone is not None:
            return False
        ended = replace(fact, valid_until=now, updated_at=now, revision=fact.revision + 1)
        put_fact_blocking(connection, ended, self._deliver_to, now)
        row = {"owner_id": fact.scope.owner_id, "at": rfc3339(now), "action": "faded"}
        insert_blocking(connection, "tidied_facts", row | {"fact_id": fact.id})
        return True

    def _undo_blocking(
        self, connection: sqlite3.Connection, step_id: int, owner_id: str, now: datetime
    ) -> TidiedFact | None:
        row = connection.execute(
            "SELECT * FROM tidied_facts WHERE id = ? AND owner_id = ?", (step_id, owner_id)
        ).fetchone()
        if row is None:
            return None
        step = _step_of(row)
        fact = fact_blocking(connection, step.fact_id)
        if step.undone_at is not None:
            return step
        if fact is None:
            connection.execute("UPDATE items SET valid_until = NULL WHERE id = ?", (step.fact_id,))
        else:
            put_fact_blocking(connection, fact.again(now), self._deliver_to, now)
        connection.execute(
            "UPDATE tidied_facts SET undone_at = ? WHERE id = ?", (rfc3339(now), step_id)
        )
        return replace(step, undone_at=now)


def fading(
    facts: Sequence[Fact], shown_at: Mapping[str, datetime], *, most: int = MAX_FACTS
) -> Sequence[Fact]:
    """Return those of a person's facts that are too many: not lasting, and shown or changed least
    lately.

    `shown_at` has when a fact was last shown to a model.
    """
    others = [fact for fact in facts if not fact.lasting]
    others.sort(key=lambda fact: max(shown_at.get(fact.id, fact.valid_from), fact.updated_at))
    return others[: max(0, len(facts) - most)]


def _fade_episode_blocking(connection: sqlite3.Connection, step: Mapping[str, str]) -> None:
    connection.execute(
        "UPDATE items SET valid_until = ? WHERE id = ?", (step["at"], step["fact_id"])
    )
    insert_blocking(connection, "tidied_facts", step)


def _step_of(row: sqlite3.Row | Mapping[str, Any]) -> TidiedFact:
    return TidiedFact(
        id=row["id"],
        action=row["action"],
        fact_id=row["fact_id"],
        by_id=row["by_id"],
        at=from_rfc3339(row["at"]),
        undone_at=None if row["undone_at"] is None else from_rfc3339(row["undone_at"]),
    )
