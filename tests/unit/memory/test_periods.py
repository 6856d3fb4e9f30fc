"""What questions mean by their words for time."""

from datetime import UTC, datetime

from memory.periods import asked_time, date_in

NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)  # a Monday
ASKED = """
What did I do last week about Halden? | 2026-11-16 | 2026-11-22
what happened in June last year | 2025-06-01 | 2025-06-30
which incident was in September? | 2026-09-01 | 2026-09-30
what was on 12 November | 2026-11-12 | 2026-11-12
March 3, 2025 | 2025-03-03 | 2025-03-03
last Thursday | 2026-11-19 | 2026-11-19
two weeks ago | 2026-11-09 | 2026-11-15
1999年前 | 1999-01-01 | 1999-12-31
the day before yesterday | 2026-11-21 | 2026-11-21
in the past 3 days | 2026-11-20 | 2026-11-23
in 2025 | 2025-01-01 | 2025-12-31
上周我们谈了什么 | 2026-11-16 | 2026-11-22
上周三开了什么会 | 2026-11-18 | 2026-11-18
去年八月签了谁 | 2025-08-01 | 2025-08-31
十二月的计划 | 2025-12-01 | 2025-12-31
三天前 | 2026-11-20 | 2026-11-20
两个月前 | 2026-09-01 | 2026-09-30
2026年3月5日 | 2026-03-05 | 2026-03-05
May I use this? | None | None
合同三个月 | None | None
30 February 2026 | None | None
2026年2月30日 | None | None
2月30号的会，还有三月的 | 2026-03-01 | 2026-03-31
"""


def test_periods_are_read_in_both_languages() -> None:
    wrong = []
    for line in ASKED.strip().splitlines():
        question, first, last = line.split(" | ")
        period = asked_time(question, NOW).period
        read = (str(period.first), str(period.last)) if period else ("None", "None")
        wrong += [(question, read)] if read != (first, last) else []
    assert not wrong


def test_words_for_time_are_left_out_of_the_rest() -> None:
    asked = asked_time("The latest invoice of last month", NOW)
    assert asked.rest.split() == ["the", "invoice", "of"]
    assert asked.is_newest
    assert asked_time("最近一次周报", NOW).is_newest
    assert not asked_time("周报", NOW).is_newest


def test_a_date_in_a_text_needs_its_year() -> None:
    assert date_in("日期：2026年3月5日") == datetime(2026, 3, 5, tzinfo=UTC)
    assert date_in("## 2026-11 and later") == datetime(2026, 11, 1, tzinfo=UTC)
    assert date_in("on 5 March") is None
