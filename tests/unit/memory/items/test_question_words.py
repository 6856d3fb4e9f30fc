"""What of a question is asked for, and how much it weighs."""

from hypothesis import given
from hypothesis import strategies as st

from memory.recall.question_words import MAX_CHARACTERS, MAX_TERMS, QuestionWords


def test_words_that_say_nothing_are_not_asked_for() -> None:
    asked = QuestionWords.of("What is the state of our deployment? 我们的部署是什么情况")
    assert {"deployment", "部署", "情况", "state"} <= set(asked.weights)
    assert not set(asked.weights) & {"what", "is", "the", "of", "our", "我们", "什么"}
    assert not set(asked.characters) & set("我的是")


def test_a_question_of_nothing_but_such_words_asks_for_nothing() -> None:
    for text in ("", "the", "what is it", "是什么", "的", "？！"):
        asked = QuestionWords.of(text)
        assert (asked.weights, asked.characters) == ({}, ()), text


def test_what_was_said_last_weighs_more() -> None:
    filler = " ".join(f"word{n}" for n in range(200))
    weights = QuestionWords.of(f"lighthouse {filler} cello").weights
    assert "lighthouse" not in weights
    assert weights["cello"] == max(weights.values())
    short = QuestionWords.of(
        f"灯塔，{'，'.join('甲乙丙丁戊己庚辛'[n % 8] * 2 for n in range(30))}，大提琴"
    ).weights
    assert short["提琴"] > short["灯塔"]


@given(st.text(max_size=3000))
def test_what_is_asked_for_is_bounded(text: str) -> None:
    asked = QuestionWords.of(text * 3)
    assert len(asked.weights) <= MAX_TERMS
    assert len(asked.characters) <= MAX_CHARACTERS
    assert all(weight > 0 for weight in asked.weights.values())
    assert list(asked.weights.values()) == sorted(asked.weights.values(), reverse=True)
