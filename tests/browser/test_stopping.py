"""A turn that is stopped, and messages that wait for one that runs."""

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import bash, script

pytestmark = pytest.mark.browser

SLOW = script({"text": "slow " * 600, "delta_delay_ms": 300})
WORDS = " ".join(f"word{number}" for number in range(400))
COUNTED = script({"text": WORDS, "delta_delay_ms": 400})
HELD = script(bash("ls"), {"hang": True})


def test_stop_ends_the_stream_and_the_conversation_goes_on(talk: ChatPage) -> None:
    talk.ask("my plan is to wait")
    talk.send(SLOW)
    expect(talk.turn.live).to_contain_text("slow slow")

    talk.get("stop").click()

    talk.turn.expect_end("interrupted", "user_interrupt")
    expect(talk.turn.outcome).to_contain_text("you stopped it")
    expect(talk.turn.reply).to_contain_text("slow slow")
    expect(talk.turn.closing).to_contain_text("You stopped this turn before it was finished.")
    expect(talk.get("stop")).to_be_hidden()
    expect(talk.composer).to_be_focused()
    turn = talk.ask("what is my plan?")
    turn.expect_end("answered")
    expect(turn.reply).to_contain_text("to wait")


def test_what_is_sent_while_a_turn_runs_waits_and_is_answered_after_it(chat: ChatPage) -> None:
    """The running turn's text goes on as before, although a second stream now brings it too."""
    chat.send(COUNTED)
    expect(chat.turn.live).to_contain_text("word3")

    chat.send("my first is one")
    chat.send("what is my first?")

    queued = chat.get("queued-item")
    expect(queued).to_have_count(2)
    expect(queued.first).to_contain_text("my first is one")
    expect(queued.first).to_contain_text("number 1")
    expect(queued.last).to_contain_text("number 2")
    expect(chat.composer).to_have_attribute("placeholder", "Write the next message…")
    expect(chat.turns.first.locator(".live")).to_contain_text("word30")
    chat.get("stop").click()
    expect(chat.outcomes).to_have_count(3)
    assert [element.get_attribute("data-outcome") for element in chat.outcomes.all()] == [
        "interrupted",
        "answered",
        "answered",
    ]
    expect(chat.turn.reply).to_contain_text("Your first is one")
    expect(queued).to_have_count(0)
    shown = [text for text in chat.text_seen if text.startswith("word")]
    assert len(shown) > 3
    assert all(WORDS.startswith(text) for text in shown)


def test_what_waits_moves_up_in_the_queue(chat: ChatPage) -> None:
    """It does as well on a page that is loaded later."""
    queued = chat.get("queued-item")
    chat.send(SLOW)
    expect(chat.get("stop")).to_be_visible()
    for count, message in enumerate(["the first", SLOW, "the last"], 1):
        chat.send(message)
        expect(queued).to_have_count(count)
    expect(queued.last).to_contain_text("number 3")

    queued.first.get_by_test_id("take-back").click()

    expect(queued.last).to_contain_text("number 2")
    chat.page.reload()
    expect(queued.last).to_contain_text("number 2")
    expect(chat.get("stop")).to_be_enabled()
    chat.get("stop").click()
    expect(queued).to_have_count(1)
    expect(queued.last).to_contain_text("number 1")
    expect(chat.get("stop")).to_be_enabled()
    chat.get("stop").click()
    expect(chat.outcomes).to_have_count(3)


def test_an_outdated_answer_does_not_bring_a_withdrawn_message_back(talk: ChatPage) -> None:
    shown = talk.page.evaluate(
        """async () => {
          const { TurnStore } = await import("/static/turn-store.js");
          const store = new TurnStore();
          const queue = ["trn_a", "trn_b"].map((turnId) => ({ turnId, text: turnId }));
          const messages = queue.map((item) => ({ ...item, role: "user", state: "queued" }));
          store.merge(messages, { queue, state: "running" });
          store.drop(store.find("trn_a"));
          store.merge(messages, { queue, state: "running" });
          return store.turns.map((turn) => turn.turnId);
        }"""
    )
    assert shown == ["trn_b"]


def test_a_waiting_message_can_be_taken_back_and_is_never_run(chat: ChatPage) -> None:
    chat.send(HELD)
    expect(chat.get("stop")).to_be_visible()
    chat.send("my ferry is Nobody")
    chat.send("my age is ten")
    expect(chat.get("queued-item")).to_have_count(2)

    chat.get("take-back").first.click()

    expect(chat.get("queued-item")).to_have_count(1)
    expect(chat.composer).to_have_value("my ferry is Nobody")
    expect(chat.composer).to_be_focused()
    chat.composer.fill("")
    chat.get("stop").click()
    expect(chat.outcomes).to_have_count(2)
    expect(chat.get("message-user").last).to_have_text("my age is ten")
    expect(chat.ask("what is my ferry?").reply).to_contain_text("I do not know")
    chat.page.reload()
    expect(chat.outcomes).to_have_count(3)
    expect(chat.get("message-user").get_by_text("Nobody")).to_have_count(0)
