"""Webhooks on the page: added, tested, looked at, switched off and deleted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.browser.test_accessibility import AXE, JUDGE, PHONE
from tests.support.live_server import started_server
from tests.unit.memory.backends.memu_services import Reply, served

pytestmark = pytest.mark.browser


@dataclass
class Place:
    """A server with webhooks, and a receiver."""

    url: str = ""
    receiver: str = ""
    status: int = 200

    def answer(self, _method: str, _path: str, _body: Any) -> Reply:
        return self.status, {}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place, chosen = Place(), {"webhooks": "on", "webhook_hosts": "127.0.0.1", **SETTINGS}
    directory = tmp_path_factory.mktemp("webhooks")
    with served(place.answer) as place.receiver, started_server(directory, **chosen) as server:
        place.url = server.url
        yield place


def open_webhooks(chat: ChatPage) -> None:
    chat.get("open-settings").click()
    chat.get("open-webhooks").click()


def row_of(chat: ChatPage, url: str) -> Locator:
    return chat.get("webhook").filter(has_text=url)


def add(chat: ChatPage, url: str) -> Locator:
    """Add a webhook in the open dialog; return its row."""
    chat.get("webhook-url").fill(url)
    chat.get("webhook-add").click()
    expect(row_of(chat, url)).to_be_visible()
    return row_of(chat, url)


def test_a_webhook_is_added_and_its_secret_is_shown_once(open_page: OpenPage, place: Place) -> None:
    chat = open_page(url=place.url)
    chat.witness.network_may_fail = True  # the browser calls a refusal so
    open_webhooks(chat)
    chat.get("webhook-url").fill("http://10.0.0.1/hook")
    chat.get("webhook-add").click()
    expect(chat.get("error-line")).to_contain_text("CANDOR_WEBHOOK_HOSTS")
    expect(chat.get("webhook-url")).to_have_value("http://10.0.0.1/hook")
    row = add(chat, f"{place.receiver}/added")
    expect(chat.get("error-line")).to_have_count(0)
    expect(row).to_contain_text("Turn completed")
    secret = row.locator("code")
    expect(secret).to_have_text(re.compile("^whsec_.{44}$"))
    expect(secret).to_be_focused()

    chat.page.reload()
    open_webhooks(chat)
    expect(row).to_be_visible()
    expect(chat.get("webhook-secret")).to_have_count(0)


def test_a_test_message_shows_what_came_of_it(open_page: OpenPage, place: Place) -> None:
    chat = open_page(url=place.url)
    open_webhooks(chat)
    row = add(chat, f"{place.receiver}/tested")
    for status, words in [(200, "Taken with status 200"), (500, "answered with the status 500.")]:
        place.status = status
        row.get_by_test_id("webhook-test").click()
        expect(row.get_by_test_id("webhook-outcome")).to_contain_text(words)
    row.get_by_test_id("webhook-list").click()
    expect(row.get_by_test_id("webhook-deliveries")).to_have_text("None.")


def test_a_delivery_that_failed_is_listed_and_retried(open_page: OpenPage, place: Place) -> None:
    place.status = 500
    chat = open_page(url=place.url)
    open_webhooks(chat)
    row = add(chat, f"{place.receiver}/failing")
    chat.page.keyboard.press("Escape")
    chat.page.keyboard.press("Escape")
    chat.ask("my kite is orange")
    open_webhooks(chat)
    row.get_by_test_id("webhook-list").click()
    delivery = row.get_by_test_id("webhook-deliveries").locator("li")
    for words in ("Turn completed", "waiting", "the status 500.", "next try"):
        expect(delivery).to_contain_text(words)
    place.status = 200
    row.get_by_test_id("webhook-retry").press("Enter")
    expect(row.get_by_test_id("webhook-list")).to_be_focused()
    expect(delivery).to_contain_text("delivered")


def test_a_webhook_is_switched_off_and_deleted(open_page: OpenPage, place: Place) -> None:
    chat = open_page(url=place.url)
    open_webhooks(chat)
    row = add(chat, f"{place.receiver}/dropped")
    expect(row.get_by_test_id("webhook-switch")).to_be_checked()
    row.get_by_test_id("webhook-switch").click()
    expect(row.locator(".webhook-state")).to_have_text("off")
    chat.page.reload()
    open_webhooks(chat)
    expect(row.get_by_test_id("webhook-switch")).not_to_be_checked()
    row.get_by_test_id("webhook-delete").click()
    chat.get("confirm").click()
    expect(row).to_have_count(0)
    chat.page.reload()
    open_webhooks(chat)
    expect(chat.get("webhook-url")).to_be_visible()
    expect(row).to_have_count(0)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_axe_finds_nothing_in_the_dialog(open_page: OpenPage, place: Place, locale: str) -> None:
    chat = open_page(url=place.url, locale=locale)
    chat.page.emulate_media(color_scheme="dark" if locale == "zh-CN" else "light")
    chat.page.evaluate(AXE.read_text("utf-8"))
    open_webhooks(chat)
    row = add(chat, f"http://127.0.0.1:1/{locale}")
    row.get_by_test_id("webhook-test").press("Enter")
    expect(row.get_by_test_id("webhook-outcome")).to_have_class(re.compile("is-bad"))
    row.get_by_test_id("webhook-list").press("Enter")
    expect(row.get_by_test_id("webhook-deliveries").locator("li")).to_have_count(1)
    if locale == "zh-CN":
        chat.page.set_viewport_size({"width": PHONE, "height": 800})
        expect(row).to_contain_text("回合完成")
        expect(row.get_by_test_id("webhook-outcome")).to_contain_text("失败")
    assert chat.page.evaluate(JUDGE, '[data-testid="webhooks"]') == []


def test_the_page_says_where_webhooks_are_off(chat: ChatPage) -> None:
    open_webhooks(chat)
    expect(chat.get("webhooks-off")).to_contain_text("CANDOR_WEBHOOKS=on")
    expect(chat.get("webhook-url")).to_have_count(0)
