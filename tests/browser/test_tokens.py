"""A server that wants to know who is there: signing in, and seeing one's own conversations alone."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import FORBID_STORAGE, SETTINGS, OpenPage
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


def wide(token: str) -> str:
    """Write a token as an input method does in its full-width mode."""
    return "".join(chr(ord(char) + 0xFEE0) for char in token)


def test_a_token_that_no_header_can_carry_is_refused_and_can_be_typed_again(
    open_page: OpenPage, closed_server: LiveServer, tokens: dict[str, str]
) -> None:
    chat = open_page(url=closed_server.url)

    sign_in(chat, "令牌")

    expect(chat.get("sign-in")).to_contain_text("That token was not accepted.")
    expect(chat.get("token-input")).to_be_focused()

    sign_in(chat, wide(tokens["ada"]))

    expect(chat.get("sign-in")).to_have_count(0)
    expect(chat.get("demo-banner")).to_be_visible()


def test_a_kept_token_that_no_header_can_carry_is_asked_for_again(
    open_page: OpenPage, closed_server: LiveServer, tokens: dict[str, str]
) -> None:
    chat = open_page(url=closed_server.url)
    chat.witness.network_may_fail = True
    expect(chat.get("sign-in")).to_be_visible()
    chat.page.evaluate("sessionStorage.setItem('candor.token', '令牌')")
    chat.page.reload()

    sign_in(chat, tokens["ada"])

    expect(chat.get("sign-in")).to_have_count(0)
    expect(chat.get("demo-banner")).to_be_visible()


def test_where_the_browser_forbids_storage_a_token_lasts_as_long_as_the_page(
    open_page: OpenPage, closed_server: LiveServer, tokens: dict[str, str]
) -> None:
    chat = open_page(url=closed_server.url)
    chat.page.add_init_script(FORBID_STORAGE)
    chat.page.reload()

    sign_in(chat, tokens["ada"])

    chat.ask("/nothing-is-kept")
    chat.page.reload()
    expect(chat.get("sign-in")).to_be_visible()


def save_prompt(chat: ChatPage, text: str) -> None:
    chat.composer.fill(text)
    chat.get("save-prompt").click()


def expect_prompts(chat: ChatPage, query: str, count: int) -> None:
    chat.composer.fill(f"/{query}")
    chat.composer.press("End")
    chat.page.wait_for_timeout(500)  # nothing tells that nothing is offered
    expect(chat.get("completion")).to_have_count(count)
    chat.composer.fill("")


def test_the_next_user_finds_nothing_of_the_one_before_in_any_tab(
    open_page: OpenPage, closed_server: LiveServer, tokens: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "secret plan.md"
    file.write_text("# Plan", encoding="utf-8")
    chat = open_page(url=closed_server.url)
    chat.page.evaluate("localStorage.setItem('candor.prompts', '[\"oil the old lamp\"]')")
    sign_in(chat, tokens["ada"])
    chat.ask("/ada-was-here")
    expect_prompts(chat, "lamp", 1)
    save_prompt(chat, "fill the lamp")
    expect_prompts(chat, "lamp", 2)
    chat.get("attach-input").set_input_files(file)
    expect(chat.page.locator(".attachment[data-path]")).to_have_count(1)
    chat.composer.fill("a draft of Ada")
    beside = chat.page.context.new_page()
    beside.goto(closed_server.url)
    beside.get_by_test_id("composer").fill("another draft of Ada")
    chat.page.reload()
    expect(chat.composer).to_have_value("a draft of Ada")
    expect(chat.page.locator(".attachment[data-path]")).to_have_count(1)
    chat.get("open-settings").click()

    chat.get("sign-out").click()
    sign_in(chat, tokens["ben"])

    for page in (chat.page, beside):
        expect(page.get_by_test_id("sign-in")).to_have_count(0)
        expect(page.get_by_test_id("welcome")).to_be_visible()
        expect(page.get_by_test_id("composer")).to_have_value("")
        expect(page.locator(".attachment")).to_have_count(0)
        assert "#" not in page.url
    expect_prompts(chat, "lamp", 0)
    chat.get("open-settings").click()
    chat.get("sign-out").click()
    sign_in(chat, tokens["ada"])
    expect(chat.get("welcome")).to_be_visible()
    expect_prompts(chat, "lamp", 2)


def test_what_a_user_left_is_not_sent_in_the_name_of_the_next_one(
    open_page: OpenPage, browser: Browser, directory: Path, tokens: dict[str, str], tmp_path: Path
) -> None:
    kept = (directory / "tokens").read_text("utf-8").splitlines(keepends=True)
    file = tmp_path / "tokens"
    file.write_text("".join(kept), encoding="utf-8")
    file.chmod(0o600)
    settings = {"tokens_file": file, "host": "0.0.0.0", **SETTINGS}
    with started_server(tmp_path / "server", **settings) as server:
        chat = open_page(url=server.url)
        sign_in(chat, tokens["ada"])
        expect(chat.get("welcome")).to_be_visible()
        expect(chat.get("sign-in")).to_have_count(0)
        file.write_text("".join(line for line in kept if "ada" not in line), encoding="utf-8")
        headers = {"Authorization": f"Bearer {tokens['ada']}"}
        while httpx.get(f"{server.url}/session", headers=headers, trust_env=False).is_success:
            time.sleep(0.1)
        chat.send("/words-of-ada")
        expect(chat.get("sign-in")).to_be_visible()

        sign_in(chat, tokens["ben"])

        expect(chat.get("sign-in")).to_have_count(0)
        expect(chat.get("demo-banner")).to_be_visible()
        chat.ask("/words-of-ben")
        expect(chat.page.get_by_text("words-of-ada")).to_have_count(0)
        chat.page.reload()
        expect(chat.turn.message).to_have_text("/words-of-ben")
        expect(chat.items).to_have_count(1)
