"""The small shield beside the model's name: does the kernel confine the agent, and what does that mean?"""

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.support.live_server import LiveServer

pytestmark = pytest.mark.browser

ENGLISH = {"landlock": "confined", "bubblewrap": "Bash confined", "off": "not confined"}
CHINESE = {"landlock": "已隔离", "bubblewrap": "Bash 已隔离", "off": "未隔离"}


def test_the_page_says_what_the_server_says_of_it(open_page: OpenPage, server: LiveServer) -> None:
    ready = httpx.get(f"{server.url}/readyz", trust_env=False).json()
    kind = ready["parts"]["sandbox"]["kind"]
    wall = open_page().get("wall")
    expect(wall.locator(".wall-word")).to_have_text(ENGLISH[kind])


def tell(page: Page, kind: str) -> None:
    """Load the page again, and have the server name another kind of wall."""

    def answer(route: Route) -> None:
        told = route.fetch().json()
        told["parts"]["sandbox"]["kind"] = kind
        route.fulfill(json=told)

    page.unroute_all()
    page.route("**/readyz", answer)
    page.reload()


@pytest.mark.parametrize(("locale", "words"), [("en-US", ENGLISH), ("zh-CN", CHINESE)])
def test_each_kind_has_a_word_and_a_sentence(
    open_page: OpenPage, locale: str, words: dict[str, str]
) -> None:
    chat = open_page(locale=locale)
    for kind, word in words.items():
        tell(chat.page, kind)
        wall = chat.get("wall")
        expect(wall.locator(".wall-word")).to_have_text(word)
        means = wall.get_attribute("title") or ""
        assert means.endswith((".", "。"))
        expect(wall.locator(".visually-hidden")).to_contain_text(means)


def test_an_unknown_kind_is_not_shown(open_page: OpenPage) -> None:
    chat = open_page()
    tell(chat.page, "toString")
    expect(chat.page.locator("#model")).to_contain_text("candor-demo")
    expect(chat.get("wall")).to_be_hidden()
