"""The list of conversations: found, opened, renamed, deleted, and each left as it was."""

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import LiveServer, script

pytestmark = pytest.mark.browser

SLOW = script({"text": "slow " * 200, "delta_delay_ms": 50}, say="a slow one")


def make(server: LiveServer, title: str) -> str:
    """Make a conversation without a message, which costs no agent; gives its address."""
    made = httpx.post(f"{server.url}/new-conversation", json={"title": title}, trust_env=False)
    return f"/#/c/{made.json()['conversation_id']}"


def test_a_conversation_is_listed_found_opened_again_and_left_as_it_was(
    chat: ChatPage, server: LiveServer
) -> None:
    make(server, "Something about numbers")
    chat.ask("my colour is teal")
    teal = chat.page.url
    expect(chat.items.first).to_contain_text("my colour is teal")
    expect(chat.items.nth(1)).to_contain_text("Something about numbers")
    chat.go_to_start()

    chat.get("search").fill("TEAL")

    expect(chat.items).to_have_count(1)
    chat.item("teal").get_by_role("button").first.click()
    expect(chat.turns).to_have_count(1)
    expect(chat.turn.message).to_have_text("my colour is teal")
    expect(chat.page.locator("#title")).to_have_text("my colour is teal")
    assert chat.page.url == teal
    expect(chat.ask("what is my colour?").reply).to_contain_text("teal")
    chat.get("search").fill("no such thing")
    expect(chat.items).to_have_count(0)
    expect(chat.page.locator("#conversation-list-end")).to_have_text(
        "Nothing found for “no such thing”"
    )
    chat.get("search").fill("")
    expect(chat.item("Something about numbers")).to_be_visible()


def test_the_browsers_way_back_leads_to_the_conversation_before(
    chat: ChatPage, server: LiveServer
) -> None:
    make(server, "The one before")
    make(server, "The one after")
    chat.get("search").fill("The one")
    for title in ("The one before", "The one after"):
        chat.item(title).get_by_role("button").first.click()
        expect(chat.page.locator("#title")).to_have_text(title)
    after = chat.page.url

    chat.page.go_back()

    expect(chat.open_item).to_contain_text("The one before")
    expect(chat.page.locator("#title")).to_have_text("The one before")
    chat.page.go_forward()
    expect(chat.page.locator("#title")).to_have_text("The one after")
    assert chat.page.url == after
    chat.get("search").fill("")


def test_a_new_title_is_kept(chat: ChatPage, server: LiveServer) -> None:
    make(server, "my drink is tea")
    chat.get("search").fill("my drink")
    chat.item("my drink is tea").get_by_role("button").first.click()

    chat.act_on_item("my drink is tea", "rename")
    chat.get("rename-input").fill("Tea, and nothing else")
    chat.get("rename-input").press("Enter")

    expect(chat.open_item).to_contain_text("Tea, and nothing else")
    expect(chat.page).to_have_title("Tea, and nothing else · Candor")
    chat.page.reload()
    expect(chat.open_item).to_contain_text("Tea, and nothing else")


def test_a_title_is_as_before_when_renaming_is_given_up(chat: ChatPage, server: LiveServer) -> None:
    make(server, "my bread is rye")
    chat.get("search").fill("my bread")

    chat.act_on_item("my bread is rye", "rename")
    chat.get("rename-input").fill("Something else")
    chat.get("rename-input").press("Escape")

    expect(chat.item("my bread is rye")).to_be_visible()
    expect(chat.item("Something else")).to_have_count(0)
    chat.get("search").fill("")


def test_deleting_asks_first_and_then_leaves_nothing(chat: ChatPage, server: LiveServer) -> None:
    title = "my secret is out"
    make(server, title)
    chat.get("search").fill(title)
    chat.item(title).get_by_role("button").first.click()
    address = chat.page.url
    chat.act_on_item(title, "delete")
    expect(chat.page.get_by_role("button", name="Cancel")).to_be_focused()
    chat.page.keyboard.press("Escape")
    expect(chat.item(title)).to_be_visible()

    chat.act_on_item(title, "delete")
    chat.get("confirm").click()

    expect(chat.item(title)).to_have_count(0)
    expect(chat.get("welcome")).to_be_visible()
    chat.witness.network_may_fail = True
    chat.page.goto(address)
    expect(chat.get("error-line")).to_have_text("This conversation no longer exists.")
    expect(chat.get("welcome")).to_be_visible()


def test_a_running_conversation_can_be_left_and_is_marked_until_it_is_over(chat: ChatPage) -> None:
    chat.send(SLOW)
    expect(chat.turn.live).to_contain_text("slow")
    address = chat.page.url
    chat.start_new()

    expect(chat.item("a slow one")).to_have_attribute("data-state", "running")
    expect(chat.item("a slow one")).to_contain_text("running")

    chat.item("a slow one").get_by_role("button").first.click()
    assert chat.page.url == address
    chat.get("stop").click()
    chat.turn.expect_end("interrupted", "user_interrupt")
    expect(chat.open_item).to_have_attribute("data-state", "idle")


def test_another_tab_of_the_browser_shows_at_once_what_is_said_in_this_one(
    talk: ChatPage,
) -> None:
    talk.ask("my pet is a crow")
    other = ChatPage(talk.page.context.new_page(), talk.witness)
    talk.witness.watch(other.page)
    other.page.goto(talk.page.url)
    expect(other.turn.message).to_have_text("my pet is a crow")

    talk.ask("what is my pet?")

    expect(other.turn.message).to_have_text("what is my pet?")
    expect(other.turn.reply).to_contain_text("crow")
    other.page.close()
