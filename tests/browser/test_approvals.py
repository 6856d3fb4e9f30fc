"""A tool call that waits for a person's word, given on the page."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import SETTINGS, OpenPage
from tests.support.live_server import LiveServer, bash, script, started_server
from tests.support.ports import lasting_port

pytestmark = pytest.mark.browser

NAME = "<img src=x onerror=alert(1)>"
CARD = "[data-testid=approval]"
QUESTION = {
    "question": "Which?",
    "header": "Which",
    "options": [{"label": "this", "description": "One."}, {"label": "that", "description": "Two."}],
    "multiSelect": False,
}


def test_an_allowed_call_runs_and_only_then(asked: ChatPage, asking_server: LiveServer) -> None:
    file = asking_server.workspace / "allowed.txt"
    asked.send("write hello to allowed.txt")
    card = asked.turn.approval
    expect(card).to_contain_text("May this run?")
    expect(card).to_contain_text("Write")
    expect(card).to_contain_text("allowed.txt")
    expect(card).to_contain_text("hello")
    expect(card).to_contain_text("left, then the run ends")
    expect(asked.turn.tools).to_have_attribute("data-status", "waiting")
    expect(asked.page.locator("#announcer-urgent")).to_contain_text("Approval needed: Write")
    assert not file.exists()

    asked.turn.at.get_by_test_id("approval-allow").click()

    asked.turn.expect_end("answered")
    expect(card).to_have_attribute("data-decision", "allow")
    expect(card).to_contain_text("Allowed by you")
    expect(card).not_to_contain_text("null")
    expect(asked.composer).to_be_focused()
    expect(asked.turn.tools).to_have_attribute("data-status", "ok")
    assert file.read_text(encoding="utf-8") == "hello"
    for _ in range(2):  # one card a call, with the answer in its head
        expect(asked.turn.at.locator(".steps > .tool")).to_have_count(1)
        expect(asked.turn.tools.get_by_test_id("approval")).to_have_text("Allowed by you")
        asked.page.reload()


def test_a_denied_call_never_runs_and_the_reply_says_so(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    file = asking_server.workspace / "kept.txt"
    file.write_text("kept", encoding="utf-8")
    asked.send("delete kept.txt")

    asked.turn.at.get_by_test_id("approval-deny").click()

    asked.turn.expect_end("answered_with_failures")
    expect(asked.turn.approval).to_contain_text("Denied by you")
    expect(asked.turn.tools).to_have_attribute("data-status", "denied")
    expect(asked.turn.tools).not_to_contain_text("A person was asked")
    asked.turn.tools.get_by_role("button").click()
    expect(asked.turn.tools).to_contain_text("A person was asked and denied this call.")
    expect(asked.turn.notices).to_have_count(0)
    assert file.read_text(encoding="utf-8") == "kept"


def test_a_yes_for_the_conversation_covers_what_the_person_chose(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    for name in "cdef":
        (asking_server.workspace / f"{name}.txt").write_text("x", encoding="utf-8")
    asked.go_to_start()
    calls = [bash(f"rm {name}.txt") for name in "cdef"]
    asked.send(script(*calls, {"text": "Gone."}))
    reach = asked.turn.at.get_by_test_id("approval-reach")
    expect(reach.locator("option")).to_have_text(
        [
            "only this: rm -- c.txt",
            "rm, anywhere in the workspace",
            "every rm, whatever its options",
        ]
    )
    asked.turn.at.get_by_test_id("approval-allow-conversation").click()
    expect(asked.turn.approval.first).to_contain_text("From now on: only this: rm -- c.txt")
    expect(reach.locator("option").first).to_have_text("only this: rm -- d.txt")

    reach.select_option("folder")
    asked.turn.at.get_by_test_id("approval-allow-conversation").click()

    asked.turn.expect_end("answered")
    expect(asked.turn.approval).to_have_count(2)
    assert not list(asking_server.workspace.glob("[c-f].txt"))
    asked.get("wall").click()
    rules = asked.get("wall-rules").locator("li")
    expect(rules).to_have_count(2)
    rules.last.get_by_test_id("rule-withdraw").click()
    expect(rules).to_have_text([re.compile("only this: rm -- c.txt")])
    asked.page.keyboard.press("Escape")
    asked.go_to_start()


def test_the_keys_go_to_what_is_asked_unless_somebody_writes(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    asked.go_to_start()
    (asking_server.workspace / "kept.txt").write_text("kept", encoding="utf-8")
    asked.send("delete kept.txt")
    card = asked.turn.approval
    expect(card).to_be_focused()
    expect(card.locator("kbd").first).to_be_visible()
    asked.page.keyboard.press("w")
    asked.page.keyboard.type("It is needed.")
    asked.page.keyboard.press("Enter")
    asked.turn.expect_end("answered_with_failures")
    expect(card).to_contain_text("You said: It is needed.")
    expect(asked.composer).to_have_value("")

    asked.send("delete kept.txt")
    asked.composer.press_sequentially("And no")
    expect(card.locator(".approval-asked")).to_be_visible()
    expect(asked.composer).to_be_focused()
    expect(card.locator("kbd").first).to_be_hidden()
    asked.composer.press("w")
    expect(asked.composer).to_have_value("And now")
    asked.composer.fill("")
    asked.turn.at.get_by_test_id("approval-deny").click()
    asked.turn.expect_end("answered_with_failures")


def test_a_letter_on_its_way_to_the_message_box_is_no_answer(
    open_page: OpenPage, asking_server: LiveServer
) -> None:
    (asking_server.workspace / "kept.txt").write_text("kept", encoding="utf-8")
    chat = open_page(url=asking_server.url)
    chat.page.clock.install()
    chat.page.clock.pause_at(chat.page.evaluate("Date.now() + 10_000"))
    chat.send("delete kept.txt")
    expect(chat.turn.approval).to_be_focused()

    chat.page.keyboard.type("also")

    expect(chat.composer).to_have_value("also")
    expect(chat.turn.at.get_by_test_id("approval-allow")).to_be_enabled()
    chat.page.clock.resume()
    chat.turn.at.get_by_test_id("approval-deny").click()
    chat.turn.expect_end("answered_with_failures")


def test_an_edit_is_asked_about_among_the_lines_around_it(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    lines = "".join(f"line {number}\n" for number in range(1, 12))
    (asking_server.workspace / "lines.txt").write_text(lines, encoding="utf-8")
    read = {"tool": "Read", "input": {"file_path": "lines.txt"}}
    given = {"file_path": "lines.txt", "old_string": "e 6", "new_string": "e six"}
    over = {"tool": "Write", "input": {"file_path": "lines.txt", "content": "line 1\nnew\n"}}
    asked.send(script(read, {"tool": "Edit", "input": given}, over, {"text": "Done."}))
    rows = [*(f"{number} line {number}" for number in (3, 4, 5)), "6-line 6", "6+line six"]
    rows += [f"{number} line {number}" for number in (7, 8, 9)]
    edit, write = asked.turn.tools.nth(1), asked.turn.tools.nth(2)
    expect(edit.locator(".diff-row")).to_have_text(rows)

    asked.turn.at.get_by_test_id("approval-allow").click()

    expect(write.locator(".diff-row.is-removed")).to_have_count(10)
    expect(write.locator(".diff-row.is-added")).to_have_text("2+new")
    asked.turn.at.get_by_test_id("approval-deny").click()
    asked.turn.expect_end("answered_with_failures")
    edit.get_by_role("button").click()
    expect(edit.locator(".diff-row")).to_have_text(rows)
    asked.page.reload()
    edit.get_by_role("button").click()
    expect(edit.locator(".diff-row")).to_have_text(rows)


def test_what_would_run_is_shown_as_the_list_has_it_and_a_person_may_take_more_time(
    asked: ChatPage,
) -> None:
    """Events are kept, and have what looks like a secret masked."""
    later = "2999-01-01T00:00:00Z"
    extended: list[str] = []

    def list_pending(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        for approval in body["approvals"]:
            approval["input"]["content"] = "x and more"
            approval.update({"state": "pending"} | ({"expires_at": later} if extended else {}))
        route.fulfill(response=response, json=body)

    def extend(route: Route) -> None:
        extended.append(route.request.url)
        route.fulfill(json={"expires_at": later})

    asked.page.route("**/approvals", list_pending)
    asked.page.route("**/approvals/*/extend", extend)
    asked.send("write x to later.txt")

    expect(asked.turn.approval.locator(".diff-row")).to_have_text("1+x and more")
    asked.turn.at.get_by_test_id("approval-extend").click()

    expect(asked.turn.approval.locator(".approval-countdown")).to_have_text(re.compile(r"\d{6,}:"))
    asked.page.unroute_all()
    asked.turn.at.get_by_test_id("approval-deny").click()
    asked.turn.expect_end("answered_with_failures")
    assert len(extended) == 1


def test_what_the_list_adds_to_a_call_leaves_the_answers_as_they_are(asked: ChatPage) -> None:
    """Somebody who has begun to say why keeps the words, and a press meets the button it was for."""
    held: list[Route] = []
    asked.page.route("**/approvals", lambda route: held.append(route))  # noqa: PLW0108  marked
    asked.send("write x to begun.txt")
    allow = asked.turn.at.get_by_test_id("approval-allow")
    expect(allow).to_be_enabled()
    button = allow.element_handle()
    asked.turn.at.get_by_test_id("approval-word").click()
    reason = asked.turn.at.get_by_test_id("approval-message")
    reason.press_sequentially("not in this f")

    for route in held:
        response = route.fetch()
        body = response.json()
        body["approvals"][0]["input"]["content"] = "x and more"
        route.fulfill(response=response, json=body)
    expect(asked.turn.approval.locator(".diff-row")).to_have_text("1+x and more")

    expect(reason).to_be_focused()
    asked.page.keyboard.type("older")
    expect(reason).to_have_value("not in this folder")
    assert button.evaluate("(button) => button.isConnected")
    asked.page.unroute_all(behavior="ignoreErrors")
    asked.turn.at.get_by_test_id("approval-deny-word").click()
    expect(asked.turn.approval).to_contain_text("not in this folder")
    asked.turn.expect_end("answered_with_failures")


def test_the_inbox_stays_while_a_turn_goes_on_and_shows_what_it_asks_next(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    asked.go_to_start()
    for name in "gh":
        (asking_server.workspace / f"{name}.txt").write_text("x", encoding="utf-8")
    pipe = asking_server.make_pipe("pipe")
    asked.send(script(bash("rm g.txt"), bash("cat pipe"), bash("rm h.txt"), {"text": "Gone."}))
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_be_visible()
    asked.go_to_start()
    asked.page.keyboard.press("Alt+a")
    dialog = asked.get("inbox-dialog")

    dialog.get_by_test_id("approval-allow").click()

    expect(dialog).to_contain_text("The turn goes on.")
    expect(dialog).to_contain_text("Allowed by you")
    pipe.write_text("", encoding="utf-8")  # the command that reads it ends
    expect(dialog).to_contain_text("rm -- h.txt")
    dialog.get_by_test_id("approval-allow").click()
    expect(dialog).to_have_count(0)
    assert not list(asking_server.workspace.glob("[gh].txt"))


def test_an_approval_whose_server_is_away_has_no_countdown_and_no_live_buttons(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    settings = {"approvals": "on", "port": lasting_port(), **SETTINGS}
    with started_server(tmp_path, **settings) as first:
        chat = open_page(url=first.url)
        chat.witness.network_may_fail = True
        chat.send("write x to away.txt")
        expect(chat.turn.at.get_by_test_id("approval-allow")).to_be_enabled()
        first.kill()
        expect(chat.get("offline")).to_be_visible()
        expect(chat.turn.approval).to_contain_text("Cannot be answered now")
        expect(chat.turn.approval).not_to_contain_text("left")
        expect(chat.turn.at.get_by_test_id("approval-allow")).to_be_disabled()
    with started_server(tmp_path, **settings):
        expect(chat.turn.outcome).to_be_visible()
        expect(chat.turn.approval).not_to_contain_text(re.compile("Cannot be answered now| left"))
        expect(chat.get("offline")).to_have_count(0)


def test_what_waits_elsewhere_shows_on_every_screen_and_is_answered_by_keyboard(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    asked.go_to_start()
    asked.send(f"write x to '{NAME}'")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_be_visible()
    expect(asked.get("inbox")).to_have_count(0)
    waiting = asked.conversation_id

    asked.go_to_start()

    expect(asked.get("inbox")).to_contain_text(f"waits for you: Write {NAME}")
    expect(asked.open_item).to_have_count(0)
    item = asked.page.locator(f"[data-conversation-id={waiting}]")
    expect(item.get_by_test_id("item-waiting")).to_have_text("1")
    assert asked.page.title().startswith("(1) ")
    expect(asked.page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("^data:"))
    asked.page.keyboard.press("Alt+a")
    dialog = asked.get("inbox-dialog")
    expect(dialog.get_by_test_id("approval-allow")).to_be_focused()
    expect(dialog).to_contain_text(re.compile(r"\+\s*x"))
    asked.page.keyboard.press("w")
    asked.page.keyboard.type("add it as a note instead")
    asked.page.keyboard.press("Enter")

    expect(dialog).to_have_count(0)
    expect(asked.get("inbox")).to_have_count(0)
    expect(item.get_by_test_id("item-waiting")).to_be_hidden()
    assert not asked.page.title().startswith("(")
    asked.go(f"/#/c/{waiting}")
    asked.turn.expect_end("answered_with_failures")
    expect(asked.turn.approval).to_contain_text("You said: add it as a note instead")
    expect(asked.turn.tools).to_contain_text("add it as a note instead")
    assert not (asking_server.workspace / NAME).exists()


def test_a_call_that_waits_is_there_again_after_a_reload(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    asked.send(f"write x to '{NAME}'")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_be_visible()

    asked.page.reload()

    card = asked.turn.approval
    expect(card).to_have_count(1)
    expect(card).to_contain_text(NAME)
    expect(card).to_contain_text(re.compile(r"\+\s*x"))
    asked.turn.at.get_by_test_id("approval-deny").click()
    asked.turn.expect_end("answered_with_failures")
    expect(card).to_contain_text("Denied by you")
    assert not (asking_server.workspace / NAME).exists()


def test_what_one_window_answers_the_other_shows(asked: ChatPage, open_page: OpenPage) -> None:
    asked.send("write x to shared.txt")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_be_visible()
    other = open_page(f"/#/c/{asked.conversation_id}", url=asked.witness.origin)

    other.get("approval-allow").click()

    asked.turn.expect_end("answered")
    expect(asked.turn.approval).to_contain_text("Allowed")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_have_count(0)


def test_reading_is_not_asked_about_and_stopping_ends_the_waiting(asked: ChatPage) -> None:
    asked.ask("list the files").expect_end("answered")
    expect(asked.turn.approval).to_have_count(0)
    asked.send("write x to never.txt")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_be_visible()

    asked.get("stop").click()

    asked.turn.expect_end("interrupted", "user_interrupt")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_have_count(0)
    expect(asked.turn.approval).to_contain_text("Denied because the turn ended")


def test_an_unlisted_program_is_asked_about_with_its_reason_its_reach_and_a_plain_scope(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    for name in ("words.txt", "more.txt"):
        (asking_server.workspace / name).write_text("b\na\n", encoding="utf-8")
    asked.go_to_start()
    calls = (bash("sort -r words.txt"), bash("sort -r more.txt"), bash("sudo sort words.txt"))
    asked.send(script(*calls, {"text": "Sorted."}))
    card = asked.turn.approval
    expect(card.get_by_test_id("approval-unlisted")).to_contain_text(
        "The command sort is not allowed."
    )
    expect(card.get_by_test_id("approval-touches")).to_be_visible()
    expect(card).to_contain_text("sort -r words.txt")
    button = asked.turn.at.get_by_test_id("approval-allow-conversation")
    expect(button).to_contain_text("Allow for this conversation: only this")
    if "workspace" in (card.get_by_test_id("approval-touches").text_content() or ""):
        asked.turn.at.get_by_test_id("approval-reach").select_option("rule")
        expect(button).to_contain_text("Allow for this conversation: any program that is not on")
    asked.turn.at.get_by_test_id("approval-reach").select_option("files")
    expect(button).to_contain_text(
        "Allow for this conversation: sort -r, with any files of the workspace after it"
    )
    button.click()
    asked.turn.expect_end("answered_with_failures")
    expect(asked.turn.approval).to_have_count(1)
    expect(asked.turn.at.get_by_test_id("let-pass")).to_contain_text(
        "Passed by your earlier yes: sort -r"
    )
    expect(asked.turn.tools.last).to_have_attribute("data-status", "denied")


def test_a_sub_agents_call_waits_below_it_and_each_call_has_the_colour_of_its_own_state(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    (asking_server.workspace / "below.txt").write_text("x", encoding="utf-8")
    asked.go_to_start()
    helper = script(bash("ls"), bash("rm below.txt"), {"text": "Gone."})
    hand_over = {"tool": "Agent", "input": {"description": "Tidy up", "prompt": helper}}
    asked.send(script(bash("ls"), hand_over, {"text": "Tidied."}))
    below = asked.turn.at.get_by_test_id("tool-below").get_by_test_id("tool-call")
    expect(below.get_by_test_id("approval")).to_contain_text("rm -- below.txt")
    colours = [
        tool.locator(".tool-mark").first.evaluate("mark => getComputedStyle(mark).color")
        for tool in (asked.turn.tools.first, below.first)
    ]
    assert colours[0] == colours[1]
    below.get_by_test_id("approval-allow").click()
    asked.turn.expect_end("answered")
    expect(below).to_have_count(2)


def test_an_answered_card_is_named_by_its_answer(asked: ChatPage) -> None:
    for button, name, end in (
        ("approval-deny", "Denied by you", "answered_with_failures"),
        ("approval-allow", "Allowed by you", "answered"),
    ):
        asked.send("write x to named.txt")
        card = asked.turn.approval
        expect(card).to_have_accessible_name("May this run? Write named.txt")
        asked.turn.at.get_by_test_id(button).click()
        asked.turn.expect_end(end)
        expect(card).to_have_accessible_name(f"{name} Write named.txt")


def test_the_inbox_has_a_button_that_closes_it(asked: ChatPage) -> None:
    asked.go_to_start()
    asked.send("write x to closed.txt")
    expect(asked.turn.at.get_by_test_id("approval-allow")).to_be_visible()
    waiting = asked.page.url
    asked.go_to_start()
    asked.get("inbox-review").click()
    dialog = asked.get("inbox-dialog")
    expect(dialog.get_by_test_id("approval-allow")).to_be_focused()

    dialog.get_by_role("button", name="Close", exact=True).click()

    expect(dialog).to_have_count(0)
    expect(asked.get("inbox")).to_be_visible()
    asked.go(waiting)
    asked.turn.at.get_by_test_id("approval-deny").click()
    asked.turn.expect_end("answered_with_failures")


def test_the_bar_names_what_waits_whatever_is_searched_for(
    asked: ChatPage, asking_server: LiveServer
) -> None:
    asked.go_to_start()
    asked.send("write hello to searched.txt")
    expect(asked.turn.approval).to_contain_text("searched.txt")
    waiting = asked.page.url
    asked.get("search").fill("no such conversation")
    expect(asked.items).to_have_count(0)

    asked.start_new()

    expect(asked.get("inbox")).to_contain_text("“write hello to searched.txt” waits for you")
    asked.page.reload()
    asked.get("search").fill("no such conversation")
    expect(asked.items).to_have_count(0)
    expect(asked.get("inbox")).to_contain_text("“write hello to searched.txt” waits for you")
    asked.get("search").fill("")
    asked.go(waiting.removeprefix(asking_server.url))
    asked.turn.at.get_by_test_id("approval-deny").click()
    expect(asked.turn.outcome).to_be_visible()


def test_a_phone_shows_the_whole_of_what_is_allowed_from_now_on(
    asking_server: LiveServer, open_page: OpenPage
) -> None:
    chat = open_page(url=asking_server.url, viewport={"width": 320, "height": 844})
    path = "sidebar_conversation_list_item_of_the_navigation_test.tsx"
    chat.send(script({"tool": "Write", "input": {"file_path": path, "content": "x"}}))
    allow = chat.get("approval-allow-conversation")

    expect(allow).to_contain_text(path)

    button, card = allow.bounding_box(), chat.turn.approval.bounding_box()
    assert button is not None
    assert card is not None
    assert button["x"] >= card["x"]
    assert button["x"] + button["width"] <= card["x"] + card["width"]
    assert allow.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    chat.get("approval-deny").click()
    chat.turn.expect_end("answered_with_failures")
