"""What a conversation may remember, chosen by a person on the page, and what comes of it."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.memory_on_page import (
    SEARCH,
    MemoryOnPage,
    call,
    change,
    head_of,
    stored,
)
from tests.support.live_server import DEADLINE_S, LiveServer, script

pytestmark = pytest.mark.browser

RUNNING = script({"hang": True})


def test_what_is_chosen_on_the_empty_page_is_there_for_its_first_message(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    chat.composer.fill("half a thought")
    expect(memory.button).to_have_text(re.compile("^Memory Memory is on. Case memory is off.$"))
    memory.open()
    expect(memory.switch("Memory")).to_be_checked()
    expect(memory.switch("Case memory")).not_to_be_checked()

    memory.switch("Case memory").click()
    memory.field("App").fill("receipts")
    memory.field("Environment").fill(" production ")
    memory.save()

    told = "Case memory is on: receipts, production."
    expect(memory.button).to_have_text(re.compile(f"^Case memory Memory is on. {told}$"))
    expect(memory.button).to_have_attribute("title", f"Memory is on. {told}")
    expect(chat.get("welcome")).to_be_visible()
    expect(chat.composer).to_have_value("half a thought")

    turn = chat.ask(script(call(SEARCH, query="receipts 413"), {"text": "Done."}))

    turn.expect_end("answered")
    assert stored(server, chat.conversation_id) == {
        "memory": {"enabled": True, "case_memory": True},
        "app_code": "receipts",
        "environment": "production",
    }
    chat.page.reload()
    expect(memory.button).to_contain_text(told)
    memory.open()
    expect(memory.switch("Case memory")).to_be_checked()
    expect(memory.field("App")).to_have_value("receipts")
    expect(memory.field("Environment")).to_have_value("production")
    chat.page.keyboard.press("Escape")


def test_what_is_chosen_while_a_turn_runs_counts_from_the_next_one(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    search = script(call(SEARCH, query="anything"), {"text": "Tried."})
    turn = chat.ask(search)
    assert head_of(turn.tools.first) == ("Search cases", "anything"), "there is no such tool yet"
    expect(turn.tools).not_to_have_attribute("data-status", "ok")
    chat.send(RUNNING)
    expect(chat.get("stop")).to_be_visible()
    memory.open()
    expect(memory.form).to_contain_text("The running turn goes on as it began")

    memory.switch("Case memory").click()
    memory.save()

    assert stored(server, chat.conversation_id)["memory"]["case_memory"] is True
    expect(chat.get("stop")).to_be_visible()
    chat.get("stop").click()
    chat.turn.expect_end("interrupted", "user_interrupt")
    turn = chat.ask(search)
    turn.expect_end("answered")
    assert head_of(turn.tools.first) == ("Searched cases", "anything")
    memory.open()
    expect(memory.form).to_contain_text("Changes count from the next message")
    chat.page.keyboard.press("Escape")


def test_only_what_was_changed_is_sent_and_what_was_emptied_is_sent_as_default(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    chat.open_made(server, "memory of one field")
    change(server, chat.conversation_id, app_code="shop", environment="Default")
    chat.page.reload()
    memory.open()
    expect(memory.field("App")).to_have_value("shop")
    expect(memory.field("Environment")).to_have_value("")
    expect(memory.field("Environment")).to_have_attribute("placeholder", "every environment")
    sent = memory.sent()

    memory.save()
    memory.open()
    memory.field("App").fill("  ")
    memory.save()
    memory.open()
    memory.switch("Memory").click()
    memory.save()

    assert sent == [{"app_code": "default"}, {"memory": {"enabled": False}}]
    expect(memory.button).to_have_text(re.compile("^Memory off Memory is off."))
    assert stored(server, chat.conversation_id) == {
        "memory": {"enabled": False, "case_memory": False},
        "app_code": "default",
        "environment": "Default",
    }


def test_what_another_window_chose_is_shown(chat: ChatPage, server: LiveServer) -> None:
    memory = MemoryOnPage(chat)
    chat.open_made(server, "memory of two windows")
    expect(memory.button).to_contain_text("Case memory is off.")

    change(server, chat.conversation_id, memory={"case_memory": True})
    chat.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    expect(memory.button).to_contain_text("Case memory is on: every app, every environment.")


def test_a_conversation_started_from_one_with_case_memory_has_it_too(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    chat.open_made(server, "memory that is taken over")
    left = chat.conversation_id
    change(server, left, memory={"case_memory": True}, environment="staging")
    chat.page.reload()
    expect(memory.button).to_contain_text("Case memory is on")
    chat.ask("/comet-is-slow")  # the gateway itself answers what is no command

    chat.start_new()

    expect(memory.button).to_contain_text("Case memory is on: every app, staging.")
    chat.ask("/comet-is-slow")
    assert chat.conversation_id != left
    assert stored(server, chat.conversation_id)["memory"]["case_memory"] is True
    chat.go_to_start()
    expect(memory.button).to_contain_text("Case memory is off.")


def asked(server: LiveServer, path: str, **params: str) -> Any:
    """Return what the server answers about a path."""
    return httpx.get(
        f"{server.url}{path}", params=params, timeout=DEADLINE_S, trust_env=False
    ).json()


def test_what_a_turn_saved_is_shown_and_taken_back(chat: ChatPage, server: LiveServer) -> None:
    turn = chat.ask("remember that my locker is number 12")
    saved = turn.at.get_by_test_id("saved")
    expect(saved).to_contain_text("my locker is number 12")
    found = asked(server, "/memory/items", kind="fact", q="locker")["items"]
    assert [item["title"] for item in found] == ["my locker is number 12"]
    saved.get_by_test_id("saved-undo").click()
    expect(saved).to_contain_text("Undone")
    left = asked(server, "/memory/items", kind="fact", q="locker")["items"]
    assert left == []


def test_what_a_turn_forgot_is_shown_and_told_again(chat: ChatPage, server: LiveServer) -> None:
    for say in ("remember that my kayak is orange", "no, my kayak is red now"):
        chat.ask(say).expect_end("answered")
    turn = chat.ask("please forget my kayak")
    forgotten = turn.at.get_by_test_id("forgotten")
    expect(forgotten).to_contain_text("1 forgotten")
    expect(forgotten).to_contain_text("and before that: my kayak is orange")
    left = asked(server, "/memory/items", kind="fact", q="kayak")["items"]
    assert left == []
    forgotten.get_by_test_id("forgotten-undo").click()
    expect(forgotten).to_contain_text("Undone")
    told = asked(server, "/memory/items", kind="fact", q="kayak")["items"]
    whole = [asked(server, f"/memory/items/{item['id']}") for item in told]
    holds = {item["title"]: item["valid_until"] is None for item in whole}
    assert holds == {"my kayak is orange": False, "my kayak is red now": True}


def test_a_turn_that_memory_showed_links_to_its_conversation(chat: ChatPage) -> None:
    said = "The otter's canoe is painted turquoise."
    chat.ask(f"{said}\n{script({'text': 'Noted.'})}").expect_end("answered")
    told = chat.conversation_id
    chat.start_new()
    turn = chat.ask(f"How is the otter's canoe painted?\n{script({'text': 'See there.'})}")
    turn.expect_end("answered")
    assert chat.conversation_id != told
    chip = chat.get("memory").last
    chip.locator("summary").click()
    rows = chip.get_by_test_id("memory-item").filter(has_text="Said earlier")
    row = rows.filter(has_text=said)  # others may be of turns of tests before
    expect(row.locator(".memory-text")).to_contain_text(said)
    expect(row).to_contain_text(re.compile("matched: [^:]*painted"))
    assert not re.search(r"(cnv|trn|epi|fac)_\w{8}", chip.inner_text()), "ids are not for persons"
    row.get_by_role("link", name="Open the conversation").click()
    expect(chat.turn.message).to_contain_text(said)
    assert chat.conversation_id == told
    chat.page.go_back()
    expect(chat.turn.message).to_contain_text("How is the otter")
    chip.locator("summary").click()
    row.get_by_test_id("forget").click()
    row.get_by_test_id("forget-confirm").click()
    expect(row).to_contain_text("Forgotten")


def test_memory_that_could_not_be_read_is_read_when_it_is_opened_again(chat: ChatPage) -> None:
    said = "The badger's sleigh is painted maroon."
    chat.ask(f"{said}\n{script({'text': 'Noted.'})}").expect_end("answered")
    chat.start_new()
    chat.ask(f"How is the badger's sleigh painted?\n{script({'text': 'See there.'})}")
    chat.witness.network_may_fail = True
    chip = chat.get("memory").last
    texts = chip.locator(".memory-text")
    chat.page.route("**/memory/items/*", lambda route: route.abort())
    chip.locator("summary").click()
    expect(texts.first).to_have_text("The gateway could not be reached.")
    chat.page.unroute("**/memory/items/*")

    chip.locator("summary").click()
    chip.locator("summary").click()

    expect(texts.filter(has_text=said).first).to_be_visible()


def test_what_was_taken_back_is_not_offered_again_after_a_reload(chat: ChatPage) -> None:
    turn = chat.ask("remember that my chair is number 7")
    kept = chat.ask("remember that my desk is number 8")
    expect(kept.at.get_by_test_id("saved-undo")).to_be_visible()
    chat.turns.first.get_by_test_id("saved-undo").click()
    expect(chat.turns.first.get_by_test_id("saved")).to_contain_text("Undone")
    asked_before = len(chat.witness.requests)

    chat.page.reload()

    taken_back = chat.turns.first.get_by_test_id("saved")
    expect(taken_back).to_contain_text("No longer remembered.")
    expect(taken_back.get_by_test_id("saved-undo")).to_have_count(0)
    expect(turn.at.get_by_test_id("saved-undo")).to_be_visible()
    requests = chat.witness.requests[asked_before:]
    assert len([request for request in requests if "/memory/items" in request]) == 1
