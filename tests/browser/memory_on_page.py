"""The memory of a conversation as the page shows it and as the server stores it, and calls about cases."""

from typing import Any

import httpx
from playwright.sync_api import Locator, Route, expect

from tests.browser.chat_page import ChatPage
from tests.support.live_server import DEADLINE_S, LiveServer

SEARCH, UPSERT, FEEDBACK, RENDER = (
    f"mcp__memory_case__memory_case_{does}" for does in ("search", "upsert", "feedback", "render")
)
CASE = {
    "symptom_summary": "Uploads of receipts end with 413 since the proxy was changed.",
    "diagnosis": "The new proxy takes bodies of at most 1 MB; receipts are photographs of 4 MB.",
    "root_cause": "client_max_body_size of the proxy is smaller than what is sent.",
    "resolution": "Raised client_max_body_size to 16 MB; uploads pass.",
    "confidence": 0.8,
    "metadata": {"failure_layer": "network", "middleware": "nginx"},
}


class MemoryOnPage:
    """The button in the top bar and its dialog."""

    def __init__(self, chat: ChatPage) -> None:
        self.chat = chat
        self.button = chat.get("memory-button")
        self.form = chat.get("memory-form")
        self.error = self.form.get_by_test_id("error-line")

    def open(self) -> None:
        """Press the button."""
        self.button.click()
        expect(self.form).to_be_visible()

    def switch(self, name: str) -> Locator:
        """Find a switch by its name."""
        return self.form.get_by_role("switch", name=name, exact=True)

    def field(self, name: str) -> Locator:
        """Find a field by its name."""
        return self.form.get_by_role("textbox", name=name, exact=True)

    def press_save(self) -> None:
        """Press the button that saves, whatever comes of it."""
        self.chat.get("memory-save").click()

    def save(self) -> None:
        """Save, and see the dialog go and the focus come back."""
        self.press_save()
        expect(self.form).to_have_count(0)
        expect(self.button).to_be_focused()

    def sent(self) -> list[Any]:
        """Return a list to which the body of every later change is added."""
        bodies: list[Any] = []
        self.chat.page.on(
            "request",
            lambda asked: bodies.append(asked.post_data_json) if asked.method == "PATCH" else None,
        )
        return bodies


def stored(server: LiveServer, conversation_id: str) -> dict[str, Any]:
    url = f"{server.url}/conversations/{conversation_id}"
    answer = httpx.get(url, timeout=DEADLINE_S, trust_env=False).json()
    return {name: answer[name] for name in ("memory", "app_code", "environment")}


def change(server: LiveServer, conversation_id: str, **fields: Any) -> None:
    url = f"{server.url}/conversations/{conversation_id}"
    answer = httpx.patch(url, json=fields, timeout=DEADLINE_S, trust_env=False)
    assert answer.status_code == 200


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": name, "input": arguments}


def head_of(tool: Locator) -> tuple[str, str]:
    """Return a tool call's line: what it did, and with what."""
    return tool.locator(".tool-name").inner_text(), tool.locator(".tool-summary").inner_text()


def refuse_changes(route: Route) -> None:
    """Answer as a gateway does whose store cannot be written."""
    if route.request.method != "PATCH":
        route.fallback()
        return
    error = {"code": "unavailable", "message": "The store cannot be written now."}
    error |= {"retryable": True, "request_id": "req_1", "details": {}}  # type: ignore[dict-item]
    route.fulfill(status=503, json={"error": error})
