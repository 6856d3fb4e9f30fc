"""Whatever people, files, tools and models write is shown as text: it never becomes a part of the page.

Each hostile text would leave a mark in the window, open a dialog, or ask another server for
something. The page's own defence comes first; the content policy is the second wall, tested apart.
"""

from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import OpenPage
from tests.support.live_server import DEADLINE_S, LiveServer, bash, script
from tests.support.tables import read_table_text

pytestmark = pytest.mark.browser

IMAGE = "<img src=x onerror=alert(1)>"
SCRIPT = "<script>alert(2)</script>"
HOSTILE = f"{IMAGE}{SCRIPT}<svg onload=alert(3)>"
REPLY = read_table_text("hostile-reply")

# What no text from outside may bring into the document, and where each link leads.
FIND_FOREIGN = """() => {
  const foreign = "#transcript :is(script, iframe:not([sandbox='allow-scripts']), object, embed, style, link, form, img:not(.welcome-mark), svg:not(.icon), math, base, meta, video, audio, input, [style]:not(iframe)), dialog :is(script, iframe, img, style, form)";
  const found = [...document.querySelectorAll(foreign)].map((node) => node.outerHTML);
  const handlers = [...document.querySelectorAll("*")].filter((node) => [...node.attributes].some(({ name }) => name.startsWith("on")));
  const links = [...document.querySelectorAll("#transcript a[href]:not(.note-link)")]
    .map((link) => [link, link.getAttribute("href")])
    .filter(([link, href]) => !(link.closest('[data-testid="memory"]') && /^#\\/c\\/cnv_[a-z0-9]+(\\/trn_[a-z0-9]+)?$/.test(href)))
    .map(([, href]) => href);
  return { found, handlers: handlers.map((node) => node.outerHTML), links };
}"""

INERT = [
    *("javascript:alert(40)", "JaVaScRiPt:alert(41)", "&#106;avascript:alert(42)"),
    *("java&Tab;script:alert(43)", "java&NewLine;script:alert(44)", "javascript&colon;alert(45)"),
    *("&#x01;javascript:alert(46)", "java%0ascript:alert(47)", "javascript:mailto:alert(48)"),
    *("data:text/html,x", "DATA:text/html;base64,eA==", "&#100;ata:text/html,x"),
    *("vbscript:x", "VBScript:x", "vbscript&#58;x", "file:///etc/passwd", "FILE:///x"),
    *(
        "file&colon;///x",
        "blob:x",
        "about:blank",
        "ftp://x.example",
        "view-source:x",
    ),
    *("mailto&#0;x", "xmailto:a@b.example", "sms:+1", "ssh://x", "//x.example"),
]
LEADING = [
    "https://x.example/",
    "HTTP://x.example/",
    "mailto:a@b.example",
    "MailTo:a@b.example",
    "tel:+1",
]
# Where a link of Markdown to each address leads, and one of HTML that only the sanitizer sees.
LINKED = """async (addresses) => {
  const { parseBlocks, renderBlock } = await import("/static/markdown.js");
  const leading = (fragment) => [...fragment.querySelectorAll("[href], [src], [action]")].map((link) => link.getAttribute("href"));
  const written = addresses.flatMap((address) => {
    const env = {};
    const text = `[a](${address}) [b][1] <${address}>\\n\\n[1]: ${address}`;
    const found = parseBlocks(text, env).flatMap(({ tokens }) => leading(renderBlock(tokens, env)));
    return [...new Set(found)];
  });
  const html = (address) => [{ type: "html_block", content: `<a href="${address}">a</a><img src="${address}"><form action="${address}"></form>` }];
  return { written, sanitized: addresses.flatMap((address) => leading(renderBlock(html(address), {}))) };
}"""


def expect_only_text(chat: ChatPage, *, links: tuple[str, ...] = ()) -> None:
    found: dict[str, Any] = chat.page.evaluate(FIND_FOREIGN)
    assert found == {"found": [], "handlers": [], "links": list(links)}


def test_a_title_is_shown_as_it_was_typed(chat: ChatPage, server: LiveServer) -> None:
    chat.open_made(server, "my title is plain")
    title = f"renamed {HOSTILE}"

    chat.act_on_item("my title is plain", "rename")
    chat.get("rename-input").fill(title)
    chat.get("rename-input").press("Enter")

    expect(chat.open_item).to_contain_text(title)
    expect(chat.page).to_have_title(f"{title} · Candor")
    expect(chat.page.locator("#title")).to_have_text(title)
    chat.act_on_item(title, "delete")
    expect(chat.page.locator("dialog")).to_contain_text(title)
    expect_only_text(chat)
    chat.page.keyboard.press("Escape")
    chat.get("details-button").click()
    chat.get("details-model").fill(HOSTILE)
    chat.get("details-save").click()
    expect(chat.get("details-button")).to_contain_text(HOSTILE)
    chat.get("search").fill(f"no {title}")
    expect(chat.page.locator("#conversation-list-end")).to_contain_text(title)
    expect_only_text(chat)
    chat.get("search").fill("")


