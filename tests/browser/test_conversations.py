"""The list of conversations: found, opened, renamed, deleted, and each left as it was."""

import re

import httpx
import pytest
from playwright.sync_api import APIResponse, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DESKTOP
from tests.support.live_server import DEADLINE_S, LiveServer, script

pytestmark = pytest.mark.browser

SLOW = script({"text": "slow " * 200, "delta_delay_ms": 900}, say="a slow one")


def test_a_conversation_is_listed_found_opened_again_and_left_as_it_was(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "Something about numbers")
    chat.go_to_start()
    chat.ask("my colour is teal")
    teal = chat.page.url
    expect(chat.items.first).to_contain_text("my colour is teal")
    expect(chat.items.nth(1)).to_contain_text("Something about numbers")
    chat.go_to_start()

    chat.get("search").fill("TEAL")

    expect(chat.items).to_have_count(1)
    expect(chat.items.get_by_test_id("item-match")).to_have_text("my colour is teal")
    expect(chat.items.locator("mark")).to_have_text("teal")
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
    chat.open_made(server, "The one before")
    chat.open_made(server, "The one after")
    after = chat.page.url

    chat.page.go_back()

    expect(chat.open_item).to_contain_text("The one before")
    expect(chat.page.locator("#title")).to_have_text("The one before")
    chat.page.go_forward()
    expect(chat.page.locator("#title")).to_have_text("The one after")
    assert chat.page.url == after


def test_a_new_title_is_kept_unless_renaming_is_given_up(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "my drink is tea")
    chat.act_on_item("my drink is tea", "rename")
    chat.get("rename-input").fill("Something else")
    chat.get("rename-input").press("Escape")
    expect(chat.item("my drink is tea")).to_be_visible()
    expect(chat.item("Something else")).to_have_count(0)

    chat.act_on_item("my drink is tea", "rename")
    chat.get("rename-input").fill("Tea, and nothing else")
    with chat.page.expect_response(lambda answer: answer.request.method == "PATCH"):
        chat.get("rename-input").press("Enter")

    expect(chat.open_item).to_contain_text("Tea, and nothing else")
    expect(chat.page).to_have_title("Tea, and nothing else · Candor")
    chat.page.reload()
    expect(chat.open_item).to_contain_text("Tea, and nothing else")


def test_a_list_that_was_read_before_a_renaming_does_not_bring_the_old_title_back(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "my cup is blue")
    chat.item("my cup is blue").wait_for()
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if len(held) < 2:
            held.append((route, route.fetch()))
        else:
            route.continue_()

    chat.page.route("**/conversations?*", hold)
    chat.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    while len(held) < 2:
        chat.page.wait_for_timeout(10)
    chat.act_on_item("my cup is blue", "rename")
    chat.get("rename-input").fill("a cup, and no more")
    with chat.page.expect_response(lambda answer: answer.request.method == "PATCH"):
        chat.get("rename-input").press("Enter")
    for route, answer in held:
        route.fulfill(response=answer)
    chat.page.evaluate("new Promise((done) => setTimeout(done, 200))")
    expect(chat.open_item).to_contain_text("a cup, and no more")
    expect(chat.page.locator("#title")).to_have_text("a cup, and no more")


def test_deleting_asks_first_and_then_leaves_nothing(chat: ChatPage, server: LiveServer) -> None:
    title = "my secret is out"
    chat.open_made(server, title)
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


def test_a_long_list_comes_in_parts(chat: ChatPage, server: LiveServer) -> None:
    with httpx.Client(base_url=server.url, timeout=DEADLINE_S, trust_env=False) as http:
        for number in range(33):
            http.post("/new-conversation", json={"title": f"leaf {number:02}."})
    chat.get("search").fill("leaf")
    expect(chat.item("leaf 32.")).to_be_visible()
    expect(chat.items).to_have_count(30)
    assert chat.items.first.inner_text().startswith("leaf 32.")

    chat.get("more-conversations").scroll_into_view_if_needed()

    expect(chat.items).to_have_count(33)
    assert chat.items.last.inner_text().startswith("leaf 00.")
    expect(chat.get("more-conversations")).to_have_count(0)
    chat.get("search").fill("")
    expect(chat.item("leaf 00.")).to_have_count(0)


def test_a_pinned_conversation_stands_above_the_others_until_it_is_unpinned(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "kept at hand")
    chat.open_made(server, "newer than that")
    chat.act_on_item("kept at hand", "pin")
    expect(chat.items.first).to_contain_text("kept at hand")
    expect(chat.page.locator(".list-heading").first).to_have_text("Pinned")

    chat.act_on_item("kept at hand", "pin")
    expect(chat.items.first).to_contain_text("newer than that")
    expect(chat.page.get_by_text("Pinned", exact=True)).to_have_count(0)


