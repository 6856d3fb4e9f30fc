"""The store of cases against its suite, and the suite against deliberately wrong stores."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.cases.store import CaseChange
from memory.clock import Now
from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.sqlite import case_writes, cases
from memory.stores.sqlite.cases import SqliteCaseStore
from memory.stores.sqlite.database import Database
from tests.conformance.suites.cancellation import cut_by_scope, cut_by_task
from tests.conformance.suites.case_records import CaseStoreSuite
from tests.conformance.suites.case_values import ANN, Opening
from tests.conformance.suites.opened import named, run_test
from tests.support.cases import cases_on, opening
from tests.support.other_words import expect_caught

FAILURES = (AssertionError, pytest.fail.Exception, StoreConflict, StoreUnavailable, KeyError)


class TestSqliteCases(CaseStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


S = CaseStoreSuite()
WRONG_WORDS: list[tuple[str, str, Any, dict[str, Any]]] = [
    (") AND +owner_id = :owner", ") AND :owner IS NOT NULL", "across", {}),
    (" WHERE owner_id = ? AND fingerprint", " WHERE ? IS NOT NULL AND fingerprint", "across", {}),
    (" AND own = 0 AND +owner_id = ?", " AND own = 0 AND ? IS NOT NULL", "across", {}),
    (" = json_extract(:value, '$.scope')", " IS NOT :value", "across", {}),
    (" AND revision = :expected", " AND :expected IS NOT NULL", "older_state", {}),
    (" AND revision = :expected", " AND :expected IS NOT NULL", "two_decisions", {}),
    (
        " AND json_extract(value, '$.scope') = json_extract(:value, '$.scope')",
        "",
        "never_changes",
        {"other": replace(ANN, app_code="bank")},
    ),
    ("SET fingerprint = :fingerprint,", "SET", "equal_content", {}),
    ("ORDER BY at, voter", "ORDER BY at DESC, voter", "one_vote", {}),
    ("score DESC, other", "score, other", "higher_score", {}),
    ("'same_root_cause' THEN 0", "'same_root_cause' THEN 3", "both_ends", {}),
    ("'same_root_cause' THEN 0", "'same_root_cause' THEN 3", "very_many_relations", {}),
    (" WHERE lifecycle IN ('draft', 'accepted') AND", " WHERE", "may_be_told", {}),
    ("lesser = ? OR greater = ?", "lesser = ? AND greater = ?", "take_the_place", {}),
    ("AND +owner_id = :owner", "AND :owner IS NOT NULL", "not_the_owners", {}),
    ("ORDER BY event = 'created' DESC,", "ORDER BY", "newest_changes", {}),
    ("IN ('updated', 'lifecycle')", "IN ('lifecycle')", "what_is_newest", {}),
    (
        "FROM case_history WHERE case_id = :case",
        "FROM case_history WHERE :case != ''",
        "voters_last",
        {},
    ),
    ("AND conversation_id IS :conversation", "AND true", "back_and_forth", {}),
    ("ORDER BY seq DESC LIMIT ?", "ORDER BY seq LIMIT ?", "as_they_were_told", {}),
    ("AND conversation_id IS :conversation AND", "AND true AND", "few_reports", {"voice": None}),
    ("ORDER BY shown_at DESC", "ORDER BY shown_at", "shown_and_not_judged", {}),
    ("DO UPDATE SET own = 1,", "DO UPDATE SET", "wrote_itself", {}),
    (" is_findable = :is_findable,", "", "stale_or_forgotten", {}),
    ("app_code') = ?, 1)", "app_code') = ?, 0)", "where_an_app", {}),
    ("max(case_votes.content_revision, warned_on) >=", "1 OR 1 =", "rewritten_since", {}),
    ("excluded.content_revision WHERE ifnull", "1 WHERE ifnull", "or_wrote_are_known", {}),
    ("WHERE voter = ? AND case_id = ?", "WHERE '' != ? AND case_id = ?", "wrote_are_known", {}),
    ("WHERE voter = ? AND case_id = ?", "WHERE voter = ? AND '' != ?", "wrote_are_known", {}),
]


@pytest.mark.parametrize(
    ("old", "new", "part", "case"), WRONG_WORDS, ids=[wrong_word[1] for wrong_word in WRONG_WORDS]
)
async def test_the_suite_catches_a_wrong_statement(
    tmp_path: Path, old: str, new: str, part: str, case: dict[str, Any]
) -> None:
    def opens(speaking: Callable[[Database], Database]) -> Opening:
        return opening(tmp_path, lambda database, now: cases_on(speaking(database), now))

    await expect_caught(named(part, S), old, new, opens, **case)


class TwoSteps(SqliteCaseStore):
    """Writes the case first, and the rest in a transaction of its own."""

    async def apply(self, change: CaseChange) -> None:
        alone = replace(change, vote=None, relations=None, report=None)
        await super().apply(alone)
        rest = replace(change, expected_revision=change.case.revision, history=[])
        await super().apply(rest)


class Unordered(SqliteCaseStore):
    async def get(self, case_ids: Sequence[str], owner_id: str) -> Any:
        return await super().get(sorted(case_ids), owner_id)


class Forgiving(SqliteCaseStore):
    """Takes a new case for an update of the one that has its id."""

    async def apply(self, change: CaseChange) -> None:
        known = await self.get([change.case.case_id], change.case.scope.owner_id)
        expected = known[0].revision if known else 0
        await super().apply(replace(change, expected_revision=expected))


WRONG_STORES: list[tuple[type[SqliteCaseStore], str, dict[str, Any]]] = [
    (TwoSteps, "cancelled_anywhere", {"cut": cut_by_scope}),
    (TwoSteps, "cancelled_anywhere", {"cut": cut_by_task}),
    (TwoSteps, "leaves_nothing_behind", {"broken": "vote"}),
    (Unordered, "in_the_order_of_the_ids", {}),
    (Forgiving, "older_state", {}),
]


@pytest.mark.parametrize(("kind", "part", "case"), WRONG_STORES, ids=range(len(WRONG_STORES)))
async def test_the_suite_catches_a_wrong_store(
    tmp_path: Path, kind: type[SqliteCaseStore], part: str, case: dict[str, Any]
) -> None:
    def make(database: Database, now: Now) -> SqliteCaseStore:
        return kind(database, now, deliver_to=("memu", "vector"))

    with pytest.raises(FAILURES):
        await run_test(named(part, S), opening(tmp_path, make), **case)


def _nothing(*_: object) -> None:
    """Do nothing."""


WRONG_PARTS: list[tuple[Any, str, Any, str, dict[str, Any]]] = [
    (case_writes, "put_item_blocking", _nothing, "item_and_deliveries", {}),
    (case_writes, "_searched", lambda _: object(), "not_delivered_again", {}),
    (case_writes, "_hide", _nothing, "must_not_find", {}),
    (case_writes, "delete_item_blocking", lambda *_: True, "never_to_be_found", {}),
    (case_writes, "_put_report", _nothing, "as_they_were_told", {}),
    (case_writes, "_put_relations", _nothing, "both_ends", {}),
    (case_writes, "_put_case", _nothing, "comes_back", {"text": "x"}),
    (cases, "is_storable", lambda _: True, "shown_and_not_judged", {}),
]


@pytest.mark.parametrize("wrong_part", WRONG_PARTS, ids=range(len(WRONG_PARTS)))
async def test_the_suite_catches_a_wrong_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong_part: Any
) -> None:
    module, name, wrong, part, case = wrong_part
    monkeypatch.setattr(module, name, wrong)
    test = named(part, S)
    with pytest.raises((*FAILURES, UnicodeEncodeError)):
        await run_test(test, opening(tmp_path), **case)
