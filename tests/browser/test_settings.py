"""What a person prefers counts at once, and is there again after a reload."""

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import FORBID_STORAGE, OpenPage

pytestmark = pytest.mark.browser

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
DARK = "rgb(27, 25, 23)"
NOTIFIED = """async () => {
  const told = [];
  window.Notification = class extends EventTarget {
    static permission = "granted";
    constructor(title, { body }) { super(); told.push(`${title}: ${body}`); }
  };
  document.hasFocus = () => false;
  const { notify } = await import("/static/notification.js");
  notify("Deploy", "May rm run?", "apr_1", () => {});
  return told;
}"""


def test_each_preference_counts_at_once_and_stays(open_page: OpenPage) -> None:
    chat = open_page(permissions=["notifications"])
    assert chat.page.evaluate(BACKGROUND) != DARK
    assert chat.page.evaluate(NOTIFIED) == []
    chat.page.reload()
    chat.get("open-settings").click()
    chat.get("prefer-theme").select_option("dark")
    chat.get("prefer-density").select_option("compact")
    chat.get("prefer-sendKey").select_option("command")
    chat.get("prefer-notifications").click()
    expect(chat.get("prefer-notifications")).to_be_checked()
    assert chat.page.evaluate(BACKGROUND) == DARK
    chat.get("prefer-language").select_option("zh-CN")

    expect(chat.page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(chat.get("open-settings")).to_contain_text("设置")
    assert chat.page.evaluate(BACKGROUND) == DARK
    assert chat.page.evaluate("getComputedStyle(document.documentElement).fontSize") == "14.4px"
    expect(chat.page.locator("#composer-hint")).to_have_text("Ctrl+Enter 发送 · Enter 换行")
    chat.composer.press_sequentially("my boat is red")
    chat.composer.press("Enter")
    expect(chat.turns).to_have_count(0)
    chat.composer.press("Control+Enter")
    expect(chat.turn.message).to_have_text("my boat is red")
    assert chat.page.evaluate(NOTIFIED) == ["Deploy: May rm run?"]


def test_the_page_works_where_the_browser_forbids_storage(open_page: OpenPage) -> None:
    chat = open_page()
    chat.page.add_init_script(FORBID_STORAGE)
    chat.page.reload()

    chat.ask("my boat is red").expect_end("answered")

    chat.get("open-settings").click()
    chat.get("prefer-theme").select_option("dark")
    assert chat.page.evaluate(BACKGROUND) == DARK
    chat.get("prefer-language").select_option("zh-CN")
    expect(chat.get("settings")).to_contain_text("The browser keeps no settings of this page")
    expect(chat.turns).to_have_count(1)


def test_the_browser_would_install_the_page(talk: ChatPage) -> None:
    browser = talk.page.context.new_cdp_session(talk.page)
    found = browser.send("Page.getInstallabilityErrors")["installabilityErrors"]
    browser.detach()
    assert [error["errorId"] for error in found] == ["in-incognito"]  # as every test's window is
