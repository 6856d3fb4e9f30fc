"""The panel of schedules: added, run, switched off and deleted by a person."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.browser.test_accessibility import AXE, JUDGE
from tests.support.live_server import LiveServer, started_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def running(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that runs schedules."""
    with started_server(tmp_path_factory.mktemp("on"), schedules="on", **SETTINGS) as server:
        yield server


def open_panel(chat: ChatPage) -> None:
    chat.get("open-schedules").click()
    expect(chat.get("schedules-panel")).to_be_visible()


def test_a_schedule_is_added_run_switched_off_and_deleted(
    open_page: OpenPage, running: LiveServer
) -> None:
    chat = open_page(url=running.url, timezone_id="Asia/Tokyo")
    chat.ask("hello")
    open_panel(chat)
    panel = chat.get("schedules-panel")
    expect(panel).to_contain_text("There is no schedule yet.")
    expect(chat.get("schedule-zone")).to_have_value("Asia/Tokyo")
    chat.get("schedule-name").fill("<b>Mornings</b>")
    chat.get("schedule-message").fill("list the files")
    chat.get("schedule-place").select_option(label="this conversation: hello")
    chat.get("schedule-when").select_option("weekdays")
    chat.get("schedule-time").fill("07:05")
    chat.get("schedule-add").click()
    row = chat.get("schedule")
    expect(row).to_contain_text("<b>Mornings</b>")
    expect(row).to_contain_text("Monday to Friday at 07:05 · Asia/Tokyo")
    expect(chat.get("schedule-next")).to_have_text(re.compile(r"Next: .*7:05 AM"))
    expect(chat.get("schedule-last")).to_have_count(0)

    chat.get("schedule-run").click()
    expect(panel.get_by_role("status")).to_have_text("“<b>Mornings</b>” was sent.")
    expect(chat.get("schedule-last")).to_contain_text("Answered")
    chat.get("schedule-last").get_by_role("link").click()
    expect(panel).to_have_count(0)
    expect(chat.turns).to_have_count(2)
    expect(chat.turn.message).to_have_text("list the files")
    expect(chat.get("sent-by-schedule")).to_have_text("Sent by the schedule “<b>Mornings</b>”")
    expect(chat.outcomes).to_have_count(2)

    open_panel(chat)
    expect(chat.get("schedule-last")).to_contain_text("Answered")
    chat.get("schedule-enabled").click()
    expect(chat.get("schedule-next")).to_have_text("Off")
    expect(chat.get("schedule-enabled")).to_be_focused()
    expect(chat.get("schedule-enabled")).not_to_be_checked()
    chat.get("schedule-delete").click()
    chat.get("confirm").click()
    expect(row).to_have_count(0)
    expect(panel).to_contain_text("There is no schedule yet.")


def test_a_cron_expression_of_ones_own_is_checked_by_the_server(
    open_page: OpenPage, running: LiveServer
) -> None:
    chat = open_page(url=running.url)
    open_panel(chat)
    chat.get("schedule-name").fill("Own")
    chat.get("schedule-message").fill("hello")
    chat.get("schedule-when").select_option("own")
    expect(chat.get("schedule-time")).to_be_hidden()
    chat.get("schedule-cron").fill("61 8 * * *")
    chat.witness.network_may_fail = True
    chat.get("schedule-add").click()
    expect(chat.get("schedule-form").get_by_role("alert")).to_contain_text("its minute field")
    chat.get("schedule-cron").fill("*/10 8 * * *")
    chat.get("schedule-add").click()
    expect(chat.get("schedule")).to_contain_text("*/10 8 * * * · ")
    chat.get("schedule-delete").click()
    chat.get("confirm").click()
    expect(chat.get("schedule")).to_have_count(0)


@pytest.fixture
def changing(open_page: OpenPage, running: LiveServer) -> Iterator[ChatPage]:
    """A page on which a schedule that is off is being changed."""
    chat = open_page(url=running.url, timezone_id="Asia/Tokyo")
    chat.ask("hello")
    open_panel(chat)
    chat.get("schedule-name").fill("<b>Mornings</b>")
    chat.get("schedule-message").fill("list the files")
    chat.get("schedule-place").select_option(label="this conversation: hello")
    chat.get("schedule-when").select_option("weekly")
    chat.get("schedule-time").fill("07:05")
    chat.get("schedule-add").click()
    chat.get("schedule-enabled").click()
    expect(chat.get("schedule-next")).to_have_text("Off")
    chat.get("schedule-change").click()
    yield chat
    chat.get("schedule-delete").click()
    chat.get("confirm").click()
    expect(chat.get("schedule")).to_have_count(0)


