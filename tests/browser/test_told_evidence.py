"""What a turn did, who let a call pass, and what still waits: shown as the server tells it, after a reload too.

The server's answers are changed on their way to the page where no agent brings them about at will.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.browser.test_accessibility import AXE, JUDGE
from tests.support.demo_service import demo_model_as_a_service
from tests.support.live_server import LiveServer, bash, script, started_server

pytestmark = pytest.mark.browser

REASON = "The run that asked has ended. If you allow it, the call is made again."
RULE = {"reach": "folder", "tool": "Bash", "command": "rm", "options": []}


@contextmanager
def changed(chat: ChatPage, address: str, change: Callable[[Any], None]) -> Iterator[None]:
    """Change what the server answers to reading an address."""

    def answer(route: Route) -> None:
        if route.request.method != "GET":
            route.fallback()
            return
        response = route.fetch()
        body = response.json()
        change(body)
        route.fulfill(response=response, json=body)

    chat.page.route(address, answer)
    try:
        yield
    finally:
        chat.page.unroute(address)


def results_of(body: Any) -> list[dict[str, Any]]:
    """The turn results among messages."""
    return [message["result"] for message in body["messages"] if message.get("result")]


def left_waiting(result: dict[str, Any]) -> None:
    """Make a result that of a turn that ended while a person was asked about its call."""
    result |= {"outcome": "interrupted", "stop_reason": "waiting", "cause": "waiting"}
    result["tools"][0]["status"] = "interrupted"
    step = {"type": "approval", "approval_id": "apr_1", "index": 1, "decision": None}
    result["steps"] = [{"type": "tool", "index": 1}, step | {"by": "waiting", "state": "waiting"}]


def approval_of(chat: ChatPage, **more: Any) -> dict[str, Any]:
    """An approval of the open conversation's last turn, whose run has ended."""
    return {
        "approval_id": "apr_1",
        "conversation_id": chat.conversation_id,
        "turn_id": chat.turns.last.get_attribute("data-turn-id"),
        "index": 1,
        "tool_use_id": "tu_1",
        "name": "Bash",
        "summary": "ls",
        "input": {"command": "ls"},
        "input_chars": 16,
        "truncated": False,
        "hidden": [],
        "permits": [],
        "state": "waiting",
        "reason": REASON,
        "expires_at": None,
    } | more


def test_each_turn_says_what_it_changed_and_how_its_calls_ended(
    chat: ChatPage, server: LiveServer
) -> None:
    claim = {"text": "Done. I wrote report.csv."}
    calls = [bash("ls"), bash("cat nowhere.txt"), bash("cat /etc/passwd")]
    write = {"tool": "Write", "input": {"file_path": "report.csv", "content": "a,b\n"}}
    for steps in ([claim], [*calls, claim], [write, claim]):
        chat.ask(script(*steps))
    for _ in range(2):
        facts = chat.page.locator(".turn-facts")
        expect(facts.nth(0)).to_contain_text("No file was changed")
        expect(facts.nth(0).get_by_test_id("turn-calls")).to_have_count(0)
        expect(facts.nth(1)).to_contain_text("3 calls, 1 failed, 1 denied")
        expect(facts.nth(1)).to_contain_text("No file was changed")
        expect(facts.nth(2)).to_contain_text("1 call")
        expect(facts.nth(2)).to_contain_text("1 file changed")
        expect(facts.nth(2)).not_to_contain_text("No file")
        chat.page.reload()

    def forget_changes(body: Any) -> None:
        results_of(body)[0]["changes"]["complete"] = False

    with changed(chat, "**/messages*", forget_changes):
        chat.page.reload()
        expect(chat.page.locator(".turn-facts").first).to_contain_text(
            "What was changed is not known"
        )


