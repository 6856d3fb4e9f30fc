"""The panel for whoever runs the server."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from gateway.settings import Settings
from gateway.trust import trust_blocking
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.support.live_server import LiveServer, started_server
from tests.support.mcp_servers import own_server, settings_with, write_tools

pytestmark = pytest.mark.browser


def test_the_panel_shows_processes_readiness_backends_and_figures(chat: ChatPage) -> None:
    title = "<i>my kite</i> is orange"
    chat.ask(title)
    chat.get("open-operations").click()
    panel = chat.get("operations")
    process = chat.get("ops-processes").locator("li").filter(has_text=title)
    expect(process).to_contain_text("idle")
    expect(chat.get("ops-live")).to_contain_text("Live conversations")
    expect(chat.get("ops-readiness")).to_contain_text("sandbox")
    expect(chat.get("ops-backends").locator("li")).not_to_have_count(0)
    expect(panel).to_contain_text("Duration of turns")

    process.get_by_role("link").click()

    expect(panel).to_have_count(0)
    expect(chat.turn.message).to_have_text(title)


def test_the_panel_speaks_chinese(open_page: OpenPage) -> None:
    chat = open_page(locale="zh-CN")
    chat.get("open-operations").click()
    for rows in ("ops-readiness", "ops-backends"):
        expect(chat.get(rows).locator("li")).not_to_have_count(0)
        expect(chat.get(rows)).not_to_have_text(re.compile("[a-z]{3}"))


def test_the_panel_lists_mcp_servers_their_tools_and_states(
    open_page: OpenPage, tmp_path: Path
) -> None:
    write_tools(tmp_path, act="Acts.")
    servers = {
        "own": own_server(tmp_path, tools=["act", "look"], reading=["act"]),
        "gone": {"command": ["/bin/false"]},
    }
    file = settings_with(tmp_path, servers).mcp_file
    with started_server(tmp_path / "server", mcp_file=file, **SETTINGS) as server:
        rows = {}
        for locale in ("en-US", "zh-CN"):
            chat = open_page(url=server.url, locale=locale)
            chat.get("open-operations").click()
            rows[locale] = chat.get("ops-mcp").locator("li")
            expect(rows[locale]).to_have_count(4)
        own, act, look, gone = (rows["en-US"].nth(at) for at in range(4))
        expect(own).to_contain_text("own")
        expect(own).to_contain_text("runs")
        expect(act).to_contain_text("mcp__own__act")
        expect(act).to_contain_text("reads")
        expect(look).to_contain_text("changes something · the server does not have it now")
        expect(gone).to_contain_text("not running")
        expect(rows["zh-CN"].nth(0)).to_contain_text("运行中")
        expect(rows["zh-CN"].nth(2)).to_contain_text("会更改内容 · 服务器目前没有它")


def test_the_panel_lists_skills_and_why_agents_do_not_have_them(
    open_page: OpenPage, server: LiveServer
) -> None:
    skill = server.workspace / ".claude/skills/greet/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: Greets <b>people</b>.\n---\nSay hello.\n", encoding="utf-8")
    try:
        for locale, words in (
            ("en-US", ("greet · skill", "not approved", "agents have it", "candor policy trust")),
            ("zh-CN", ("greet · 技能", "未经批准", "智能体可以使用", "请在服务器上查看并批准")),
        ):
            chat = open_page(locale=locale)
            chat.get("open-operations").click()
            row = chat.get("ops-skills").locator("li").filter(has_text="greet")
            expect(row).to_contain_text(words[0])
            expect(row).to_contain_text(words[1])
            expect(row).to_contain_text("Greets <b>people</b>.")
            own = chat.get("ops-skills").locator("li").filter(has_text="memory-capture")
            expect(own).to_contain_text(words[2])
            expect(chat.get("skills-approve")).to_contain_text(words[3])
        settings = Settings(workspace=server.workspace, data_dir=server.data_dir)
        trust_blocking(settings)
        chat = open_page()
        chat.composer.fill("/gre")
        expect(chat.page.get_by_role("option")).to_contain_text(["/greet"])
    finally:
        shutil.rmtree(skill.parent)


def dead_delivery(chat: ChatPage, server: LiveServer, error: str) -> Locator:
    """Store a delivery that was given up with an error, and return its row on the page."""
    with closing(sqlite3.connect(server.data_dir / "memory.sqlite3")) as memory, memory:
        memory.execute(
            "INSERT INTO outbox (backend, operation, item_id, owner_id, revision, idempotency_key,"
            " status, attempts, last_error, due_at, created_at) VALUES ('elsewhere', 'put',"
            " :error, 'local', 1, :error, 'dead', 9, :error, '2026-01-31T09:30:00Z',"
            " '2026-01-31T09:30:00Z')",
            {"error": error},
        )
    chat.get("open-operations").click()
    row = chat.get("ops-outbox").locator("li").filter(has_text=error)
    expect(row).to_contain_text("failed")
    return row


def test_a_delivery_that_was_given_up_is_tried_again(chat: ChatPage, server: LiveServer) -> None:
    row = dead_delivery(chat, server, "<b>It is full.</b>")

    row.get_by_test_id("ops-retry").click()

    expect(row).to_contain_text("waiting")
    expect(row.get_by_test_id("ops-retry")).to_be_disabled()
    chat.page.keyboard.press("Escape")


def test_a_delivery_that_was_made_meanwhile_is_shown_as_made(
    chat: ChatPage, server: LiveServer
) -> None:
    row = dead_delivery(chat, server, "It is away.")
    with closing(sqlite3.connect(server.data_dir / "memory.sqlite3")) as memory, memory:
        memory.execute("UPDATE outbox SET status = 'delivered' WHERE last_error = 'It is away.'")

    chat.witness.network_may_fail = True
    row.get_by_test_id("ops-retry").click()

    expect(row).to_contain_text("delivered")
    expect(chat.page.get_by_text("It was delivered already.")).to_have_count(0)
    chat.page.keyboard.press("Escape")