def test_a_schedule_is_shown_as_it_is_to_be_changed_or_left(changing: ChatPage) -> None:
    form = changing.get("schedule").get_by_test_id("schedule-form")
    expect(form.get_by_role("heading")).to_have_text("Change “<b>Mornings</b>”")
    expect(form.get_by_test_id("schedule-name")).to_be_focused()
    for name, value in {
        "name": "<b>Mornings</b>",
        "message": "list the files",
        "when": "weekly",
        "time": "07:05",
        "zone": "Asia/Tokyo",
    }.items():
        expect(form.get_by_test_id(f"schedule-{name}")).to_have_value(value)
    expect(form.get_by_label("Where it goes").locator("option:checked")).to_contain_text("hello")
    form.get_by_test_id("schedule-name").fill("Evenings")
    form.get_by_test_id("schedule-cancel").click()
    expect(changing.get("schedule-change")).to_be_focused()
    expect(changing.get("schedule")).to_contain_text("Mornings")


def test_a_schedule_is_changed_and_the_server_checks_how(changing: ChatPage) -> None:
    panel, row = changing.get("schedules-panel"), changing.get("schedule")
    form = row.get_by_test_id("schedule-form")
    form.get_by_test_id("schedule-name").fill("Evenings")
    form.get_by_test_id("schedule-zone").fill("Mars/Base")
    changing.witness.network_may_fail = True
    form.get_by_test_id("schedule-save").click()
    expect(form.get_by_role("alert")).to_contain_text("IANA time zone database")
    form.get_by_test_id("schedule-zone").fill("UTC")
    form.get_by_test_id("schedule-place").select_option("")
    form.get_by_test_id("schedule-when").select_option("own")
    expect(form.get_by_test_id("schedule-cron")).to_have_value("5 7 * * 1")
    form.get_by_test_id("schedule-cron").fill("*/5 20 * * *")
    form.get_by_test_id("schedule-save").click()
    expect(panel.get_by_role("status")).to_have_text("“Evenings” was changed.")
    expect(row).to_contain_text("Evenings")
    expect(row).to_contain_text("*/5 20 * * * · UTC · a new conversation each time")
    expect(changing.get("schedule-change")).to_be_focused()
    expect(changing.get("schedule-next")).to_have_text("Off")
    changing.page.reload()
    open_panel(changing)
    expect(row).to_contain_text("*/5 20 * * * · UTC · a new conversation each time")


@pytest.mark.parametrize(("locale", "width"), [("en-US", 1280), ("zh-CN", 390)])
def test_the_panel_is_for_everybody_and_speaks_chinese(
    open_page: OpenPage, running: LiveServer, locale: str, width: int
) -> None:
    chat = open_page(url=running.url, locale=locale)
    chat.page.evaluate(AXE.read_text("utf-8"))
    open_panel(chat)
    chat.get("schedule-name").fill("早")
    chat.get("schedule-message").fill("你好")
    chat.get("schedule-zone").fill("UTC")
    chat.get("schedule-when").select_option("weekly")
    chat.get("schedule-add").click()
    chat.get("schedule-run").click()
    expect(chat.get("schedule-last")).to_be_visible()
    chat.page.set_viewport_size({"width": width, "height": 800})
    assert chat.page.evaluate(JUDGE) == []
    chat.get("schedule-change").click()
    assert chat.page.evaluate(JUDGE) == []
    shown = chat.get("schedules-panel").inner_text()
    chat.get("schedule-cancel").click()
    if locale == "zh-CN":
        assert not re.search("[a-z]{3}", re.sub("(?i)cron", "", shown)), shown
        chat.get("schedule-when").select_option("own")
        shown = chat.get("schedules-panel").inner_text()
        assert not re.search("[a-z]{3}", re.sub("(?i)cron", "", shown)), shown
        expect(chat.get("schedule")).to_contain_text("每周一 08:00 · UTC · 每次新建对话")
    chat.page.set_viewport_size({"width": 1280, "height": 800})
    chat.get("schedule-delete").click()
    chat.get("confirm").click()
    expect(chat.get("schedule")).to_have_count(0)


def test_a_server_that_runs_none_does_not_offer_them(chat: ChatPage) -> None:
    expect(chat.page.locator("#version")).not_to_have_text("")
    expect(chat.get("open-schedules")).to_be_hidden()


def test_a_press_beside_takes_neither_a_name_nor_a_change_away(
    open_page: OpenPage, running: LiveServer
) -> None:
    chat = open_page(url=running.url)
    open_panel(chat)
    panel = chat.get("schedules-panel")
    chat.get("schedule-name").fill("每日")
    chat.page.mouse.click(3, 3)
    expect(panel).to_be_visible()
    chat.get("schedule-message").fill("早上好")
    chat.get("schedule-time").fill("06:30")
    chat.get("schedule-add").click()
    row = chat.get("schedule").filter(has_text="每日")
    expect(row).to_be_visible()
    row.get_by_test_id("schedule-change").click()
    row.get_by_test_id("schedule-time").fill("06:45")
    chat.page.mouse.click(3, 3)
    expect(panel).to_be_visible()

    row.get_by_test_id("schedule-save").click()
    expect(row).to_contain_text("06:45")
    row.get_by_test_id("schedule-delete").click()
    chat.page.get_by_role("dialog").last.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    chat.page.mouse.click(3, 3)
    expect(panel).to_have_count(0)


