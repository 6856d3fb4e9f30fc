"""A server that wants to know who is there: signing in, and seeing one's own conversations alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.support.live_server import LiveServer, started_server
from tests.support.program import run_app

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens")


@pytest.fixture(scope="module")
def tokens(browser: Browser, directory: Path) -> dict[str, str]:
    """Tokens as the command line makes them."""

    def make(name: str) -> str:
        made = run_app("token", name, directory=directory, tokens_file=directory / "tokens")
        assert made.returncode == 0, made.stderr
        return made.stdout.strip().splitlines()[-1]

    return {name: make(name) for name in ("ada", "ben")}


@pytest.fixture(scope="module")
def closed_server(directory: Path, tokens: dict[str, str]) -> Iterator[LiveServer]:
    settings = {"tokens_file": directory / "tokens", "host": "0.0.0.0", **SETTINGS}
    with started_server(directory, **settings) as server:  # it tells an address that it answers
        yield server


def sign_in(chat: ChatPage, token: str) -> None:
    chat.witness.network_may_fail = True  # the requests before it are refused
    chat.get("token-input").fill(token)
    chat.get("token-submit").click()


def test_nothing_is_shown_before_the_token_is_right_and_nothing_of_others(
    open_page: OpenPage, closed_server: LiveServer, tokens: dict[str, str]
) -> None:
    chat = open_page(url=closed_server.url)
    panel = chat.get("sign-in")
    expect(panel).to_be_visible()
    expect(chat.get("token-input")).to_be_focused()
    expect(chat.get("token-input")).to_have_attribute("type", "password")
    chat.page.keyboard.press("Escape")
    expect(panel).to_be_visible()

    sign_in(chat, "candor_wrong")

    expect(panel).to_contain_text("That token was not accepted.")

    sign_in(chat, tokens["ada"])

    expect(panel).to_have_count(0)
    expect(chat.get("demo-banner")).to_be_visible()
    turn = chat.ask("/token-is-my-own")
    turn.at.get_by_test_id("log-link").click()
    expect(chat.get("log-dialog").locator(".log-line").first).to_be_visible()
    chat.page.keyboard.press("Escape")
    assert tokens["ada"] not in chat.page.url
    assert tokens["ada"] not in chat.page.content()
    assert chat.page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    chat.page.reload()
    expect(chat.turn.message).to_have_text("/token-is-my-own")
    expect(panel).to_have_count(0)
    address = f"/#/c/{chat.conversation_id}"
    beside = chat.page.context.new_page()
    beside.goto(f"{closed_server.url}{address}")
    expect(beside.locator(".user-text")).to_have_text("/token-is-my-own")

    other = open_page(address, url=closed_server.url)
    sign_in(other, tokens["ben"])

    expect(other.get("error-line")).to_have_text("This conversation no longer exists.")
    expect(other.get("conversation-list")).to_be_empty()

    beside.get_by_test_id("open-settings").click()
    beside.get_by_test_id("sign-out").click()

    for page in (beside, chat.page):
        expect(page.get_by_test_id("sign-in")).to_be_visible()
        assert page.evaluate("sessionStorage.getItem('candor.token')") is None
    expect(other.page.get_by_text("my-own")).to_have_count(0)
