"""The panel of a person's memory: items, facts, profile, cases, export and import."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import OpenPage
from tests.browser.memory_on_page import CASE
from tests.support.live_server import DEADLINE_S, LiveServer

pytestmark = pytest.mark.browser

MARKUP = "<img src=x onerror=alert(1)> is in my shed"


def post(server: LiveServer, path: str, **body: Any) -> dict[str, Any]:
    answer = httpx.post(f"{server.url}{path}", json=body, timeout=DEADLINE_S, trust_env=False)
    assert answer.status_code in {200, 201}, answer.text
    whole: dict[str, Any] = answer.json()
    return whole


def open_panel(chat: ChatPage, tab: str) -> Locator:
    chat.get("open-memory").click()
    panel = chat.get("memory-panel")
    panel.locator(f"[data-tab={tab}]").click()
    return panel


def test_a_correction_that_is_brought_back_holds_alone(chat: ChatPage, server: LiveServer) -> None:
    post(server, "/memory/facts", text="my oven is blue", earlier=["my oven is white"])
    panel = open_panel(chat, "fact")
    rows = panel.get_by_test_id("memory-row")
    row = rows.filter(has_text="my oven is blue")
    row.locator("summary").click()
    for _ in range(2):  # also what is forgotten once more
        row.get_by_test_id("forget").click()
        row.get_by_test_id("forget-confirm").click()
        expect(row).to_contain_text("Forgotten")
        assert ovens(server) == ["my oven is white"]
        row.get_by_test_id("forget-undo").click()
        expect(row.get_by_test_id("forget")).to_be_visible()
        assert ovens(server) == ["my oven is blue"]
    chat.page.keyboard.press("Escape")


def ovens(server: LiveServer) -> list[str]:
    """Return the facts about an oven that hold."""
    url = f"{server.url}/memory/context"
    body = {"queries": ["which colour has my oven?"]}
    answer = httpx.post(url, json=body, timeout=DEADLINE_S, trust_env=False).json()
    return [item["title"] for item in answer["items"] if "oven" in item["title"]]


def test_a_fact_is_found_corrected_forgotten_and_brought_back(
    chat: ChatPage, server: LiveServer
) -> None:
    for text in (MARKUP, "my bicycle is green"):
        post(server, "/memory/facts", text=text)
    panel = open_panel(chat, "fact")
    rows = panel.get_by_test_id("memory-row")
    expect(rows.filter(has_text=MARKUP)).to_be_visible()

    panel.get_by_test_id("memory-search").fill("bicycle")
    expect(rows).to_have_count(1)
    rows.locator("summary").click()
    expect(rows).to_contain_text("you wrote it")
    rows.get_by_test_id("correct").click()
    rows.get_by_test_id("fact-text").fill("my bicycle is blue <b>now</b>")
    rows.get_by_test_id("fact-save").click()
    expect(rows.locator("summary")).to_contain_text("my bicycle is blue <b>now</b>")
    rows.get_by_test_id("forget").click()
    rows.get_by_test_id("forget-confirm").click()
    expect(rows).to_contain_text("Forgotten")
    asked = {"kind": "fact", "q": "bicycle"}
    url = f"{server.url}/memory/items"
    assert httpx.get(url, params=asked, timeout=DEADLINE_S, trust_env=False).json()["items"] == []
    rows.get_by_test_id("forget-undo").click()
    expect(rows.get_by_test_id("forget")).to_be_visible()

    (again,) = httpx.get(url, params=asked, timeout=DEADLINE_S, trust_env=False).json()["items"]
    assert again["title"] == "my bicycle is blue <b>now</b>"
    chat.page.keyboard.press("Escape")


def test_an_item_that_could_not_be_read_is_read_when_it_is_opened_again(
    chat: ChatPage, server: LiveServer
) -> None:
    post(server, "/memory/facts", text="my gondola is beige")
    chat.witness.network_may_fail = True
    row = open_panel(chat, "fact").get_by_test_id("memory-row").filter(has_text="gondola")
    chat.page.route("**/memory/items/*", lambda route: route.abort(), times=1)
    row.locator("summary").click()
    expect(row).to_contain_text("could not be reached")

    row.locator("summary").click()
    row.locator("summary").click()

    expect(row).to_contain_text("you wrote it")
    chat.page.keyboard.press("Escape")


def test_why_a_fact_could_not_be_brought_back_is_said(chat: ChatPage, server: LiveServer) -> None:
    post(server, "/memory/facts", text="my harp is yellow")
    chat.witness.network_may_fail = True
    row = open_panel(chat, "fact").get_by_test_id("memory-row").filter(has_text="harp")
    row.locator("summary").click()
    row.get_by_test_id("forget").click()
    row.get_by_test_id("forget-confirm").click()
    chat.page.route("**/memory/facts", lambda route: route.abort(), times=1)

    row.get_by_test_id("forget-undo").click()

    expect(row).to_contain_text("could not be reached")
    row.get_by_test_id("forget-undo").click()
    expect(row.get_by_test_id("forget")).to_be_visible()
    chat.page.keyboard.press("Escape")


def test_the_profile_is_kept_and_an_export_is_imported(chat: ChatPage, tmp_path: Path) -> None:
    panel = open_panel(chat, "profile")
    panel.get_by_test_id("profile-text").fill("I am Ana. <script>alert(1)</script>")
    panel.get_by_test_id("profile-save").click()
    expect(panel).to_contain_text("Saved")
    with chat.page.expect_download() as exported:
        panel.get_by_test_id("memory-export").click()
    file = tmp_path / exported.value.suggested_filename
    exported.value.save_as(file)
    assert '"candor-profile-1"' in file.read_text("utf-8")

    panel.get_by_test_id("memory-import-file").set_input_files(file)

    expect(panel).to_contain_text("0 restored")
    panel.locator("[data-tab=profile]").click()
    expect(panel.get_by_test_id("profile-text")).to_have_value(
        "I am Ana. <script>alert(1)</script>"
    )
    chat.page.keyboard.press("Escape")


def test_a_case_is_found_and_judged_and_names_its_twin(chat: ChatPage, server: LiveServer) -> None:
    for symptom in ("<u>Receipts</u> cannot be uploaded", "Photographs of receipts are refused"):
        case = {**CASE, "symptom_summary": symptom, "diagnosis": f"{CASE['diagnosis']} {symptom}."}
        post(server, "/memory/cases", case=case)
    panel = open_panel(chat, "case")
    panel.get_by_test_id("case-search").fill("receipts 413")
    panel.get_by_test_id("case-row").filter(has_text="<u>Receipts</u>").click()
    case_view = panel.get_by_test_id("case")
    expect(case_view).to_contain_text("client_max_body_size")
    related = panel.get_by_test_id("case-relations").locator("li")
    related = related.filter(has_text="Photographs of receipts")
    expect(related).to_be_visible()

    case_view.get_by_test_id("case-helpful").click()
    expect(panel.get_by_test_id("case-history")).to_contain_text("Judged")
    related.get_by_role("button").click()
    expect(case_view).to_contain_text("Photographs of receipts")
    chat.page.keyboard.press("Escape")


def test_the_error_of_a_search_for_cases_goes_with_the_next_one(chat: ChatPage) -> None:
    chat.witness.network_may_fail = True
    chat.page.route("**/memory/cases/search?*", lambda route: route.fulfill(status=503, json={}))
    panel = open_panel(chat, "case")
    panel.get_by_test_id("case-search").fill("苍鹭")
    expect(panel.get_by_test_id("error-line")).to_be_visible()
    chat.page.unroute_all(behavior="ignoreErrors")

    panel.get_by_test_id("case-search").fill("quagga")

    expect(panel.locator(".memory-rows")).to_contain_text("quagga")
    expect(panel.get_by_test_id("error-line")).to_have_count(0)
    panel.get_by_role("button", name="Close", exact=True).click()


def test_the_heading_stands_clear_of_the_buttons_on_a_small_phone(open_page: OpenPage) -> None:
    chat = open_page(viewport={"width": 320, "height": 640})
    chat.page.evaluate("document.getElementById('open-memory').click()")
    heading = chat.get("memory-panel").get_by_role("heading", name="Your memory")

    expect(heading).to_be_visible()

    assert heading.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    for button in ("Export", "Import", "Close"):
        expect(chat.get("memory-panel").get_by_role("button", name=button)).to_be_in_viewport(
            ratio=1
        )
