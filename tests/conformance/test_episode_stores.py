"""The store of episodes against its suite, and the suite against deliberately wrong stores."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.clock import utc_now
from memory.episodes import store as sqlite_episodes
from memory.episodes.episode import Episode
from memory.episodes.store import NewEpisode, Put, SqlEpisodeStore, read_episode
from memory.items.scope import Scope
from memory.stores.sqlite.database import Database
from tests.conformance.suites.cancellation import cut_by_scope, cut_by_task
from tests.conformance.suites.episodes import BOB, EpisodeStoreSuite, OpenEpisodes, Opening
from tests.conformance.suites.opened import run_test
from tests.support.episodes import open_memory_in, opened_on
from tests.support.other_words import CAUGHT, expect_parts_caught
from tests.support.postgres import empty_schema_blocking


def opening(place: Path | str, make: Callable[[Any], SqlEpisodeStore] | None = None) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenEpisodes]:
        async with open_memory_in(place) as database:
            opened = opened_on(database)
            yield replace(opened, store=make(database)) if make is not None else opened

    return opens


class TestSqliteEpisodes(EpisodeStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class TestPostgresEpisodes(EpisodeStoreSuite):
    @pytest.fixture
    def opens(self) -> Iterator[Opening]:
        with empty_schema_blocking("memory") as schema:
            yield opening(schema)


class Unscoped(SqlEpisodeStore):
    async def get(self, episode_id: str, scope: Scope) -> Episode | None:
        del scope
        row = await self._database.row(
            "SELECT value FROM episodes WHERE episode_id = ?", (episode_id,)
        )
        return read_episode(row["value"]) if row is not None else None


class LookingBefore(SqlEpisodeStore):
    """Looks for the same outside of the transaction that stores it."""

    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        done: list[Put] = []
        for entry in new:
            row = await self._database.row(
                "SELECT 1 FROM episode_forms WHERE fingerprint = ?", (entry.fingerprint,)
            )
            if row is None:
                alone = f"{entry.episode.episode_id:16}".encode()[:16]
                done.extend(await super().put([replace(entry, fingerprint=alone)]))
            else:
                done.extend(await super().put([entry]))
        return done


class OneByOne(SqlEpisodeStore):
    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        puts: list[Put] = []
        for entry in new:
            puts.extend(await super().put([entry]))
        return puts


class MarkingNew(SqlEpisodeStore):
    """Marks the turn of what is new, and forgets to where it was merged."""

    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        puts = await super().put([replace(entry, remembers_turn=None) for entry in new])
        for entry, put in zip(new, puts, strict=True):
            if entry.remembers_turn is not None and put.status == "stored":
                await self.mark_remembered(entry.remembers_turn)
        return puts


class MarkingAfter(SqlEpisodeStore):
    """Marks the turn in a transaction of its own."""

    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        puts = await super().put([replace(entry, remembers_turn=None) for entry in new])
        for entry in new:
            if entry.remembers_turn is not None:
                await self.mark_remembered(entry.remembers_turn)
        return puts


class Overwriting(SqlEpisodeStore):
    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        for entry in new:
            name = entry.episode.episode_id
            await self._database.write(
                partial(sqlite_episodes.delete_episode_blocking, episode_id=name)
            )
        return await super().put(new)


S = EpisodeStoreSuite()
WRONG_STORES: list[tuple[Any, Any, dict[str, Any]]] = [
    (Unscoped, S.test_only_a_scope_that_covers_it_sees_it, {}),
    (LookingBefore, S.test_equal_ones_at_once_make_one, {}),
    (OneByOne, S.test_what_fails_leaves_nothing_behind, {}),
    (MarkingNew, S.test_the_turns_mark_is_stored_with_the_episode, {}),
    *[
        (MarkingAfter, S.test_a_put_that_is_cancelled_anywhere_is_whole_or_absent, {"cut": cut})
        for cut in (cut_by_scope, cut_by_task)
    ],
    (Overwriting, S.test_an_id_that_is_stored_is_left_as_it_is, {}),
]


@pytest.mark.parametrize(("make", "test", "case"), WRONG_STORES, ids=range(len(WRONG_STORES)))
async def test_the_suite_catches_a_wrong_store(
    tmp_path: Path, make: Callable[[Database, Any], SqlEpisodeStore], test: Any, case: Any
) -> None:
    with pytest.raises(CAUGHT):
        await run_test(test, opening(tmp_path, lambda database: make(database, utc_now)), **case)


WRONG_PARTS: list[tuple[str, Any, str, dict[str, Any]]] = [
    ("_like_row", lambda *_: None, "very_same_again_is_only_counted", {}),
    ("_like_by_tags", lambda *_: None, "same_type_and_tags_close_in_time_are_one", {}),
    ("put_item_blocking", lambda *_: None, "its_item_and_deliveries_are_stored_with_it", {}),
    ("realm_of", lambda _: "all", "nothing_is_merged_across_owners_or_labels", {"other": BOB}),
    ("room_of", lambda _: 9, "variants_are_bounded_and_then_a_new_one_begins", {}),
    (
        "read_episode",
        lambda value: replace(read_episode(value), tags=()),
        "an_episode_comes_back_as_it_was_put",
        {"text": "plain"},
    ),
]


async def test_the_suite_catches_wrong_parts(tmp_path: Path) -> None:
    await expect_parts_caught(
        tmp_path, opening, S, [(sqlite_episodes, *wrong) for wrong in WRONG_PARTS]
    )
