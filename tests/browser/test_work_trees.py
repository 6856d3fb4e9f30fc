"""The work tree of a conversation on the page: its changes, merging them, throwing them away."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.browser.test_accessibility import AXE, JUDGE
from tests.support.live_server import script, started_server
from tests.support.pictures import png
from tests.support.repositories import lay_repository

pytestmark = pytest.mark.browser


def open_tree(chat: ChatPage) -> None:
    chat.get("details-button").click()
    chat.get("work-tree-open").press("Enter")


def leave(chat: ChatPage) -> None:
    chat.page.keyboard.press("Escape")
    chat.page.keyboard.press("Escape")


def test_changes_of_a_conversation_are_shown_merged_and_thrown_away(
    open_page: OpenPage, tmp_path: Path
) -> None:
    lay_repository(tmp_path / "server/workspace", a_txt="a\n")
    with started_server(tmp_path / "server", worktrees="on", **SETTINGS) as server:
        chat = open_page(url=server.url)
        chat.ask("write hello to b.txt")
        open_tree(chat)
        expect(chat.get("work-tree-changes").get_by_test_id("change")).to_contain_text("b.txt")
        assert not (server.workspace / "b.txt").exists()
        chat.get("work-tree-merge").press("Enter")
        expect(chat.get("work-tree-state")).to_contain_text(
            "Merged. Files changed in the workspace: 1."
        )
        expect(chat.get("work-tree-merge")).to_be_disabled()
        assert (server.workspace / "b.txt").read_text("utf-8").strip() == "hello"
        leave(chat)

        chat.ask("write again to <c>.txt")
        (server.workspace / "<c>.txt").write_text("mine\n", encoding="utf-8")
        open_tree(chat)
        expect(chat.get("work-tree-merge")).to_have_text("Merge into main")
        chat.witness.network_may_fail = True
        chat.page.evaluate(AXE.read_text("utf-8"))
        assert chat.page.evaluate(JUDGE) == []
        chat.get("work-tree-merge").click()
        expect(chat.get("work-tree-state")).to_contain_text("in the way. · <c>.txt")
        chat.get("work-tree-discard").press("Enter")
        expect(chat.page.get_by_role("button", name="Keep them")).to_be_focused()
        chat.get("work-tree-discard-confirm").press("Enter")
        expect(chat.get("work-tree-state")).to_have_text("Thrown away.")
        expect(chat.get("work-tree-discard")).to_be_disabled()
        assert (server.workspace / "<c>.txt").read_text("utf-8") == "mine\n"
        chat.page.keyboard.press("Escape")
        expect(chat.get("details-save")).to_be_visible()
        expect(chat.get("work-tree")).to_have_count(0)

        chinese = open_page(url=f"{server.url}", locale="zh-CN")
        chinese.ask("write x to d.txt")
        open_tree(chinese)
        expect(chinese.get("work-tree-merge")).to_have_text("合并到 main")


def test_a_picture_of_the_work_tree_is_shown_in_its_conversation(
    open_page: OpenPage, tmp_path: Path
) -> None:
    lay_repository(tmp_path / "server/workspace", a_txt="a\n")
    picture: FilePayload = {"name": "点.png", "mimeType": "image/png", "buffer": png()}
    with started_server(tmp_path / "server", worktrees="on", **SETTINGS) as server:
        chat = open_page(url=server.url)
        chat.ask("write hello to b.txt")
        chat.get("attach-input").set_input_files(picture)
        expect(chat.get("attachment")).to_have_attribute("data-path", re.compile("点"))
        chat.send("look at this")
        expect(chat.turn.outcome).to_be_visible()
        shown = chat.turn.at.get_by_test_id("message-pictures").get_by_role("img")

        expect(shown).to_have_js_property("naturalWidth", 1)

        assert not (server.workspace / "uploads").exists()


def test_the_address_of_a_link_to_a_file_leads_into_the_work_tree(
    open_page: OpenPage, tmp_path: Path
) -> None:
    """It is opened in a window of its own, too."""
    lay_repository(tmp_path / "server/workspace", a_txt="a\n")
    with started_server(tmp_path / "server", worktrees="on", **SETTINGS) as server:
        chat = open_page(url=server.url)
        write = {"tool": "Write", "input": {"file_path": "b c.txt", "content": "hello"}}
        turn = chat.ask(script(write, {"text": "It is in [b](<b c.txt>)."}))
        address = turn.reply.get_by_role("link", name="b").get_attribute("href")

        answer = chat.page.request.get(f"{server.url}/{address}")

        assert answer.text() == "hello"
        assert not (server.workspace / "b c.txt").exists()
