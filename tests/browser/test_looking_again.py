"""Panels that look again by themselves leave what somebody is at in its place."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.support.live_server import script, started_server

pytestmark = pytest.mark.browser


def look_again(chat: ChatPage, address: str, times: int = 3) -> None:
    """Wait until the page has read something so many times more."""
    for _ in range(times):
        with chat.page.expect_response(address):
            pass


def test_the_panel_of_the_server_keeps_the_focus_what_is_selected_and_an_error(
    chat: ChatPage,
) -> None:
    chat.witness.network_may_fail = True
    chat.ask("我的风筝是橙色的")
    chat.page.route(re.compile("/memory/outbox"), lambda route: route.fulfill(status=500, json={}))
    chat.get("open-operations").click()
    link = chat.get("ops-processes").get_by_role("link", name="我的风筝是橙色的").first
    link.focus()
    chat.get("ops-readiness").locator("li").first.evaluate(
        "(row) => getSelection().selectAllChildren(row)"
    )
    selected = chat.page.evaluate("getSelection().toString()")
    assert selected

    look_again(chat, "**/operations")

    expect(link).to_be_focused()
    assert chat.page.evaluate("getSelection().toString()") == selected
    expect(chat.get("operations").get_by_test_id("error-line")).to_be_visible()
    chat.page.unroute_all(behavior="ignoreErrors")
    chat.page.keyboard.press("Escape")


def test_a_schedule_that_runs_keeps_its_buttons(open_page: OpenPage, tmp_path: Path) -> None:
    with started_server(tmp_path, schedules="on", **SETTINGS) as server:
        chat = open_page(url=server.url)
        chat.get("open-schedules").click()
        chat.get("schedule-name").fill("Mornings")
        chat.get("schedule-message").fill(script({"hang": True}))
        chat.get("schedule-add").click()
        chat.get("schedule-run").click()
        expect(chat.get("schedule-last")).to_contain_text("runs")
        change = chat.get("schedule-change").element_handle()

        look_again(chat, "**/schedules/*")

        assert change.evaluate("(button) => button.isConnected")