def test_a_new_conversation_is_listed_once_it_has_a_message(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.ask("my tower is tall")
    left = chat.conversation_id
    with httpx.Client(base_url=server.url, timeout=DEADLINE_S, trust_env=False) as http:

        def newest() -> str:
            listed = http.get("/conversations", params={"limit": 1}).json()["conversations"]
            return str(listed[0]["id"])

        chat.start_new()
        chat.page.reload()
        chat.item("my tower").wait_for()
        assert newest() == left
        assert "#" not in chat.page.url

        chat.ask("my bridge is low")

        expect(chat.open_item).to_contain_text("my bridge is low")
        assert newest() == chat.conversation_id
        intents = http.get("/memory/intents", params={"key": "conversation.reset"}).json()
    assert left in str(intents["intents"][0]), intents


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


@pytest.mark.parametrize("command", ["/clear", "／clear"])
def test_clear_starts_a_new_conversation(chat: ChatPage, command: str) -> None:
    chat.ask(f"my boat is the Otter {command}")
    address = chat.page.url
    chat.send(command)

    expect(chat.get("welcome")).to_be_visible()
    expect(chat.composer).to_have_value("")
    assert chat.page.url != address
    chat.item("my boat").get_by_role("button").first.click()
    expect(chat.outcomes).to_have_count(1)
    expect(chat.composer).to_have_value("")


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


def test_replies_are_found_in_the_list_and_in_their_conversation(chat: ChatPage) -> None:
    chat.ask("write blue to boat-log.txt")
    chat.ask("list the files")

    chat.get("search").fill("i WROTE boat-log")

    expect(chat.items).to_have_count(1)
    expect(chat.items.get_by_test_id("item-match").locator("mark")).to_have_text("I wrote boat-log")
    chat.get("search").fill("")
    chat.page.keyboard.press("Control+Shift+F")
    chat.page.keyboard.type("nowhere at all")
    dialog = chat.page.locator("dialog[open]")
    expect(dialog.get_by_role("status")).to_contain_text("Nothing found")
    chat.get("find-field").fill("wrote boat")
    expect(chat.get("find-hit")).to_have_count(1)
    chat.get("find-hit").click()
    expect(dialog).to_have_count(0)
    expect(chat.turns.first).to_have_class(re.compile("is-found"))
    chat.page.set_viewport_size({"width": 390, "height": 844})
    chat.get("find").click()  # there is no keyboard on a phone
    expect(chat.get("find-field")).to_be_focused()
    chat.page.keyboard.press("Escape")
    chat.page.set_viewport_size(DESKTOP["viewport"])


def test_the_dialog_that_finds_has_a_button_that_closes_it(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "Searched")
    chat.get("find").click()
    expect(chat.get("find-field")).to_be_focused()
    dialog = chat.page.get_by_role("dialog", name="Find in this conversation")

    dialog.get_by_role("button", name="Close", exact=True).click()

    expect(dialog).to_have_count(0)


def test_the_error_of_a_search_in_a_conversation_goes_with_the_next_one(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.witness.network_may_fail = True
    chat.open_made(server, "Searched in vain")
    chat.page.route("**/matches?*", lambda route: route.fulfill(status=503, json={}))
    chat.get("find").click()
    dialog = chat.page.get_by_role("dialog", name="Find in this conversation")
    chat.get("find-field").fill("苍鹭")
    expect(dialog.get_by_test_id("error-line")).to_be_visible()
    chat.page.unroute_all(behavior="ignoreErrors")

    chat.get("find-field").fill("heron")

    expect(dialog.get_by_role("status")).to_contain_text("Nothing found")
    expect(dialog.get_by_test_id("error-line")).to_have_count(0)
    dialog.get_by_role("button", name="Close", exact=True).click()


def test_a_first_message_makes_the_title_while_something_else_is_searched_for(
    chat: ChatPage,
) -> None:
    chat.get("search").fill("no such thing")
    expect(chat.items).to_have_count(0)

    chat.ask("my ring is gold")

    expect(chat.page.locator("#title")).to_have_text("my ring is gold")
    expect(chat.page).to_have_title("my ring is gold · Candor")
    chat.get("search").fill("")


def test_what_was_sent_to_a_deleted_conversation_goes_into_a_new_one(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "deleted elsewhere")
    url = f"{server.url}/conversations/{chat.conversation_id}"
    assert httpx.delete(url, timeout=DEADLINE_S, trust_env=False).is_success

    chat.send("my stamp is blue")

    expect(chat.get("error-line")).to_contain_text("This conversation no longer exists.")
    expect(chat.get("retry")).to_have_count(0)
    expect(chat.get("welcome")).to_be_visible()
    expect(chat.composer).to_have_value("my stamp is blue")
    chat.composer.press("Enter")
    expect(chat.turn.message).to_have_text("my stamp is blue")
    expect(chat.turn.outcome).to_be_visible()
    expect(chat.get("error-line")).to_have_count(0)
    chat.witness.failed_requests.clear()  # the refusal is what was wanted
