"""The stores of conversations, turns and events against their suites, and the suites against deliberately wrong stores."""

import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.sqlite.database import Database
from tests.conformance.suites.cancellation import cut_by_scope, cut_by_task
from tests.conformance.suites.conversation_values import OpenStores, Stores
from tests.conformance.suites.conversations import ConversationStoreSuite
from tests.conformance.suites.events import EventStoreSuite
from tests.conformance.suites.opened import run_test
from tests.conformance.suites.turns import TurnStoreSuite
from tests.support.stores import open_file, sqlite_stores, stores_on
from tests.support.wrong_conversation_stores import (
    Clearing,
    CoarseCursor,
    CString,
    Doubling,
    Early,
    Forgetful,
    Fragile,
    Greedy,
    Hiding,
    Hoarding,
    InTwoSteps,
    Keeping,
    KeepingFork,
    Late,
    Likening,
    OneByOne,
    Overwriting,
    Racing,
    Referring,
    Remembering,
    Reviving,
    SharedKeys,
    Shuffled,
    Strict,
    Thorough,
    TrustingCursor,
    Unbounded,
    Unordered,
    Unowned,
    unshielded,
    without_trigger,
)


class _OnSqlite:
    @pytest.fixture
    def opens(self, tmp_path: Path) -> OpenStores:
        return sqlite_stores(tmp_path)


class TestSqliteConversations(_OnSqlite, ConversationStoreSuite):
    pass


class TestSqliteTurns(_OnSqlite, TurnStoreSuite):
    pass


class TestSqliteEvents(_OnSqlite, EventStoreSuite):
    pass


FAILURES = (
    AssertionError,
    pytest.fail.Exception,
    StoreConflict,
    StoreUnavailable,
    sqlite3.OperationalError,
)


Replacement = Callable[[Database], Any]


def opening(directory: Path, name: str, make: Replacement) -> Any:
    @asynccontextmanager
    async def opens() -> AsyncIterator[Stores]:
        async with open_file(directory) as database:
            if name == "database":
                yield stores_on(make(database))
            else:
                yield replace(stores_on(database), **{name: make(database)})

    return opens


