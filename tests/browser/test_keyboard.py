"""The page without a mouse, and with an input method."""

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import OpenPage
from tests.browser.test_approval_words import answer_elsewhere, leave_waiting
from tests.browser.test_files import SEND_FILES
from tests.support.live_server import DEADLINE_S, LiveServer, bash, script

pytestmark = pytest.mark.browser

NAME_OF_FOCUS = """() => {
  const node = document.activeElement;
  if (node.matches(".item-open")) return node.title;
  return node.dataset.testid || node.getAttribute("aria-label") || node.textContent.trim();
}"""


def tab_through(chat: ChatPage, stops: int) -> list[str]:
    names = []
    for _ in range(stops):
        chat.page.keyboard.press("Tab")
        names.append(chat.page.evaluate(NAME_OF_FOCUS))
    return names


def begin_at_the_top(chat: ChatPage) -> None:
    """Put the focus where it is when a page has just been opened."""
    chat.page.locator("body").evaluate("(body) => { body.tabIndex = -1; body.focus(); }")


def test_enter_sends_and_shift_enter_breaks_the_line(talk: ChatPage) -> None:
    turns = talk.turns.count()
    talk.composer.press_sequentially("my verse is")
    talk.composer.press("Shift+Enter")
    talk.composer.press_sequentially("two lines long")
    expect(talk.composer).to_have_value("my verse is\ntwo lines long")
    expect(talk.turns).to_have_count(turns)

    talk.composer.press("Enter")

    expect(talk.turn.message).to_have_text("my verse is\ntwo lines long", use_inner_text=True)
    expect(talk.composer).to_have_value("")
    expect(talk.composer).to_be_focused()
    expect(talk.turn.outcome).to_be_visible()
    expect(talk.turns).to_have_count(turns + 1)


def test_nothing_but_space_is_not_sent(chat: ChatPage) -> None:
    chat.composer.fill(" \n ")
    chat.composer.press("Enter")

    expect(chat.get("send")).to_be_disabled()
    expect(chat.turns).to_have_count(0)


def test_more_than_the_server_takes_is_not_sent_and_not_cut(chat: ChatPage) -> None:
    chat.composer.fill("字" * 200_001)
    chat.composer.press("Enter")

    expect(chat.get("send")).to_be_disabled()
    expect(chat.page.locator("#composer-hint")).to_contain_text("too long to send")
    expect(chat.turns).to_have_count(0)
    chat.composer.fill("字" * 200_000)
    expect(chat.get("send")).to_be_enabled()


def test_enter_that_confirms_an_input_methods_choice_does_not_send(talk: ChatPage) -> None:
    """Through the browser's own interface for input methods: its events are the real ones."""
    devtools = talk.page.context.new_cdp_session(talk.page)
    turns = talk.turns.count()
    talk.composer.focus()
    for typed in ("n", "ni", "nihao"):
        devtools.send(
            "Input.imeSetComposition",
            {"text": typed, "selectionStart": len(typed), "selectionEnd": len(typed)},
        )
    expect(talk.composer).to_have_value("nihao")
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    devtools.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **key})
    devtools.send("Input.insertText", {"text": "我的暗号是什么？"})
    devtools.send("Input.dispatchKeyEvent", {"type": "keyUp", **key})
    expect(talk.composer).to_have_value("我的暗号是什么？")
    expect(talk.turns).to_have_count(turns)

    talk.composer.press("Enter")

    expect(talk.turn.message).to_have_text("我的暗号是什么？")
    expect(talk.turn.reply).to_contain_text("我不知道")


def test_the_tab_key_reaches_everything_in_the_order_of_the_page(talk: ChatPage) -> None:
    talk.ask("my lamp is made of brass")
    talk.get("search").fill("lamp is made of brass")
    expect(talk.items).to_have_count(1)
    title = talk.items.locator(".item-title").inner_text()
    begin_at_the_top(talk)

    assert tab_through(talk, 7) == [
        "Skip to the message box",
        "new-conversation",
        "search",
        title,
        "pin",
        "rename",
        "delete",
    ]
    talk.turn.at.get_by_test_id("log-link").focus()
    assert tab_through(talk, 4) == ["Copy", "retry-turn", "branch-here", "composer"]
    talk.get("search").fill("")