def test_a_call_that_passed_by_an_earlier_yes_says_so_in_its_head(chat: ChatPage) -> None:
    chat.ask(script(bash("ls"), {"text": "Listed."}))

    def pass_by_rule(body: Any) -> None:
        at = "2026-11-20T09:30:00Z"
        allowed_by = {"by": "rule", "approval_id": "apr_1", "rule": RULE, "at": at}
        results_of(body)[0]["tools"][0]["allowed_by"] = allowed_by

    with changed(chat, "**/messages*", pass_by_rule):
        chat.page.reload()
        passed = chat.turn.tools.get_by_test_id("let-pass")
        expect(passed).to_contain_text("Passed by your earlier yes: rm, anywhere in the workspace")
        expect(passed).to_contain_text("Nov 20")


def test_what_the_gateway_has_to_add_is_told_while_it_happens_and_afterwards(
    open_page: OpenPage,
) -> None:
    chat = open_page(locale="zh-CN")
    chat.ask(script({"text": "我写好了 report.csv。"}, say="请照做"))
    codes = {
        "picture_left_out": "图片太大，已略去。",
        "unsupported_claim": "没有调用支持“我写好了”。",
        "conversation_summarised": "对话已被概括。",
    }

    def add_notices(body: Any) -> None:
        notices = [{"code": code, "message": message} for code, message in codes.items()]
        results_of(body)[0]["notices"] = notices

    with changed(chat, "**/messages*", add_notices):
        # found out after the reply, and read by who comes back to the page
        chat.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(chat.turn.notices).to_have_text(list(codes.values()))
        chat.page.reload()
        expect(chat.turn.notices).to_have_text(list(codes.values()))
    events = "".join(
        f'id: trn_9:{number}\nevent: {kind}\ndata: {{"turn_id": "trn_9", "conversation_id": "{chat.conversation_id}", {more}}}\n\n'
        for number, (kind, more) in enumerate(
            (
                ("turn.started", '"model": "m", "log_file": "x"'),
                ("conversation_summarised", '"trigger": "auto", "message": "概括了。"'),
                ("notice", '"code": "conversation_summarised", "message": "概括了。"'),
                ("text.delta", '"text": "好。"'),
            ),
            start=1,
        )
    )
    chat.page.route("**/chat/stream", lambda route: route.fulfill(body=events))
    chat.page.route("**/events*", lambda _: None)
    chat.send("请概括")
    expect(chat.turn.live).to_contain_text("好。")
    expect(chat.turn.notices).to_have_text(["概括了。"])


def test_a_claim_that_no_call_supports_is_quoted_under_a_reply_that_is_already_shown(
    open_page: OpenPage, tmp_path: Path
) -> None:
    """The side query is real; the reply holds what the demo model is to say when it is asked about it."""
    claim = "I wrote report.csv."
    answer = script({"text": json.dumps({"claims": [claim]})}, say="Details:")
    environ = {"ANTHROPIC_API_KEY": "none"}
    options = SETTINGS | {"model": "candor-demo", "side_model": "candor-demo", "check": "model"}
    with (
        demo_model_as_a_service() as url,
        started_server(
            tmp_path, command=None, environ=environ | {"ANTHROPIC_BASE_URL": url}, **options
        ) as server,
    ):
        chat = open_page(url=server.url)
        chat.ask(script({"text": f"Done. {claim}\n{answer}"}))
        expect(chat.turn.notices).to_contain_text([f"no call that supports these words: “{claim}”"])


