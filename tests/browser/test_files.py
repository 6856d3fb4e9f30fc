"""Files on the page: attached to a message, completed in the box, looked at, changed by a turn.

Their names and contents are hostile throughout.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.test_safety import HOSTILE, IMAGE, expect_only_text
from tests.support.live_server import LiveServer, bash, script
from tests.support.pictures import png

pytestmark = pytest.mark.browser

SEND_FILES = """([name, kind]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File(["hello"], name, { type: "text/plain" }));
  const field = document.querySelector("#message");
  field.dispatchEvent(kind === "paste"
    ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


@contextmanager
def held_requests(
    chat: ChatPage, url: str | re.Pattern[str] = "**/workspace/files*"
) -> Iterator[list[Route]]:
    """Keep the page's requests, its uploads if nothing else is named, until they are continued."""
    held: list[Route] = []
    chat.page.route(url, lambda route: held.append(route))  # noqa: PLW0108  Playwright marks it
    try:
        yield held
    finally:
        chat.page.unroute_all(behavior="ignoreErrors")


def test_files_chosen_dropped_and_pasted_go_with_the_message_as_paths(
    chat: ChatPage, server: LiveServer, tmp_path: Path
) -> None:
    chosen = tmp_path / "chosen plan.md"
    chosen.write_text("# Plan", encoding="utf-8")
    chat.get("attach-input").set_input_files(chosen)
    chat.page.evaluate(SEND_FILES, [f"{IMAGE}.txt", "drop"])
    chat.page.evaluate(SEND_FILES, ["pasted.txt", "paste"])
    chips = chat.page.locator(".attachment[data-path]")
    expect(chips).to_have_count(3)
    expect(chips.nth(1)).to_contain_text(IMAGE)
    chips.filter(has_text="pasted").get_by_role("button").click()
    expect(chips).to_have_count(2)
    expect_only_text(chat)

    chat.composer.press("Enter")

    expect(chat.turn.message).to_contain_text("uploads/chosen plan.md")
    expect(chat.turn.message).to_contain_text(f"uploads/{IMAGE}.txt")
    expect(chat.turn.message).not_to_contain_text("pasted")
    expect(chips).to_have_count(0)
    expect(chat.turn.outcome).to_be_visible()
    assert (server.workspace / "uploads" / f"{IMAGE}.txt").read_text() == "hello"
    chat.page.evaluate(SEND_FILES, [".env", "drop"])
    expect(chat.get("error-line")).to_have_attribute("data-code", "path_denied")
    chat.get("error-line").get_by_role("button", name="Dismiss").click()
    chat.witness.failed_requests.clear()  # the refusal is what was wanted


def test_the_box_completes_files_skills_and_saved_prompts_and_recalls_what_was_sent(
    chat: ChatPage, server: LiveServer
) -> None:
    folder = server.workspace / "box"
    folder.mkdir()
    (folder / f"lamp {IMAGE}.md").write_text("x", encoding="utf-8")
    offered = chat.get("completion")
    chat.composer.press_sequentially("see @lamp")
    expect(offered.first).to_contain_text(IMAGE)
    expect_only_text(chat)
    chat.composer.press("Enter")
    expect(chat.composer).to_have_value(f'see "box/lamp {IMAGE}.md" ')

    chat.composer.fill("water the fern")
    chat.get("save-prompt").click()
    chat.composer.fill("")
    chat.composer.press_sequentially("/fern")
    expect(offered).to_have_count(1)
    chat.composer.press("Tab")
    expect(chat.composer).to_have_value("water the fern")
    chat.composer.fill("")
    chat.composer.press_sequentially("/memory-c")
    expect(offered.first).to_contain_text("/memory-capture")
    chat.composer.press("Escape")
    expect(chat.get("completions")).to_be_hidden()

    chat.composer.fill("")
    chat.ask("my fern is green")
    chat.composer.press("ArrowUp")
    expect(chat.composer).to_have_value("my fern is green")
    chat.composer.press("ArrowDown")
    expect(chat.composer).to_have_value("")


@pytest.mark.parametrize("before", ["看", "看 ", "请看："])
@pytest.mark.parametrize("sign", ["@", "＠"])
def test_a_file_is_offered_beside_chinese_text(
    chat: ChatPage, server: LiveServer, before: str, sign: str
) -> None:
    (server.workspace / "kettle.md").write_text("x", encoding="utf-8")
    chat.composer.fill(f"{before}{sign}kettl")
    chat.composer.press("End")
    chat.composer.press_sequentially("e")

    chat.get("completion").first.click()

    expect(chat.composer).to_have_value(f"{before}kettle.md ")


@pytest.mark.parametrize("take", ["Enter", "Tab", "click"])
def test_a_completion_replaces_what_was_typed_before_the_next_list(
    chat: ChatPage, server: LiveServer, take: str
) -> None:
    offered = offer_two_files(chat, server)
    with held_requests(chat, re.compile(r"/workspace\?q=ke\w")):
        chat.composer.press_sequentially("ttle")
        expect(offered).to_have_text(["kettle.md"])
        if take == "click":
            offered.click()
        else:
            chat.composer.press(take)

    expect(chat.composer).to_have_value("see kettle.md ")
    expect(offered).to_have_count(0)


def test_the_mark_stays_where_the_arrows_led_it(chat: ChatPage, server: LiveServer) -> None:
    offered = offer_two_files(chat, server)
    chat.composer.press("ArrowDown")
    with chat.page.expect_response(re.compile(r"/workspace\?q=ke&")):
        chat.composer.press("Backspace")
        chat.composer.press_sequentially("e")
    chat.composer.press("Enter")

    expect(chat.composer).to_have_value("see kettle.md ")
    expect(offered).to_have_count(0)


def test_a_list_is_gone_with_the_text_it_was_for(chat: ChatPage, server: LiveServer) -> None:
    chat.ask("my fern is green")
    offered = offer_two_files(chat, server)
    with held_requests(chat, re.compile(r"/workspace\?q=ke\w")) as held:
        with chat.page.expect_request(re.compile(r"/workspace\?q=ke\w")):
            chat.composer.press_sequentially("t")
        chat.composer.press("Control+Shift+o")
        expect(offered).to_have_count(0)
        chat.composer.fill("another draft")
        held[0].continue_()
        chat.composer.press("Tab")
        expect(chat.composer).to_have_value("another draft")


@pytest.mark.parametrize("command", ["/clear", "／clear"])
def test_enter_sends_a_command_that_is_written_out(chat: ChatPage, command: str) -> None:
    chat.ask("my fern is green")
    chat.composer.press_sequentially(command)
    expect(chat.get("completion")).to_have_count(1)

    chat.composer.press("Enter")

    expect(chat.get("welcome")).to_be_visible()


def offer_two_files(chat: ChatPage, server: LiveServer) -> Locator:
    for name in ("kettle.md", "kelp.md"):
        (server.workspace / name).write_text("x", encoding="utf-8")
    offered = chat.get("completion")
    chat.composer.press_sequentially("see @ke")
    expect(offered).to_have_text(["kelp.md", "kettle.md"])
    return offered


def test_no_file_is_offered_within_an_address(chat: ChatPage, server: LiveServer) -> None:
    (server.workspace / "kettle.md").write_text("x", encoding="utf-8")
    for address in ("ada@kettle", "a.d_a+1@kettle", "写信给ada@kettle"):
        chat.composer.fill(address)
        chat.page.wait_for_timeout(300)  # nothing tells that nothing is offered
        expect(chat.get("completion")).to_have_count(0)


@pytest.mark.parametrize("take", ["Enter", "Tab", "click"])
def test_a_completion_can_be_undone(chat: ChatPage, server: LiveServer, take: str) -> None:
    (server.workspace / "kettle.md").write_text("x", encoding="utf-8")
    chat.composer.press_sequentially("see @kettle")
    offered = chat.get("completion")
    expect(offered).to_have_count(1)
    if take == "click":
        offered.click()
    else:
        chat.composer.press(take)
    expect(chat.composer).to_have_value("see kettle.md ")

    chat.composer.press("Control+z")

    expect(chat.composer).to_have_value("see @kettle")


def test_a_file_in_another_encoding_is_named_as_such(chat: ChatPage, server: LiveServer) -> None:
    (server.workspace / "gbk.txt").write_bytes("第一行\n第二行\n".encode("gbk"))
    chat.get("files-button").click()
    chat.page.get_by_role("button", name="gbk.txt").click()
    expect(
        chat.page.get_by_text("This file is not UTF-8 text; download it instead.")
    ).to_be_visible()
    chat.page.keyboard.press("Escape")


def test_the_panel_shows_files_as_text_and_keeps_what_the_policy_keeps(
    chat: ChatPage, server: LiveServer
) -> None:
    folder = server.workspace / "panel"
    folder.mkdir()
    (folder / f"{IMAGE}.html").write_text(HOSTILE, encoding="utf-8")
    (folder / ".env").write_text("KEY=x", encoding="utf-8")
    chat.get("files-button").click()
    rows = chat.get("file-row")
    rows.filter(has_text="panel").click()
    expect(chat.page.locator('[data-path="panel/.env"]')).to_be_disabled()
    rows.filter(has_text=IMAGE).click()
    expect(chat.get("file-body")).to_contain_text(HOSTILE)
    expect_only_text(chat)
    with chat.page.expect_download() as saved:
        chat.get("file-download").click()
    assert Path(saved.value.path()).read_text() == HOSTILE
    chat.get("files-search").fill("panel html")
    expect(rows).to_have_count(1)
    chat.get("file-attach").click()
    expect(chat.get("attachment")).to_have_attribute("data-path", f"panel/{IMAGE}.html")
    chat.get("attachment").get_by_role("button").click()


def test_what_a_turn_changed_is_shown_as_a_diff(chat: ChatPage, server: LiveServer) -> None:
    (server.workspace / "fern.txt").write_text("one\ntwo\n", encoding="utf-8")
    written = {"file_path": "fern.txt", "content": f"one\n{HOSTILE}\n"}
    chat.ask(
        script(
            {"tool": "Read", "input": {"file_path": "fern.txt"}},
            {"tool": "Write", "input": written},
            bash(f"cp fern.txt '{IMAGE}.txt'"),
            {"text": "Done."},
        )
    )
    expect(chat.get("changes-link").last).to_contain_text("2 files changed+3−1")
    chat.page.reload()  # it is stored
    chat.get("changes-link").last.click()
    changed = chat.get("change")
    expect(changed).to_have_count(2)
    expect(changed.first).to_contain_text(f"{IMAGE}.txt")
    expect(changed.last.locator(".is-added").last).to_contain_text(HOSTILE)
    expect(changed.last.locator(".diff-row.is-removed")).to_contain_text("two")
    expect_only_text(chat)
    chat.page.keyboard.press("Escape")


def test_a_todo_list_is_drawn_as_one(talk: ChatPage) -> None:
    """Also where the agent was refused it: the shipped rules do not offer the tool."""
    states = ("completed", "in_progress", "pending", IMAGE)
    todos = [{"content": f"water {HOSTILE}", "status": state} for state in states]
    talk.ask(script({"tool": "TodoWrite", "input": {"todos": todos}}, {"text": "Listed."}))
    talk.turn.tools.get_by_role("button").first.click()
    items = talk.get("todo-list").get_by_role("listitem")
    expect(items).to_have_count(4)
    expect(items.first.get_by_role("img", name="done")).to_be_visible()
    expect(items.last).to_contain_text(HOSTILE)
    expect_only_text(talk)


def test_an_attached_picture_is_shown_to_the_model_and_in_the_message(
    chat: ChatPage, tmp_path: Path
) -> None:
    picture = tmp_path / "pixel.png"
    picture.write_bytes(png())
    chat.get("attach-input").set_input_files(picture)
    expect(chat.page.locator(".attachment[data-path]")).to_have_count(1)

    chat.send(script({"echo": "messages"}))

    expect(chat.turn.outcome).to_be_visible()
    expect(chat.turn.reply).to_contain_text('"type": "image"')
    for _ in range(2):
        shown = chat.turn.at.get_by_test_id("message-pictures").get_by_role("img")
        expect(shown).to_have_js_property("naturalWidth", 1)
        chat.page.reload()


def test_a_link_to_a_file_that_is_not_there_says_so(talk: ChatPage, server: LiveServer) -> None:
    (server.workspace / ".linked").mkdir()
    (server.workspace / ".linked" / "there.txt").write_text("here it is", encoding="utf-8")
    links = "[missing](nofile.txt) [none](nowhere/none.txt) [there](.linked/there.txt)"
    turn = talk.ask(script({"text": links}))
    for name, shown in (
        ("missing", "There is no file nofile.txt in the workspace."),
        ("none", "There is no file nowhere/none.txt in the workspace."),
        ("there", "here it is"),
    ):
        turn.reply.get_by_role("link", name=name).click()
        expect(talk.get("file-body")).to_contain_text(shown)
        talk.get("files-close").click()
    talk.witness.failed_requests.clear()  # the folder is not there either


def test_a_link_to_a_folder_lists_its_files(talk: ChatPage, server: LiveServer) -> None:
    (server.workspace / "shelf").mkdir()
    (server.workspace / "shelf" / "book.txt").write_text("x", encoding="utf-8")
    talk.ask(script({"text": "[shelf](shelf/)"})).reply.get_by_role("link").click()
    expect(talk.get("file-row")).to_have_text(["shelf/book.txt"])
    talk.get("files-close").click()


def test_a_picture_named_with_an_at_sign_is_shown_to_the_model(
    chat: ChatPage, server: LiveServer
) -> None:
    names = {"rose one.png": "`rose one.png` ", "tick`two.png": '"tick`two.png" '}
    for name, inserted in names.items():
        (server.workspace / name).write_bytes(png())
        chat.composer.fill("")
        chat.composer.press_sequentially(f"@{name[:4]}")
        expect(chat.get("completion")).to_have_count(1)
        chat.composer.press("Enter")
        expect(chat.composer).to_have_value(inserted)

    chat.send("".join(reversed(names.values())) + script({"echo": "messages"}))

    expect(chat.turn.outcome).to_be_visible()
    expect(chat.turn.reply).to_contain_text('"type": "image"')


def test_every_command_of_the_gateway_is_offered_and_told(chat: ChatPage) -> None:
    chat.composer.press_sequentially("/comp")
    expect(chat.get("completion")).to_have_count(1)
    chat.composer.press("Enter")
    expect(chat.composer).to_have_value("/compact ")
    chat.composer.fill("")

    closing = chat.ask("/nonsense").at

    for command in ("/clear", "/compact", "/plan"):
        expect(closing).to_contain_text(f"{command} ")


def test_the_button_of_changes_is_named_by_what_changed(talk: ChatPage) -> None:
    write = {"file_path": "moss.txt", "content": "one\n"}
    talk.ask(script({"tool": "Write", "input": write}, {"text": "Done."}))
    button = talk.turn.at.get_by_test_id("changes-link")
    expect(button).to_have_accessible_name("1 file changed 1 line added")
    button.click()
    figures = talk.get("change").get_by_role("img", name="1 line added", exact=True)
    expect(figures).to_have_text("+1−0")
    talk.page.keyboard.press("Escape")


def test_attached_files_stay_with_the_draft_over_a_reload(chat: ChatPage) -> None:
    chat.page.evaluate(SEND_FILES, ["kept.txt", "drop"])
    chips = chat.page.locator(".attachment[data-path]")
    expect(chips).to_have_count(1)
    chat.composer.fill("look at this")

    chat.page.reload()

    expect(chips).to_have_attribute("data-path", "uploads/kept.txt")
    chat.composer.press("Enter")
    expect(chat.turn.message).to_contain_text("`uploads/kept.txt`")
    expect(chat.turn.outcome).to_be_visible()
    chat.page.reload()
    expect(chat.turn.outcome).to_be_visible()
    expect(chips).to_have_count(0)


def test_a_file_whose_upload_a_reload_cut_off_is_named(chat: ChatPage) -> None:
    with held_requests(chat):
        chat.page.evaluate(SEND_FILES, ["cut off.txt", "drop"])
        expect(chat.get("attachment")).to_have_count(1)

        chat.page.reload()

        expect(chat.get("error-line")).to_contain_text("cut off.txt")
        expect(chat.get("attachment")).to_have_count(0)
    chat.get("error-line").get_by_role("button", name="Dismiss").click()


def test_a_refused_file_is_named_and_not_offered_again(chat: ChatPage, tmp_path: Path) -> None:
    names = ("fine one.txt", ".env", "fine two.txt")
    for name in names:
        (tmp_path / name).write_text("x", encoding="utf-8")

    chat.get("attach-input").set_input_files([tmp_path / name for name in names])

    chips = chat.page.locator(".attachment[data-path]")
    expect(chips).to_have_text(["fine one.txt", "fine two.txt"])
    expect(chat.get("error-line")).to_contain_text("“.env”")
    expect(chat.get("retry")).to_have_count(0)
    chat.get("error-line").get_by_role("button", name="Dismiss").click()
    for _ in range(2):
        chips.first.get_by_role("button").click()
    chat.witness.failed_requests.clear()  # the refusal is what was wanted


def test_a_message_waits_for_the_upload_and_is_sent_then(chat: ChatPage) -> None:
    with held_requests(chat) as held:
        chat.page.evaluate(SEND_FILES, ["late.txt", "drop"])
        chat.composer.fill("read what comes late")
        chat.composer.press("Enter")

        words = "Sent as soon as the files are uploaded"
        expect(chat.page.locator("#composer-hint")).to_have_text(words)
        expect(chat.page.locator("#announcer")).to_have_text(words)
        expect(chat.turns).to_have_count(0)
        held[0].continue_()

    expect(chat.turn.message).to_contain_text("read what comes late")
    expect(chat.turn.message).to_contain_text("uploads/late.txt")
    expect(chat.composer).to_have_value("")
    expect(chat.turn.outcome).to_be_visible()


def test_a_failed_upload_does_not_send_the_message_that_waits_for_it(chat: ChatPage) -> None:
    chat.witness.network_may_fail = True
    with held_requests(chat) as held:
        chat.page.evaluate(SEND_FILES, ["lost.txt", "drop"])
        chat.composer.fill("read what is lost")
        chat.composer.press("Enter")
        expect(chat.page.locator("#composer-hint")).to_contain_text("Sent as soon as")

        held[0].abort("connectionreset")

        expect(chat.get("error-line")).to_contain_text("“lost.txt”")
        expect(chat.page.locator("#composer-hint")).to_contain_text("Enter to send")
        expect(chat.composer).to_have_value("read what is lost")
        expect(chat.turns).to_have_count(0)

    chat.get("retry").click()

    expect(chat.page.locator(".attachment[data-path]")).to_have_text("lost.txt")
    expect(chat.turns).to_have_count(0)
    chat.get("attachment").get_by_role("button").click()


def test_an_upload_is_cancelled_with_its_chip(chat: ChatPage) -> None:
    chat.witness.network_may_fail = True  # the browser notes it as failed
    with held_requests(chat):
        chat.page.evaluate(SEND_FILES, ["unwanted.txt", "drop"])
        chat.composer.fill("without it")
        chat.composer.press("Enter")

        chat.get("attachment").get_by_role("button", name="Cancel the upload").click()

        expect(chat.get("attachment")).to_have_count(0)
        expect(chat.get("error-line")).to_have_count(0)
        expect(chat.composer).to_have_value("without it")
        expect(chat.turns).to_have_count(0)


def test_a_picture_that_cannot_be_decoded_is_a_link(chat: ChatPage, tmp_path: Path) -> None:
    picture = tmp_path / "broken.png"
    picture.write_bytes(b"no picture at all")
    chat.get("attach-input").set_input_files(picture)
    expect(chat.page.locator(".attachment[data-path]")).to_have_count(1)

    chat.send("/broken-picture")

    shown = chat.turn.at.get_by_test_id("message-pictures")
    expect(shown.get_by_role("link")).to_have_text("uploads/broken.png")
    expect(shown.get_by_role("img")).to_have_count(0)
    expect(chat.turn.outcome).to_be_visible()
    shown.get_by_role("link").click()
    expect(chat.get("file-body")).to_have_text("This file cannot be shown as a picture.")
    expect(chat.get("file-body").get_by_role("img")).to_have_count(0)
    chat.page.keyboard.press("Escape")
