"""axe on every screen: in English, light and wide; in Chinese, dark and as a phone shows it.

axe-core (`vendor/`, MPL-2.0, `axe.min.js` of the package as its authors publish it) never reaches a
person: it is run in the page by the browser's own debugger.
"""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import OpenPage
from tests.browser.test_prose import RICH
from tests.support.live_server import bash, script

pytestmark = pytest.mark.browser

AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.js"
PHONE = 390
LOOKS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "en-US": ("light", 1280),
    "zh-CN": ("dark", PHONE),
}
JUDGE = """async (place) => {
  const within = document.querySelector(place ?? "dialog[open]") ?? document;
  const { violations } = await axe.run(within, { resultTypes: ["violations"], iframes: false });
  const where = ({ target, any }) => `${target}: ${any[0]?.message ?? ""}`;
  return violations.map(({ id, nodes }) => `${id} (${nodes.length}) ${nodes.slice(0, 2).map(where).join("; ")}`);
}"""
"""Judges one element, else the open dialog, behind which nothing can be reached, else the page."""
OPENERS = "[aria-haspopup=dialog]:visible:enabled"


def _faults(chat: ChatPage, screen: str, width: int) -> list[str]:
    chat.page.set_viewport_size({"width": width, "height": 800})
    found = [f"{screen}: {fault}" for fault in chat.page.evaluate(JUDGE)]
    chat.page.set_viewport_size({"width": 1280, "height": 800})
    return found


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_axe_finds_nothing_on_any_screen(open_page: OpenPage, locale: str) -> None:
    scheme, width = LOOKS[locale]
    chat = open_page(locale=locale)
    chat.page.emulate_media(color_scheme=scheme)
    chat.page.evaluate(AXE.read_text("utf-8"))
    expect(chat.get("welcome")).to_be_visible()
    faults = _faults(chat, "start", width)
    text = RICH.replace("![dots](dots.png)", "")
    file = f"{locale}.txt"
    write = {"tool": "Write", "input": {"file_path": file, "content": "new\n"}}
    edit = {"tool": "Edit", "input": {"file_path": file, "old_string": "new", "new_string": "old"}}
    calls = bash("cat nowhere.txt"), bash("cat no"), bash("ls"), write, edit
    chat.ask(script({"thinking": "Hm."}, *calls, {"text": text}))
    for call in chat.turn.tools.all()[1:]:  # a closed one shows its error in a line
        call.get_by_role("button").first.click()
    signs = chat.page.locator(".diff-sign")  # axe leaves out text without letters
    signs.evaluate_all("all => all.map((sign) => { sign.textContent = 'sign'; })")
    faults += _faults(chat, "turn", width)
    chat.turn.at.get_by_test_id("log-link").click()
    expect(chat.get("log-dialog").locator(".log-step").first).to_be_visible()
    faults += _faults(chat, "log", width)
    chat.page.keyboard.press("Escape")
    openers = chat.page.locator(OPENERS)
    for number in range(openers.count()):
        name = openers.nth(number).get_attribute("data-testid")
        openers.nth(number).click()
        expect(chat.page.locator("dialog[open]")).to_be_visible()
        faults += _faults(chat, f"{name} opened", width)
        chat.page.keyboard.press("Escape")
        expect(chat.page.locator("dialog[open]")).to_have_count(0)
    chat.page.set_viewport_size({"width": PHONE, "height": 800})
    chat.page.locator("#sidebar-open").click()
    expect(chat.get("conversation-list")).to_be_in_viewport()
    faults += _faults(chat, "list", PHONE)
    assert openers.count() > 1
    assert not faults, "\n".join(faults)


def test_a_message_and_its_answer_are_named_by_who_speaks(talk: ChatPage) -> None:
    talk.ask(script({"text": "It is lit."}, say="Light the lamp."))
    turn = talk.turn.at
    expect(turn.get_by_role("group", name="You", exact=True)).to_contain_text("Light the lamp.")
    expect(turn.get_by_role("group", name="Assistant")).to_contain_text("It is lit.")


def test_a_wide_formula_is_scrolled_by_keyboard(chat: ChatPage) -> None:
    terms = " + ".join(f"x_{{{number}}}" for number in range(100))
    formula = chat.ask(script({"text": f"$${terms}$$"})).reply.locator(".math")
    expect(formula).to_have_attribute("tabindex", "0")

    formula.press("ArrowRight")

    chat.page.wait_for_function("() => document.querySelector('.math:focus')?.scrollLeft > 0")
