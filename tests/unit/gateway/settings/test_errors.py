"""Errors, clock, ids and version."""

import re
import runpy
import shutil
from datetime import UTC, datetime, timedelta, timezone
from http import HTTPStatus
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import errors, version
from gateway.errors import Busy, GatewayError, NotFound, Overloaded
from gateway.ids import new_approval_id, new_conversation_id, new_request_id, new_turn_id
from memory.clock import elapsed_ms, from_rfc3339, rfc3339, utc_now

KINDS = {
    "UnprocessableEntity": ("invalid_request", 422, False),
    "TooLarge": ("body_too_large", 413, False),
    "Unauthorized": ("unauthorised", 401, False),
    "Forbidden": ("forbidden", 403, False),
    "NotFound": ("not_found", 404, False),
    "Conflict": ("conflict", 409, False),
    "Busy": ("conversation_busy", 409, True),
    "Overloaded": ("overloaded", 503, True),
    "QuotaUsed": ("quota_used", 429, False),
    "QuotaInUse": ("quota_used", 429, True),
    "ShuttingDown": ("shutting_down", 503, True),
    "KeptAtShutDown": ("shutting_down", 503, False),
    "NotStored": ("storage_unavailable", 503, False),
    "WorkspaceUnavailable": ("workspace_unavailable", 503, True),
    "GatewayError": ("internal_error", 500, False),
}


def test_each_error_has_the_status_of_the_contract() -> None:
    found = {
        name: (kind.code, int(kind.status), kind.retryable)
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, GatewayError)
    }
    assert found == KINDS
    assert all(name in (errors.__doc__ or "") for name in KINDS)


def test_the_body_is_the_one_shape() -> None:
    details = {"field": "message"}
    fault = NotFound("There is none.", code="unknown_event", details=details, retry_after_s=3)
    assert fault.body("req_1") == {
        "error": {
            "code": "unknown_event",
            "message": "There is none.",
            "retryable": False,
            "request_id": "req_1",
            "details": {"field": "message", "retry_after_s": 3},
        }
    }
    assert str(fault) == "There is none."
    assert fault.status is HTTPStatus.NOT_FOUND
    fault.body("x")["error"]["details"]["field"] = "changed"
    assert details == {"field": "message"}
    assert Busy("b").body("r")["error"]["details"] == {}
    assert Overloaded("o", retry_after_s=5).retry_after_s == 5


MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001  hypothesis adds the zone
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=8)), timezone(timedelta(hours=-11))]),
)


def test_a_moment_is_written_as_the_contract_says() -> None:
    moment = datetime(2026, 11, 20, 20, 0, 1, 999_999, timezone(timedelta(hours=8)))
    assert rfc3339(moment) == "2026-11-20T12:00:01.999Z"
    assert rfc3339(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000Z"
    with pytest.raises(AssertionError):
        rfc3339(datetime(2026, 11, 20))  # noqa: DTZ001  the fault that is tested
    assert utc_now().utcoffset() == timedelta(0)
    assert elapsed_ms(moment, moment + timedelta(seconds=1.2346)) == 1235
    assert elapsed_ms(moment, moment - timedelta(days=1)) == 0, "it is never negative"


@given(MOMENTS)
def test_what_was_written_is_read_to_the_millisecond(moment: datetime) -> None:
    read = from_rfc3339(rfc3339(moment))
    assert read.utcoffset() == timedelta(0)
    assert timedelta(0) <= moment - read < timedelta(milliseconds=1)
    assert rfc3339(read) == rfc3339(moment)


@given(MOMENTS, MOMENTS)
def test_texts_sort_as_moments_do(one: datetime, other: datetime) -> None:
    if rfc3339(one) < rfc3339(other):
        assert one < other


PREFIXES = [
    (new_conversation_id, "cnv"),
    (new_turn_id, "trn"),
    (new_approval_id, "apr"),
    (new_request_id, "req"),
]


def test_an_id_is_its_prefix_and_128_random_bits() -> None:
    for make, prefix in PREFIXES:
        assert re.fullmatch(rf"{prefix}_[a-z2-7]{{26}}", make())
        made = [make().removeprefix(f"{prefix}_") for _ in range(2000)]
        assert len(set(made)) == 2000
        for place in range(25):
            assert len({text[place] for text in made}) == 32, "each character is free"


def test_the_command_is_named_as_a_person_types_it_and_the_version_is_a_release_number(
    tmp_path: Path,
) -> None:
    """A checkout has `app.py`; an installed package does not."""
    package = tmp_path / "gateway"
    package.mkdir()
    installed = runpy.run_path(str(shutil.copy(version.__file__, package)))

    assert (version.COMMAND, installed["COMMAND"]) == ("python app.py", "candor")
    assert re.fullmatch(r"\d+\.\d+\.\d+", version.VERSION)
