"""The outcome table, the stop reasons, and the words for each."""

from typing import Any

import pytest

from gateway.engine.events import ClientLost, ModelFailed, ModelRetrying, TextDone
from gateway.turns.evidence import Evidence, StopReason
from gateway.turns.reply import (
    Cause,
    build_reply_text,
    describe_tools,
    failures,
    outcome_of,
    stop_reason_of,
)
from gateway.turns.sentences import Language
from tests.support.builders import (
    LOG_FILE,
    broken_off,
    called,
    ending,
    evidence_of,
    failed,
    finished,
    returned,
)

TEXT = TextDone(text="Here it is.")
LANGUAGES: list[Language] = ["en", "zh"]


def gave_up(status: int | None, kind: str = "overloaded") -> Evidence:
    return evidence_of(
        ModelFailed(kind=kind, text='API Error: 500 {"type":"error"}'),
        finished(is_error=True, terminal_reason="api_error", api_error_status=status),
    )


USER: StopReason = "user_interrupt"
CRASH: StopReason = "engine_crash"
NO: dict[str, Any] = {"denials": {1: "No."}}
LOST = ClientLost(exit_code=-9)
MAX_TURNS = finished(subtype="error_max_turns", is_error=True)
BUDGET = finished(subtype="error_max_budget_usd", is_error=True)
REFUSED = finished(stop_reason="refusal")
OUTCOMES: dict[tuple[str, str], list[Evidence | tuple[Cause, Evidence]]] = {
    ("answered", "end_turn"): [
        evidence_of(TEXT, finished()),
        evidence_of(called(), returned(), TEXT, finished()),
    ],
    ("answered_with_failures", "end_turn"): [
        evidence_of(called(), failed(), TEXT, finished()),
        evidence_of(called(), failed(), TEXT, finished(), **NO),
        evidence_of(called(), TEXT, finished()),
    ],
    ("tool_failed", "end_turn"): [
        evidence_of(called(), failed(), finished()),
        evidence_of(called(), failed(), finished(), **NO),
    ],
    ("interrupted", USER): [
        evidence_of(TEXT, broken_off(), stopped_by=USER),
        ("left", evidence_of(broken_off(), stopped_by=USER)),
        evidence_of(LOST, stopped_by=USER),
    ],
    ("interrupted", "shutdown"): [
        ("shutdown", evidence_of(TEXT, broken_off(), stopped_by="shutdown")),
        ("shutdown", evidence_of(LOST, stopped_by="shutdown")),
    ],
    ("interrupted", "policy_interrupt"): [
        evidence_of(called(), failed(), broken_off(), stopped_by="policy_interrupt"),
        evidence_of(broken_off(), **NO),
    ],
    ("interrupted", CRASH): [evidence_of(broken_off())],
    ("tool_failed", CRASH): [evidence_of(called(), failed(), broken_off())],
    ("answered", CRASH): [evidence_of(TEXT, broken_off())],
    ("stopped", "doom_loop"): [evidence_of(TEXT, broken_off(), stopped_by="doom_loop")],
    ("stopped", "timeout"): [
        evidence_of(TEXT, broken_off(), stopped_by="timeout"),
        evidence_of(LOST, stopped_by="timeout"),
    ],
    ("stopped", "max_turns"): [evidence_of(TEXT, MAX_TURNS)],
    ("stopped", "budget"): [evidence_of(BUDGET)],
    ("engine_failed", "api_error"): [gave_up(529), evidence_of(TEXT, stopped_by="api_error")],
    ("engine_failed", CRASH): [
        evidence_of(TEXT, LOST),
        ("crashed", evidence_of(TEXT)),
        ("database_lost", evidence_of(TEXT)),
        ("unavailable", evidence_of()),
        ("untrusted", evidence_of()),
        ("unjudged", evidence_of()),
        ("internal", evidence_of(TEXT, finished())),
    ],
    ("empty", "end_turn"): [evidence_of(finished()), evidence_of(called(), returned(), finished())],
    ("empty", "refusal"): [evidence_of(REFUSED)],
    ("answered", "refusal"): [evidence_of(TEXT, REFUSED)],
}


def test_outcome_and_stop_reason() -> None:
    for told, shown in OUTCOMES.items():
        for one in shown:
            cause, evidence = one if isinstance(one, tuple) else (None, one)
            found = (
                outcome_of(evidence, ending(cause=cause)),
                stop_reason_of(evidence, ending(cause=cause)),
            )
            assert found == told, one
            for language in LANGUAGES:
                assert build_reply_text(evidence, ending(language, cause)).strip()


def test_a_failed_tool_without_text_is_told_with_its_reason_and_the_log() -> None:
    evidence = evidence_of(called(), failed("mv: no such file."), finished())
    assert build_reply_text(evidence, ending()) == (
        "This was not carried out. Bash: ls failed: mv: no such file.\n"
        f"The whole story is in the log {LOG_FILE}."
    )
    assert build_reply_text(evidence, ending("zh")) == (
        f"没有执行成功。Bash: ls 失败：mv: no such file。\n完整经过见日志 {LOG_FILE}。"
    )


