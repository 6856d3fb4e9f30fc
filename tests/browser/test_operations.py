"""The panel for whoever runs the server."""

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage

pytestmark = pytest.mark.browser


def test_the_panel_shows_processes_readiness_backends_and_figures(chat: ChatPage) -> None:
    title = "<i>my kite</i> is orange"
    chat.ask(title)
    chat.get("open-operations").click()
    panel = chat.get("operations")
    process = chat.get("ops-processes").locator("li").filter(has_text=title)
    expect(process).to_contain_text("idle")
    expect(chat.get("ops-live")).to_contain_text("Live conversations")
    expect(chat.get("ops-readiness")).to_contain_text("sandbox")
    expect(chat.get("ops-backends").locator("li")).not_to_have_count(0)
    expect(panel).to_contain_text("Duration of turns")

    process.get_by_role("link").click()

    expect(panel).to_have_count(0)
    expect(chat.turn.message).to_have_text(title)
