"""Other languages, other screens, other light, long conversations."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import OpenPage
from tests.browser.test_files import SEND_FILES
from tests.support.live_server import LiveServer, bash, script

pytestmark = pytest.mark.browser

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
}
WIDE = "| " + " | ".join(f"column {n}" for n in range(12)) + " |\n" + "| - " * 12 + "|\n"
LONG_WORD = "a" * 300
PLACE_AT_REST = """async (node) => {
  let place = -1;
  while (place !== node.scrollTop) {
    place = node.scrollTop;
    await new Promise((done) => { setTimeout(done, 200); });
  }
  return place;
}"""
"""A turn of the wheel may take several frames."""


def expect_no_sideways_scroll(chat: ChatPage) -> None:
    """Nor is anything cut off at the sides."""
    wide = chat.page.evaluate(
        """() => ["html", "body", "#scroller", "#sidebar", ".conversations", ".log-lines"]
          .filter((name) => [...document.querySelectorAll(name)].some((node) => node.scrollWidth > Math.min(node.clientWidth, innerWidth)))"""
    )
    cut_off = chat.page.evaluate(
        """() => [...document.querySelectorAll(".user-text, .tool, .reply, .notice, .turn-facts, .composer")]
          .filter((node) => { const { left, right } = node.getBoundingClientRect(); return left < 0 || right > innerWidth; })
          .map((node) => node.className)"""
    )
    assert (wide, cut_off) == ([], [])


def test_a_chinese_browser_gets_a_chinese_page(open_page: OpenPage) -> None:
    chat = open_page(locale="zh-CN")
    expect(chat.page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(chat.get("welcome")).to_contain_text("想做点什么？")
    expect(chat.composer).to_have_attribute("placeholder", "输入消息……")
    expect(chat.get("demo-banner")).to_contain_text("演示模型")

    chat.get("suggestion").get_by_text("列出文件").click()

    chat.turn.expect_end("answered")
    expect(chat.turn.outcome).to_have_text("已回答")
    expect(chat.turn.tools).to_contain_text("成功")
    expect(chat.turn.reply).to_contain_text("文件")
    turn = chat.ask(script(bash("cat 没有.txt"), {"text": "没有这个文件。"}, say="请照做"))
    expect(turn.tools).to_contain_text("失败")
    turn.tools.get_by_role("button").click()
    expect(turn.tools).to_contain_text("实际执行的命令")
    expect(chat.get("new-conversation")).to_contain_text("新对话")


def test_chinese_lists_and_sentences_have_chinese_punctuation(open_page: OpenPage) -> None:
    chat = open_page(locale="zh-CN")
    for name in ("one.txt", "two.txt"):
        chat.page.evaluate(SEND_FILES, [name, "drop"])
    expect(chat.page.locator(".attachment[data-path]")).to_have_count(2)
    chat.composer.press("Enter")

    expect(chat.turn.message).to_contain_text(re.compile("附件：`uploads/one.*`、`uploads/two"))
    expect(chat.get("wall")).to_contain_text(re.compile("隔离。内核"))
    expect(chat.get("memory-button")).to_contain_text(re.compile("。案例记忆"))
    chat.turn.expect_end("answered")
    expect(chat.page.locator("#announcer")).to_contain_text("回复：")


def test_who_answered_stands_in_chinese_parentheses(
    open_page: OpenPage, asking_server: LiveServer
) -> None:
    chat = open_page(url=asking_server.url, locale="zh-CN")
    chat.send(script(bash("touch made.txt"), {"text": "好了。"}, say="请照做"))
    chat.get("approval-allow").click()
    expect(chat.turn.approval).to_contain_text("已允许（你）")
    chat.turn.expect_end("answered")


def test_an_error_of_the_server_is_told_in_chinese(open_page: OpenPage) -> None:
    chat = open_page(locale="zh-CN")
    chat.page.evaluate(SEND_FILES, [".env", "drop"])
    words = chat.get("error-line").locator(".error-words")
    expect(words).to_contain_text("“.env”：策略不允许此路径。")
    expect(words).not_to_contain_text("policy")
    chat.witness.failed_requests.clear()  # the refusal is what was wanted


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("conversation_busy", "此对话中有回合正在运行。请等它结束，或先停止它。"),
        ("invalid_request", "请求内容无效。（`cron` is $& wrong.）"),
        ("of_a_later_version", "请求未能完成。（`cron` is $& wrong.）"),
    ],
)
def test_an_error_keeps_the_servers_sentence_where_its_code_says_too_little(
    open_page: OpenPage, talk: ChatPage, code: str, words: str
) -> None:
    shape = {"error": {"code": code, "message": "`cron` is $& wrong."}}
    read = "async (shape) => (await import('/static/api.js')).errorFromShape(shape).message"

    assert talk.page.evaluate(read, shape) == "`cron` is $& wrong."
    assert open_page(locale="zh-CN").page.evaluate(read, shape) == words


@pytest.mark.parametrize(
    ("locale", "words"),
    [("en-US", "Larger than the limit of 32 MiB."), ("zh-CN", "超过了 32 MiB 的上限。")],
)
def test_a_file_over_the_limit_is_refused_with_the_limit_as_a_person_counts(
    open_page: OpenPage, locale: str, words: str
) -> None:
    chat = open_page(locale=locale)
    message = "The body is larger than the limit of 33554432 bytes."
    error = {"code": "body_too_large", "message": message, "details": {"max_bytes": 33_554_432}}
    chat.page.route(
        "**/workspace/files*", lambda route: route.fulfill(status=413, json={"error": error})
    )

    chat.page.evaluate(SEND_FILES, ["plan.bin", "drop"])

    expect(chat.get("error-line").locator(".error-words")).to_contain_text(words)
    expect(chat.get("error-line")).not_to_contain_text("33554432")
    chat.witness.failed_requests.clear()  # the refusal is what was wanted


def test_both_languages_say_the_same_things(talk: ChatPage) -> None:
    words = talk.page.evaluate(
        """async () => Promise.all(["en", "zh"].map(async (language) => {
          const { default: words } = await import(`/static/words/${language}.js`);
          const places = (text) => [...String(text).matchAll(/\\{(\\w+)\\}/g)].map(([, name]) => name).sort().join();
          const source = await (await fetch(`/static/words/${language}.js`)).text();
          const keys = [...source.matchAll(/^  (\\w+):/gm)].map(([, key]) => key);
          const twice = keys.filter((key, place) => keys.indexOf(key) !== place);
          return { twice, ...Object.fromEntries(Object.entries(words).map(([key, text]) => [key, places(text)])) };
        }))"""
    )

    assert len(words[0]) > 50
    assert words[0] == words[1]
    assert words[0]["twice"] == []


def test_the_chinese_words_are_set_alike(talk: ChatPage) -> None:
    words: dict[str, Any] = talk.page.evaluate(
        "async () => (await import('/static/words/zh.js')).default"
    )
    # The polite form beside the plain one, a space beside Chinese punctuation or within a sentence.
    other = re.compile("您|[，。：；（）、] | [，。：；（）、]|[\u4e00-\u9fff] [\u4e00-\u9fff]")

    assert [text for text in words.values() if isinstance(text, str) and other.search(text)] == []
    allowed = words["approval_rule"].split("：")[0]
    assert allowed in words["wall_no_rules"]


def test_a_phone_shows_all_of_it_without_scrolling_sideways(
    talk: ChatPage, open_page: OpenPage
) -> None:
    text = (
        f"{WIDE}\n\n{LONG_WORD}\n\n```\n{LONG_WORD}\n```\n\nhttps://elsewhere.example/{LONG_WORD}"
    )
    talk.ask(script(bash(f"ls {LONG_WORD}"), {"text": text}, say=LONG_WORD))

    chat = open_page(f"/#/c/{talk.conversation_id}", **PHONE)

    expect(chat.turn.reply).to_contain_text("column 11")
    expect_no_sideways_scroll(chat)
    expect(chat.get("conversation-list")).not_to_be_in_viewport()
    turn = chat.turn
    turn.tools.get_by_role("button").tap()
    expect_no_sideways_scroll(chat)
    chat.composer.fill("my phone is small")
    chat.get("send").tap()
    expect(chat.turn.message).to_have_text("my phone is small")
    chat.turn.expect_end("answered")
    expect(chat.turn.outcome).to_be_in_viewport()
    turn = chat.turn
    turn.at.get_by_test_id("log-link").tap()
    expect(chat.get("log-dialog").locator(".log-line").first).to_be_visible()
    expect_no_sideways_scroll(chat)
    chat.page.get_by_role("button", name="Close", exact=True).tap()
    chat.page.get_by_role("button", name="Open the list of conversations").tap()
    expect(chat.get("conversation-list")).to_be_in_viewport()
    expect_no_sideways_scroll(chat)
    chat.get("new-conversation").tap()
    expect(chat.get("welcome")).to_be_in_viewport()
    expect(chat.get("conversation-list")).not_to_be_in_viewport()


def test_the_settings_fit_a_small_phone(open_page: OpenPage) -> None:
    chat = open_page(viewport={"width": 320, "height": 640})
    chat.page.evaluate("document.getElementById('open-settings').click()")
    settings = chat.page.locator("dialog:has([data-testid=settings])")

    expect(settings).to_be_visible()

    assert settings.evaluate("(node) => node.scrollWidth - node.clientWidth") == 0


def test_a_conversation_is_printed_whole(chat: ChatPage) -> None:
    say = "Please play this." + "\nA line of the message." * 80
    chat.ask(script(bash("seq 200"), {"text": "A line.\n\n" * 150}, say=say))
    chat.turn.tools.get_by_role("button").first.click()
    expect(chat.turn.tools.locator(".tool-frame").last).to_be_visible()

    pages = re.findall(rb"/Type\s*/Page\b", chat.page.pdf())

    assert len(pages) > 6
    chat.page.emulate_media(media="print", color_scheme="dark")
    scrollers = """() => [...document.querySelectorAll("#transcript *, #scroller, body")]
      .filter((node) => node.clientHeight && node.scrollHeight > node.clientHeight + 1 && getComputedStyle(node).overflowY !== "visible")
      .map((node) => node.className)"""
    assert chat.page.evaluate(scrollers) == []
    assert (
        chat.page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    for hidden in (chat.composer, chat.get("search"), chat.get("details-button"), chat.get("find")):
        expect(hidden).to_be_hidden()
    expect(chat.page.locator("#title")).to_be_visible()
    chat.page.emulate_media(media="screen", color_scheme="light")


def test_a_reader_who_scrolled_up_is_left_there(talk: ChatPage) -> None:
    scroller = talk.page.locator("#scroller")
    talk.send(script({"text": "A line.\n\n" * 150, "delta_delay_ms": 50}))
    jump = talk.get("jump-latest")
    expect(talk.turn.live.locator("p").nth(40)).to_be_attached()
    expect(jump).to_be_hidden()
    scroller.hover()

    talk.page.mouse.wheel(0, -400)

    expect(jump).to_be_visible()
    place = scroller.evaluate(PLACE_AT_REST)
    expect(talk.turn.at.locator(".prose p").nth(80)).to_be_attached()  # the turn may be over by now
    assert scroller.evaluate("(node) => node.scrollTop") == place
    jump.click()
    expect(jump).to_be_hidden()
    talk.turn.expect_end("answered")
    expect(talk.turn.outcome).to_be_in_viewport()


def test_content_that_shrinks_for_a_moment_is_not_taken_for_scrolling_up(chat: ChatPage) -> None:
    """Between two frames, where the browser tells of the first change only after the second."""
    is_at_end = chat.page.evaluate(
        """async () => {
          const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
          const [scroller, filler] = [document.getElementById("scroller"), document.createElement("div")];
          const grow = (height) => { filler.style.height = `${height}px`; };
          document.getElementById("transcript").append(filler);
          grow(3000);
          await frame();
          await frame();
          grow(2900);
          await frame();
          grow(3300);
          await frame();
          await frame();
          const distance = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
          filler.remove();
          return distance < 1;
        }"""
    )

    assert is_at_end
    expect(chat.get("jump-latest")).to_be_hidden()


def test_a_long_conversation_comes_in_parts(chat: ChatPage, server: LiveServer) -> None:
    conversation_id = None  # the gateway itself answers what is no command
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30) as http:
        for number in range(21):
            body = {"message": f"/number-{number}", "conversation_id": conversation_id}
            answer = http.post("/chat", json={key: value for key, value in body.items() if value})
            conversation_id = answer.json()["conversation_id"]

    chat.go(f"/#/c/{conversation_id}")

    expect(chat.turns).to_have_count(20)
    expect(chat.turn.message).to_have_text("/number-20")
    expect(chat.turn.outcome).to_be_in_viewport()
    chat.page.locator("#scroller").evaluate("(node) => { node.scrollTop = 0; }")
    expect(chat.turns).to_have_count(21)
    expect(chat.turns.first.locator(".user-text")).to_have_text("/number-0")
    expect(chat.turns.nth(1)).to_be_in_viewport()
    expect(chat.get("show-earlier")).to_have_count(0)
