"""The store of cases against its suite, and the suite against deliberately wrong stores."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.cases import case_writes
from memory.cases import store as cases
from memory.cases.case_writes import CaseChange
from memory.cases.store import SqlCaseStore
from memory.clock import Now
from memory.stores.sqlite.database import Database
from tests.conformance.suites.cancellation import cut_by_scope, cut_by_task
from tests.conformance.suites.case_records import CaseStoreSuite
from tests.conformance.suites.case_values import ANN, Opening
from tests.conformance.suites.opened import named, run_test
from tests.support.cases import cases_on, opening
from tests.support.other_words import CAUGHT, Speak, expect_all_caught, expect_parts_caught
from tests.support.postgres import empty_schema_blocking


class TestSqliteCases(CaseStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class TestPostgresCases(CaseStoreSuite):
    @pytest.fixture
    def opens(self) -> Iterator[Opening]:
        with empty_schema_blocking("memory") as schema:
            yield opening(schema)


S = CaseStoreSuite()


async def test_the_suite_catches_wrong_statements(tmp_path: Path) -> None:
    def speaking(directory: Path, speak: Speak) -> Opening:
        return opening(directory, lambda database, now: cases_on(speak(database), now))

    bank: dict[str, Any] = {"other": replace(ANN, app_code="bank")}
    cases = {"never_changes": bank}
    await expect_all_caught("cases", tmp_path, speaking, S, cases=cases)


class TwoSteps(SqlCaseStore):
    """Writes the case first, and the rest in a transaction of its own."""

    async def apply(self, change: CaseChange) -> None:
        alone = replace(change, vote=None, relations=None)
        await super().apply(alone)
        rest = replace(change, expected_revision=change.case.revision, history=[])
        await super().apply(rest)


class Unordered(SqlCaseStore):
    async def get(self, case_ids: Sequence[str], owner_id: str) -> Any:
        return await super().get(sorted(case_ids), owner_id)


class Forgiving(SqlCaseStore):
    """Takes a new case for an update of the one that has its id."""

    async def apply(self, change: CaseChange) -> None:
        known = await self.get([change.case.case_id], change.case.scope.owner_id)
        expected = known[0].revision if known else 0
        await super().apply(replace(change, expected_revision=expected))


WRONG_STORES: list[tuple[type[SqlCaseStore], str, dict[str, Any]]] = [
    (TwoSteps, "cancelled_anywhere", {"cut": cut_by_scope}),
    (TwoSteps, "cancelled_anywhere", {"cut": cut_by_task}),
    (TwoSteps, "leaves_nothing_behind", {"broken": "vote"}),
    (Unordered, "in_the_order_of_the_ids", {}),
    (Forgiving, "older_state", {}),
]


@pytest.mark.parametrize(("kind", "part", "case"), WRONG_STORES, ids=range(len(WRONG_STORES)))
async def test_the_suite_catches_a_wrong_store(
    tmp_path: Path, kind: type[SqlCaseStore], part: str, case: dict[str, Any]
) -> None:
    def make(database: Database, now: Now) -> SqlCaseStore:
        return kind(database, now, deliver_to=("memu", "vector"))

    with pytest.raises(CAUGHT):
        await run_test(named(part, S), opening(tmp_path, make), **case)


def _nothing(*_: object) -> None:
    """Do nothing."""


WRONG_PARTS: list[tuple[Any, str, Any, str, dict[str, Any]]] = [
    (case_writes, "put_item_blocking", _nothing, "item_and_deliveries", {}),
    (case_writes, "_searched", lambda _: object(), "not_delivered_again", {}),
    (case_writes, "_hide", _nothing, "must_not_find", {}),
    (case_writes, "delete_item_blocking", lambda *_: True, "never_to_be_found", {}),
    (case_writes, "_put_relations", _nothing, "both_ends", {}),
    (case_writes, "_put_case", _nothing, "comes_back", {"text": "x"}),
    (cases, "is_storable", lambda _: True, "shown_and_not_judged", {}),
]


async def test_the_suite_catches_wrong_parts(tmp_path: Path) -> None:
    await expect_parts_caught(tmp_path, opening, S, WRONG_PARTS)
