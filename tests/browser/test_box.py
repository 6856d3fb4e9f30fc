"""A command in the box, seen while it runs."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SETTINGS, OpenPage
from tests.support.live_server import bash, script, started_server
from tests.support.walls import needs_boxes

pytestmark = [pytest.mark.browser, needs_boxes]


def test_the_output_of_a_command_grows_on_the_page_while_it_runs(
    open_page: OpenPage, tmp_path: Path
) -> None:
    with started_server(tmp_path, shell="sandboxed", **SETTINGS) as server:
        pipe = server.make_pipe("waits")
        chat = open_page(url=server.url)
        steps = script(
            bash("echo compiling; cat waits; echo linked $((40+2)) files"), {"text": "Done."}
        )
        expect(chat.get("wall")).to_have_attribute("title", re.compile("each in a box of its own"))
        chat.send(steps)
        turn = chat.turn
        tool = turn.tools
        tool.locator(".tool-head").click()
        expect(tool.locator(".tool-body")).to_contain_text("compiling")
        expect(tool).to_have_attribute("data-status", "running")
        expect(tool.locator(".tool-body")).not_to_contain_text("linked 42 files")
        pipe.write_text("", encoding="utf-8")  # its reader has come to its end
        turn.expect_end("answered")
        expect(tool.locator(".tool-body")).to_contain_text("linked 42 files")
        chat.page.context.close()
