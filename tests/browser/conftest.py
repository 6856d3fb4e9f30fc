"""A real browser on the page of a real server: real agent process, demo model, nothing faked.

Browser, server and two tabs are shared, because each costs a second or more. What the witness of a
tab saw is judged after each test.
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.chat_page import WATCH_TEXT, ChatPage, Witness
from tests.support.live_server import LiveServer, started_server

HERE = Path(__file__).parent
WAIT_MS = 15_000
"""Only ever reached when nothing comes."""
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name is looked up and no address but this machine's is reached, whatever a page may try.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
DESKTOP: dict[str, Any] = {
    "viewport": {"width": 1280, "height": 800},
    "locale": "en-US",
    "reduced_motion": "reduce",  # nobody watches, and animations cost half a processor
}
# The demo model pauses only where a script says so, and no agent is started that nobody needs.
SETTINGS: dict[str, Any] = {"demo_cadence_ms": 0, "shutdown_grace_s": 1, "wake_opened": "off"}

FORBID_STORAGE = """
  const refuse = () => { throw new DOMException("The operation is insecure.", "SecurityError"); };
  for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { get: refuse });
  window.BroadcastChannel = class { constructor() { refuse(); } };
"""
"""Runs in a page before anything else: the page is refused as Firefox refuses it with cookies blocked."""

FAILED = pytest.StashKey[bool]()
# The page shows the latest 20 turns; a test that counts them shall not meet that.
MANY_TURNS = 14
OpenPage = Callable[..., ChatPage]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests, and say why, where there is no browser."""
    if _browser_path():
        return
    skip = pytest.mark.skip(reason="no Chrome or Chromium: CANDOR_TEST_BROWSER names none")
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(skip)


def _browser_path() -> str:
    return os.environ.get("CANDOR_TEST_BROWSER", "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, Any]:
    """Note for the fixtures whether their test has failed, and what there was to see."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
        given = getattr(item, "funcargs", {}).values()
        report.sections += [
            ("the page", page.describe()) for page in given if isinstance(page, ChatPage)
        ]
        servers = [server for server in given if isinstance(server, LiveServer)]
        report.sections += [
            ("the server", server.err_file.read_text("utf-8")) for server in servers
        ]
    return report


@pytest.fixture(autouse=True)
def _blocking_calls_fail() -> None:
    """The loop in this process is Playwright's own; the server's is in another process."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The browser that `make test` found."""
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_browser_path(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The server that most tests share."""
    with started_server(tmp_path_factory.mktemp("server"), **SETTINGS) as server:
        yield server


@contextmanager
def tab(browser: Browser, url: str, address: str = "/", **window: Any) -> Iterator[ChatPage]:
    """Open the page in a window of its own, in which nothing is stored."""
    context = browser.new_context(**DESKTOP | window)
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(WATCH_TEXT)
    chat = ChatPage(context.new_page(), Witness(url))
    chat.witness.watch(chat.page)
    try:
        chat.page.goto(url + address)
        yield chat
    finally:
        context.close()


@pytest.fixture
def open_page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[OpenPage]:
    """Opens a window of its own: `open_page(address, url=other_server, **window_options)`."""
    with ExitStack() as windows:
        opened: list[ChatPage] = []

        def open_(address: str = "/", *, url: str | None = None, **window: Any) -> ChatPage:
            url = url or request.getfixturevalue("server").url
            opened.append(windows.enter_context(tab(browser, url, address, **window)))
            return opened[-1]

        yield open_
        for chat in opened:
            chat.witness.judge()


@pytest.fixture(scope="package")
def shared_tabs(browser: Browser, server: LiveServer) -> Iterator[dict[str, ChatPage]]:
    """The tabs that `chat` and `talk` give."""
    with tab(browser, server.url) as one, tab(browser, server.url) as other:
        yield {"chat": one, "talk": other}


@contextmanager
def borrowed(request: pytest.FixtureRequest, chat: ChatPage) -> Iterator[ChatPage]:
    """Lend a shared tab to a test; after a failure the tab is reset."""
    yield chat
    if request.node.stash.get(FAILED, False):
        chat.page.goto(chat.witness.origin)
        chat.witness.forget()
    chat.witness.judge()


@pytest.fixture
def chat(request: pytest.FixtureRequest, shared_tabs: dict[str, ChatPage]) -> Iterator[ChatPage]:
    """The page as it is when it is opened: an empty conversation."""
    with borrowed(request, shared_tabs["chat"]) as chat:
        chat.go_to_start()
        yield chat


@pytest.fixture
def talk(request: pytest.FixtureRequest, shared_tabs: dict[str, ChatPage]) -> Iterator[ChatPage]:
    """The page in a conversation that other tests have used: cheaper, where that makes no difference."""
    with borrowed(request, shared_tabs["talk"]) as talk:
        if talk.turns.count() > MANY_TURNS:
            talk.go_to_start()
        yield talk


@pytest.fixture(scope="package")
def asking_server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("asking"), approvals="on", **SETTINGS) as server:
        yield server


@pytest.fixture(scope="package")
def asking_tab(browser: Browser, asking_server: LiveServer) -> Iterator[ChatPage]:
    with tab(browser, asking_server.url) as chat:
        yield chat


@pytest.fixture
def asked(asking_tab: ChatPage) -> Iterator[ChatPage]:
    """The page of a server that asks, in a conversation that other tests have used."""
    yield asking_tab
    asking_tab.witness.judge()