def test_the_first_tab_stop_leads_to_the_message_box_of_the_same_conversation(
    talk: ChatPage,
) -> None:
    talk.ask("my door is open")
    address = talk.page.url
    begin_at_the_top(talk)

    talk.page.keyboard.press("Tab")
    expect(talk.page.get_by_role("link", name="Skip to the message box")).to_be_in_viewport()
    talk.page.keyboard.press("Enter")

    expect(talk.composer).to_be_focused()
    expect(talk.turn.message).to_have_text("my door is open")
    assert talk.page.url == address


def test_a_whole_turn_and_its_log_by_keyboard_alone(chat: ChatPage) -> None:
    keyboard = chat.page.keyboard
    keyboard.press("Control+Shift+O")
    expect(chat.composer).to_be_focused()
    keyboard.type("list the files")
    keyboard.press("Enter")
    chat.turn.expect_end("answered")

    for _ in range(4):  # branch, retry, copy, log; then the code's own copy button and frame
        keyboard.press("Shift+Tab")
    expect(chat.turn.at.get_by_test_id("log-link")).to_be_focused()
    keyboard.press("Enter")
    expect(chat.get("log-dialog").get_by_role("button", name="Close")).to_be_focused()
    keyboard.press("Escape")
    expect(chat.turn.at.get_by_test_id("log-link")).to_be_focused()

    chat.turn.tools.get_by_role("button").focus()
    keyboard.press("Enter")
    expect(chat.turn.tools).to_contain_text("Output")


def test_renaming_and_deleting_by_keyboard_give_the_focus_back(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "my key is brass")
    chat.open_item.get_by_test_id("rename").focus()
    chat.page.keyboard.press("Enter")
    expect(chat.get("rename-input")).to_be_focused()
    chat.page.keyboard.type("Brass key")
    chat.page.keyboard.press("Enter")
    expect(chat.open_item).to_contain_text("Brass key")
    expect(chat.open_item.get_by_test_id("rename")).to_be_focused()

    chat.page.keyboard.press("Tab")
    chat.page.keyboard.press("Enter")
    expect(chat.page.get_by_role("button", name="Cancel")).to_be_focused()
    chat.page.keyboard.press("Enter")

    expect(chat.page.locator("dialog")).to_have_count(0)
    expect(chat.open_item.get_by_test_id("delete")).to_be_focused()


def test_enter_that_confirms_an_input_methods_choice_does_not_rename(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "my key is brass")
    chat.open_item.get_by_test_id("rename").focus()
    chat.page.keyboard.press("Enter")
    devtools = chat.page.context.new_cdp_session(chat.page)
    # Safari's key that ends a composition comes behind its end.
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}

    devtools.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **key})

    expect(chat.get("rename-input")).to_be_focused()
    chat.page.keyboard.press("Escape")
    expect(chat.get("rename-input")).to_have_count(0)


def test_the_focus_is_seen_in_forced_colours(chat: ChatPage) -> None:
    chat.page.emulate_media(forced_colors="active")
    chat.get("new-conversation").focus()
    chat.page.keyboard.press("Shift+Tab")
    chat.page.keyboard.press("Tab")
    outline = "(node) => { const style = getComputedStyle(node); return [style.outlineStyle, style.outlineWidth]; }"

    assert chat.get("new-conversation").evaluate(outline) == ["solid", "2px"]
    chat.page.emulate_media(forced_colors="none")


def test_a_click_elsewhere_keeps_the_new_name_and_takes_the_focus(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "my key is brass")
    chat.open_item.get_by_test_id("rename").focus()
    chat.page.keyboard.press("Enter")
    chat.page.keyboard.type("Brass key")

    chat.composer.click()

    expect(chat.open_item).to_contain_text("Brass key")
    expect(chat.composer).to_be_focused()


def test_a_row_that_moves_while_it_is_renamed_stays_open(
    chat: ChatPage, server: LiveServer
) -> None:
    chat.open_made(server, "my key is brass")
    url = f"{server.url}/conversations/{chat.conversation_id}"
    chat.open_made(server, "above that")
    chat.go(f"/#/c/{url.rpartition('/')[2]}")
    expect(chat.page.locator("#title")).to_have_text("my key is brass")
    chat.open_item.get_by_test_id("rename").focus()
    chat.page.keyboard.press("Enter")
    chat.page.keyboard.type("Brass")

    httpx.patch(url, json={"pinned": True}, timeout=DEADLINE_S, trust_env=False)
    chat.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    expect(chat.page.get_by_text("Pinned", exact=True)).to_be_visible()
    expect(chat.items.first.get_by_test_id("rename-input")).to_be_focused()
    chat.page.keyboard.type(" key")
    chat.page.keyboard.press("Enter")
    expect(chat.open_item).to_contain_text("Brass key")
    httpx.patch(url, json={"pinned": False}, timeout=DEADLINE_S, trust_env=False)


