"""Fingerprints of cases: which tellings have the same."""

from dataclasses import replace

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.fingerprint import fingerprint_of
from tests.conformance.suites.case_values import ANN

BEFORE = CaseContent(
    symptom_summary="checkout answers 503",
    diagnosis="the pool is exhausted",
    resolution="raise the pool",
    root_cause="a leak in pool 7",
    metadata=CaseMetadata(failure_layer="db", tags=("pool",)),
)


def test_the_occasion_case_white_space_punctuation_and_metadata_play_no_part() -> None:
    told = fingerprint_of(BEFORE, ANN)
    assert len(told) == 16
    for again in (
        replace(BEFORE, diagnosis=" The pool\n is - EXHAUSTED "),
        replace(BEFORE, metadata=CaseMetadata()),
        replace(BEFORE, symptom_summary="checkout answers 503 (10:42, 2026-03-01T10:42:00Z)"),
        replace(BEFORE, diagnosis="10.2.3.4: the pool is exhausted, 95%, 300 ms"),
        replace(BEFORE, diagnosis="the pool is exhausted 4bf92f3577b34da6a3ce929d0e0e4736"),
        replace(BEFORE, symptom_summary="checkout answers 500"),
        replace(BEFORE, root_cause="a leak in pool 7 (12 minutes)"),
        replace(BEFORE, resolution="close the connections"),
    ):
        assert fingerprint_of(again, ANN) == told, again


def test_another_cause_symptom_or_scope_is_another_one() -> None:
    others = [
        fingerprint_of(replace(BEFORE, root_cause="a leak in pool 8"), ANN),
        fingerprint_of(replace(BEFORE, root_cause="no leak in pool 7"), ANN),
        fingerprint_of(replace(BEFORE, symptom_summary="支付 503"), ANN),
        fingerprint_of(replace(BEFORE, symptom_summary="the pool", diagnosis="is exhausted"), ANN),
        fingerprint_of(BEFORE, replace(ANN, app_code=None)),
        fingerprint_of(BEFORE, replace(ANN, environment="staging")),
        fingerprint_of(BEFORE, replace(ANN, owner_id="bob")),
        fingerprint_of(BEFORE, ANN),
    ]
    assert len({*others}) == 8


def test_without_a_root_cause_the_resolution_counts() -> None:
    silent = replace(BEFORE, root_cause="")
    other = replace(silent, resolution="close the connections")
    assert fingerprint_of(silent, ANN) != fingerprint_of(other, ANN)
    assert fingerprint_of(silent, ANN) != fingerprint_of(BEFORE, ANN)
