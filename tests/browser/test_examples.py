"""The example of a page of one's own, served under the gateway's address."""

import pytest
from playwright.sync_api import Browser, expect

from tests.support.live_server import LiveServer
from tests.support.program import ROOT

pytestmark = pytest.mark.browser


def test_a_page_shows_the_answer_and_goes_on_in_the_conversation(
    browser: Browser, server: LiveServer
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/ask.html", lambda route: route.fulfill(path=ROOT / "examples" / "page.html"))
    page.goto(f"{server.url}/ask.html")

    for message, reply in (("my codeword is heron", ""), ("what is my codeword?", "heron")):
        page.locator("#message").fill(message)
        page.get_by_role("button").click()
        expect(page.locator("#outcome")).to_have_text("answered")
        expect(page.locator("#reply")).to_contain_text(reply)
    context.close()
