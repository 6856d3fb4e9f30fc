"""Words that somebody writes or sends, while requests fail and answers come late."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import LiveServer, script

pytestmark = pytest.mark.browser

HELD = script({"hang": True})


def hold(chat: ChatPage, address: str, method: str = "POST") -> list[Route]:
    """Hold requests back from now on; returns the list to which each is added."""
    held: list[Route] = []

    def keep(route: Route) -> None:
        if route.request.method == method:
            held.append(route)
        else:
            route.continue_()

    chat.page.route(address, keep)
    return held


def take_back(chat: ChatPage, message: str, *, beside: str) -> tuple[str, list[Route]]:
    """Take a message back that waits behind a turn, with other words in the box, and leave before
    that is answered; return the conversation's address and the request.
    """
    chat.send(HELD)
    expect(chat.get("stop")).to_be_visible()
    chat.send(message)
    expect(chat.get("queued-item")).to_have_count(1)
    address = f"/#/c/{chat.conversation_id}"
    held = hold(chat, "**/queue/*", "DELETE")
    chat.composer.fill(beside)
    with chat.page.expect_request("**/queue/*"):
        chat.get("take-back").click()
    chat.go_to_start()
    return address, held


def answer(chat: ChatPage, held: list[Route]) -> None:
    """Send the held requests to the server, and hold none back any more."""
    for route in held:
        response = route.fetch()
        route.fulfill(response=response)
    chat.page.unroute_all(behavior="ignoreErrors")


def test_an_edited_message_that_could_not_be_sent_stays_in_its_editor(chat: ChatPage) -> None:
    chat.witness.network_may_fail = True
    chat.ask("my stone is agate")
    first = chat.conversation_id
    chat.get("edit-message").click()
    field = chat.get("edit-field")
    field.fill("我的石头是玉")
    chat.page.route("**/fork", lambda route: route.fulfill(status=503, json={}))
    field.press("Enter")
    expect(chat.get("error-line")).to_be_visible()

    expect(field).to_have_value("我的石头是玉")
    chat.page.unroute_all(behavior="ignoreErrors")
    field.press("Enter")

    expect(chat.page).not_to_have_url(re.compile(first))
    expect(chat.turn.message).to_have_text("我的石头是玉")
    expect(chat.turn.outcome).to_be_visible()
    chat.go(f"/#/c/{first}")
    expect(chat.turn.message).to_have_text("my stone is agate")
    chat.get("edit-message").click()
    expect(field).to_have_value("my stone is agate")
    field.press("Escape")


def test_an_edited_message_is_there_for_somebody_who_left_before_it_was_sent(
    chat: ChatPage,
) -> None:
    chat.ask("my stone is agate")
    first = chat.conversation_id
    held = hold(chat, "**/fork")
    chat.get("edit-message").click()
    chat.get("edit-field").fill("my stone is jade")
    with chat.page.expect_request("**/fork"):
        chat.get("edit-field").press("Enter")
    chat.go_to_start()

    answer(chat, held)

    expect(chat.composer).to_have_value("")
    chat.go(f"/#/c/{first}")
    expect(chat.turn.message).to_have_text("my stone is agate")
    chat.get("edit-message").click()
    expect(chat.get("edit-field")).to_have_value("my stone is jade")
    chat.get("edit-field").press("Escape")


def test_a_message_taken_back_goes_to_its_own_conversation(chat: ChatPage) -> None:
    address, held = take_back(chat, "my ferry is Nobody", beside="and more")
    chat.composer.fill("a new one")

    with chat.page.expect_response("**/queue/*"):
        answer(chat, held)

    expect(chat.composer).to_have_value("a new one")
    chat.go(address)
    expect(chat.composer).to_have_value("and more\nmy ferry is Nobody")
    chat.composer.fill("")
    chat.get("stop").click()
    chat.turn.expect_end("interrupted", "user_interrupt")


def test_a_message_taken_back_comes_to_whoever_has_come_back(chat: ChatPage) -> None:
    address, held = take_back(chat, "我的渡船叫无名", beside="")
    chat.go(address)
    expect(chat.get("stop")).to_be_visible()
    chat.composer.fill("and more")

    with chat.page.expect_response("**/queue/*"):
        answer(chat, held)

    expect(chat.composer).to_have_value("and more\n我的渡船叫无名")
    chat.composer.fill("")
    chat.get("stop").click()
    chat.turn.expect_end("interrupted", "user_interrupt")


def test_a_message_that_could_not_be_sent_takes_nobody_out_of_another_field(chat: ChatPage) -> None:
    chat.witness.network_may_fail = True
    held = hold(chat, "**/chat/stream")
    with chat.page.expect_request("**/chat/stream"):
        chat.send("my ferry is Nobody")
    search = chat.get("search")
    search.click()
    chat.page.keyboard.type("没有这")

    for route in held:
        route.fulfill(status=503, json={})
    expect(chat.get("error-line")).to_be_visible()

    expect(chat.composer).to_have_value("my ferry is Nobody")
    chat.page.keyboard.type("个")
    expect(search).to_have_value("没有这个")
    search.fill("")
    chat.page.unroute_all(behavior="ignoreErrors")


def test_a_message_that_fails_once_its_conversation_was_left_waits_in_that_one(
    chat: ChatPage,
) -> None:
    """What begins behind another conversation is made before its first message is sent."""
    chat.witness.network_may_fail = True
    chat.ask("my stone is agate")
    chat.send("/clear")
    held = hold(chat, "**/chat/stream")
    with chat.page.expect_request("**/chat/stream"):
        chat.send("my ferry is Nobody")
    left = chat.conversation_id
    chat.send("/clear")
    chat.composer.fill("我的石头是玉")

    with chat.page.expect_response("**/chat/stream"):
        held[0].fulfill(status=503, json={})
    chat.page.unroute_all(behavior="ignoreErrors")

    chat.go(f"/#/c/{left}")
    expect(chat.composer).to_have_value("my ferry is Nobody")
    chat.composer.fill("")
    chat.go("/")
    expect(chat.composer).to_have_value("我的石头是玉")


def test_a_first_message_behind_another_conversation_is_one_turn_however_often_it_is_sent(
    chat: ChatPage,
) -> None:
    chat.witness.network_may_fail = True
    chat.ask("my stone is agate")
    chat.send("/clear")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    chat.page.route("**/chat/stream", lose)
    chat.send("my zither is old")
    expect(chat.get("error-line")).to_be_visible()
    chat.page.unroute_all(behavior="ignoreErrors")

    chat.composer.press("Enter")

    expect(chat.turn.outcome).to_be_visible()
    where = f"{chat.witness.origin}/conversations/{chat.conversation_id}"
    assert chat.page.request.get(where).json()["turns"] == 1


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_message_that_fails_comes_back_to_whoever_has_come_back(
    chat: ChatPage, *, has_begun: bool
) -> None:
    chat.witness.network_may_fail = True
    if has_begun:
        chat.ask("my stone is agate")
    address = chat.page.url.removeprefix(chat.witness.origin)
    held = hold(chat, "**/chat/stream")
    with chat.page.expect_request("**/chat/stream"):
        chat.send("我的石头是玉")
    chat.items.last.get_by_role("button").first.click()
    chat.go(address)
    chat.composer.fill("and more")

    held[0].fulfill(status=503, json={})

    expect(chat.get("error-line")).to_be_visible()
    expect(chat.composer).to_have_value("我的石头是玉\nand more")
    chat.composer.fill("")
    chat.page.unroute_all(behavior="ignoreErrors")


@pytest.mark.parametrize(("status", "later"), [(503, 503), (404, 404), (503, 404)])
def test_messages_that_fail_come_back_in_the_order_in_which_they_were_sent(
    chat: ChatPage, status: int, later: int
) -> None:
    chat.witness.network_may_fail = True
    chat.ask("hello")
    held = hold(chat, "**/chat/stream")
    with chat.page.expect_request("**/chat/stream"):
        chat.send("my stone is agate")
    chat.send("我的石头是玉")
    chat.composer.fill("and more")

    with chat.page.expect_request("**/chat/stream"):
        held[0].fulfill(status=status, json={})
    expect(chat.composer).to_have_value("my stone is agate\nand more")
    held[1].fulfill(status=later, json={})

    expect(chat.composer).to_have_value("my stone is agate\n我的石头是玉\nand more")
    chat.composer.fill("")
    chat.page.unroute_all(behavior="ignoreErrors")


def test_a_suggestion_is_taken_although_the_list_of_other_ones_comes_during_the_press(
    chat: ChatPage, server: LiveServer
) -> None:
    (server.workspace / "petrel.txt").write_text("x", encoding="utf-8")
    rows = chat.get("completion")
    chat.composer.press_sequentially("@petre")
    expect(rows).to_have_count(1)
    held = hold(chat, "**/workspace?*", "GET")
    with chat.page.expect_request("**/workspace?*"):
        chat.composer.press_sequentially("l")
    rows.hover()
    chat.page.mouse.down()

    with chat.page.expect_response("**/workspace?*") as came:
        held[0].fulfill(json={"entries": []})
    came.value.finished()
    chat.page.evaluate("new Promise((resolve) => setTimeout(resolve))")
    chat.page.mouse.up()

    expect(chat.composer).to_have_value("petrel.txt ")
    chat.composer.fill("")
    chat.page.unroute_all(behavior="ignoreErrors")
