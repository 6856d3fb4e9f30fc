"""What a small model's answer may add to a turn: words of the reply, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.turns.claim_check import (
    MAX_CLAIM_CHARS,
    MAX_CLAIMS,
    is_answer,
    notice_of,
    read_claims,
    record_of,
)
from tests.conformance.suites.conversation_values import turn

REPLY = "Done. I wrote report.csv.\nThen I ran the tests: 12 passed. 我已发送邮件给小王。"


def said(*claims: Any) -> str:
    return json.dumps({"claims": list(claims)})


READ: dict[str, list[str] | None] = {
    said("I wrote report.csv.", "我已发送邮件给小王。"): [
        "I wrote report.csv.",
        "我已发送邮件给小王。",
    ],
    f"```json\n{said('I wrote report.csv.')}\n```": ["I wrote report.csv."],
    said(): [],
    said("I wrote the report.", "i wrote report.csv.", "I wrote  report.csv."): [],
    said("I wrote report.csv.\nThen I ran", "Done.", "  "): [],
    said(" I wrote report.csv. ", "I wrote report.csv."): ["I wrote report.csv."],
    said("I wrote report.csv.", 7): None,
    json.dumps({"claims": "I wrote report.csv."}): None,
    json.dumps({"claims": [], "reply": "rewritten"}): None,
    json.dumps(["I wrote report.csv."]): None,
    "I wrote report.csv.": None,
    "": None,
    "[" * 9_000: None,
}


@pytest.mark.parametrize("answer", READ)
def test_only_words_of_the_reply_count_and_only_in_the_form_that_was_asked_for(answer: str) -> None:
    found = read_claims(answer, REPLY)
    assert (found if found is None else list(found)) == READ[answer]


@given(claims=st.lists(st.text(max_size=40) | st.sampled_from(REPLY.split(". ")), max_size=60))
def test_whatever_is_claimed_a_notice_holds_a_few_short_quotes(claims: list[str]) -> None:
    found = read_claims(said(*claims), REPLY)
    assert found is not None
    assert len(found) <= MAX_CLAIMS
    assert all(claim in REPLY and len(claim) <= MAX_CLAIM_CHARS for claim in found)


def test_long_and_many_quotes_are_dropped() -> None:
    long = "x" * (MAX_CLAIM_CHARS + 1)
    many = [f"I wrote file {n:02}." for n in range(20)]
    reply = " ".join([long, *many])
    assert list(read_claims(said(long, *many), reply) or []) == many[:MAX_CLAIMS]


def test_a_notice_is_in_the_language_of_the_message_and_has_the_quotes() -> None:
    for message, start in (("write it", "A check after the turn"), ("写一份报告", "这一轮结束后")):
        notice = notice_of(turn(message=message), ["I wrote {x}."])
        assert notice["message"].startswith(start)
        assert "“I wrote {x}.”" in notice["message"]
        assert (notice["code"], notice["quotes"]) == ("unsupported_claim", ["I wrote {x}."])


def test_the_model_is_shown_the_calls_the_files_and_the_reply_within_bounds() -> None:
    tools = [
        {"index": n, "name": "Bash", "summary": "s" * 160, "status": "ok"} for n in range(1, 500)
    ]
    changes = {"files": [{"kind": "created", "path": f"{n}.txt"} for n in range(500)]}
    result = {"tools": tools, "reply": "r" * 200_000, "changes": {"files": 0, "complete": True}}
    told = record_of(result, changes)
    assert told.startswith("<record>\n499 calls; no file was changed\n1. Bash: sss")
    assert "created: 49.txt" in told
    assert len(told) < 40_000


def test_only_the_models_own_answers_are_checked() -> None:
    assert is_answer({"outcome": "answered", "model": "m"})
    assert is_answer({"outcome": "answered_with_failures", "model": "m"})
    for outcome, model in (("answered", ""), ("engine_failed", "m"), ("interrupted", "m")):
        assert not is_answer({"outcome": outcome, "model": model})
    assert not is_answer({})
