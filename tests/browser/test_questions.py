"""What the agent asks a person for besides a call: answers to its questions, and a word on its plan."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.test_accessibility import AXE, JUDGE
from tests.support.live_server import LiveServer, script

pytestmark = pytest.mark.browser

NAME = "<img src=x onerror=alert(1)>"
CARD = "[data-testid=approval]"
QUESTION = {
    "question": "Which?",
    "header": "Which",
    "options": [{"label": "this", "description": "One."}, {"label": "that", "description": "Two."}],
    "multiSelect": False,
}

PLAN = "Plan Do what was asked: write hello to cup.md Tell what came of it."


def test_the_agents_questions_are_answered_in_place(asked: ChatPage) -> None:
    options = [{"label": NAME, "description": "Not markup."}, {"label": "blue", "description": ""}]
    one = {"question": "Which colour?", "header": "Colour", "options": options}
    several = {"question": "What else?", "header": "More", "options": options, "multiSelect": True}
    ask = {"tool": "AskUserQuestion", "input": {"questions": [one, several]}}
    asked.go_to_start()
    asked.send(script(ask, {"text": "Thank you."}))
    card = asked.turn.approval
    expect(card).to_contain_text("The agent asks you")
    expect(card).to_contain_text("Not markup.")
    asked.page.evaluate(AXE.read_text("utf-8"))
    for scheme in ("light", "dark"):
        asked.page.emulate_media(color_scheme=scheme)
        assert asked.page.evaluate(JUDGE, CARD) == []
    first, second = card.get_by_role("group").all()
    asked.page.keyboard.press("Alt+a")
    asked.page.keyboard.press("Space")
    expect(first.get_by_role("radio").first).to_be_checked()

    asked.get("question-send").click()

    expect(second.get_by_role("checkbox").first).to_be_focused()
    expect(asked.turn.outcome).to_have_count(0)
    first.get_by_test_id("choice-own").fill("green")
    expect(first.get_by_role("radio").first).not_to_be_checked()
    for choice in second.get_by_test_id("choice").all():
        choice.click()
    second.get_by_test_id("choice-own").press("Enter")
    asked.turn.expect_end("answered")
    for _ in range(2):
        expect(card).to_contain_text("Answered by you")
        expect(card).to_contain_text("green")
        expect(card).to_contain_text(f"{NAME}, blue")
        asked.page.reload()
    asked.turn.tools.get_by_role("button").first.click()
    expect(asked.turn.tools).to_contain_text("green")
    expect(asked.turn.tools).not_to_contain_text("Replaced")


def test_answers_that_were_not_sent_are_there_after_a_reload_and_a_way_back(
    asked: ChatPage,
) -> None:
    several = {**QUESTION, "question": "What else?", "multiSelect": True}
    ask = {"tool": "AskUserQuestion", "input": {"questions": [QUESTION, several]}}
    asked.go_to_start()
    asked.send(script(ask, {"text": "Thank you."}))
    fields = asked.turn.approval.get_by_role("group")
    first, second = fields.nth(0), fields.nth(1)
    first.get_by_test_id("choice").nth(1).click()
    second.get_by_test_id("choice").nth(0).click()
    second.get_by_test_id("choice-own").fill("half a wo")
    address = asked.page.url.removeprefix(asked.witness.origin)

    def expect_filled_in() -> None:
        expect(first.get_by_role("radio").nth(1)).to_be_checked()
        expect(second.get_by_role("checkbox").nth(0)).to_be_checked()
        expect(second.get_by_test_id("choice-own")).to_have_value("half a wo")

    asked.page.reload()
    expect_filled_in()
    asked.go_to_start()
    asked.go(address)
    expect_filled_in()
    first.get_by_test_id("choice-own").fill("neither")
    asked.page.reload()
    expect(first.get_by_test_id("choice-own")).to_have_value("neither")
    expect(first.get_by_role("radio").nth(1)).not_to_be_checked()

    asked.get("question-send").click()

    asked.turn.expect_end("answered")
    expect(asked.turn.approval).to_contain_text("half a wo")
    assert not [
        key for key in asked.page.evaluate("Object.keys(sessionStorage)") if "answers" in key
    ]


def test_a_question_can_be_left_unanswered(asked: ChatPage) -> None:
    ask = {"tool": "AskUserQuestion", "input": {"questions": [QUESTION]}}
    asked.send(script(ask, {"text": "As you like."}))

    asked.get("question-skip").click()

    asked.turn.expect_end("answered_with_failures")
    expect(asked.turn.approval).to_contain_text("Not answered by you")


def test_a_plan_is_read_sent_back_with_a_word_and_approved_by_keyboard(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    asked.composer.fill("/pl")
    asked.page.get_by_role("option", name="/plan").click()
    expect(asked.composer).to_have_value("/plan ")
    message = f"/plan write hello to '{NAME}.md'"
    asked.send(message)
    card = asked.turn.approval
    expect(card).to_contain_text("The agent’s plan")
    expect(card.get_by_role("heading")).to_have_text("Plan")
    expect(card.get_by_test_id("plan")).to_contain_text(NAME)
    asked.page.evaluate(AXE.read_text("utf-8"))
    assert asked.page.evaluate(JUDGE, CARD) == []
    asked.get("approval-word").click()
    asked.get("approval-message").fill("Shorter, please.")
    asked.get("approval-message").press("Enter")
    asked.turn.expect_end("answered_with_failures")
    expect(card).to_contain_text("Plan not approved by you")
    expect(asked.turn.reply).to_contain_text("Shorter, please.")

    asked.send(message)
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_have_text(re.compile("Approve"))
    asked.page.keyboard.press("Alt+a")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_be_focused()
    asked.page.keyboard.press("a")
    expect(asked.turn.approval.nth(1)).to_contain_text("May this run?")
    expect(asked.turn.approval.first).to_contain_text("Plan approved by you")
    assert not (asking_server.workspace / f"{NAME}.md").exists()
    asked.turn.at.get_by_test_id("approval-allow").click()
    asked.turn.expect_end("answered")
    asked.page.reload()
    asked.turn.tools.nth(1).get_by_role("button").first.click()
    expect(asked.turn.tools.nth(1).get_by_test_id("plan")).to_contain_text(NAME)


def test_a_plan_that_waits_is_told_in_plain_words(asked: ChatPage) -> None:
    asked.go_to_start()
    asked.send("/plan write **hello** to cup.md")
    expect(asked.turn.approval).to_have_accessible_name(f"The agent’s plan {PLAN}")
    expect(asked.page.locator("#announcer-urgent")).to_have_text(f"Approval needed: Plan {PLAN}")
    waiting = asked.page.url

    asked.go_to_start()

    expect(asked.get("inbox")).to_contain_text(f"waits for you: Plan {PLAN}")
    asked.page.keyboard.press("Alt+a")
    dialog = asked.get("inbox-dialog")
    expect(dialog.get_by_role("group")).to_have_accessible_name(f"The agent’s plan {PLAN}")
    dialog.get_by_test_id("approval-deny").click()
    expect(dialog).to_have_count(0)
    asked.go(waiting)
    asked.turn.expect_end("answered_with_failures")


def test_a_question_is_named_by_its_heading_and_its_words(asked: ChatPage) -> None:
    one = {**QUESTION, "question": "Which colour?", "header": "Colour"}
    ask = {"tool": "AskUserQuestion", "input": {"questions": [one]}}
    asked.send(script(ask, {"text": "As you like."}))
    expect(asked.turn.approval).to_have_accessible_name("The agent asks you Which colour?")
    group = asked.turn.approval.get_by_role("group")
    expect(group).to_have_accessible_name("Colour Which colour?")
    asked.get("question-skip").click()
    asked.turn.expect_end("answered_with_failures")
