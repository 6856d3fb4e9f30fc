"""The log of a turn, as the page shows it and as it lies on the disk."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DESKTOP
from tests.support.live_server import DEADLINE_S, LiveServer, bash, script

pytestmark = pytest.mark.browser


def test_the_log_shows_every_line_of_the_file_and_gives_it_away(
    talk: ChatPage, server: LiveServer, tmp_path: Path
) -> None:
    turn = talk.ask(script(bash("cat nowhere.txt"), {"text": "It is not there."}))
    link = turn.at.get_by_test_id("log-link")
    log_file = link.get_attribute("data-log-file")
    assert log_file
    on_disk = (server.log_dir / log_file).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in on_disk.splitlines()]

    link.click()

    dialog = talk.get("log-dialog")
    shown = dialog.locator(".log-line")
    expect(shown).to_have_count(len(lines))
    expect(dialog).to_contain_text(f"{len(lines)} lines")
    expect(dialog).to_contain_text(log_file)
    kinds = [element.get_attribute("data-kind") for element in shown.all()]
    assert kinds == [line["kind"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("request", "response")
    steps = dialog.locator(".log-step")
    names = [step.locator(".log-step-name").inner_text() for step in steps.all()]
    assert [name for name in names if name not in {"Memory", "Agent ready"}] == [
        *("Message", "Model", "Permission", "Bash", "Model", "Reply")
    ]
    call = steps.filter(has_text="Bash").last
    expect(call).to_have_attribute("data-status", "failed")
    expect(call.locator(".log-step-time")).to_have_text(re.compile(r"\d+(\.\d)? m?s"))
    bar = call.locator(".log-bar i")
    assert bar.evaluate("bar => bar.getBoundingClientRect().width") >= 2
    call.click()
    line = shown.nth(kinds.index("tool"))
    expect(line.locator("summary")).to_be_focused()
    expect(line.locator("pre")).not_to_be_empty()  # filled in once it is open
    assert json.loads(line.locator("pre").inner_text()) == lines[kinds.index("tool")]
    expect(shown.last.locator("pre")).to_be_hidden()
    shown.last.locator("summary").click()
    expect(shown.last.locator("pre")).to_contain_text('"kind": "response"')
    assert json.loads(shown.last.locator("pre").inner_text()) == lines[-1]
    with talk.page.expect_download() as download:
        talk.get("log-download").click()
    download.value.save_as(tmp_path / "saved.jsonl")
    assert (tmp_path / "saved.jsonl").read_text(encoding="utf-8") == on_disk
    assert download.value.suggested_filename == log_file.rpartition("/")[2]

    talk.page.keyboard.press("Escape")

    expect(dialog).to_have_count(0)
    expect(link).to_be_focused()


def test_lines_are_searched_and_say_whether_memory_was_on(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.ask("my lamp is green")
    body = {"memory": {"enabled": False}}
    url = f"{server.url}/conversations/{chat.conversation_id}"
    httpx.patch(url, json=body, timeout=DEADLINE_S, trust_env=False).raise_for_status()
    turn = chat.ask("what is my lamp?")
    turn.at.get_by_test_id("log-link").click()
    shown = chat.get("log-dialog").locator(".log-line")
    memory = chat.get("log-dialog").locator(".log-step[data-kind=memory]")
    expect(memory).to_contain_text("Memory is off")

    chat.get("log-search").fill("WHAT is my lamp")

    expect(shown.first).to_have_attribute("data-kind", "request")
    expect(chat.get("log-dialog").get_by_role("status")).to_have_text(f"{shown.count()} lines")
    expect(shown.filter(has=chat.page.locator("[data-kind=context]"))).to_have_count(0)
    chat.page.set_viewport_size({"width": 390, "height": 844})
    heading = chat.get("log-dialog").get_by_role("heading").first.bounding_box()
    assert heading is not None
    assert heading["width"] > 2 * heading["height"]  # in one line beside the buttons
    chat.page.set_viewport_size(DESKTOP["viewport"])
    memory.click()
    expect(chat.get("log-search")).to_have_value("")
    expect(chat.get("log-dialog").locator(".log-line[open]")).to_have_attribute(
        "data-kind", "context"
    )
    chat.page.keyboard.press("Escape")