CS, TS, ES = ConversationStoreSuite(), TurnStoreSuite(), EventStoreSuite()
WRONG: list[tuple[str, Any, Callable[..., Awaitable[None]], dict[str, Any]]] = [
    ("conversations", Unowned, CS.test_another_users_conversation_is_not_there, {}),
    ("conversations", Overwriting, CS.test_an_id_is_given_once, {}),
    (
        "conversations",
        CoarseCursor,
        CS.test_pages_are_newest_first_and_meet_without_gap_or_double,
        {},
    ),
    (
        "conversations",
        TrustingCursor,
        CS.test_a_garbage_cursor_is_refused,
        {"cursor": urlsafe_b64encode(b"zzz|zzz").decode()},
    ),
    ("conversations", TrustingCursor, CS.test_another_users_cursor_is_refused, {}),
    ("conversations", Keeping, CS.test_what_is_unset_is_as_if_it_had_never_been_set, {}),
    ("conversations", Likening, CS.test_a_search_finds_the_text_as_it_stands, {}),
    ("conversations", Clearing, CS.test_a_change_sets_what_it_names_alone, {}),
    ("conversations", KeepingFork, CS.test_binding_a_session_ends_the_fork, {}),
    (
        "conversations",
        Hiding,
        CS.test_a_deletion_takes_turns_and_events_and_nothing_else,
        {},
    ),
    (
        "conversations",
        Greedy,
        CS.test_its_own_are_the_sessions_that_nothing_else_refers_to,
        {},
    ),
    ("conversations", Thorough, CS.test_a_key_outlives_its_turn_for_a_while, {}),
    ("conversations", Hoarding, CS.test_a_key_outlives_its_turn_for_a_while, {}),
    ("turns", Racing, TS.test_seq_counts_from_one_within_each_conversation, {}),
    ("turns", Racing, TS.test_writers_at_once_share_the_numbers_without_gap, {}),
    ("turns", InTwoSteps, TS.test_accept_is_all_or_nothing, {}),
    ("turns", InTwoSteps, TS.test_an_ending_and_its_event_are_one, {}),
    ("turns", InTwoSteps, TS.test_a_turn_may_be_accepted_as_running_with_its_first_event, {}),
    (
        "turns",
        InTwoSteps,
        TS.test_a_write_that_is_cancelled_anywhere_is_whole_or_absent,
        {"cut": cut_by_scope},
    ),
    ("turns", SharedKeys, TS.test_a_key_belongs_to_its_user, {}),
    ("turns", Reviving, TS.test_only_a_queued_turn_is_started, {}),
    ("turns", Early, TS.test_how_a_turn_ended_may_be_written_ahead_of_its_end, {}),
    ("turns", Strict, TS.test_an_ending_may_be_written_again, {}),
    (
        "turns",
        Unordered,
        TS.test_the_unfinished_are_the_queued_and_running_as_they_were_accepted,
        {},
    ),
    ("turns", Unordered, TS.test_the_history_is_the_last_turns_oldest_first, {}),
    *[
        ("turns", without_trigger(trigger), CS.test_turns_are_counted_but_those_taken_back, {})
        for trigger in ("turn_counted", "turn_taken_back")
    ],
    *[
        ("turns", without_trigger(trigger), CS.test_a_search_knows_what_is_there_now, {})
        for trigger in (
            "completed_turn_indexed",
            "title_indexed",
            "changed_title_indexed",
        )
    ],
    (
        "turns",
        Unbounded,
        TS.test_a_fork_point_is_the_last_turn_that_left_a_session_and_an_entry,
        {},
    ),
    ("turns", Remembering, TS.test_what_was_read_is_a_copy, {}),
    (
        "turns",
        Remembering,
        TS.test_the_unfinished_are_the_queued_and_running_as_they_were_accepted,
        {},
    ),
    ("turns", Referring, TS.test_a_copied_history_is_a_conversation_of_its_own, {}),
    ("turns", CString, TS.test_a_turn_comes_back_as_it_was_written, {"text": "a\0b"}),
    ("events", OneByOne, ES.test_a_batch_is_stored_whole_or_not_at_all, {}),
    ("events", Doubling, ES.test_a_batch_may_be_written_again, {}),
    ("events", Forgetful, ES.test_the_last_seq_is_never_taken_back, {}),
    ("events", Shuffled, ES.test_events_come_back_in_order_and_as_they_were_written, {}),
    ("events", Shuffled, ES.test_one_turns_events_are_its_own, {}),
    ("events", Late, ES.test_what_was_committed_is_seen_at_once, {}),
    *[
        ("database", unshielded, test, {"cut": cut})
        for cut in (cut_by_scope, cut_by_task)
        for test in (
            CS.test_a_write_that_is_cancelled_anywhere_is_whole_or_absent,
            TS.test_a_write_that_is_cancelled_anywhere_is_whole_or_absent,
            ES.test_a_write_that_is_cancelled_anywhere_is_whole_or_absent,
        )
    ],
]


@pytest.mark.parametrize(
    ("name", "make", "test", "case"),
    WRONG,
    ids=[
        f"{make.__name__}-{test.__name__[5:45]}-{n}" for n, (_, make, test, _) in enumerate(WRONG)
    ],
)
async def test_a_wrong_store_does_not_pass(
    tmp_path: Path,
    name: str,
    make: Replacement,
    test: Callable[..., Awaitable[None]],
    case: dict[str, Any],
) -> None:
    with anyio.fail_after(30), pytest.raises(FAILURES):
        await run_test(test, opening(tmp_path, name, make), **case)


async def test_a_store_that_refuses_surrogates_does_not_pass(tmp_path: Path) -> None:
    with anyio.fail_after(30), pytest.raises(UnicodeEncodeError):
        await run_test(
            TS.test_a_lone_surrogate_in_a_result_does_not_stop_it,
            opening(tmp_path, "turns", Fragile),
        )