def test_stop_and_new_conversation_have_names_and_keys(chat: ChatPage) -> None:
    chat.send(script({"hang": True}))
    expect(chat.get("stop")).to_be_visible()
    chat.page.get_by_role("button", name="Stop").focus()
    chat.page.keyboard.press("Enter")
    expect(chat.composer).to_be_focused()
    chat.turn.expect_end("interrupted", "user_interrupt")

    chat.page.keyboard.press("Control+Shift+O")

    expect(chat.get("welcome")).to_be_visible()
    expect(chat.composer).to_be_focused()


def test_a_key_leads_to_the_message_box_on_a_touch_screen_and_a_tap_does_not(
    open_page: OpenPage,
) -> None:
    chat = open_page(is_mobile=True, has_touch=True)
    assert chat.page.evaluate("matchMedia('(hover: none)').matches")
    chat.get("new-conversation").tap()
    expect(chat.get("welcome")).to_be_visible()
    expect(chat.composer).not_to_be_focused()
    chat.get("new-conversation").focus()

    chat.page.keyboard.press("Control+Shift+O")

    expect(chat.composer).to_be_focused()


def test_the_end_of_a_turn_is_told_to_who_cannot_see_it(talk: ChatPage) -> None:
    talk.ask(script({"text": "The **lamp** is lit."}))

    expect(talk.page.locator("#announcer")).to_have_text("Reply: The lamp is lit.")
    talk.ask(script(bash("cat nowhere.txt"), {"text": "It is not there."}))
    expect(talk.page.locator("#announcer")).to_have_text(
        "Answered, though not everything worked. Reply: It is not there."
    )


def test_the_shortcuts_are_listed(talk: ChatPage) -> None:
    talk.composer.press("Control+/")

    shortcuts = talk.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_contain_text("Send the message")
    talk.page.keyboard.press("Escape")
    expect(shortcuts).to_have_count(0)
    expect(talk.composer).to_be_focused()


def test_the_keys_of_the_page_do_nothing_under_a_dialog(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    (waiting,) = leave_waiting(asked, "beneath")
    dialogs = asked.page.get_by_role("dialog")
    expect(asked.get("inbox")).to_be_visible()
    asked.get("open-settings").click()
    asked.page.keyboard.press("Alt+a")
    expect(dialogs).to_have_count(1)
    asked.page.keyboard.press("Escape")
    asked.go(f"/#/c/{waiting}")
    expect(asked.turns).to_have_count(1)
    asked.get("open-settings").click()
    asked.page.keyboard.press("Control+Shift+O")
    assert asked.conversation_id == waiting
    asked.page.keyboard.press("Escape")
    answer_elsewhere(asking_server, waiting)


def test_removing_attached_files_leads_to_the_next_one_and_to_the_message_box(
    chat: ChatPage,
) -> None:
    chips = chat.page.locator(".attachment[data-path]")
    for name in ("first.txt", "second.txt"):
        chat.page.evaluate(SEND_FILES, [name, "drop"])
        expect(chips.filter(has_text=name)).to_have_count(1)
    chips.first.get_by_role("button").focus()

    chat.page.keyboard.press("Enter")

    expect(chips).to_have_text("second.txt")
    expect(chips.get_by_role("button")).to_be_focused()
    chat.page.keyboard.press("Enter")
    expect(chips).to_have_count(0)
    expect(chat.composer).to_be_focused()


def test_a_pinned_row_takes_the_focus_along(chat: ChatPage, server: LiveServer) -> None:
    chat.open_made(server, "pinned by key")
    chat.open_made(server, "above that")
    pin = chat.item("pinned by key").get_by_test_id("pin")
    for count in (1, 0):
        pin.focus()

        chat.page.keyboard.press("Enter")

        expect(chat.page.get_by_text("Pinned", exact=True)).to_have_count(count)
        expect(pin).to_be_focused()
