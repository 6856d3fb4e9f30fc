"""A finished turn, live and reloaded: its steps in order, and what each call did."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import LiveServer, bash, script

pytestmark = pytest.mark.browser

ORDER = """() => [...document.querySelectorAll(".turn:last-child .steps > *")]
  .map((node) => node.querySelector(".tool-name")?.textContent ?? node.innerText.split("\\n")[0])"""
PNG = (
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63"
    "d812aa0b0002f70137225e5de10000000049454e44ae426082"
)
"""A picture of one point."""
CODE = 'def greet(name: str) -> str:\n    return f"Hello {name}"\n'


def call(tool: str, text: str = "", **given: Any) -> dict[str, Any]:
    return {"tool": tool, "input": given, **({"text": text} if text else {})}


def test_a_reloaded_turn_shows_its_steps_in_order_and_each_call_opens(
    chat: ChatPage, server: LiveServer, tmp_path: Path
) -> None:
    (server.workspace / "greet.py").write_text(CODE, encoding="utf-8")
    (server.workspace / "colours.txt").write_text(
        "\x1b[1;31mred\x1b[0m\x1b[2K plain\n10%\r100%\n"
        + "".join(f"row {number}\n" for number in range(1, 1600)),
        encoding="utf-8",
    )
    picture = server.workspace / "dot.png"
    picture.write_bytes(bytes.fromhex(PNG))
    steps = (
        {"thinking": "Look first."} | call("Read", "First I read.", file_path="greet.py"),
        call("Grep", pattern="return", output_mode="content"),
        call("Edit", "Now I change.", file_path="greet.py", old_string="Hello", new_string="Hi"),
        call("Write", file_path="notes.md", content="one\ntwo\n"),
        bash("cat colours.txt"),
        call("Read", file_path="dot.png"),
        {"text": "Done."},
    )
    order = ["Thoughts", "First I read.", "Read", "Grep", "Now I change.", "Edit", "Write"]
    order += ["Bash", "Read", "Done."]
    chat.ask(script(*steps)).expect_end("answered")
    assert chat.page.evaluate(ORDER) == order

    chat.page.reload()

    chat.turn.expect_end("answered")
    assert chat.page.evaluate(ORDER) == order
    read, grep, edit, write, run, image = chat.turn.tools.all()
    for tool in (read, grep, edit, write, run, image):
        tool.locator(".tool-head").click()
    expect(read.locator(".tool-numbers")).to_contain_text("1\n2")
    expect(read.locator(".hl-keyword").first).to_have_text("def")
    expect(grep.locator(".tool-numbers")).to_have_text("2")
    expect(grep.locator(".tool-code")).to_contain_text("return")
    expect(edit.locator(".diff-row")).to_have_text(
        [
            "1 def greet(name: str) -> str:",
            '2-    return f"Hello {name}"',
            '2+    return f"Hi {name}"',
        ]
    )
    expect(write.locator(".diff-row.is-added")).to_have_count(2)
    expect(run).to_contain_text("Command as it ran")
    expect(run.locator(".is-command")).to_contain_text("cat -- colours.txt")
    expect(run.locator(".ansi-bold.ansi-fg1")).to_have_text("red")
    expect(run.locator(".tool-text").last).to_contain_text("red plain\n100%\nrow 1")
    expect(image.locator("img")).to_have_js_property("naturalWidth", 1)
    frame = run.locator(".tool-frame").last
    expect(frame).to_have_class("tool-frame is-folded")
    run.get_by_test_id("show-all").click()
    expect(frame).to_be_focused()
    expect(frame).to_have_class("tool-frame")
    expect(run).not_to_contain_text("row 800 row 801")
    run.get_by_test_id("tool-whole").click()
    expect(run).to_contain_text("row 800 row 801")
    with chat.page.expect_download() as download:
        run.get_by_test_id("tool-download").last.click()
    download.value.save_as(tmp_path / "output.txt")
    saved = (tmp_path / "output.txt").read_text(encoding="utf-8")
    assert saved.startswith("red plain\n100%\nrow 1\n")
    assert "row 800\n" in saved


def test_a_sub_agents_calls_stand_below_it_and_the_list_of_tasks_below_the_steps(
    chat: ChatPage, server: LiveServer
) -> None:
    (server.workspace / "found.txt").write_text("found", encoding="utf-8")
    helper = script(bash("cat found.txt"), bash("curl a.example"), {"text": "It is **there**."})
    steps = (
        call("TaskCreate", subject="Look for it", description="d"),
        call("TaskCreate", subject="Tell of it", description="d"),
        call("TaskUpdate", taskId="1", status="in_progress"),
        call("Agent", description="Look for the file", prompt=helper),
        call("TaskUpdate", taskId="1", status="completed"),
        {"text": "There."},
    )
    chat.ask(script(*steps)).expect_end("answered_with_failures")
    for _ in range(2):
        agent = chat.turn.at.locator(".steps > .tool", has_text="Look for the file")
        below = agent.get_by_test_id("tool-below").get_by_test_id("tool-call")
        expect(agent).to_contain_text("Sub-agent")
        expect(below).to_have_count(2)
        expect(below.first).to_contain_text("cat found.txt")
        expect(below.last).to_have_attribute("data-status", "denied")
        expect(chat.turn.at.locator(".steps > .tool")).to_have_count(5)
        expect(chat.turn.at.locator(".steps > .tool").nth(2)).to_contain_text(
            "Task 1 · in progress"
        )
        tasks = chat.turn.at.get_by_test_id("todo-list").get_by_role("listitem")
        expect(tasks).to_have_text(["Look for it", "Tell of it"])
        expect(tasks.first.get_by_role("img", name="done")).to_be_visible()
        agent.locator(".tool-head").first.click()
        expect(agent).to_contain_text("Its report")
        expect(agent).to_contain_text("It is **there**.")
        expect(agent).not_to_contain_text("hand-back")
        below.first.locator(".tool-head").click()
        expect(below.first).to_contain_text("found")
        chat.page.reload()
        chat.turn.expect_end("answered_with_failures")
