import json
from collections.abc import Callable

import pytest

from gateway.demo.answer import Answer, Broken, Failure, Text, Thinking, ToolCall
from gateway.demo.attempts import AttemptCounter
from gateway.demo.model import DemoModel
from gateway.demo.script import SCRIPT_ENDED, ScriptError, choose_step, find_script
from tests.unit.gateway.demo.dialogue import (
    EMPTY_NOTICE,
    assistant,
    calls_of,
    read,
    system,
    tool_result,
    tool_use,
    user,
    words_of,
)


def script(*steps: object) -> str:
    return f"please do\n```candor-script\n{json.dumps(list(steps))}\n```\nthanks"


def counting() -> Callable[[int], int]:
    attempts = AttemptCounter()
    return attempts.note


def test_a_prompt_without_a_block_has_no_script() -> None:
    assert find_script("list the files ```python\n[]\n```") is None


@pytest.mark.parametrize(
    "body",
    [
        *("nonsense", "{}", "[1]", '[{"txt": "a"}]', '[{"text": 1}]', "[{}]", '[{"tools": [{}]}]'),
        *(
            '[{"text": "a\0b"}]',
            '[{"input": {}}]',
            '[{"tool": "A", "raw_input": {}}]',
            '["\\ud800"]',
        ),
        *('[{"tool": "Bash", "input": {"a": NaN}}]', '[{"tool": "Bash", "input": {"a": 1e999}}]'),
        *(
            '[{"status": 99}]',
            '[{"status": 1e3}]',
            '[{"status": 600}]',
            f'[{{"status": 1{"0" * 500}}}]',
        ),
        *('[{"status": 529, "retry_after": -1}]', '[{"status": 529, "retry_after": "x"}]'),
        f'[{{"status": 529, "retry_after": 1{"0" * 400}}}]',
        *(f'[{{"text": "a", "delay_ms": 1{"0" * 400}}}]', '[{"text": "a", "delta_delay_ms": -1}]'),
        *(
            "9" * 5000,
            "[" * 100_000,
            '[{"tool": "Bash", "input": ' + '{"a":' * 900 + "1" + "}" * 902,
        ),
        *('"\\"' * 20_000, '[{"text": "a", "times": "many"}]', '[{"text": "a", "times": null}]'),
    ],
    ids=range(28),
)
def test_what_is_no_script_is_told(body: str) -> None:
    prompt = f"```candor-script\n{body}\n```"
    with pytest.raises(ScriptError):
        find_script(prompt)
    assert "cannot play" in words_of(DemoModel().reply(read(user(prompt))))


@pytest.mark.parametrize("value", ['"[[[["', "[" * 60 + "]" * 60, '"\\\\"'])
def test_brackets_in_strings_and_moderate_depth_are_no_mistake(value: str) -> None:
    body = f'[{{"tool": "Bash", "input": {{"a": {value}}}}}]'
    assert find_script(f"```candor-script\n{body}\n```") is not None


def test_each_answer_takes_the_next_step() -> None:
    prompt = script({"tool": "Bash", "input": {"command": "ls"}, "text": "look"}, {"text": "done"})
    model = DemoModel()
    first = model.reply(read(user(prompt)))
    assert calls_of(first) == [("Bash", {"command": "ls"})]
    assert words_of(first) == "look"
    after_tool = [user(prompt), assistant(tool_use("t1")), user(tool_result("t1", "ok"))]
    assert words_of(model.reply(read(*after_tool))) == "done"
    after_all = [user(prompt), assistant("a"), system("x"), assistant("b"), user(EMPTY_NOTICE)]
    assert words_of(model.reply(read(*after_all))) == SCRIPT_ENDED


def test_the_position_is_in_the_request_so_a_restarted_server_stays_in_step() -> None:
    prompt = script({"text": "one"}, {"text": "two"})
    messages = [user(prompt, EMPTY_NOTICE)]
    assert words_of(DemoModel().reply(read(*messages))) == "two"
    assert words_of(DemoModel().reply(read(*messages))) == "two"


def test_failing_attempts_give_way_to_the_next_step() -> None:
    model = DemoModel()
    request = read(user(script({"status": 529, "times": 2, "retry_after": 3}, {"text": "up"})))
    failure = Failure(
        status=529,
        error_type="overloaded_error",
        message="overloaded_error (scripted)",
        retry_after_s=3.0,
    )
    assert model.reply(request) == failure
    assert model.reply(request) == failure
    assert words_of(model.reply(request)) == "up"


def test_attempts_are_counted_per_conversation_and_per_prompt() -> None:
    model = DemoModel()
    prompt = script({"status": 500}, {"text": "up"})
    assert isinstance(model.reply(read(user(prompt), session="a")), Failure)
    assert isinstance(model.reply(read(user(prompt), session="b")), Failure)
    assert words_of(model.reply(read(user(prompt), session="a"))) == "up"
    again = read(user(prompt), assistant("up"), user(prompt), session="a")
    assert isinstance(model.reply(again), Failure)