def test_a_call_that_still_waits_after_its_turn_is_answered_and_one_that_is_lost_is_not(
    chat: ChatPage,
) -> None:
    chat.ask(script(bash("ls"), {"text": "Listed."}))
    turn, answers, listed = chat.turn, [], [approval_of(chat)]

    def take_answer(route: Route) -> None:
        answers.append(route.request.post_data_json)
        listed.clear()
        route.fulfill(json={"approval_id": "apr_1", "decision": "allow"})

    def wait(body: Any) -> None:
        left_waiting(results_of(body)[0])

    chat.page.route("**/approvals/apr_1", take_answer)
    with (
        changed(chat, "**/messages*", wait),
        changed(chat, "**/approvals", lambda body: body.update(approvals=listed)),
    ):
        chat.page.reload()
        expect(turn.outcome).to_have_text("Ended while it waited for your answer")
        expect(turn.tools).to_have_attribute("data-status", "waiting")
        expect(turn.approval).to_contain_text("This still waits for you")
        expect(turn.approval).to_contain_text(REASON)
        expect(turn.approval.locator(".approval-countdown")).to_be_empty()
        listed[0] |= {"state": "lost", "reason": ""}
        chat.page.reload()
        expect(turn.approval).to_have_text("Can no longer be answered")
        expect(turn.tools).to_have_attribute("data-status", "interrupted")
        listed[0] |= {"state": "waiting"}
        chat.page.reload()
        with chat.page.expect_response("**/messages*"):  # what the answer began is read
            turn.at.get_by_test_id("approval-allow").click()
        expect(turn.approval).to_have_text("Allowed by you")
        chat.page.reload()
        expect(turn.approval).to_have_text("No longer waits for an answer")
    assert answers == [{"decision": "allow"}]


def test_what_of_a_call_cannot_be_seen_is_told_to_who_is_asked(chat: ChatPage) -> None:
    chat.ask(script(bash("ls"), {"text": "Listed."}))
    hidden = [{"path": "command", "chars": 40}]
    listed = [approval_of(chat, truncated=True, input_chars=340_000, hidden=hidden)]
    chat.page.route("**/approvals/apr_1/input", lambda route: route.fulfill(body="all of it"))
    with (
        changed(chat, "**/messages*", lambda body: left_waiting(results_of(body)[0])),
        changed(chat, "**/approvals", lambda body: body.update(approvals=listed)),
    ):
        chat.page.reload()
        card = chat.turn.approval
        expect(card).to_contain_text("40 characters of a secret are hidden at command")
        expect(card).to_contain_text("the whole input has 340,000 characters")
        chat.page.evaluate(AXE.read_text("utf-8"))
        for scheme in ("light", "dark"):
            chat.page.emulate_media(color_scheme=scheme)
            assert chat.page.evaluate(JUDGE, ".turn") == []
        chat.page.emulate_media(color_scheme="light")
        with chat.page.expect_download() as download:
            card.get_by_test_id("approval-input").click()
        assert download.value.path().read_text(encoding="utf-8") == "all of it"


def test_an_output_that_the_model_did_not_get_whole_is_opened_whole(
    chat: ChatPage, server: LiveServer
) -> None:
    lines = "".join(f"line {number}\n" for number in range(4_000))
    (server.workspace / "long.txt").write_text(lines, encoding="utf-8")
    chat.ask(script(bash("cat long.txt"), {"text": "Read."}))
    chat.page.reload()
    card = chat.turn.tools
    card.get_by_role("button").click()
    expect(card).to_contain_text(f"The output has {len(lines):,} characters")
    expect(card).not_to_contain_text("line 3000\n")
    with chat.page.expect_response("**/tools/1?whole=1"):
        card.get_by_test_id("tool-whole").click()
    expect(card).to_contain_text("line 2999\nline 3000\nline 3001")
    expect(card.get_by_test_id("tool-whole")).to_have_count(0)


def test_what_was_kept_of_an_output_that_is_too_long_is_told(chat: ChatPage) -> None:
    chat.ask(script(bash("ls"), {"text": "Listed."}))

    def tell(body: Any) -> None:
        more = "… 981000 characters left out here. Ask for less: Read with offset and limit."
        body |= {"output_chars": 1_000_000, "output_kept_chars": 400_000, "output": f"a\n{more}"}

    with changed(chat, "**/tools/1*", tell):
        chat.page.reload()
        chat.turn.tools.get_by_role("button").click()
        expect(chat.turn.tools).to_contain_text(
            "The output has 1,000,000 characters; the model got no more than this."
        )
        chat.turn.tools.get_by_test_id("tool-whole").click()
        expect(chat.turn.tools.get_by_test_id("tool-kept")).to_have_text(
            "Of 1,000,000 characters, 400,000 were kept."
        )
        expect(chat.turn.tools.get_by_test_id("tool-whole")).to_have_count(0)