def test_a_schedule_leaves_the_panel_when_it_was_deleted_elsewhere_and_not_its_conversation(
    open_page: OpenPage, running: LiveServer
) -> None:
    chat = open_page(url=running.url)
    chat.ask("hello")
    schedules = f"{running.url}/schedules"
    conversation = f"{running.url}/conversations/{chat.conversation_id}"
    given = {"name": "Mornings", "message": "hi", "cron": "5 7 * * *", "time_zone": "Asia/Tokyo"}
    api, panel = chat.page.request, chat.get("schedules-panel")
    made = api.post(schedules, data=given | {"conversation_id": chat.conversation_id}).json()
    open_panel(chat)
    row = chat.get("schedule")
    expect(row).to_contain_text("Mornings")
    chat.witness.network_may_fail = True  # what is gone is asked for once more
    api.delete(conversation)
    chat.get("schedule-run").click()
    expect(chat.get("schedule-problem")).to_contain_text("Its conversation was deleted")
    api.delete(f"{schedules}/{made['id']}")
    chat.get("schedule-run").click()
    expect(row).to_have_count(0)
    expect(panel).to_contain_text("There is no schedule yet.")
    expect(panel.get_by_test_id("error-line")).to_be_visible()
    expect(panel.get_by_role("heading", name="Schedules")).to_be_focused()


def test_a_change_that_somebody_begins_of_a_schedule_that_is_gone_stays(
    open_page: OpenPage, running: LiveServer
) -> None:
    chat = open_page(url=running.url)
    chat.witness.network_may_fail = True
    given = {"name": "Mornings", "message": "hi", "cron": "5 7 * * *", "time_zone": "Asia/Tokyo"}
    api = chat.page.request
    made = api.post(f"{running.url}/schedules", data=given).json()
    address = f"{running.url}/schedules/{made['id']}"
    open_panel(chat)
    row = chat.get("schedule")
    held: list[Route] = []
    chat.page.route(address, lambda route: held.append(route))  # noqa: PLW0108  Playwright marks it
    api.delete(address)
    with chat.page.expect_request(address):
        chat.get("schedule-run").click()
    chat.get("schedule-change").click()
    row.get_by_test_id("schedule-name").fill("晚上")

    with chat.page.expect_response(address):
        held[0].continue_()

    expect(chat.get("schedules-panel").locator(".panel-errors")).to_contain_text("no such schedule")
    expect(row.get_by_test_id("schedule-name")).to_have_value("晚上")
    chat.page.unroute_all(behavior="ignoreErrors")


@pytest.mark.parametrize(
    ("field", "written", "shown"),
    [
        ("schedule-message", "list 文件", "list 文件"),
        ("schedule-time", "09:30", "at 09:30"),
        ("schedule-zone", "Asia/Shanghai", "Asia/Shanghai"),
    ],
)
def test_what_is_written_of_a_schedule_while_its_change_is_saved_stays(
    open_page: OpenPage, running: LiveServer, field: str, written: str, shown: str
) -> None:
    chat = open_page(url=running.url)
    given = {"name": "Mornings", "message": "hi", "cron": "5 7 * * *", "time_zone": "Asia/Tokyo"}
    made = chat.page.request.post(f"{running.url}/schedules", data=given).json()
    address = f"{running.url}/schedules/{made['id']}"
    open_panel(chat)
    row = chat.get("schedule").filter(has_text="Mornings")
    row.get_by_test_id("schedule-change").click()
    form = chat.get("schedules").get_by_test_id("schedule-form")
    form.get_by_test_id("schedule-message").fill("list")
    held: list[Route] = []
    chat.page.route(address, lambda route: held.append(route))  # noqa: PLW0108  Playwright marks it
    with chat.page.expect_request(address):
        form.get_by_test_id("schedule-save").click()
    form.get_by_test_id(field).fill(written)

    held[0].continue_()

    panel = chat.get("schedules-panel")
    expect(panel.get_by_role("status")).to_have_text("“Mornings” was changed.")
    chat.page.unroute_all(behavior="ignoreErrors")
    expect(form.get_by_test_id(field)).to_have_value(written)
    form.get_by_test_id("schedule-save").click()
    expect(row).to_contain_text(shown)
    chat.page.request.delete(address)
