"""The dialog about a conversation's memory: refused, left, by keyboard, on a phone."""

import re

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import OpenPage
from tests.browser.memory_on_page import MemoryOnPage, change, refuse_changes, stored
from tests.browser.test_looks import PHONE, expect_no_sideways_scroll
from tests.support.live_server import DEADLINE_S, LiveServer

pytestmark = pytest.mark.browser


def test_what_the_server_refuses_is_said_and_nothing_typed_is_lost(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    chat.open_made(server, "memory that is refused")
    chat.witness.network_may_fail = True
    chat.page.route("**/conversations/*", refuse_changes)
    memory.open()
    memory.switch("Case memory").click()
    memory.field("App").fill("shop")

    memory.press_save()

    expect(memory.error).to_have_text("The store cannot be written now. request req_1")
    expect(memory.error).to_have_attribute("role", "alert")
    expect(memory.field("App")).to_have_value("shop")
    expect(memory.switch("Case memory")).to_be_checked()
    expect(memory.button).to_contain_text("Case memory is off.")
    chat.page.unroute("**/conversations/*")
    memory.save()
    assert stored(server, chat.conversation_id)["app_code"] == "shop"
    url = f"{server.url}/conversations/{chat.conversation_id}"
    httpx.delete(url, timeout=DEADLINE_S, trust_env=False)
    memory.open()
    memory.field("App").fill("bank")
    memory.press_save()
    expect(memory.error).to_contain_text("There is no such conversation")
    expect(memory.field("App")).to_have_value("bank")
    chat.page.keyboard.press("Escape")
    expect(memory.button).to_be_focused()


def test_a_refusal_of_the_first_message_leaves_no_conversation_behind(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    chat.witness.network_may_fail = True
    chat.page.route("**/conversations/*", refuse_changes)
    memory.open()
    memory.switch("Case memory").click()
    memory.save()

    with (
        chat.page.expect_response("**/new-conversation") as begun,
        chat.page.expect_response(lambda answer: answer.request.method == "DELETE") as ended,
    ):
        chat.send("my case is open")

    expect(chat.get("error-line")).to_contain_text("The store cannot be written now.")
    expect(chat.composer).to_have_value("my case is open")
    begun_id = begun.value.json()["conversation_id"]
    assert ended.value.url.endswith(f"/conversations/{begun_id}")
    assert ended.value.status == 204
    assert "#" not in chat.page.url
    chat.page.unroute("**/conversations/*")
    chat.ask("my case is open")
    assert stored(server, chat.conversation_id)["memory"]["case_memory"] is True


def test_a_dialog_that_was_closed_while_it_saved_has_its_failure_told_on_the_page(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    chat.open_made(server, "memory that comes late")
    chat.witness.network_may_fail = True
    held: list[Route] = []
    chat.page.route(
        "**/conversations/*",
        lambda route: held.append(route) if route.request.method == "PATCH" else route.fallback(),
    )
    memory.open()
    memory.switch("Case memory").click()
    with chat.page.expect_request(lambda asked: asked.method == "PATCH"):
        memory.press_save()
    save = chat.get("memory-save")
    expect(save).to_have_text("Saving…")
    save.click(force=True)
    chat.page.keyboard.press("Escape")
    expect(memory.form).to_have_count(0)
    assert len(held) == 1, "pressed twice is sent once"

    refuse_changes(held[0])

    expect(chat.get("error-line")).to_contain_text("The store cannot be written now.")
    chat.page.unroute("**/conversations/*")
    chat.get("retry").click()
    expect(memory.button).to_contain_text("Case memory is on")
    expect(chat.get("error-line")).to_have_count(0)
    assert stored(server, chat.conversation_id)["memory"]["case_memory"] is True


def test_it_says_so_where_the_servers_memory_cannot_be_reached(
    chat: ChatPage, server: LiveServer
) -> None:
    def answer(route: Route) -> None:
        told = route.fetch().json()
        told["parts"]["memory"] = {
            "ok": False,
            "state": "unavailable",
            "detail": "The file is gone.",
        }
        route.fulfill(json=told)

    memory = MemoryOnPage(chat)
    chat.open_made(server, "memory that is gone")
    memory.open()
    expect(memory.form.get_by_role("status")).to_have_text("")
    chat.page.keyboard.press("Escape")

    chat.page.route("**/readyz", answer)
    memory.open()

    expect(memory.form.get_by_role("status")).to_contain_text("cannot be reached")
    chat.page.unroute("**/readyz")
    chat.page.keyboard.press("Escape")


def test_it_is_used_by_keyboard_alone(chat: ChatPage, server: LiveServer) -> None:
    memory = MemoryOnPage(chat)
    keyboard = chat.page.keyboard
    chat.open_made(server, "memory by keyboard")
    memory.button.focus()
    keyboard.press("Enter")
    expect(chat.page.get_by_role("dialog", name="Memory of this conversation")).to_be_visible()
    expect(memory.switch("Memory")).to_be_focused()
    expect(memory.switch("Memory")).to_have_accessible_description(
        re.compile("earlier conversations")
    )
    keyboard.press("Tab")
    expect(memory.switch("Case memory")).to_be_focused()
    expect(memory.switch("Case memory")).to_have_accessible_description(
        re.compile("troubleshooting")
    )
    keyboard.press("Space")
    expect(memory.switch("Case memory")).to_be_checked()
    keyboard.press("Escape")
    expect(memory.form).to_have_count(0)
    expect(memory.button).to_be_focused()
    assert stored(server, chat.conversation_id)["memory"]["case_memory"] is False

    keyboard.press("Enter")
    keyboard.press("Tab")
    keyboard.press("Space")
    keyboard.press("Tab")
    expect(memory.field("App")).to_be_focused()
    expect(memory.field("App")).to_have_accessible_description(re.compile("Empty means every"))
    keyboard.type("shop")
    keyboard.press("Enter")

    expect(memory.form).to_have_count(0)
    expect(memory.button).to_be_focused()
    expect(memory.button).to_contain_text("Case memory is on: shop, every environment.")


def test_a_press_beside_the_dialog_closes_it_only_where_nothing_would_be_lost(
    chat: ChatPage, server: LiveServer
) -> None:
    memory = MemoryOnPage(chat)
    mouse = chat.page.mouse
    chat.open_made(server, "memory beside")
    memory.open()
    mouse.click(20, 400)
    expect(memory.form).to_have_count(0)

    memory.open()
    memory.field("App").fill("shop")
    mouse.click(20, 400)
    expect(memory.field("App")).to_have_value("shop")
    memory.field("App").fill("")
    place = memory.field("App").bounding_box()
    assert place is not None
    mouse.move(place["x"] + 30, place["y"] + 10)
    mouse.down()
    mouse.move(20, 400)
    mouse.up()

    expect(memory.form).to_be_visible()
    mouse.click(20, 400)
    expect(memory.form).to_have_count(0)


def test_it_fits_on_a_phone(open_page: OpenPage, server: LiveServer) -> None:
    begun = server.new_conversation()
    change(server, begun, memory={"case_memory": True}, app_code="a" * 120)
    chat = open_page(f"/#/c/{begun}", **PHONE)
    memory = MemoryOnPage(chat)
    expect(memory.button).to_contain_text("Case memory is on")
    expect(memory.button).to_have_class(re.compile("is-cases"))
    expect_no_sideways_scroll(chat)

    memory.button.tap()

    expect(memory.form).to_be_visible()
    expect_no_sideways_scroll(chat)
    sticking_out = memory.form.evaluate(
        """(form) => [...form.querySelectorAll("*")]
          .filter((node) => { const { left, right } = node.getBoundingClientRect(); return left < 0 || right > innerWidth; }).length"""
    )
    assert sticking_out == 0
    expect(chat.get("memory-save")).to_be_in_viewport()
    chat.get("memory-cancel").tap()
    expect(memory.form).to_have_count(0)
