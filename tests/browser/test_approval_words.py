"""The words of a refusal that somebody types while what waits changes."""

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Request, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.support.live_server import DEADLINE_S, LiveServer, script, started_server

pytestmark = pytest.mark.browser

QUESTION = {
    "question": "Which?",
    "header": "Which",
    "options": [{"label": "this", "description": "One."}, {"label": "that", "description": "Two."}],
    "multiSelect": False,
}
STILL = "This still waits for you"


def leave_waiting(chat: ChatPage, *names: str) -> list[str]:
    """Start calls that wait in conversations of their own; return the ids."""
    ids = []
    for name in names:
        chat.go_to_start()
        chat.send(f"write x to {name}.txt")
        expect(chat.turn.at.get_by_test_id("approval-allow")).to_be_visible()
        ids.append(chat.conversation_id)
    chat.go_to_start()
    return ids


def answers_of(chat: ChatPage) -> list[str]:
    """Return a list to which each answer given on the page is added."""
    answers: list[str] = []

    def hear(request: Request) -> None:
        if request.method == "POST" and "/approvals/" in request.url:
            answers.append(request.post_data or "")

    chat.page.on("request", hear)
    return answers


def answer_elsewhere(server: LiveServer, conversation_id: str) -> None:
    """Deny what waits in a conversation, as another window does."""
    with httpx.Client(base_url=server.url, timeout=DEADLINE_S, trust_env=False) as client:
        query = {"conversation_id": conversation_id}
        for approval in client.get("/approvals", params=query).json()["approvals"]:
            path = f"/approvals/{approval['approval_id']}"
            client.post(path, json={"decision": "deny"}).raise_for_status()


def list_as_over(chat: ChatPage) -> Callable[[], None]:
    """Return what lets the list say from then on that the time of each call is over."""
    state = {"state": "pending"}

    def fulfill(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        for approval in body["approvals"]:
            approval.update(state)
        route.fulfill(response=response, json=body)

    chat.page.route("**/approvals", fulfill)
    return lambda: state.update(state="waiting")


def test_words_stay_in_the_inbox_when_the_time_of_the_call_is_over(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    (waiting,) = leave_waiting(asked, "timed")
    run_out = list_as_over(asked)
    answers = answers_of(asked)
    asked.page.keyboard.press("Alt+a")
    dialog = asked.get("inbox-dialog")
    dialog.get_by_test_id("approval-word").click()
    asked.page.keyboard.type("not in this f")

    run_out()

    expect(dialog).to_contain_text(STILL)
    expect(dialog.get_by_test_id("approval-allow")).to_contain_text("run it again")
    asked.page.keyboard.type("older, add one")
    expect(dialog.get_by_test_id("approval-message")).to_have_value("not in this folder, add one")
    assert answers == []
    asked.page.unroute_all(behavior="ignoreErrors")
    answer_elsewhere(asking_server, waiting)
    expect(dialog).to_have_count(0)


def test_words_for_a_call_that_was_answered_elsewhere_are_no_answer_to_another(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    first, second = leave_waiting(asked, "first", "second")
    answers = answers_of(asked)
    asked.page.keyboard.press("Alt+a")
    dialog = asked.get("inbox-dialog")
    entry = dialog.locator(".inbox-entry").filter(has_text="second.txt")
    entry.get_by_test_id("approval-word").click()
    asked.page.keyboard.type("not in this f")

    answer_elsewhere(asking_server, second)

    expect(dialog.locator(".inbox-entry")).to_have_count(1)
    asked.page.keyboard.type("older, add one ")
    asked.page.keyboard.press("Enter")
    assert answers == []
    expect(dialog.get_by_test_id("approval-allow")).to_be_enabled()
    answer_elsewhere(asking_server, first)
    expect(dialog).to_have_count(0)


def test_words_stay_in_the_transcript_when_the_time_of_the_call_is_over(
    open_page: OpenPage, tmp_path: Path
) -> None:
    with started_server(tmp_path, approvals="on", approval_timeout_s=4, **SETTINGS) as server:
        chat = open_page(url=server.url)
        chat.send("write x to timed.txt")
        chat.turn.at.get_by_test_id("approval-word").click()
        chat.page.keyboard.type("不在这个")
        reason = chat.turn.at.get_by_test_id("approval-message")

        expect(chat.turn.approval).to_contain_text(STILL)

        expect(reason).to_be_focused()
        chat.page.keyboard.type("文件夹")
        expect(reason).to_have_value("不在这个文件夹")
        chat.page.keyboard.press("Enter")
        expect(chat.turn.approval).to_contain_text("You said: 不在这个文件夹")


def test_chosen_answers_are_there_after_a_reload_when_their_time_is_over(
    open_page: OpenPage, tmp_path: Path
) -> None:
    ask = {"tool": "AskUserQuestion", "input": {"questions": [QUESTION]}}
    with started_server(tmp_path, approvals="on", approval_timeout_s=4, **SETTINGS) as server:
        chat = open_page(url=server.url)
        chat.send(script(ask, {"text": "Thank you."}))
        own = chat.turn.approval.get_by_test_id("choice-own")
        own.press_sequentially("neither of")
        own.blur()
        expect(chat.turn.approval).to_contain_text(STILL)

        chat.page.reload()

        expect(own).to_have_value("neither of")


def test_words_are_written_on_while_the_server_is_away(asked: ChatPage) -> None:
    asked.witness.network_may_fail = True
    asked.send("write x to away.txt")
    asked.turn.at.get_by_test_id("approval-word").click()
    reason = asked.turn.at.get_by_test_id("approval-message")
    asked.page.keyboard.type("not in ")
    asked.page.route(re.compile("/(approvals|healthz|events)"), lambda route: route.abort())
    expect(asked.get("offline")).to_be_visible()
    expect(asked.turn.at.get_by_test_id("approval-deny-word")).to_be_disabled()

    asked.page.keyboard.type("this ")

    asked.page.unroute_all(behavior="ignoreErrors")
    asked.get("offline-retry").click()
    expect(asked.get("offline")).to_have_count(0)
    expect(reason).to_have_value("not in this ")
    asked.turn.at.get_by_test_id("approval-deny-word").click()
    expect(asked.turn.approval).to_contain_text("You said: not in this")
