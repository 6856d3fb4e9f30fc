"""Text of a model: what Markdown becomes, while it is written and when it is whole."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import LiveServer, script
from tests.support.pictures import png
from tests.support.tables import read_table_text

pytestmark = pytest.mark.browser

RICH = read_table_text("rich-reply")

# Gives the text to the page letter by letter, a frame each, and returns every state that was shown.
WRITE = """async (text) => {
  const { LiveText } = await import("/static/live-text.js");
  const live = new LiveText();
  const frame = () => new Promise(requestAnimationFrame);
  document.getElementById("transcript").append(live.element);
  const states = [];
  let first = null;
  for (let length = 1; length <= text.length; length += 1) {
    live.update(text.slice(0, length));
    const wanted = performance.now() + 45;
    while (performance.now() < wanted) await frame();
    first ??= live.element.firstElementChild;
    states.push(live.element.innerText);
  }
  while (!live.element.querySelector("pre code")?.textContent.startsWith("n")) await frame();
  states.push(live.element.innerText);
  const { proseElement } = await import("/static/prose.js");
  const isKept = first === proseElement(text, [live]).firstElementChild;
  live.element.remove();
  return { states: [...new Set(states)], isKept };
}"""

# Gives the text to the page letter by letter; returns every state that was shown.
LETTERS = """async (text) => {
  const { LiveText } = await import("/static/live-text.js");
  const live = new LiveText();
  document.getElementById("transcript").append(live.element);
  const states = [];
  for (let length = 1; length <= text.length; length += 1) {
    live.update(text.slice(0, length));
    const wanted = performance.now() + 60;
    while (performance.now() < wanted) await new Promise(requestAnimationFrame);
    states.push(live.element.innerText);
  }
  live.element.remove();
  return states;
}"""

HAN_EMPHASIS = [
    ("**注意：**请先备份", "strong", "注意："),
    ("使用**“双引号”**时", "strong", "“双引号”"),
    ("这是**重点。**接下来", "strong", "重点。"),
    ("~~删除。~~后文", "s", "删除。"),
    ("**`代码`**后文", "strong", "代码"),
]

# Gives the text to the page in pieces; returns what became of it, and how often nodes were compared.
PIECES = """async ([text, size]) => {
  const { LiveText } = await import("/static/live-text.js");
  const { proseElement } = await import("/static/prose.js");
  const live = new LiveText();
  const count = (root) => ["li", "ul", "sup"].map((name) => root.querySelectorAll(name).length);
  document.getElementById("transcript").append(live.element);
  const { isEqualNode } = Node.prototype;
  let compared = 0;
  Node.prototype.isEqualNode = function (other) { compared += 1; return isEqualNode.call(this, other); };
  for (let length = size; length < text.length + size; length += size) {
    live.update(text.slice(0, length));
    const wanted = length < text.length ? performance.now() + 60 : 0;
    while (performance.now() < wanted) await new Promise(requestAnimationFrame);
  }
  const host = document.createElement("div");
  host.append(proseElement(text, [live]));
  const whole = count(host);
  live.element.remove();
  Node.prototype.isEqualNode = isEqualNode;
  return { whole, compared };
}"""

# Renders a long text at once; returns how much of it is there at first, and how much in the end.
RENDER = """async (text) => {
  const { renderProse } = await import("/static/prose.js");
  const host = document.createElement("div");
  host.className = "prose";
  host.append(renderProse(text));
  const count = () => host.querySelectorAll("li, tr, p").length;
  const first = count();
  for (let last = -1; last !== count() || host.lastChild.nodeType === Node.COMMENT_NODE;) {
    last = count();
    await new Promise((done) => { setTimeout(done, 20); });
  }
  const tops = [...host.children].map((node) => node.tagName);
  return { first, count: count(), lists: host.querySelectorAll("ul").length, tables: host.querySelectorAll("table").length, tops: new Set(tops).size };
}"""

# Where the first text of each list item begins.
TEXT_LEFTS = """(items) => items.map((item) => {
  const range = document.createRange();
  range.selectNode(document.createTreeWalker(item, NodeFilter.SHOW_TEXT, (node) => (node.data.trim() ? 1 : 2)).nextNode());
  return range.getBoundingClientRect().left;
})"""


def test_markdown_becomes_structure(talk: ChatPage, server: LiveServer) -> None:
    (server.workspace / "dots.png").write_bytes(png())

    reply = talk.ask(script({"text": RICH})).reply

    expect(reply.locator("h1")).to_have_text("Files")
    expect(reply.locator("li > strong")).to_have_text("plain")
    expect(reply.get_by_role("img", name="done")).to_have_count(1)
    expect(reply.locator("li li")).to_have_text("nested")
    expect(reply.locator("td").last).to_have_attribute("align", "right")
    expect(reply.locator("math")).to_have_count(2)
    expect(reply.locator("mfrac")).to_have_count(1)
    expect(reply.locator("p").first).to_contain_text("5 $ and 6 $")
    expect(reply.locator("pre code .hl-string")).to_have_text("'hi'")
    expect(reply.locator(".hl-addition")).to_have_text("+new")
    drawing = reply.frame_locator("iframe")
    expect(drawing.locator("p").get_by_text("Start")).to_be_visible()
    expect(reply.locator("iframe")).to_have_attribute("sandbox", "allow-scripts")
    reply.get_by_role("button", name="Show source").click()
    expect(reply.get_by_text("A[Start]")).to_be_visible()
    picture = reply.get_by_role("img", name="dots")
    expect(picture).to_have_js_property("naturalWidth", 1)
    reply.locator("sup a").click()
    expect(reply.locator("[data-note]")).to_be_focused()
    expect(reply.locator("[data-note]")).to_contain_text("Because of this.")
    expect(reply.get_by_role("link", name="a file")).to_have_attribute("title", "notes/a.md")


def test_emphasis_beside_chinese_punctuation_is_emphasis(talk: ChatPage) -> None:
    text = "\n\n".join(text for text, _, _ in HAN_EMPHASIS)

    reply = talk.ask(script({"text": text})).reply

    for paragraph, (_, name, words) in zip(reply.locator("p").all(), HAN_EMPHASIS, strict=True):
        expect(paragraph.locator(name)).to_have_text(words)
        expect(paragraph).not_to_contain_text(re.compile("[*~]"))


def test_no_marks_are_shown_while_chinese_emphasis_is_written(talk: ChatPage) -> None:
    for text, _, _ in HAN_EMPHASIS:
        states = talk.page.evaluate(LETTERS, text)
        assert [state for state in states if re.search("[*~`]", state)] == []


def test_a_late_word_of_a_diagram_that_has_left_the_page_does_nothing(talk: ChatPage) -> None:
    frames = "**/diagram/frame.html"
    talk.page.route(frames, lambda route: route.fulfill(body=""))

    reply = talk.ask(script({"text": "```mermaid\nflowchart TD\n A --> B\n```"})).reply

    expect(reply.locator("iframe")).to_have_count(1)
    late = "dispatchEvent(new MessageEvent('message', {data: {ready: true}}))"
    reply.locator("iframe").evaluate(f"(view) => {{ view.remove(); {late}; }}")
    talk.page.unroute(frames)


def test_code_can_be_copied(talk: ChatPage) -> None:
    reply = talk.ask(script({"text": "```\nprint('hi')\n```"})).reply

    talk.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reply.get_by_role("button", name="Copy").click()

    expect(reply.get_by_role("button", name="Copied")).to_be_visible()
    assert talk.page.evaluate("navigator.clipboard.readText()") == "print('hi')\n"


def test_the_copy_button_covers_no_code(talk: ChatPage) -> None:
    talk.ask(script({"text": f"```\n{'long ' * 100}\n```"}))
    code = talk.turn.reply.locator(".code")
    text, button = code.locator("pre").bounding_box(), code.get_by_role("button").bounding_box()
    assert text is not None
    assert button is not None
    assert text["x"] + text["width"] <= button["x"]


def test_text_that_is_being_written_only_grows(talk: ChatPage) -> None:
    """No marks are seen, nothing is taken back, and what stands there stays the same element."""
    text = "A **b** [c](http://d.e) `f`\n\n## G\n\n- h\n- *i*\n\n| j | k |\n|--|--|\n| l | m |\n\n```py\nn\n```\n"

    written = talk.page.evaluate(WRITE, text)

    def shown(state: str) -> str:
        return "".join(state.split())

    final = shown(written["states"][-1])
    assert final == "AbcfGhijklmpyn"
    taken_back = [state for state in written["states"] if not final.startswith(shown(state))]
    assert (taken_back, written["isKept"]) == ([], True)


def test_a_reply_with_the_words_that_another_one_begins_with_leaves_that_alone(
    talk: ChatPage,
) -> None:
    shown = talk.page.evaluate("""async () => {
      const { LiveText } = await import("/static/live-text.js");
      const { proseElement } = await import("/static/prose.js");
      const live = new LiveText();
      document.getElementById("transcript").append(live.element);
      const shows = async (text) => {
        live.update(text);
        for (let left = 200; left && live.element.innerText.trim() !== text; left -= 1) await new Promise(requestAnimationFrame);
      };
      await shows("Done.");
      proseElement("Done.");
      await shows("Done. It is in a.txt.");
      const text = live.element.innerText.trim();
      live.element.remove();
      return text;
    }""")

    assert shown == "Done. It is in a.txt."


def test_a_long_text_is_rendered_in_parts_that_are_one_text(talk: ChatPage) -> None:
    rows = 4000
    text = "".join(f"- item {n}\n" for n in range(rows))
    text += "\n| a |\n| - |\n" + "".join(f"| {n} |\n" for n in range(rows))
    text += "".join(f"\nwords {n}\n" for n in range(rows))

    rendered = talk.page.evaluate(RENDER, text)

    assert rendered.pop("first") < rows / 2
    assert rendered == {"count": 3 * rows + 1, "lists": 1, "tables": 1, "tops": 3}


def test_a_long_list_that_is_being_written_is_settled_item_by_item(talk: ChatPage) -> None:
    items = 600
    text = "".join(f"- item {n}\n  - inner {n}\n" for n in range(items))

    found = talk.page.evaluate(PIECES, [text, len(text) // 20])

    assert found["whole"] == [2 * items, items + 1, 0]
    assert found["compared"] < 3 * items  # compared at each piece, they would be ten times as many


def test_a_note_that_is_defined_last_is_referred_to(talk: ChatPage) -> None:
    text = "A word[^n] here.\n\nMore words.\n\n[^n]: The note."

    found = talk.page.evaluate(PIECES, [text, 24])

    assert found["whole"] == [0, 0, 1]


def test_a_list_below_a_task_is_indented_as_a_task_is(talk: ChatPage) -> None:
    text = "- [ ] parent\n  - child\n\n- [ ] second\n  1. child\n\n- [ ] third\n  - [ ] child\n"

    reply = talk.ask(script({"text": text})).reply

    expect(reply.locator("li li")).to_have_count(3)
    lefts = reply.locator("li").evaluate_all(TEXT_LEFTS)
    parents, children = lefts[::2], lefts[1::2]
    assert len(set(parents)) == 1
    assert all(child - parents[0] > 20 for child in children), lefts


def test_cells_of_chinese_text_are_wide_and_cells_of_numbers_narrow(talk: ChatPage) -> None:
    words = "这一列里是一段比较长的中文说明文字。" * 4
    text = f"| 项 |{' 说明 |' * 6}\n|{' - |' * 7}\n| 42 |{f' {words} |' * 6}\n"

    reply = talk.ask(script({"text": text})).reply

    widths = reply.locator("td").evaluate_all("(cells) => cells.map((cell) => cell.offsetWidth)")
    assert widths[0] < 80
    assert min(widths[1:]) >= 140, widths


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_the_marker_of_a_list_item_stands_where_its_text_begins(talk: ChatPage, gap: str) -> None:
    text = f"- קודם כל לגבות{gap}- ואז להמשיך\n\nNext:\n\n- Back up{gap}- Go on\n"

    reply = talk.ask(script({"text": text})).reply

    expect(reply.locator("li")).to_have_count(4)
    found = reply.locator("li").evaluate_all("""(items) => items.map((item) => {
      const [own, list] = [item.getBoundingClientRect(), item.parentNode.getBoundingClientRect()];
      return [getComputedStyle(item).direction, own.left - list.left, list.right - own.right];
    })""")
    assert found == [["rtl", 0, 24]] * 2 + [["ltr", 24, 0]] * 2


def test_mail_and_telephone_links_lead_there_and_other_targets_leave_their_words(
    talk: ChatPage,
) -> None:
    text = (
        "[mail](mailto:a@b.example) [call](TEL:+49-30-1) <c@d.example> "
        "[hash](#/c/x) [out](../up.txt) [*root*](/etc/hosts) [far][1] ![view](file:///x.png) "
        "`f[0](x:y)` <std::string>\n\n[1]: ssh://far.example"
    )

    reply = talk.ask(script({"text": text})).reply

    expect(reply).to_have_text(
        "mail call c@d.example hash out root far view f[0](x:y) <std::string>"
    )
    targets = reply.get_by_role("link").evaluate_all(
        "all => all.map((a) => a.getAttribute('href'))"
    )
    assert targets == ["mailto:a@b.example", "TEL:+49-30-1", "mailto:c@d.example"]
    expect(reply.get_by_role("link").first).to_have_attribute("rel", "noopener noreferrer")
