"""Words and dates of a text, spans of time, and loops that are started again."""

import re
from datetime import UTC, datetime

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.background import keep_running
from memory.items.timespan import TimeSpan
from memory.notes.dates import date_in
from memory.text.terms import characters, is_character, terms

TERMS = {
    "": [],
    "  \n\t…“”，。": [],
    "Deploy the Gateway": ["deploy", "the", "gateway"],
    "部署": ["部署"],
    "支付服务": ["支付", "付服", "服务"],
    "税": ["税"],
    "税，和 a": ["税", "和", "a"],
    "ITGC控制v2": ["itgc", "控制", "v2"],
    "ERR_CONN_RESET": ["err", "conn", "reset", "errconnreset"],
    "v2.3.1": ["v2", "3", "1", "v231"],
    "getUserName HTTPServer": "get user name getusername http server httpserver".split(),
    "a/b.py": ["a", "b", "py", "abpy"],
    "well. Then": ["well", "then"],
    "ＡＢＣ ｶﾅ Ⅳ": ["abc", "カナ", "iv"],
    "東京タワー": ["東京", "京タ", "タワ", "ワー"],
    "결제를": ["결제", "제를"],
    "𠮷野家": ["𠮷野", "野家"],
    "Straße": ["strasse"],
    "a\0b": ["a", "b"],
    "\ud800部署\udfff": ["部署"],
    "x" * 65: [],
}


def test_a_text_gives_its_words() -> None:
    assert {text: terms(text) for text in TERMS} == TERMS


def test_single_characters_are_given_once_and_in_order() -> None:
    assert characters("支付了支票 pay 3") == ["支", "付", "了", "票"]
    assert characters("plain words") == []
    assert characters("ﾀﾜｰタ") == ["タ", "ワ", "ー"]
    assert [text for text in ("税", "タ", "税务", "a", "") if is_character(text)] == ["税", "タ"]


@given(st.text())
def test_words_are_letters_and_digits_alone(text: str) -> None:
    """Nothing of a word can be a sign of the index's own language, or cut it short."""
    for term in [*terms(text), *characters(text)]:
        assert term
        assert not set(term) & set("\"'*^:(){}+-\0 _\n")
        term.encode()


@given(st.text(min_size=2, alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)))
def test_every_two_neighbours_are_a_word(text: str) -> None:
    words = terms(text)
    assert words == [text[n : n + 2] for n in range(len(text) - 1)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("日期：2026年3月5日", datetime(2026, 3, 5, tzinfo=UTC)),
        ("二〇二六: 2026年十一月二十三号", datetime(2026, 11, 23, tzinfo=UTC)),
        ("## 2026-11 and later", datetime(2026, 11, 1, tzinfo=UTC)),
        ("on the 5th of March 2026", datetime(2026, 3, 5, tzinfo=UTC)),
        ("Oct 12, 2026", datetime(2026, 10, 12, tzinfo=UTC)),
        ("30.02.2026, then 2026/02/28", datetime(2026, 2, 28, tzinfo=UTC)),
        ("2026-02-30", None),
        ("on 5 March", None),
    ],
)
def test_a_date_in_a_text_needs_its_year(text: str, found: datetime | None) -> None:
    assert date_in(text) == found


@pytest.mark.parametrize(
    ("since", "until", "inside", "outside"),
    [
        ("2026-03-05", None, "2026-03-05T00:00:00Z", "2026-03-04T23:59:59Z"),
        (None, "2026-03-05", "2026-03-05T23:59:59Z", "2026-03-06T00:00:00Z"),
        (None, "20260305", "2026-03-05T23:59:59Z", "2026-03-06T00:00:00Z"),
        (None, "2026-W10-4", "2026-03-05T23:59:59Z", "2026-03-06T00:00:00Z"),
        (
            "2026-03-05T10:00:00+02:00",
            "2026-03-05T09:00:00Z",
            "2026-03-05T08:00:00Z",
            "2026-03-05T09:00:00Z",
        ),
    ],
)
def test_a_span_begins_at_since_and_holds_the_day_of_until(
    since: str | None, until: str | None, inside: str, outside: str
) -> None:
    span = TimeSpan.of(since, until)
    assert span.covers(datetime.fromisoformat(inside))
    assert not span.covers(datetime.fromisoformat(outside))


@pytest.mark.parametrize("text", ["yesterday", "", "2026-02-30", "9999-12-31"])
def test_a_date_that_is_none_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="`until` must be an ISO date"):
        TimeSpan.of(None, text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9999-12-31", "from 0001-01-02 to 9999-12-30."),
        ("0001-01-01T00:00:00+05:00", "from 0001-01-02 to 9999-12-30."),
        ("2026-01-31T24:00:00Z", "with a time from 00:00 to 23:59, such as 2026-01-31T09:30:00Z."),
        ("2026-01-31 noon", "with a time from 00:00 to 23:59, such as 2026-01-31T09:30:00Z."),
    ],
)
def test_why_a_date_is_not_taken_is_told_truly(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"`until` must be an ISO date {why}")):
        TimeSpan.of(None, text)


async def test_a_loop_that_raises_is_started_again_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = [OSError("no descriptor is left"), ExceptionGroup("two", [ValueError(), OSError()])]
    failed: list[str] = []

    async def run() -> None:
        await anyio.lowlevel.checkpoint()
        if faults:
            raise faults.pop()

    with anyio.fail_after(30):
        await keep_running("files", run, failed.append, pause_s=0)
    assert failed == ["files", "files"]
    assert [record.message for record in caplog.records] == ["background_loop_failed"] * 2


async def test_a_cancelled_loop_is_not_started_again() -> None:
    starts: list[int] = []

    async def run() -> None:
        starts.append(1)
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        await tasks.start(keep_running, "files", run)
        assert starts == [1]  # it has started when the task has
        tasks.cancel_scope.cancel()
    assert starts == [1]
