"""The stores of conversations, turns, events and approvals against their suites, and the suites against deliberately wrong stores."""

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from tests.conformance.suites.approvals import ApprovalStoreSuite
from tests.conformance.suites.beside_turns import BesideTurnsSuite
from tests.conformance.suites.cancellation import cut_by_scope, cut_by_task
from tests.conformance.suites.conversation_values import OpenStores, Stores
from tests.conformance.suites.conversations import ConversationStoreSuite
from tests.conformance.suites.duties import DutyStoreSuite
from tests.conformance.suites.events import EventStoreSuite
from tests.conformance.suites.leases import FenceSuite, LeaseStoreSuite
from tests.conformance.suites.opened import named, run_test
from tests.conformance.suites.rivals import RivalStoresSuite
from tests.conformance.suites.schedules import ScheduleStoreSuite
from tests.conformance.suites.transcripts import TranscriptStoreSuite
from tests.conformance.suites.turns import TurnStoreSuite
from tests.conformance.suites.work_trees import WorkTreeStoreSuite
from tests.support.other_words import CAUGHT, Speak, expect_all_caught
from tests.support.postgres import empty_schema_blocking
from tests.support.run_twice import RunTwice
from tests.support.stores import open_file, postgres_stores, sqlite_stores, stores_on
from tests.support.wrong_conversation_stores import (
    CString,
    Fragile,
    InTwoSteps,
    Late,
    Likening,
    OneByOne,
    Racing,
    Remembering,
    Strict,
    TrustingCursor,
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


class TestSqliteApprovals(_OnSqlite, ApprovalStoreSuite):
    pass


class TestSqliteSchedules(_OnSqlite, ScheduleStoreSuite):
    pass


class TestSqliteLeases(_OnSqlite, LeaseStoreSuite):
    pass


class TestSqliteDuties(_OnSqlite, DutyStoreSuite):
    pass


class TestSqliteBesideTurns(_OnSqlite, BesideTurnsSuite):
    pass


class TestSqliteFences(_OnSqlite, FenceSuite):
    pass


class TestSqliteTranscripts(_OnSqlite, TranscriptStoreSuite):
    pass


class TestSqliteWorkTrees(_OnSqlite, WorkTreeStoreSuite):
    pass


class _OnPostgres:
    @pytest.fixture
    def opens(self) -> Iterator[OpenStores]:
        with empty_schema_blocking("conversations") as schema:
            yield postgres_stores(schema)


class TestPostgresConversations(_OnPostgres, ConversationStoreSuite):
    pass


class TestPostgresTurns(_OnPostgres, TurnStoreSuite):
    pass


class TestPostgresEvents(_OnPostgres, EventStoreSuite):
    pass


class TestPostgresApprovals(_OnPostgres, ApprovalStoreSuite):
    pass


class TestPostgresSchedules(_OnPostgres, ScheduleStoreSuite):
    pass


class TestPostgresBesideTurns(_OnPostgres, BesideTurnsSuite):
    pass


class TestPostgresLeases(_OnPostgres, LeaseStoreSuite):
    pass


class TestPostgresDuties(_OnPostgres, DutyStoreSuite):
    pass


class TestPostgresFences(_OnPostgres, FenceSuite):
    pass


class TestPostgresTranscripts(_OnPostgres, TranscriptStoreSuite):
    pass


class TestPostgresWorkTrees(_OnPostgres, WorkTreeStoreSuite):
    pass


class TestRivalsOnSqlite(_OnSqlite, RivalStoresSuite):
    pass


class TestRivalsOnPostgres(_OnPostgres, RivalStoresSuite):
    pass


class _RunTwice:
    @pytest.fixture
    def opens(self, tmp_path: Path) -> OpenStores:
        return cast("OpenStores", opening(tmp_path, "database", RunTwice))


class TestConversationsRunTwice(_RunTwice, ConversationStoreSuite):
    pass


class TestTurnsRunTwice(_RunTwice, TurnStoreSuite):
    pass


class TestEventsRunTwice(_RunTwice, EventStoreSuite):
    pass


class TestApprovalsRunTwice(_RunTwice, ApprovalStoreSuite):
    pass


class TestFencesRunTwice(_RunTwice, FenceSuite):
    pass


class TestLeasesRunTwice(_RunTwice, LeaseStoreSuite):
    pass


class TestDutiesRunTwice(_RunTwice, DutyStoreSuite):
    pass


class TestSchedulesRunTwice(_RunTwice, ScheduleStoreSuite):
    pass


class TestTranscriptsRunTwice(_RunTwice, TranscriptStoreSuite):
    pass


class TestBesideTurnsRunTwice(_RunTwice, BesideTurnsSuite):
    pass


Replacement = Callable[[Any], Any]


def opening(directory: Path, name: str, make: Replacement) -> Any:
    @asynccontextmanager
    async def opens() -> AsyncIterator[Stores]:
        async with open_file(directory) as database:
            if name == "database":
                yield stores_on(make(database))
            else:
                yield replace(stores_on(database), **{name: make(database)})

    return opens


CS, TS, ES, AS, SS = (
    ConversationStoreSuite(),
    TurnStoreSuite(),
    EventStoreSuite(),
    ApprovalStoreSuite(),
    ScheduleStoreSuite(),
)
ENDED_IN_TWO_STEPS = (
    "accept_is_all_or_nothing",
    "ending_and_its_event_are_one",
    "accepted_as_running_with_its_first_event",
)
TRIGGERS = {
    "turn_counted": "turns_are_counted",
    "turn_taken_back": "turns_are_counted",
    "completed_turn_indexed": "search_knows_what_is_there_now",
    "title_indexed": "search_knows_what_is_there_now",
    "changed_title_indexed": "search_knows_what_is_there_now",
}
APPROVAL_TRIGGERS = {
    "ended_approvals_emptied": "dropped_when_its_turn_has_ended",
    "approval_of_run_taken_back": "starts_a_turn_is_stored_with_it",
}
NOT_A_CURSOR = {"cursor": urlsafe_b64encode(b"zzz|zzz").decode()}
WRONG: list[tuple[str, Any, Callable[..., Awaitable[None]], dict[str, Any]]] = [
    ("conversations", TrustingCursor, CS.test_a_garbage_cursor_is_refused, NOT_A_CURSOR),
    ("conversations", TrustingCursor, CS.test_another_users_cursor_is_refused, {}),
    ("conversations", Likening, CS.test_a_search_finds_the_text_as_it_stands, {}),
    ("turns", Racing, TS.test_writers_at_once_share_the_numbers_without_gap, {}),
    *[("turns", InTwoSteps, named(part, TS), {}) for part in ENDED_IN_TWO_STEPS],
    ("turns", InTwoSteps, named("cancelled_anywhere", TS), {"cut": cut_by_scope}),
    ("turns", Strict, TS.test_an_ending_may_be_written_again, {}),
    *[("turns", without_trigger(name), named(part, CS), {}) for name, part in TRIGGERS.items()],
    *[
        ("turns", without_trigger(name), named(part, AS), {})
        for name, part in APPROVAL_TRIGGERS.items()
    ],
    (
        "turns",
        without_trigger("schedules_without_conversation"),
        named("switches_a_schedule_off", SS),
        {},
    ),
    ("turns", Remembering, TS.test_what_was_read_is_a_copy, {}),
    ("turns", Remembering, named("the_unfinished_are_the_queued_and_running", TS), {}),
    ("turns", CString, TS.test_a_turn_comes_back_as_it_was_written, {"text": "a\0b"}),
    ("turns", Fragile, TS.test_a_lone_surrogate_in_a_result_does_not_stop_it, {}),
    ("events", OneByOne, ES.test_a_batch_is_stored_whole_or_not_at_all, {}),
    ("events", Late, ES.test_what_was_committed_is_seen_at_once, {}),
    *[
        ("database", unshielded, named("cancelled_anywhere", suite), {"cut": cut})
        for cut in (cut_by_scope, cut_by_task)
        for suite in (CS, TS, ES, AS)
    ],
]


async def test_the_suites_catch_wrong_statements(tmp_path: Path) -> None:
    def speaking(directory: Path, speak: Speak) -> Any:
        return opening(directory, "database", speak)

    await expect_all_caught("conversations", tmp_path, speaking, CS, TS, ES)
    texts = {"while_it_is_open": {"text": "So."}}
    await expect_all_caught("approvals", tmp_path, speaking, AS, cases=texts)
    await expect_all_caught("schedules", tmp_path, speaking, SS)
    await expect_all_caught("leases", tmp_path, speaking, LeaseStoreSuite(), FenceSuite())
    await expect_all_caught("transcripts", tmp_path, speaking, TranscriptStoreSuite())
    deaths = {
        "dead_node_is_taken": {"how": "expired"},
        "dead_node_is_taken_and": {"how": "begun_anew"},
    }
    await expect_all_caught("duties", tmp_path, speaking, DutyStoreSuite(), cases=deaths)


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
async def test_a_wrong_store_does_not_pass(tmp_path: Path, wrong: Any) -> None:
    name, make, test, case = wrong
    with anyio.fail_after(30), pytest.raises(CAUGHT):
        await run_test(test, opening(tmp_path, name, make), **case)
