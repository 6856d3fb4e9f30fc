"""What is selected, unfolded or opened in a turn stays so while the turn goes on and when it ends."""

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import script

pytestmark = pytest.mark.browser

# Selects words of the text that is being written, as the pointer does.
SELECT = """(words) => {
  const texts = document.createTreeWalker(document.querySelector(".live"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && !texts.currentNode.data.includes(words));
  const start = texts.currentNode.data.indexOf(words);
  getSelection().setBaseAndExtent(texts.currentNode, start, texts.currentNode, start + words.length);
}"""
SELECTED = "getSelection().toString()"

# Gives a text to the page, the model's last words of which are void then; returns what is shown.
VOID = """async () => {
  const { LiveText } = await import("/static/live-text.js");
  const { renderProse } = await import("/static/prose.js");
  const live = new LiveText();
  document.getElementById("transcript").append(live.element);
  const shown = [];
  for (const text of ["Kept.\\n\\nVoid 一。\\n\\nVoid two.\\n\\nV", "Kept.", "Kept. And more."]) {
    live.update(text);
    const wanted = performance.now() + 120;
    while (performance.now() < wanted) await new Promise(requestAnimationFrame);
    shown.push(live.element.innerText.trim());
  }
  const host = document.createElement("div");
  host.append(renderProse("Kept. And more."));
  live.element.remove();
  shown.push(host.textContent.trim());
  return shown.slice(1);
}"""


@pytest.mark.parametrize("word", ["word", "词语"])
def test_words_stay_selected_while_their_paragraph_is_written_and_when_it_is_whole(
    talk: ChatPage, word: str
) -> None:
    text = " ".join(f"{word}{number}" for number in range(60))
    talk.send(script({"text": text, "delta_delay_ms": 250}))
    expect(talk.turn.live).to_contain_text(f"{word}4")

    talk.page.evaluate(SELECT, f"{word}2 {word}3")

    expect(talk.turn.live).to_contain_text(f"{word}30")
    assert talk.page.evaluate(SELECTED) == f"{word}2 {word}3"
    talk.turn.expect_end("answered")
    expect(talk.turn.reply).to_have_text(text)
    assert talk.page.evaluate(SELECTED) == f"{word}2 {word}3"


def test_void_words_leave_the_page_and_are_no_part_of_the_reply(talk: ChatPage) -> None:
    assert talk.page.evaluate(VOID) == ["Kept.", "Kept. And more.", "Kept. And more."]
