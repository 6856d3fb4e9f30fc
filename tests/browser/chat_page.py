"""The chat page as a person sees it, and a witness to what its browser says meanwhile."""

import re
from dataclasses import dataclass, field

import httpx
from playwright.sync_api import (
    ConsoleMessage,
    Dialog,
    Error,
    Locator,
    Page,
    Request,
    Response,
    expect,
)

from tests.support.live_server import DEADLINE_S, LiveServer

_NETWORK = "Failed to load resource"
"""How a browser reports each answer that is no success; the page tells people of them itself."""

WATCH_TEXT = """
  window.textSeen = [];
  new MutationObserver(() => {
    const text = [...document.querySelectorAll(".live")].at(-1)?.textContent.trim();
    if (text && text !== window.textSeen.at(-1)) window.textSeen.push(text);
  }).observe(document, { childList: true, subtree: true, characterData: true });
"""
"""Runs in each page before anything else: notes every state of the text that is being written."""


@dataclass  # without slots: Playwright notes its listeners on the object
class Witness:
    """What must never happen while the page is used."""

    origin: str
    complaints: list[str] = field(default_factory=list)
    """Console errors and warnings, uncaught exceptions, violations of the content policy."""
    dialogs: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Requests to anywhere but the server."""
    failed_requests: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """What was asked of the server, with the answers' status."""
    network_may_fail: bool = False
    """Set by a test that takes the server away or is refused by it."""

    def watch(self, page: Page) -> None:
        """Listen to a page, and to nothing twice."""
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("dialog", self._dismiss)
        page.on("request", self._see)
        page.on("response", self._note)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        heard = self.failed_requests if message.text.startswith(_NETWORK) else self.complaints
        heard.append(f"{message.type}: {message.text}")

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _see(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:", f"blob:{self.origin}/")):
            self.strangers.append(request.url)

    def _note(self, response: Response) -> None:
        address = response.url.removeprefix(self.origin)
        if not address.startswith("/static/"):
            self.requests.append(f"{response.request.method} {address} {response.status}")

    def judge(self) -> None:
        """Fail where something was seen that should not have been; then forget it."""
        failed = [] if self.network_may_fail else self.failed_requests
        faults = [*self.complaints, *self.dialogs, *self.strangers, *failed]
        self.forget()
        assert not faults, faults

    def forget(self) -> None:
        """Begin anew."""
        for seen in (self.complaints, self.dialogs, self.strangers, self.failed_requests):
            seen.clear()
        self.network_may_fail = False


class ChatPage:
    """One tab with the chat page open."""

    def __init__(self, page: Page, witness: Witness) -> None:
        self.page = page
        self.witness = witness

    def get(self, test_id: str) -> Locator:
        """Find by test id."""
        return self.page.get_by_test_id(test_id)

    @property
    def composer(self) -> Locator:
        """The message box."""
        return self.get("composer")

    @property
    def outcomes(self) -> Locator:
        """The word on how each finished turn ended."""
        return self.get("outcome")

    @property
    def turns(self) -> Locator:
        """The turns shown, oldest first."""
        return self.page.locator(".turn")

    @property
    def turn(self) -> "TurnOnPage":
        """The latest turn."""
        return TurnOnPage(self.turns.last)

    @property
    def items(self) -> Locator:
        """The conversations listed."""
        return self.get("conversation-item")

    @property
    def open_item(self) -> Locator:
        """The listed conversation that is open."""
        return self.items.filter(has=self.page.locator("[aria-current=page]"))

    @property
    def conversation_id(self) -> str:
        """The open conversation, from the address."""
        found = re.search(r"#/c/(\w+)(?:/\w+)?$", self.page.url)
        assert found is not None, f"no conversation in {self.page.url}"
        return found[1]

    def describe(self) -> str:
        """Describe the page and its last requests, for a failed test."""
        try:
            turn = self.turns.last.inner_text(timeout=1000) if self.turns.count() else "no turn"
            said = self.page.locator("#connection, #error-slot").all_inner_texts()
        except Error as exc:
            return f"{self.page.url}: {exc}"
        asked = "\n".join(self.witness.requests[-20:])
        return f"{self.page.url} {said}\n{turn[-2000:]}\n\n{asked}"

    @property
    def text_seen(self) -> list[str]:
        """Every state that the text of a turn was seen in while it was being written."""
        seen: list[str] = self.page.evaluate("window.textSeen")
        return seen

    def go(self, address: str) -> None:
        """Go to an address without loading the page anew, as the browser's own buttons do."""
        self.page.evaluate(
            (
                "(address) => { history.pushState(null, '', address); dispatchEvent(new "
                "PopStateEvent('popstate')); }"
            ),
            address,
        )

    def go_to_start(self) -> None:
        """Go back to the empty conversation."""
        self.go("/")
        expect(self.get("welcome")).to_be_visible()
        self.composer.fill("")

    def open_made(self, server: LiveServer, title: str) -> None:
        """Make a conversation without a message, which costs no agent, and open it."""
        body = {"title": title}
        url = f"{server.url}/new-conversation"
        answer = httpx.post(url, json=body, timeout=DEADLINE_S, trust_env=False)
        self.go(f"/#/c/{answer.json()['conversation_id']}")
        self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(self.page.locator("#title")).to_have_text(title)
        expect(self.open_item).to_contain_text(title)  # which moves the other ones in the list

    def send(self, text: str) -> None:
        """Type a message and press Enter."""
        self.composer.fill(text)
        self.composer.press("Enter")

    def ask(self, text: str) -> "TurnOnPage":
        """Send a message and wait for the end of its turn."""
        before = self.turns.last.get_attribute("data-turn-id") if self.turns.count() else None
        self.page.evaluate("window.textSeen = []")
        self.send(text)
        if before is not None:  # the same may have been asked before
            expect(self.turns.last).not_to_have_attribute("data-turn-id", before)
        expect(self.turn.message).to_have_text(text)  # the turns of before may still be coming in
        expect(self.turn.outcome).to_be_visible()
        return self.turn

    def start_new(self) -> None:
        """Start a new conversation and wait for its empty page."""
        self.get("new-conversation").click()
        expect(self.get("welcome")).to_be_visible()

    def item(self, title: str) -> Locator:
        """Find a listed conversation by a part of its title."""
        return self.items.filter(has_text=title)

    def act_on_item(self, title: str, action: str) -> None:
        """Press a button that shows when the pointer is over a listed conversation."""
        self.item(title).hover()
        self.item(title).get_by_test_id(action).click()


@dataclass(frozen=True, slots=True)
class TurnOnPage:
    """One turn: a message, and what came of it."""

    at: Locator

    @property
    def message(self) -> Locator:
        """What the person wrote."""
        return self.at.locator(".user-text")

    @property
    def live(self) -> Locator:
        """The text while it is being written."""
        return self.at.locator(".live")

    @property
    def reply(self) -> Locator:
        """The text once the turn is over."""
        return self.at.locator(".reply")

    @property
    def closing(self) -> Locator:
        """The gateway's own words at the end."""
        return self.at.get_by_test_id("closing")

    @property
    def tools(self) -> Locator:
        """The tool calls."""
        return self.at.get_by_test_id("tool-call")

    @property
    def approval(self) -> Locator:
        """What a person is, or was, asked about its tool calls."""
        return self.at.get_by_test_id("approval")

    @property
    def notices(self) -> Locator:
        """What the gateway has to add."""
        return self.at.get_by_test_id("notice")

    @property
    def outcome(self) -> Locator:
        """How it ended."""
        return self.at.get_by_test_id("outcome")

    def expect_end(self, outcome: str, stop_reason: str = "end_turn") -> None:
        """Wait for the end, which must be this one."""
        expect(self.outcome).to_have_attribute("data-outcome", outcome)
        expect(self.outcome).to_have_attribute("data-stop-reason", stop_reason)