NOT_STARTED = (
    "The agent was not started, so your message was not answered: the workspace holds configuration "
    "that"
)
CAUSES: dict[Cause | None, str] = {
    None: "The agent's process ended",
    "crashed": "The server stopped",
    "database_lost": "The server lost its database",
    "unavailable": "The agent could not be started",
    "untrusted": f"{NOT_STARTED} acts by itself",
    "unjudged": f"{NOT_STARTED} cannot be judged",
    "internal": "Something went wrong inside the gateway",
}
LIMITS: dict[StopReason, str] = {
    "doom_loop": "repeated 5 times in a row, Bash ls last",
    "timeout": "longer than 30 seconds",
}


def test_what_broke_is_told_and_a_limit_is_named_with_its_number() -> None:
    for cause, start in CAUSES.items():
        evidence = evidence_of(ClientLost(exit_code=None))
        assert build_reply_text(evidence, ending(cause=cause)).startswith(start)
    for stopped_by, words in LIMITS.items():
        evidence = evidence_of(called(), returned(), broken_off(), stopped_by=stopped_by)
        reply = build_reply_text(evidence, ending())
        assert words in reply
        assert "Until then: Bash: ls succeeded." in reply


STATUSES: dict[int | None, str] = {
    400: "malformed (400)",
    401: "ANTHROPIC_API_KEY",
    403: "denied access (403)",
    404: "CANDOR_MODEL",
    429: "too many requests (429)",
    402: "no credit left",
    413: "longer than the model can read",
    500: "error of its own (500)",
    503: "(503)",
    529: "overloaded and stayed so (529)",
    418: "failed (418)",
    None: "not the Messages API",
}
KINDS = {
    "authentication_failed": "(401)",
    "billing_error": "no credit left",
    "server_error": "connection to the model's service kept failing.",
    "invalid_request": "(400)",
    "model_not_found": "(404)",
    "rate_limit": "(429)",
}
TEXTS = {
    "API Error: lost (ECONNRESET). Try again.": "connection to the model's service kept",
    "API Error: Connection refused (ECONNREFUSED)": "could not be reached (ECONNREFUSED)",
    "Self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT).": "(DEPTH_ZERO_SELF_SIGNED_CERT)",
    "Something else (as it happens).": "connection to the model's service kept failing.",
}


def test_a_failing_service_is_told_in_a_sentence_that_says_what_to_do() -> None:
    """By its status, else by its kind; of the agent's own text only an error code is shown."""
    for status, words in STATUSES.items():
        reply = build_reply_text(gave_up(status, kind="unknown"), ending())
        assert words in reply
        assert LOG_FILE in reply
        for raw in ("API Error", "{", "}", '"'):
            assert raw not in reply
    for kind, words in KINDS.items():
        assert words in build_reply_text(gave_up(None, kind), ending())
    for text, words in TEXTS.items():
        evidence = evidence_of(
            ModelFailed(kind="server_error", text=text),
            finished(is_error=True, terminal_reason="api_error"),
        )
        assert words in build_reply_text(evidence, ending())


def test_of_a_service_that_failed_several_times_the_wait_or_the_last_failure_is_named() -> None:
    retry = ModelRetrying(attempt=1, max_attempts=10, delay_ms=300_000, status=429, error="x")
    waiting = evidence_of(retry, broken_off(), stopped_by="api_error")
    told = build_reply_text(waiting, ending())
    assert "(429, too many requests; it asks to wait 5 minutes)" in told
    failure = ModelFailed(kind="unknown", text="API Error: JSON Parse error")
    failing = finished(is_error=True, terminal_reason="api_error")
    told = build_reply_text(evidence_of(retry, failure, failing), ending())
    assert "not the Messages API" in told


def test_only_an_empty_turn_is_said_to_have_finished_without_text() -> None:
    nothing = evidence_of(finished())
    assert build_reply_text(nothing, ending()) == "The turn finished without text. Nothing failed."
    with_tools = evidence_of(called(), returned(), finished())
    assert build_reply_text(with_tools, ending()) == (
        "The turn finished without text. What it did: Bash: ls succeeded."
    )
    refused = evidence_of(finished(stop_reason="refusal"))
    assert build_reply_text(refused, ending()) == "The model declined to answer this."
    for evidence in (
        evidence_of(called(), failed(), finished()),
        evidence_of(broken_off()),
        evidence_of(ClientLost(exit_code=1)),
    ):
        assert "finished without text" not in build_reply_text(evidence, ending())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("error", ["Denied.", "拒绝。", "Too long. " * 90, "", "..."])
def test_no_reply_has_a_doubled_full_stop_or_is_without_a_reason(
    language: Language, error: str
) -> None:
    for evidence in (
        evidence_of(called(), failed(error), finished()),
        evidence_of(called(), failed(error), broken_off(), stopped_by="timeout"),
        evidence_of(called(), broken_off(), denials={1: error}, stopped_by="policy_interrupt"),
        evidence_of(called(), failed(error), ClientLost(exit_code=1)),
    ):
        reply = build_reply_text(evidence, ending(language))
        for doubled in ("..", "。。", ".。", "。.", ": .", "：。", " ."):
            assert doubled not in reply


def test_a_tool_of_a_server_is_told_by_its_own_name() -> None:
    search = called(name="mcp__memory_case__memory_case_search", query="OOM")
    told = describe_tools(failures(evidence_of(search, failed("busy"), finished())), "en")
    assert told.startswith("memory_case_search: OOM")
    stopped = evidence_of(search, broken_off(), stopped_by="doom_loop")
    assert "mcp__" not in build_reply_text(stopped, ending())
    odd = called(name="write__all")
    assert "write__all" in describe_tools(failures(evidence_of(odd, finished())), "en")