def test_a_failing_step_between_answers_fails_when_its_turn_comes() -> None:
    found = find_script(script({"text": "one"}, {"drop": True, "after_chars": 3}, {"text": "two"}))
    assert found is not None
    count = counting()
    replies = [
        step.reply if step else None
        for step in (choose_step(found.steps, answered, count) for answered in (0, 1, 1, 2))
    ]
    assert [type(reply) for reply in replies] == [Answer, Broken, Answer, type(None)]


def test_a_repeated_call_counts_once_for_each_answer() -> None:
    found = find_script(
        script({"repeat": {"tool": "Bash", "input": {"command": "x"}}, "times": 3}, {"text": "z"})
    )
    assert found is not None
    replies = [choose_step(found.steps, answered, counting()) for answered in range(4)]
    assert [calls_of(step.reply) for step in replies[:3] if step] == [
        [("Bash", {"command": "x"})]
    ] * 3
    assert replies[3] is not None
    assert words_of(replies[3].reply) == "z"


def test_blocks_stop_reasons_and_pace_are_as_written() -> None:
    found = find_script(
        script(
            {
                "thinking": "hm",
                "text": "a",
                "tools": [{"name": "A"}, {"name": "B", "input": {"k": 1}}],
            },
            {"max_tokens": True, "text": "cut", "delay_ms": 5, "delta_delay_ms": 7},
            {"refusal": True},
            {"empty": True},
            {"empty": True, "text": ""},
            {"stop_reason": "pause_turn"},
            {"hang": True},
        )
    )
    assert found is not None
    blocks, cut, refusal, empty, blank, paused, hang = (step.reply for step in found.steps)
    assert blocks == Answer(
        blocks=(Thinking("hm"), Text("a"), ToolCall("A", {}), ToolCall("B", {"k": 1})),
        stop_reason="tool_use",
    )
    assert isinstance(cut, Answer)
    assert (cut.stop_reason, cut.pace.delay_ms, cut.pace.delta_delay_ms) == ("max_tokens", 5, 7)
    assert refusal == Answer(blocks=(), stop_reason="refusal")
    assert empty == Answer(blocks=())
    assert blank == Answer(blocks=(Text(""),))
    assert paused == Answer(blocks=(), stop_reason="pause_turn")
    assert isinstance(hang, Broken)
    assert (hang.ending, hang.after_chars) == ("hang", None)


def test_a_call_is_what_the_script_says_whatever_the_api_promises() -> None:
    found = find_script(
        script(
            {
                "tools": [
                    {"name": None, "input": [1, "x"], "id": "same"},
                    {"name": 7, "input": "ls", "id": None},
                    {"name": "Bash", "raw_input": '{"command": '},
                ]
            }
        )
    )
    assert found is not None
    reply = found.steps[0].reply
    assert isinstance(reply, Answer)
    assert reply.blocks == (
        ToolCall(None, [1, "x"], id="same"),
        ToolCall(7, "ls", id=None),
        ToolCall("Bash", {}, raw_arguments='{"command": '),
    )


def test_a_wordless_refusal_leaves_no_trace_and_is_counted_by_attempts() -> None:
    """The agent asks once more with the very same request; only the second refusal ends the turn."""
    model = DemoModel()
    request = read(user(script({"refusal": True}, {"text": "third"})))
    replies = [model.reply(request) for _ in range(3)]
    assert [r.stop_reason for r in replies if isinstance(r, Answer)] == [
        "refusal",
        "refusal",
        "end_turn",
    ]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("system", "You are a Claude agent."),
        ("context", "UserPromptSubmit hook additional context: green"),
        ("memory", "green"),
        ("tools", "Bash\nEdit\nGlob\nGrep\nRead\nSkill\nWrite"),
    ],
)
def test_an_echo_shows_what_reached_the_model(part: str, expected: str) -> None:
    request = read(
        user(script({"echo": part})), system("UserPromptSubmit hook additional context: green")
    )
    assert words_of(DemoModel().reply(request)) == expected


def test_followups_play_over_the_prompts_that_have_no_script() -> None:
    prompt = script({"text": "one"}, {"on_followup": [{"text": "f1"}, {"text": "f2"}]})
    model = DemoModel()
    talk = [user(prompt), assistant("one"), user("summarise")]
    assert words_of(model.reply(read(*talk))) == "f1"
    talk += [assistant("f1"), user("and again")]
    assert words_of(model.reply(read(*talk))) == "f2"
    talk += [assistant("f2"), user("hello")]
    assert "candor-demo" in words_of(model.reply(read(*talk)))


def test_a_later_script_replaces_the_followups_of_an_earlier_one() -> None:
    talk = [
        user(script({"text": "one"}, {"on_followup": [{"text": "f1"}]})),
        assistant("one"),
        user(script({"text": "two"})),
        assistant("two"),
        user("hello"),
    ]
    assert "f1" not in words_of(DemoModel().reply(read(*talk)))


def test_the_attempt_counter_forgets_the_least_recently_used() -> None:
    attempts = AttemptCounter(max_keys=2)
    attempts.note("a")
    attempts.note("b")
    assert attempts.note("a") == 1
    attempts.note("c")
    assert len(attempts) == 2
    assert attempts.note("b") == 0
    assert attempts.note("c") == 1
