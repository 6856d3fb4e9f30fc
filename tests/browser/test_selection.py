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


# Draws a call whose command writes line after line while its output is unfolded, scrolled and selected.
RUNNING = """async () => {
  const { newTurn, applyEvent } = await import("/static/turn.js");
  const { TurnView } = await import("/static/turn-view.js");
  const turn = newTurn({ turnId: "trn_a", text: "build it", state: "running" });
  const view = new TurnView(turn, { waysAt: () => [] });
  document.getElementById("transcript").append(view.element);
  const take = (type, data) => { applyEvent(turn, type, data); view.update(); };
  const find = (id) => view.element.querySelector(`[data-testid=${id}]`);
  const lines = (from, to) => Array.from({ length: to - from }, (_, at) => `第${from + at} line\\n`).join("");
  take("tool.started", { index: 1, name: "Bash", summary: "make", input: { command: "make" } });
  take("tool.output", { index: 1, text: lines(0, 200) });
  view.element.querySelector(".tool-head").click();
  find("show-all").click();
  const frame = () => [...view.element.querySelectorAll(".tool-frame")].at(-1);
  frame().scrollTop = 300;
  const text = frame().querySelector("pre").firstChild;
  getSelection().setBaseAndExtent(text, 0, text, "第0 line".length);
  const looks = () => [getSelection().toString(), frame().scrollTop, frame().classList.contains("is-folded"), find("tool-download").isConnected];
  const download = find("tool-download");
  const before = looks();
  take("tool.output", { index: 1, text: lines(200, 210) });
  take("tool.output", { index: 1, text: lines(210, 220) });
  const during = looks();
  take("tool.finished", { index: 1, status: "ok", output: lines(0, 230), duration_ms: 1 });
  const whole = frame().textContent;
  const after = looks();
  const isKept = download.isConnected;
  view.element.remove();
  return { before, during, after, isKept, isWhole: whole === lines(0, 230) };
}"""

# Opens what memory has told a turn, ends the turn, and lets a check find something afterwards.
ENDING = """async () => {
  const { newTurn, applyEvent } = await import("/static/turn.js");
  const { TurnView } = await import("/static/turn-view.js");
  const turn = newTurn({ turnId: "trn_a", text: "ferry", state: "running" });
  const view = new TurnView(turn, { waysAt: () => [], openLog() {}, resend() {}, branch() {} });
  document.getElementById("transcript").append(view.element);
  const memory = () => ({ injected: [], suppressed: [{ id: "a", title: "The ferry", reason: "stale" }], degraded: [] });
  applyEvent(turn, "memory.injected", memory());
  view.update();
  const chip = view.element.querySelector("[data-testid=memory]");
  chip.open = true;
  const result = { turn_id: "trn_a", outcome: "answered", stop_reason: "end_turn", reply: "Yes.", steps: [{ type: "text", text: "Yes." }], tools: [], notices: [], duration_ms: 1, memory: memory() };
  applyEvent(turn, "turn.completed", result);
  view.update();
  const isOpen = view.element.contains(chip) && chip.open;
  const retry = view.element.querySelector("[data-testid=retry-turn]");
  retry.focus();
  turn.result = { ...structuredClone(result), notices: [{ code: "unsupported_claim", message: "No call supports it." }] };
  view.update();
  const isFocused = document.activeElement === retry;
  const notice = view.element.querySelector("[data-testid=notice]")?.textContent;
  view.element.remove();
  return { isOpen, isFocused, notice };
}"""


def test_the_output_of_a_running_command_stays_unfolded_in_place_and_selected(
    talk: ChatPage,
) -> None:
    seen = talk.page.evaluate(RUNNING)

    assert seen["before"] == ["第0 line", 300, False, True]
    assert seen["during"] == seen["before"]
    assert seen["after"] == seen["before"]
    assert seen["isKept"]
    assert seen["isWhole"]


def test_the_end_of_a_turn_and_what_is_found_then_leave_what_somebody_is_at(talk: ChatPage) -> None:
    assert talk.page.evaluate(ENDING) == {
        "isOpen": True,
        "isFocused": True,
        "notice": "No call supports it.",
    }
