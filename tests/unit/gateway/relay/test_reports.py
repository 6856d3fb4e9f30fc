"""Reports of the relay: bounded where they are made, checked where they are read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.relay.calls import origin, seconds_to_wait
from gateway.relay.reports import (
    MAX_LINE_BYTES,
    TOKENS,
    ModelCall,
    ServiceReport,
    report_line,
)
from gateway.relay.supervisor import read_report

WAITS = st.sampled_from(["inf", "-inf", "nan", "1e400", "9" * 5_000, "-1", "1_0", "٣", ""])
DATES = st.builds(
    "Mon, {:02d} {} {} {}:00:00 {}".format,
    st.integers(-1, 40),
    st.sampled_from(["Jan", "Feb", "Foo"]),
    st.integers(-1, 10**12).map(str) | st.just("9" * 5_000),
    st.integers(-1, 99),
    st.sampled_from(["GMT", "-0000", "+9999", "+" + "9" * 40, "", "X"]),
)


@given(WAITS | DATES | st.text())
def test_a_wait_is_a_time_that_can_be_meant_whatever_the_service_asks_for(asked: str) -> None:
    wait_s = seconds_to_wait(asked)
    assert wait_s is None or 0 <= wait_s <= 366 * 24 * 3600
    report = ServiceReport(kind="refused", status=429, retry_after_s=wait_s)
    assert read_report(report_line("agent-1", report)) == ("agent-1", report)


@pytest.mark.parametrize(("asked", "wait_s"), [("7", 7.0), ("0.5", 0.5), ("86400", 86400.0)])
def test_an_ordinary_wait_is_reported(asked: str, wait_s: float) -> None:
    assert seconds_to_wait(asked) == wait_s


@given(
    st.text(min_size=100) | st.sampled_from(["\U0001f600" * 66_000, "\0" * 66_000, "x" * 66_000])
)
def test_a_report_is_one_short_line_whatever_is_in_it(text: str) -> None:
    place = origin(f"https://{text}/path")
    for detail in (text, place):
        line = report_line("agent-1" * 9, ServiceReport(kind="redirected", detail=detail))
        assert len(line) <= MAX_LINE_BYTES
        assert line.count(b"\n") == 1
        read = read_report(line)
        assert read is not None
        assert read[1].detail[:100] == detail[:100]


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"[]", b"null", b"7", b"{", b"\xff", b"[" * 9_000, b'{"client": "a"}'),
        b'{"client": 7, "kind": "cut"}',
        b'{"client": "a", "kind": "unheard"}',
        b'{"client": "a", "kind": ["cut"]}',
        b'{"client": "a", "kind": "cut", "more": 1}',
        b'{"client": "a", "kind": "cut", "detail": null}',
        b'{"client": "a", "kind": "cut", "status": true}',
        b'{"client": "a", "kind": "cut", "status": 1e3}',
        b'{"client": "a", "kind": "cut", "status": 1000}',
        b'{"client": "a", "kind": "cut", "retry_after_s": Infinity}',
        b'{"client": "a", "kind": "cut", "retry_after_s": 1e12}',
        b'{"client": "a", "kind": "cut", "retry_after_s": "1"}',
        b'{"client": "a", "kind": "cut", "silent_s": NaN}',
        b'{"client": "a", "kind": "cut", "silent_s": -1}',
        b'{"client": "a", "kind": "cut", "silent_s": %s}' % (b"9" * 5_000),
        b'{"client": "a", "kind": "cut", "detail": "%s"}' % (b"x" * 201),
        b'{"client": "a", "kind": "called"}',
        *(
            b'{"client": "a", "kind": "called", "seconds": 1, %s}' % wrong
            for wrong in (
                b'"seconds": -1',
                b'"first_s": "1"',
                b'"fault": "unheard"',
                b'"is_whole": 1',
                b'"model": null',
                b'"asked_model": 7',
                b'"tokens": []',
                b'"tokens": {"other_tokens": 1}',
                b'"tokens": {"input_tokens": "1"}',
            )
        ),
    ],
)
def test_a_line_that_is_no_report_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the words are for the log
        read_report(line)
    assert read_report(b"{}") is None
    whole = ServiceReport(kind="silent", silent_s=1.5, detail="é", retry_after_s=math.pi)
    assert read_report(report_line("a", whole)) == ("a", whole)


def test_a_call_is_read_as_it_was_made() -> None:
    given = {
        "fault": "cut",
        "is_whole": True,
        "status": 200,
        "asked_model": "a",
        "model": "é" * 100,
    }
    tokens = dict.fromkeys(TOKENS, 10**12)
    call = ModelCall(seconds=2.5, first_s=0.25, tokens=tokens, **given)  # type: ignore[arg-type]
    line = report_line("agent-1" * 9, call)
    assert len(line) <= MAX_LINE_BYTES
    assert read_report(line) == ("agent-1" * 9, call)
