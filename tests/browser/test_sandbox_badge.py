"""The badge beside the model's name: whether the kernel confines the agent."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.support.live_server import DEADLINE_S, LiveServer

pytestmark = pytest.mark.browser

WORDS = {"landlock": "confined", "bubblewrap": "Bash confined", "off": "not confined"}
SHOW = """async (kind) => {
  const badge = document.getElementById("wall");
  badge.hidden = true;
  (await import("/static/sandbox-badge.js")).showSandbox(badge, kind);
}"""


def test_each_kind_has_a_word_and_a_sentence_and_an_unknown_one_is_not_shown(
    open_page: OpenPage, server: LiveServer
) -> None:
    ready = httpx.get(f"{server.url}/readyz", timeout=DEADLINE_S, trust_env=False).json()
    kind = ready["parts"]["sandbox"]["kind"]
    chat = open_page()
    badge = chat.get("wall")
    expect(badge.locator(".wall-word")).to_have_text(WORDS[kind])
    for other, word in WORDS.items():
        chat.page.evaluate(SHOW, other)
        expect(badge).to_be_visible()
        expect(badge.locator(".wall-word")).to_have_text(word)
        means = badge.get_attribute("title") or ""
        assert means.endswith(".")
        expect(badge.locator(".visually-hidden")).to_contain_text(means)
    chat.page.evaluate(SHOW, "toString")
    expect(badge).to_be_hidden()


def test_a_narrow_window_names_the_badge_as_a_wide_one_does(open_page: OpenPage) -> None:
    chat = open_page()
    expect(chat.get("wall")).to_be_visible()
    chat.page.evaluate(SHOW, "off")
    name = re.compile("^not confined. The kernel does not confine the agent here;")
    for width in (1280, 390):
        chat.page.set_viewport_size({"width": width, "height": 800})
        expect(chat.get("wall")).to_have_accessible_name(name)
