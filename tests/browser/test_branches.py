"""What a person does with a conversation: branches, with a way back; model and project; what it used; its export."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import DEADLINE_S, LiveServer

pytestmark = pytest.mark.browser


def test_an_edited_a_retried_and_a_branched_turn_each_lead_back_to_the_other_branch(
    chat: ChatPage,
) -> None:
    first = chat.ask("my stone is opal")
    original = chat.page.url
    chat.ask("what is my stone?")
    chat.turns.first.hover()
    chat.turns.first.get_by_test_id("edit-message").click()
    chat.get("edit-field").fill("my stone is jade")
    chat.get("edit-field").press("Enter")

    expect(chat.turn.message).to_have_text("my stone is jade")
    expect(first.outcome).to_be_visible()
    expect(chat.get("branch-place")).to_have_text("2 / 2")
    expect(chat.page.locator("#title")).to_have_text("my stone is jade")
    expect(chat.ask("what is my stone?").reply).to_contain_text("jade")

    chat.get("branch-before").click()
    expect(chat.page).to_have_url(original)
    expect(chat.turn.reply).to_contain_text("opal")
    chat.turn.at.hover()
    chat.turn.at.get_by_test_id("retry-turn").click()
    expect(chat.turn.at.get_by_test_id("branch-place")).to_have_text("2 / 2")
    expect(chat.turn.reply).to_contain_text("opal")
    chat.turn.at.get_by_test_id("branch-before").click()
    expect(chat.page).to_have_url(original)

    chat.turns.first.hover()
    chat.turns.first.get_by_test_id("branch-here").click()
    expect(chat.get("branch-end")).to_contain_text("3 / 3")
    expect(chat.turns).to_have_count(1)
    chat.get("branch-end").get_by_test_id("branch-before").click()
    expect(chat.turn.at.get_by_test_id("branch-place")).to_have_text("2 / 3")

    chat.open_item.hover()
    chat.open_item.get_by_test_id("rename").click()
    chat.get("rename-input").fill("Stones")
    first_id = original.rpartition("/")[2]
    with chat.page.expect_response(
        lambda answer: answer.request.method == "PATCH" and answer.url.endswith(first_id)
    ):
        chat.get("rename-input").press("Enter")
    expect(chat.open_item).to_contain_text("Stones")
    chat.go(original.removeprefix(chat.witness.origin))
    expect(chat.page.locator("#title")).to_have_text("Stones")


def test_a_button_that_is_pressed_twice_makes_one_branch(chat: ChatPage) -> None:
    turn = chat.ask("hello")
    chat.witness.requests.clear()
    turn.at.hover()

    turn.at.get_by_test_id("retry-turn").dblclick()

    expect(chat.turn.at.get_by_test_id("branch-place")).to_have_text("2 / 2")
    expect(chat.turn.outcome).to_be_visible()
    forks = [asked for asked in chat.witness.requests if "/fork " in asked]
    assert len(forks) == 1, forks


def test_an_edit_that_was_not_sent_is_there_after_a_reload_until_it_is_cancelled(
    chat: ChatPage,
) -> None:
    chat.ask("my stone is opal")
    field = chat.get("edit-field")

    def edit() -> None:
        chat.turns.first.hover()
        chat.turns.first.get_by_test_id("edit-message").click()

    edit()
    field.fill("my stone is ja")
    chat.page.reload()
    edit()
    expect(field).to_have_value("my stone is ja")
    field.press("Escape")
    edit()
    expect(field).to_have_value("my stone is opal")
    field.fill("my stone is jade")

    field.press("Enter")

    expect(chat.turn.message).to_have_text("my stone is jade")
    chat.get("branch-before").click()
    expect(chat.turn.message).to_have_text("my stone is opal")
    edit()
    expect(field).to_have_value("my stone is opal")
    field.press("Escape")


def test_the_details_show_what_was_used_choose_model_and_project_and_give_the_whole_away(
    chat: ChatPage, server: LiveServer
) -> None:
    turn = chat.ask("my kite is red")
    expect(turn.at.get_by_test_id("turn-usage")).to_contain_text("tokens")
    chat.get("details-button").click()
    expect(chat.get("usage")).to_contain_text("Turns1Tokens read")
    expect(chat.get("context-use")).to_contain_text("Context: ")
    with chat.page.expect_download() as download:
        chat.get("export-markdown").click()
    assert download.value.suggested_filename == f"{chat.conversation_id}.md"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("# my kite is red\n")
    assert "your kite is red" in text

    chat.get("details-model").fill("haiku")
    chat.get("details-project").fill("kites")
    chat.get("details-save").click()

    expect(chat.get("details-button")).to_contain_text("haiku")
    url = f"{server.url}/conversations/{chat.conversation_id}"
    stored = httpx.get(url, timeout=DEADLINE_S, trust_env=False).json()
    assert (stored["model"], stored["project_id"]) == ("haiku", "kites")
    chat.start_new()
    expect(chat.get("details-button")).to_contain_text("haiku")


def test_a_branch_keeps_its_title_whatever_is_searched_for(chat: ChatPage) -> None:
    title = chat.page.locator("#title")
    chat.ask("my gem is topaz")
    chat.turn.at.hover()
    chat.turn.at.get_by_test_id("retry-turn").click()
    expect(chat.turn.at.get_by_test_id("branch-place")).to_have_text("2 / 2")
    expect(chat.turn.outcome).to_be_visible()
    expect(title).to_have_text("my gem is topaz")

    chat.get("search").fill("no such gem")

    expect(chat.items).to_have_count(0)
    expect(title).to_have_text("my gem is topaz")
    expect(chat.page).to_have_title("my gem is topaz · Candor")
    chat.get("search").fill("")
    chat.open_item.hover()
    chat.open_item.get_by_test_id("rename").click()
    chat.get("rename-input").fill("Gems")
    chat.get("rename-input").press("Enter")
    expect(title).to_have_text("Gems")
    chat.get("search").fill("no such gem")
    expect(chat.items).to_have_count(0)
    expect(title).to_have_text("Gems")
    chat.get("search").fill("")
