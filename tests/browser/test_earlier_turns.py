"""Turns before those that were read, whose request fails or comes late."""

import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import LiveServer

pytestmark = pytest.mark.browser


def open_with_earlier(chat: ChatPage, server: LiveServer, before: list[Route]) -> str:
    """Open a conversation that has turns before those read; their requests are held in `before`."""
    chat.ask("hello")
    address = f"/#/c/{chat.conversation_id}"

    def list_messages(route: Route) -> None:
        if "before=" in route.request.url:
            before.append(route)
            return
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"next_before": "msg_earlier"})

    chat.go_to_start()
    chat.page.route("**/messages?**", list_messages)
    with chat.page.expect_request("**before=**"):
        chat.go(address)
    return address


def test_earlier_turns_that_come_late_are_no_error_of_the_conversation_opened_since(
    chat: ChatPage, server: LiveServer
) -> None:
    open_with_earlier(chat, server, [])

    chat.go_to_start()

    expect(chat.get("welcome")).to_be_visible()
    expect(chat.get("error-line")).to_have_count(0)
    chat.page.unroute_all(behavior="ignoreErrors")


def test_earlier_turns_that_cannot_be_read_are_asked_for_again_by_the_person_alone(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.witness.network_may_fail = True
    before: list[Route] = []
    open_with_earlier(chat, server, before)

    expect(chat.turn.outcome).to_be_visible()
    before[0].fulfill(status=500, json={})

    expect(chat.get("error-line")).to_be_visible()
    chat.ask("hello again")  # the page is drawn anew, many times
    assert len(before) == 1
    with chat.page.expect_request("**before=**"):
        chat.get("show-earlier").click()
    before[1].fulfill(json={"messages": [], "next_before": None})
    expect(chat.get("show-earlier")).to_have_count(0)
    chat.page.unroute_all(behavior="ignoreErrors")
