"""Words that somebody writes in a panel, while it is saved, read again or left."""

import httpx
import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.test_memory_panel import open_panel, post
from tests.support.live_server import DEADLINE_S, LiveServer

pytestmark = pytest.mark.browser


def press_beside(chat: ChatPage) -> None:
    chat.page.mouse.click(3, 3)


def begin_correction(panel: Locator, about: str) -> Locator:
    """Open the form that corrects a listed fact; return its row."""
    row = panel.get_by_test_id("memory-row").filter(has_text=about)
    row.locator("summary").click()
    row.get_by_test_id("correct").click()
    return row


def save_while_writing(chat: ChatPage, address: str, field: Locator, more: str) -> None:
    """Press Enter or save, write on before the answer is there, and let it come."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == "GET":
            route.continue_()
        else:
            held.append(route)

    chat.page.route(address, hold)
    with chat.page.expect_request(address):
        field.evaluate("(field) => field.form.requestSubmit()")
    field.press("End")
    field.press_sequentially(more)
    with chat.page.expect_response(address):
        for route in held:
            route.continue_()
    chat.page.unroute_all(behavior="ignoreErrors")


def test_a_correction_and_the_next_fact_stay_when_a_fact_was_saved(
    chat: ChatPage, server: LiveServer
) -> None:
    post(server, "/memory/facts", text="my lantern is green")
    panel = open_panel(chat, "fact")
    rows = panel.get_by_test_id("memory-row")
    row = begin_correction(panel, "my lantern")
    row.get_by_test_id("fact-text").fill("我的灯笼是")
    field = panel.get_by_test_id("fact-new")
    field.fill("my sledge is red")

    save_while_writing(chat, "**/memory/facts", field, ", and old")

    expect(rows.filter(has_text="my sledge is red")).to_be_visible()
    expect(field).to_have_value("my sledge is red, and old")
    expect(row.get_by_test_id("fact-text")).to_have_value("我的灯笼是")
    press_beside(chat)
    expect(panel).to_be_visible()
    field.fill("")
    save_while_writing(chat, "**/memory/items/*", row.get_by_test_id("fact-text"), "蓝色的")
    expect(row.get_by_test_id("fact-text")).to_have_value("我的灯笼是蓝色的")
    row.get_by_test_id("fact-save").click()
    expect(rows.filter(has_text="我的灯笼是蓝色的")).to_be_visible()
    press_beside(chat)
    expect(panel).to_have_count(0)


def test_a_search_leaves_a_correction_that_is_being_written(
    chat: ChatPage, server: LiveServer
) -> None:
    post(server, "/memory/facts", text="my mill is green")
    panel = open_panel(chat, "fact")
    rows = panel.get_by_test_id("memory-row")
    row = begin_correction(panel, "my mill")
    field = row.get_by_test_id("fact-text")
    field.fill("我的磨坊是")

    panel.get_by_test_id("memory-search").fill("quagga")
    expect(panel.locator(".memory-end")).to_contain_text("quagga")

    expect(rows).to_have_count(1)
    expect(field).to_have_value("我的磨坊是")
    panel.get_by_test_id("memory-search").fill("")
    expect(panel.locator(".memory-end")).not_to_contain_text("quagga")
    expect(field).to_have_value("我的磨坊是")
    chat.page.keyboard.press("Escape")


def test_a_profile_that_is_written_survives_another_tab_a_press_beside_and_its_saving(
    chat: ChatPage,
) -> None:
    panel = open_panel(chat, "profile")
    profile = panel.get_by_test_id("profile-text")
    profile.fill("I like short")
    panel.locator("[data-tab=fact]").click()
    panel.locator("[data-tab=profile]").click()
    expect(profile).to_have_value("I like short")
    press_beside(chat)
    expect(panel).to_be_visible()

    save_while_writing(chat, "**/memory/profile", profile, " answers")

    expect(panel.get_by_text("Saved")).to_be_visible()
    expect(profile).to_have_value("I like short answers")
    profile.fill("")
    panel.get_by_test_id("profile-save").click()
    expect(panel.get_by_text("Saved")).to_be_visible()
    press_beside(chat)
    expect(panel).to_have_count(0)


def test_a_line_of_a_forgotten_fact_does_not_come_back_with_the_profile(
    chat: ChatPage, server: LiveServer
) -> None:
    for text in ("my boat is called Molly", "我的猫叫咪咪"):
        post(server, "/memory/facts", text=text, lasting=True)
    panel = open_panel(chat, "profile")
    profile = panel.get_by_test_id("profile-text")
    row = panel.get_by_test_id("memory-row")
    expect(profile).to_have_value("- my boat is called Molly\n- 我的猫叫咪咪")

    def forget(text: str) -> None:
        panel.locator("[data-tab=fact]").click()
        found = row.filter(has_text=text)
        found.locator("summary").click()
        found.get_by_test_id("forget").click()
        found.get_by_test_id("forget-confirm").click()
        expect(found).to_contain_text("Forgotten")
        panel.locator("[data-tab=profile]").click()

    forget("Molly")
    expect(profile).to_have_value("- 我的猫叫咪咪")
    profile.press("Control+End")
    profile.press_sequentially("\nI like tea")
    post(server, "/memory/facts", text="my shed is red", lasting=True)
    forget("咪咪")
    expect(profile).to_have_value("I like tea\n- my shed is red")

    panel.get_by_test_id("profile-save").click()
    expect(panel.get_by_text("Saved")).to_be_visible()
    stored = httpx.get(f"{server.url}/memory/profile", timeout=DEADLINE_S, trust_env=False).json()
    assert stored["text"] == "I like tea\n- my shed is red"
    profile.fill("")
    panel.get_by_test_id("profile-save").click()
    expect(panel.get_by_text("Saved")).to_be_visible()
    chat.page.keyboard.press("Escape")


def test_what_is_written_in_a_tab_of_memory_stays_while_another_one_is_shown(
    chat: ChatPage, server: LiveServer
) -> None:
    post(server, "/memory/facts", text="my barge is green")
    panel = open_panel(chat, "fact")
    row = begin_correction(panel, "my barge")
    row.get_by_test_id("fact-text").fill("我的驳船是蓝色的")
    panel.get_by_test_id("fact-new").fill("my oar is long")

    panel.locator("[data-tab=note]").click()
    expect(panel.get_by_test_id("fact-new")).to_have_count(0)
    press_beside(chat)
    panel.locator("[data-tab=fact]").click()

    expect(panel.get_by_test_id("fact-new")).to_have_value("my oar is long")
    expect(row.get_by_test_id("fact-text")).to_have_value("我的驳船是蓝色的")
    chat.page.keyboard.press("Escape")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_profile_that_could_not_be_read_is_read_by_its_next_look(
    chat: ChatPage, *, is_first: bool
) -> None:
    chat.witness.network_may_fail = True
    panel = open_panel(chat, "fact" if is_first else "profile")
    if not is_first:
        expect(panel.get_by_test_id("profile-text")).to_be_enabled()
        panel.locator("[data-tab=fact]").click()
    chat.page.route("**/memory/profile", lambda route: route.fulfill(status=503, json={}))
    panel.locator("[data-tab=profile]").click()
    expect(panel.get_by_test_id("error-line")).to_be_visible()
    chat.page.unroute_all(behavior="ignoreErrors")

    panel.locator("[data-tab=fact]").click()
    panel.locator("[data-tab=profile]").click()

    expect(panel.get_by_test_id("profile-text")).to_be_enabled()
    expect(panel.get_by_test_id("error-line")).to_have_count(0)
    chat.page.keyboard.press("Escape")


def test_a_correction_that_goes_on_after_its_saving_is_cancelled_to_what_was_saved(
    chat: ChatPage, server: LiveServer
) -> None:
    post(server, "/memory/facts", text="my banjo is green")
    panel = open_panel(chat, "fact")
    row = begin_correction(panel, "my banjo")
    field = row.get_by_test_id("fact-text")
    field.fill("my banjo is blue")
    save_while_writing(chat, "**/memory/items/*", field, " or 红色")
    new = panel.get_by_test_id("fact-new")
    new.fill("my rope is long")
    new.press("Enter")
    expect(panel.get_by_test_id("memory-row").filter(has_text="my rope")).to_be_visible()
    expect(field).to_have_value("my banjo is blue or 红色")

    row.get_by_role("button", name="Cancel").click()

    expect(row.locator(".memory-text")).to_have_text("my banjo is blue")
    expect(row.locator("summary")).to_contain_text("my banjo is blue")
    chat.page.keyboard.press("Escape")
