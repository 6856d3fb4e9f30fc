"""The chat page in Chromium: first load, reload, first interaction, streaming, scrolling, long Markdown.

The server is `app.py demo` on loopback; the browser is the one of the browser tests
(`CANDOR_TEST_BROWSER`). Deltas are timed from the moment their bytes reach the page's script to the
first frame after which the text stands in the document. Long frames are gaps of more than 50 ms between
two animation frames.
"""

import json
import os
import sqlite3
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from playwright.async_api import Browser, BrowserContext, CDPSession, Page, async_playwright

from bench.report import median, percentile, save, show
from gateway.conversations import migrations
from gateway.ids import LOCAL_USER
from gateway.jsonsafe import json_text
from memory.stores.sqlite.database import migrations_of, open_database
from tests.support.live_server import LiveServer, running_server, script

TURNS: Final = 1000
REPLY_CHARS: Final = 10_000
THROTTLE: Final = 4
DELTAS: Final = 500
DELTAS_PER_SECOND: Final = 50
SCROLL_S: Final = 15
_AT: Final = "2026-11-20T12:00:00.000Z"
_LONG: Final = "cnv_long"
_PARAGRAPH: Final = (
    "The pool of connections was **exhausted** by a retry without a limit; see `pool.py` and"
    " [the notes](notes/pool.md).\n\n- one *item*\n- another\n\n```python\ndef retry(times: int = 3)"
    " -> None:\n    for _ in range(times):\n        call()\n```\n\n| when | what |\n| - | -: |\n"
    "| 09:30 | 12 |\n| 09:40 | 400 |\n\n"
)

_TIMER = """
  const asked = window.fetch;
  window.arrivals = [];
  window.painted = [];
  window.fetch = async (...given) => {
    const response = await asked(...given);
    if (!String(given[0]).endsWith("/chat/stream")) return response;
    const [seen, kept] = response.body.tee();
    (async () => {
      const decoder = new TextDecoder();
      let [rest, length] = ["", 0];
      for await (const bytes of seen) {
        const now = performance.now();
        const events = (rest + decoder.decode(bytes, { stream: true })).split("\\n\\n");
        rest = events.pop();
        for (const event of events) {
          if (!event.includes("event: text.delta")) continue;
          length += JSON.parse(event.slice(event.indexOf("data: ") + 6)).text.replace(/\\s/g, "").length;
          window.arrivals.push([now, length]);
        }
      }
    })();
    return new Response(kept, response);
  };
  const look = () => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      const shown = [...document.querySelectorAll(".live, .reply")].at(-1)?.textContent.replace(/\\s/g, "").length ?? 0;
      if (shown) window.painted.push([performance.now(), shown]);
      look();
    };
    channel.port2.postMessage(null);
  });
  look();
"""

_SCROLL = """async (seconds) => {
  const scroller = document.getElementById("scroller");
  const gaps = [];
  let [last, turns] = [performance.now(), new Set()];
  const end = last + seconds * 1000;
  for (;;) {
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
    if (now > end) break;
    scroller.scrollBy(0, -240);
    for (const turn of document.querySelectorAll(".turn")) turns.add(turn.dataset.turnId);
  }
  return { gaps: gaps.slice(1), turns: turns.size };
}"""

_RENDER = """async (text) => {
  const module = [...document.scripts].map(({ src }) => src).find((src) => src.endsWith("main.js"));
  const { renderProse } = await import(module ? new URL("prose.js", module) : "./static/prose.js");
  const host = document.createElement("div");
  host.className = "prose";
  document.getElementById("transcript").append(host);
  const tasks = [];
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ["longtask"] });
  const begin = performance.now();
  host.append(renderProse(text));
  while (host.lastChild.nodeType === Node.COMMENT_NODE) await new Promise((done) => { setTimeout(done, 20); });
  const whole = performance.now() - begin;
  await new Promise((done) => { setTimeout(done, 1000); });
  host.remove();
  return { whole, longest: Math.max(0, ...tasks) };
}"""


async def run(rounds: int) -> None:
    if not (path := os.environ.get("CANDOR_TEST_BROWSER")):
        print("The page: skipped, because CANDOR_TEST_BROWSER names no browser.\n")
        return
    rounds = min(rounds, 5)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        await _fill(directory)
        async with (
            running_server(directory, demo_cadence_ms=0, record="off") as server,
            async_playwright() as play,
        ):
            browser = await play.chromium.launch(executable_path=path, args=["--no-sandbox"])
            figures = {
                **await _loads(browser, server, rounds),
                **await _interaction(browser, server, rounds),
                **await _deltas(browser, server),
                **await _scroll(browser, server),
                **await _markdown(browser, server),
            }
            await browser.close()
    show("The page", ["figure", "value"], [[k, f"{v:.1f}"] for k, v in figures.items()])
    save("page", figures)


async def _opened(browser: Browser) -> tuple[BrowserContext, Page]:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    return context, await context.new_page()


