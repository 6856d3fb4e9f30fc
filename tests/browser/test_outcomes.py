"""How a turn ended is said in plain words, with what went wrong and where the log is."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import bash, script

pytestmark = pytest.mark.browser

DENIED = bash("cat /etc/passwd")
FAILING = bash("cat nowhere.txt")
# The agent program asks once more after an empty answer, and the gateway once after that.
NOTHING = {"empty": True, "times": 2}
NOTHING_AGAIN = {"on_followup": [{"empty": True, "times": 9}]}


def play(talk: ChatPage, *steps: dict[str, Any]) -> Any:
    return talk.ask(script(*steps))


def test_each_call_of_a_turn_shows_its_own_status(talk: ChatPage) -> None:
    turn = play(talk, bash("ls"), FAILING, DENIED, {"text": "Mixed."})

    turn.expect_end("answered_with_failures")
    statuses = [element.get_attribute("data-status") for element in turn.tools.all()]
    assert statuses == ["ok", "failed", "denied"]
    expect(turn.tools.nth(1)).to_contain_text("No such file")
    expect(turn.tools.nth(2)).to_contain_text("outside the workspace")
    expect(turn.reply).to_have_text("Mixed.")
    expect(turn.at.get_by_text("No such file")).to_have_count(1)
    expect(turn.at.get_by_text("outside the workspace")).to_have_count(1)


def test_a_call_that_came_to_nothing_and_no_text_is_a_failed_tool_and_not_silence(
    talk: ChatPage,
) -> None:
    turn = play(talk, FAILING, NOTHING, NOTHING_AGAIN)

    turn.expect_end("tool_failed")
    expect(turn.tools).to_have_attribute("data-status", "failed")
    expect(turn.at.get_by_text("No such file")).to_have_count(1)
    expect(turn.outcome).to_contain_text("A tool failed, so there is no answer")
    expect(turn.reply).to_have_count(0)
    expect(turn.closing).to_have_count(0)


def test_endings_without_an_answer_each_have_their_own_words(talk: ChatPage) -> None:
    """One conversation after another ending goes on."""
    for step, outcome, reason, words in (
        (NOTHING, "empty", "end_turn", "Finished without text"),
        ({"refusal": True}, "empty", "refusal", "the model declined"),
        (
            {"status": 400, "times": 9},
            "engine_failed",
            "api_error",
            "The model service or the agent failed",
        ),
        (
            {"repeat": {"tool": "Bash", "input": {"command": "ls"}}, "times": 9},
            "stopped",
            "doom_loop",
            "the same tool call again and again",
        ),
        ({"text": "Well."}, "answered", "end_turn", "Answered"),
    ):
        turn = play(talk, step)
        turn.expect_end(outcome, reason)
        expect(turn.outcome).to_contain_text(words)


def test_what_an_answer_that_broke_off_had_shown_is_dropped_while_it_comes_again(
    talk: ChatPage,
) -> None:
    first = {
        "drop": True,
        "after_chars": 240,
        "delta_delay_ms": 250,
        "text": "A beginning \U0001f642 that nobody will read again. " * 9,
    }
    again = {"text": "It is told again, slowly. " * 9, "delta_delay_ms": 600}
    talk.send(script(first, again))
    expect(talk.turn.live.filter(has_text="It is told again")).to_have_count(1)
    shown, asked = talk.turn.at.inner_text(), talk.turn.message.inner_text()
    expect(talk.turn.outcome).to_have_count(0)
    assert shown.count("A beginning") == asked.count("A beginning")
    talk.turn.expect_end("answered")
    assert any(text.startswith("A beginning") for text in talk.text_seen)


def test_a_failing_model_service_is_told_while_it_fails(talk: ChatPage) -> None:
    talk.send(script({"status": 529, "times": 2}, {"text": "At last."}))

    expect(talk.turn.notices.first).to_contain_text("overloaded")
    expect(talk.turn.outcome).to_have_count(0)
    talk.turn.expect_end("answered")
    expect(talk.turn.reply).to_have_text("At last.")
