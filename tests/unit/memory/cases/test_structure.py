"""What surrounds two incidents: what speaks for one cause, what against, and what for nothing."""

from typing import Any

import pytest

from memory.cases.case import CaseMetadata
from memory.cases.structure import Structure, compare_structure


def compared(one: dict[str, Any], other: dict[str, Any]) -> Structure:
    return compare_structure(CaseMetadata(**one), CaseMetadata(**other))


def test_what_both_say_alike_matches_and_what_they_say_differently_conflicts() -> None:
    one = CaseMetadata(failure_layer="db", runtime="java", related_services=("orders", "stock"))
    other = CaseMetadata(failure_layer="jvm", runtime="java", related_services=("stock",))
    assert compare_structure(one, other) == Structure(
        matches=("runtime", "related_services"), conflicts=("failure_layer",)
    )


@pytest.mark.parametrize("missing", [None, "unknown"])
def test_what_one_does_not_say_speaks_for_nothing_and_against_nothing(missing: Any) -> None:
    full = {"failure_layer": "db", "runtime": "java", "related_services": ("orders",)}
    assert compared(full, {"failure_layer": missing}) == Structure()
    assert compared({"runtime": " ", "related_services": ("", "-")}, full) == Structure()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Java 17", "openjdk-11"),
        ("JVM", "java"),
        ("python3.11", "CPython 3.12"),
        ("Node.js v18", "nodejs"),
        ("Kubernetes 1.29", "k8s"),
        ("go1.21", "Golang"),
        ("java 17 on Kubernetes", "k8s"),
        ("Java", "java"),
    ],
)
def test_versions_and_other_names_of_a_runtime_are_no_conflict(one: str, other: str) -> None:
    assert compared({"runtime": one}, {"runtime": other}) == Structure(matches=("runtime",))


@pytest.mark.parametrize(("one", "other"), [("java", "python"), ("go", "node"), ("rust", "zig")])
def test_other_runtimes_are_a_conflict(one: str, other: str) -> None:
    assert compared({"runtime": one}, {"runtime": other}) == Structure(conflicts=("runtime",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order-svc", "order_service"),
        ("Orders", "orders"),
        ("支付", "支付"),
        ("service", "Service"),
    ],
)
def test_a_service_is_known_by_its_name_however_it_is_written(one: str, other: str) -> None:
    found = compared({"related_services": (one,)}, {"related_services": ("x", other)})
    assert found == Structure(matches=("related_services",))


@pytest.mark.parametrize(("one", "other"), [("order-svc", "payment-svc"), ("service", "api")])
def test_services_without_one_in_common_are_a_conflict(one: str, other: str) -> None:
    found = compared({"related_services": (one,)}, {"related_services": (other,)})
    assert found == Structure(conflicts=("related_services",))
