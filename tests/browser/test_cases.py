"""What an agent does with cases, as the transcript tells it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.memory_on_page import (
    CASE,
    FEEDBACK,
    RENDER,
    SEARCH,
    UPSERT,
    call,
    change,
    head_of,
)
from tests.support.live_server import LiveServer, script

pytestmark = pytest.mark.browser


def test_what_is_done_with_cases_is_told_in_words(chat: ChatPage, server: LiveServer) -> None:
    chat.open_made(server, "cases in words")
    change(server, chat.conversation_id, memory={"case_memory": True})
    turn = chat.ask(
        script(call(UPSERT, case=CASE), call(SEARCH, query="receipts 413"), {"text": "Done."})
    )
    record, search = turn.tools.all()
    assert head_of(record) == ("Recorded a case", CASE["symptom_summary"])
    assert head_of(search) == ("Searched cases", "receipts 413")
    record.get_by_role("button").click()
    expect(record).to_contain_text(UPSERT)
    expect(record).to_contain_text('"root_cause": "client_max_body_size')
    found = re.search(r"cas_\w+", record.locator(".tool-block").last.inner_text())
    assert found is not None
    case_id = found[0]

    turn = chat.ask(
        script(
            call(RENDER, case_ids=[case_id]),
            call(FEEDBACK, case_id=case_id, helpful=True, signal="success"),
            call(FEEDBACK, case_id="cas_unknown", helpful=False),
            {"text": "Done."},
        )
    )

    read, judge, fail = turn.tools.all()
    assert head_of(read) == ("Read cases", case_id)
    assert head_of(judge) == ("Judged a case", f"helpful · it worked · {case_id}")
    assert head_of(fail) == ("Judge a case", "not helpful · cas_unknown"), "it was not judged"
    expect(fail.locator(".tool-error-line")).to_have_text(
        re.compile(r"^There is no such case.*\.$")
    )
    fail.get_by_role("button").click()
    expect(fail).to_contain_text('"code": "CASE_NOT_FOUND"')

    chat.page.reload()

    expect(chat.turns).to_have_count(2)
    record, search = chat.turns.first.get_by_test_id("tool-call").all()
    assert head_of(record) == ("Recorded a case", CASE["symptom_summary"])
    assert head_of(search) == ("Searched cases", "receipts 413")
    record.get_by_role("button").click()
    expect(record).to_contain_text(UPSERT)
    assert head_of(chat.turn.tools.nth(1)) == ("Judged a case", f"helpful · it worked · {case_id}")


def test_names_that_only_look_like_those_of_case_memory_are_shown_as_they_are(
    talk: ChatPage,
) -> None:
    names = ["Bash", "memory_case_search", f"{SEARCH}ed", SEARCH.replace("case__", "cases__")]

    shown = talk.page.evaluate(
        """async (names) => {
          const { toolWords, toolBrief } = await import("/static/tool-words.js");
          return names.map((name) => [toolWords(name, "ok"), toolBrief({ name, summary: "as it is", input: { query: "x" } }).text]);
        }""",
        names,
    )

    assert shown == [[name, "as it is"] for name in names]