def test_messages_and_names_and_contents_of_files_are_shown_as_they_are(
    chat: ChatPage, server: LiveServer
) -> None:
    coloured = f"{HOSTILE}\x1b[31m{SCRIPT}\x1b]8;;javascript:alert(2)\x07{IMAGE}\x1b]8;;\x07"
    (server.workspace / IMAGE).write_text(coloured, encoding="utf-8")
    path = {"file_path": IMAGE}

    turn = chat.ask(
        script(
            *(bash("ls"), bash(f"cat '{IMAGE}'"), bash(f"cat '{IMAGE}.not'")),
            bash("ls notes\u202etxt.sh"),
            {"tool": "Read", "input": path},
            {"tool": "Grep", "input": {"pattern": "img", "output_mode": "content"}},
            {"tool": "Edit", "input": {**path, "old_string": SCRIPT, "new_string": IMAGE}},
            {"tool": "Edit", "input": {**path, "old_string": HOSTILE, "new_string": SCRIPT}},
            {"thinking": HOSTILE},
            say=HOSTILE,
        )
    )

    expect(turn.message).to_contain_text(HOSTILE)
    chat.get("search").fill(HOSTILE)
    expect(chat.open_item.get_by_test_id("item-match")).to_contain_text(HOSTILE)
    chat.get("search").fill("")
    expect(turn.tools.nth(1)).to_contain_text(f"cat '{IMAGE}'")
    expect(turn.tools.nth(3)).to_contain_text("notes⟨U+202E⟩txt.sh")
    for call in turn.tools.all():
        call.locator(".tool-head").click()
    expect(turn.tools.nth(0)).to_contain_text(IMAGE)
    expect(turn.tools.nth(1)).to_contain_text(HOSTILE)
    expect(turn.tools.nth(2)).to_have_attribute("data-status", "failed")
    turn.at.get_by_test_id("thinking").locator("summary").click()
    expect(turn.at.locator(".thinking-text")).to_have_text(HOSTILE)
    turn.at.get_by_test_id("log-link").click()
    for line in chat.get("log-dialog").locator(".log-line summary").all():
        line.click()
    expect(chat.get("log-dialog").get_by_text(IMAGE).first).to_be_visible()
    expect_only_text(chat)
    chat.page.keyboard.press("Escape")


def test_a_reply_cannot_bring_scripts_pictures_or_false_links(chat: ChatPage) -> None:
    """Neither while it is being written nor when it is whole."""
    chat.send(script({"text": REPLY, **bash("ls")}, {"hang": True}))
    expect(chat.turn.live).to_contain_text("alert(21)")
    expect(chat.turn.tools).to_have_attribute("data-status", "ok")
    file = "./workspace/file?path=%22onclick%3Dalert%2829%29+x"
    links = (
        *(f"https://elsewhere.example{path}" for path in ("", "/fine", "/pixel.png")),
        f"{file}&conversation_id={chat.conversation_id}",
    )
    expect_only_text(chat, links=links)

    chat.get("stop").click()

    chat.turn.expect_end("interrupted", "user_interrupt")
    expect(chat.turn.reply).to_contain_text("<script>alert(4)</script>")
    expect(chat.turn.reply.locator(".hl-tag").first).to_be_visible()
    expect_only_text(chat, links=links)
    link = chat.turn.reply.get_by_role("link", name="fine")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(link).to_have_attribute("target", "_blank")
    expect(link).to_have_attribute("title", links[1])
    chat.page.reload()
    expect(chat.turn.reply).to_contain_text("<script>alert(4)</script>")
    expect_only_text(chat, links=links)


def test_an_address_cannot_carry_anything_into_the_page(open_page: OpenPage) -> None:
    chat = open_page(f"/?q={IMAGE}#/c/{IMAGE}")

    expect(chat.get("welcome")).to_be_visible()
    expect_only_text(chat)


def test_the_content_policy_would_stop_what_slipped_through(open_page: OpenPage) -> None:
    chat = open_page()
    failed: dict[str, str | None] = {}
    chat.page.on("requestfailed", lambda one: failed.update({one.url: one.failure}))
    answer = httpx.get(chat.page.url, timeout=DEADLINE_S, trust_env=False)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy

    chat.page.evaluate(
        """(html) => {
          window.stopped = [];
          document.addEventListener("securitypolicyviolation", (event) => {
            window.stopped.push(event.effectiveDirective);
            document.body.dataset.stopped = [...new Set(window.stopped)].sort().join(" ");
          });
          document.body.insertAdjacentHTML("beforeend", html);
          const script = document.createElement("script");
          script.textContent = "alert('inline')";
          document.body.append(script);
          fetch("https://elsewhere.example/").catch(() => {});
        }""",
        '<img src="https://elsewhere.example/x.png" onerror="alert(24)"><b style="color: red">x</b>',
    )

    expect(chat.page.locator("body")).to_have_attribute(
        "data-stopped", "connect-src img-src script-src-attr script-src-elem style-src-attr"
    )
    # The browser told of each; nothing left the machine and nothing ran.
    assert chat.witness.complaints
    assert all("Content Security Policy" in complaint for complaint in chat.witness.complaints)
    assert {failed.get(stranger) for stranger in chat.witness.strangers} <= {"csp"}
    chat.witness.forget()


def test_no_link_leads_to_an_address_of_another_scheme(talk: ChatPage) -> None:
    """Neither the parser nor, without it, the sanitizer lets one through."""
    through = talk.page.evaluate(LINKED, [*INERT, *LEADING])
    assert through == {"written": LEADING, "sanitized": LEADING}
