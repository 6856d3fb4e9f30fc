"""A page that lost its stream shows, in the end, exactly what is stored: nothing lost, nothing twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.browser.cuttable import cuttable_road
from tests.support.live_server import DEADLINE_S, LiveServer, bash, script, started_server
from tests.support.ports import lasting_port

pytestmark = pytest.mark.browser

TEXT = " ".join(f"word{number}" for number in range(120))
NOTE_CONNECTION = """() => {
  window.connectionSeen = [];
  const connection = document.getElementById("connection");
  new MutationObserver(() => { if (connection.textContent) window.connectionSeen.push(connection.textContent); })
    .observe(connection, { childList: true, subtree: true, characterData: true });
}"""
LONG = script({"text": TEXT, "delta_delay_ms": 200})


def stored_messages(server: LiveServer, conversation_id: str) -> list[dict[str, Any]]:
    url = f"{server.url}/conversations/{conversation_id}/messages"
    answer = httpx.get(url, timeout=DEADLINE_S, trust_env=False)
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


@contextmanager
def agents_standing_still(server: LiveServer) -> Iterator[None]:
    """No turn can end meanwhile, however long a page takes to come back."""
    agents = server.agents().values()
    for agent in agents:
        agent.suspend()
    try:
        yield
    finally:
        for agent in agents:
            agent.resume()


def expect_whole(chat: ChatPage, server: LiveServer) -> None:
    """The reply is the stored one, and every state that was shown on the way was a part of it."""
    chat.turn.expect_end("answered")
    stored = stored_messages(server, chat.conversation_id)[-1]["result"]["reply"]
    expect(chat.turn.reply).to_have_text(TEXT)
    assert stored == TEXT
    broken = [text for text in chat.text_seen if not TEXT.startswith(text)]
    assert broken == []


def test_a_reload_in_mid_turn_catches_up(talk: ChatPage, server: LiveServer) -> None:
    talk.ask("my bird is a wren")
    turns = talk.turns.count()
    talk.send(LONG)
    expect(talk.turn.live).to_contain_text("word20")

    with agents_standing_still(server):
        talk.page.reload()

        expect(talk.turn.live).to_contain_text("word20")
        expect(talk.get("stop")).to_be_visible()
    expect_whole(talk, server)
    expect(talk.turns).to_have_count(turns + 1)
    expect(talk.turn.message).to_contain_text("candor-script")
    assert talk.text_seen[0].startswith("word0 word1 ")


def test_a_connection_lost_again_and_again_loses_no_text_and_doubles_none(
    open_page: OpenPage, server: LiveServer
) -> None:
    with cuttable_road(server.url) as road:
        chat = open_page(url=road.url)
        chat.witness.network_may_fail = True
        chat.send(script({"text": TEXT, "delta_delay_ms": 90}))
        expect(chat.turn.live).to_contain_text("word5")

        road.cut_again(times=3, after_bytes=500)

        expect_whole(chat, server)
        assert road.is_safe
        expect(chat.page.locator("#connection")).to_be_empty()
        expect(chat.turns).to_have_count(1)


def test_a_turn_of_another_tab_is_shown_while_a_message_of_this_one_waits(
    open_page: OpenPage, server: LiveServer
) -> None:
    other = open_page()
    other.ask("my bird is a wren")
    chat = open_page(f"/#/c/{other.conversation_id}")
    expect(chat.turn.message).to_have_text("my bird is a wren")
    other.send(LONG)
    expect(other.turn.live).to_contain_text("word10")
    chat.page.evaluate(NOTE_CONNECTION)

    chat.send("what is my bird?")

    expect(chat.page.locator(".live")).to_contain_text("word0 word1 word2")
    chat.turn.expect_end("answered")
    expect(chat.page.locator(".reply").nth(1)).to_have_text(TEXT)
    assert chat.page.evaluate("window.connectionSeen") == []


def test_a_message_whose_answer_got_lost_is_sent_again_and_runs_once(
    talk: ChatPage, server: LiveServer
) -> None:
    talk.witness.network_may_fail = True

    def lose_answer(route: Route) -> None:
        assert route.fetch().ok
        answers_lost.append(route.request.url)
        route.abort("connectionreset")

    answers_lost: list[str] = []
    talk.page.route("**/chat/stream", lose_answer, times=1)

    turn = talk.ask("my twin is one")

    turn.expect_end("answered")
    assert len(answers_lost) == 1
    stored = stored_messages(server, talk.conversation_id)
    assert [message.get("text") for message in stored].count("my twin is one") == 1
    expect(talk.get("message-user").get_by_text("my twin is one")).to_have_count(1)


def test_a_message_that_cannot_be_sent_is_kept_and_can_be_sent_later(talk: ChatPage) -> None:
    talk.witness.network_may_fail = True
    talk.page.route("**/chat/stream", lambda route: route.abort("connectionrefused"))
    talk.send("my hat is grey")
    expect(talk.get("error-line")).to_contain_text("The gateway could not be reached.")
    expect(talk.composer).to_have_value("my hat is grey")
    talk.page.reload()
    expect(talk.composer).to_have_value("my hat is grey")
    talk.get("send").click()
    expect(talk.get("error-line")).to_be_visible()
    talk.page.unroute_all()

    talk.get("retry").click()

    expect(talk.get("error-line")).to_have_count(0)
    expect(talk.composer).to_be_focused()
    talk.turn.expect_end("answered")
    expect(talk.get("message-user").get_by_text("my hat is grey")).to_have_count(1)
    expect(talk.composer).to_have_value("")


def test_a_server_that_dies_in_mid_turn_is_told_as_it_was(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    settings = {"port": lasting_port(), **SETTINGS}
    with started_server(tmp_path, **settings) as first:
        chat = open_page(url=first.url)
        chat.witness.network_may_fail = True
        chat.ask("my ship is the Beagle")
        steps = bash("ls"), {"text": TEXT, "delta_delay_ms": 900}
        chat.send(script(*steps))
        expect(chat.turn.live).to_contain_text("word5")
        first.kill()
        expect(chat.page.locator("#connection")).to_have_text("Reconnecting…")
        expect(chat.get("offline")).to_contain_text("The gateway cannot be reached.")
        chat.send("are you there?")
        expect(chat.get("error-line")).to_contain_text("The gateway could not be reached.")
        # What is stored tells the ending before the events can be read again.
        chat.page.route("**/events*", lambda route: route.abort())
    with started_server(tmp_path, **settings) as again:
        assert again.url == first.url

        chat.turn.expect_end("engine_failed", "engine_crash")

        expect(chat.page.locator("#connection")).to_be_empty()
        expect(chat.get("offline")).to_have_count(0)
        expect(chat.get("error-line")).to_have_count(0)
        expect(chat.composer).to_have_value("are you there?")
        expect(chat.turn.reply).to_contain_text("word0 word1 word2")
        expect(chat.turn.closing).to_contain_text("The server stopped unexpectedly")
        expect(chat.turn.outcome).to_have_text("Not finished: the server stopped unexpectedly")
        expect(chat.turn.tools).to_have_attribute("data-status", "ok")
        chat.page.reload()
        expect(chat.outcomes).to_have_count(2)
        expect(chat.get("message-user").first).to_have_text("my ship is the Beagle")
        chat.turn.expect_end("engine_failed", "engine_crash")
        expect(chat.get("stop")).to_be_hidden()
        expect(chat.ask("what is my ship?").reply).to_contain_text("the Beagle")
