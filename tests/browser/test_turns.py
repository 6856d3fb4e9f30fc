"""A turn on the page, from the message to its end."""

import os

import pytest
from playwright.sync_api import Route, expect

from gateway.version import VERSION
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import OpenPage
from tests.support.live_server import LiveServer, bash, script

pytestmark = pytest.mark.browser

TEXT = " ".join(f"word{number}" for number in range(120))


def test_text_grows_on_the_page_before_the_turn_is_over(talk: ChatPage) -> None:
    turn = talk.ask(script({"text": TEXT, "delta_delay_ms": 100}))

    turn.expect_end("answered")
    expect(turn.reply).to_have_text(TEXT)
    expect(turn.live).to_have_count(0)
    seen = talk.text_seen
    assert len(seen) >= 2  # a busy machine paints seldom
    assert seen == sorted(seen, key=len)
    assert all(TEXT.startswith(text) for text in seen)
    assert len(seen[0]) < len(TEXT) / 2


def test_a_tool_call_is_shown_while_it_runs_and_then_how_it_went(
    talk: ChatPage, server: LiveServer
) -> None:
    """A pipe makes the real tool wait until somebody writes into it."""
    os.mkfifo(server.workspace / "pipe")

    talk.send(script(bash("cat pipe"), {"text": "Read."}))

    call = talk.turn.tools
    expect(call).to_have_attribute("data-status", "running")
    expect(call).to_contain_text("Bash")
    expect(call).to_contain_text("cat pipe")
    expect(talk.turn.outcome).to_have_count(0)
    with (server.workspace / "pipe").open("w", encoding="utf-8") as pipe:
        pipe.write("out of the pipe")
    talk.turn.expect_end("answered")
    expect(call).to_have_attribute("data-status", "ok")
    call.get_by_role("button").click()
    expect(call).to_contain_text("out of the pipe")
    expect(call.locator(".tool-head")).to_have_attribute("aria-expanded", "true")


def test_thoughts_are_put_away_and_open_on_request(talk: ChatPage) -> None:
    turn = talk.ask(script({"thinking": "Consider the lamp.", "text": "Lit."}))

    thoughts = turn.at.locator(".thinking-text")
    expect(turn.reply).to_have_text("Lit.")
    expect(thoughts).to_be_hidden()
    turn.at.get_by_test_id("thinking").locator("summary").click()
    expect(thoughts).to_have_text("Consider the lamp.")


def test_the_page_works_behind_a_path(open_page: OpenPage, server: LiveServer) -> None:
    """A proxy that strips a prefix, played by the browser."""
    chat = open_page()
    foreign: list[str] = []

    def strip(route: Route) -> None:
        path = route.request.url.removeprefix(server.url)
        # the icon of the page before may still be on its way
        if not path.startswith("/candor/") and "favicon" not in path:
            foreign.append(path)
        route.fulfill(response=route.fetch(url=server.url + path.removeprefix("/candor")))

    chat.page.route(f"{server.url}/**", strip)
    chat.page.goto(f"{server.url}/candor/")
    chat.ask("/path-is-longer").expect_end("answered")
    chat.page.reload()

    expect(chat.turn.message).to_have_text("/path-is-longer")
    assert chat.page.url.startswith(f"{server.url}/candor/#/c/")
    assert foreign == []
    chat.page.goto(
        "about:blank"
    )  # before the routes go, so that no question of the page misses them
    chat.page.unroute_all(behavior="ignoreErrors")


def test_the_page_says_that_a_demo_model_answers_until_that_is_put_away(
    open_page: OpenPage,
) -> None:
    chat = open_page()
    banner = chat.get("demo-banner")
    expect(banner).to_contain_text("candor-demo")
    expect(banner).to_contain_text("scripted")
    banner.locator("summary").click()
    expect(banner).to_contain_text("ANTHROPIC_API_KEY")

    banner.get_by_role("button", name="Dismiss").click()
    chat.page.reload()

    expect(chat.page.locator(".model-name")).to_have_text("candor-demo · demo")
    expect(chat.page.locator("#version")).to_have_text(VERSION)
    expect(banner).to_have_count(0)


def test_what_is_typed_before_the_script_is_there_stays(open_page: OpenPage) -> None:
    chat = open_page()
    held: list[Route] = []
    chat.page.route("**/bundle.js", lambda route: held.append(route))  # noqa: PLW0108  Playwright marks it
    chat.page.reload(wait_until="commit")
    chat.composer.press_sequentially("early")
    expect(chat.get("send")).to_be_disabled()

    held[0].continue_()

    expect(chat.get("send")).to_be_enabled()
    expect(chat.composer).to_have_value("early")
    expect(chat.get("welcome")).to_be_visible()