async def _loads(browser: Browser, server: LiveServer, rounds: int) -> dict[str, float]:
    """Load and reload: the requests that reach the server, their bytes as sent, and the time to the page."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        context, page = await _opened(browser)
        sent = await _bytes_sent(await context.new_cdp_session(page))
        for kind in ("first load", "reload"):
            sent.clear()
            await (page.goto(server.url) if kind == "first load" else page.reload())
            await page.get_by_test_id("welcome").wait_for()
            shown = await page.evaluate("performance.now()")
            await page.wait_for_load_state("networkidle")
            figures = {
                "requests": len(sent),
                "kB": sum(sent.values()) / 1000,
                "ms to the page": shown,
            }
            for figure, value in figures.items():
                found.setdefault(f"{kind}, {figure}", []).append(value)
        await context.close()
    return {kind: median(values) for kind, values in found.items()}


async def _bytes_sent(devtools: CDPSession) -> dict[str, float]:
    """Return the bytes of each response that the network, not a cache, brings from now on."""
    sent: dict[str, float] = {}

    def finished(event: dict[str, Any]) -> None:
        if event["encodedDataLength"] > 0:
            sent[event["requestId"]] = event["encodedDataLength"]

    devtools.on("Network.loadingFinished", finished)
    await devtools.send("Network.enable")
    return sent


async def _interaction(browser: Browser, server: LiveServer, rounds: int) -> dict[str, float]:
    """From navigation to a typed letter that the page has taken, on a slowed processor."""
    times = []
    for _ in range(rounds):
        context, page = await _opened(browser)
        devtools = await context.new_cdp_session(page)
        await devtools.send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})
        await page.goto(server.url, wait_until="commit")
        await page.get_by_test_id("composer").press("a")
        await page.locator("[data-testid=send]:enabled").wait_for()
        times.append(await page.evaluate("performance.now()"))
        await context.close()
    return {f"first interaction at {THROTTLE}x throttle, ms": median(times)}


async def _deltas(browser: Browser, server: LiveServer) -> dict[str, float]:
    context, page = await _opened(browser)
    await page.add_init_script(_TIMER)
    await page.goto(server.url)
    text = " ".join(f"word{number:04}" for number in range(DELTAS))
    step = {"text": text, "delta_delay_ms": 1000 // DELTAS_PER_SECOND}
    await page.get_by_test_id("composer").fill(script(step))
    await page.get_by_test_id("composer").press("Enter")
    await page.get_by_test_id("outcome").wait_for(timeout=120_000)
    arrivals, painted = await page.evaluate("[window.arrivals, window.painted]")
    await context.close()
    delays = [
        next((when for when, shown in painted if shown >= length), arrived + 1e6) - arrived
        for arrived, length in arrivals
    ]
    rate = len(arrivals) / (arrivals[-1][0] - arrivals[0][0]) * 1000
    return {
        "deltas a second": rate,
        "delta to visible text, p50 ms": percentile(delays, 0.5),
        "delta to visible text, p95 ms": percentile(delays, 0.95),
    }


async def _scroll(browser: Browser, server: LiveServer) -> dict[str, float]:
    context, page = await _opened(browser)
    await page.goto(f"{server.url}/#/c/{_LONG}")
    await page.locator(".turn").last.wait_for()
    await page.wait_for_timeout(1000)
    seen: dict[str, Any] = await page.evaluate(_SCROLL, SCROLL_S)
    await context.close()
    gaps: list[float] = seen["gaps"]
    return {
        "scrolling, turns passed": seen["turns"],
        "scrolling, frames a second": len(gaps) / sum(gaps) * 1000,
        "scrolling, frame p95 ms": percentile(gaps, 0.95),
        "scrolling, long frames": sum(gap > 50 for gap in gaps),
        "scrolling, longest frame ms": max(gaps),
    }


async def _markdown(browser: Browser, server: LiveServer) -> dict[str, float]:
    context, page = await _opened(browser)
    await page.goto(server.url)
    text = (_PARAGRAPH * (200_000 // len(_PARAGRAPH) + 1))[:200_000]
    await page.evaluate(_RENDER, "warm up")
    found: dict[str, float] = await page.evaluate(_RENDER, text)
    items = "".join(f"- item {number} with words and `code`\n" for number in range(5400))
    one_list: dict[str, float] = await page.evaluate(_RENDER, items)
    await context.close()
    return {
        "200 kB in one list, longest task ms": one_list["longest"],
        "200 kB of Markdown, longest task ms": found["longest"],
        "200 kB of Markdown, all of it after ms": found["whole"],
    }


async def _fill(directory: Path) -> None:
    """Write a conversation of long replies into the database of a server that has not run yet."""
    await anyio.Path(directory / "data").mkdir(mode=0o700, parents=True)
    file = directory / "data" / "candor.sqlite3"
    database = await open_database(file, migrations_of(migrations.__name__))
    reply = _PARAGRAPH * (REPLY_CHARS // len(_PARAGRAPH))
    await database.write(partial(_fill_blocking, reply))
    await database.close()


def _fill_blocking(reply: str, writer: sqlite3.Connection) -> None:
    writer.execute(
        "INSERT INTO conversations (id, user_id, title, created_at, last_activity_at)"
        " VALUES (?, ?, 'A long conversation', ?, ?)",
        (_LONG, LOCAL_USER, _AT, _AT),
    )
    writer.executemany(
        "INSERT INTO turns (id, conversation_id, user_id, seq, state, message, created_at)"
        " VALUES (?, ?, ?, ?, 'running', ?, ?)",
        [(f"trn_{n}", _LONG, LOCAL_USER, n, f"question {n}", _AT) for n in range(1, TURNS + 1)],
    )
    result = {
        "reply": reply,
        "outcome": "answered",
        "tools": [],
        "notices": [],
        "memory": {"injected": [], "suppressed": [], "degraded": [], "saved": []},
    }
    writer.execute(
        "UPDATE turns SET state = 'completed', started_at = :at, finished_at = :at, session_id = 's',"
        " last_entry_id = 'e', result = json_set(:result, '$.turn_id', id, '$.conversation_id',"
        " conversation_id)",
        {"at": _AT, "result": json_text(json.loads(json.dumps(result)))},
    )
