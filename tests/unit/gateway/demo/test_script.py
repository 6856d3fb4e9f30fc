import json

import pytest

from gateway.demo.answer import Answer, Broken, Failure, Text, Thinking, ToolCall
from gateway.demo.script import SCRIPT_ENDED, ScriptError, find_script
from gateway.demo.server import DemoModel
from tests.unit.gateway.demo.dialogue import (
    EMPTY_NOTICE,
    HOOK,
    assistant,
    called,
    calls_of,
    read,
    system,
    user,
    words_of,
)

NOT_SCRIPTS = [
    *("nonsense", "{}", "[1]", '[{"txt": "a"}]', '[{"text": 1}]', "[{}]", '[{"tools": [{}]}]'),
    *('[{"text": "a\0b"}]', '[{"input": {}}]', '[{"tool": "A", "raw_input": {}}]', '["\\ud800"]'),
    *('[{"tool": "A", "input": {"a": NaN}}]', '[{"tool": "A", "input": {"a": 1e999}}]'),
    *('[{"status": 99}]', '[{"status": 1e3}]', '[{"status": 600}]'),
    *('[{"status": 529, "retry_after": -1}]', '[{"text": "a", "delta_delay_ms": -1}]'),
    *(f'[{{"text": "a", "delay_ms": 1{"0" * 400}}}]', "9" * 5000, "[" * 100_000),
    *('[{"text": "a", "times": "many"}]', '[{"on_followup": [1]}]', '[{"on_followup": 1}]'),
    '[{"tool": "Bash", "input": ' + '{"a":' * 900 + "1" + "}" * 902,
]


def script(*steps: object) -> str:
    return f"please do\n```candor-script\n{json.dumps(list(steps))}\n```\nthanks"


def test_a_prompt_without_a_block_has_no_script() -> None:
    assert find_script("list the files ```python\n[]\n```") is None


def test_what_is_not_a_script_is_told() -> None:
    for body in NOT_SCRIPTS:
        prompt = f"```candor-script\n{body}\n```"
        with pytest.raises(ScriptError):
            find_script(prompt)
        assert "cannot play" in words_of(DemoModel().reply(read(user(prompt)))), body[:50]


def test_brackets_in_strings_and_moderate_depth_are_allowed() -> None:
    for value in ('"[[[["', "[" * 60 + "]" * 60, '"\\\\"'):
        body = f'[{{"tool": "Bash", "input": {{"a": {value}}}}}]'
        assert find_script(f"```candor-script\n{body}\n```") is not None


def test_each_answer_takes_the_next_step_also_in_a_restarted_server() -> None:
    prompt = script({"tool": "Bash", "input": {"command": "ls"}, "text": "look"}, {"text": "done"})
    first = DemoModel().reply(read(user(prompt)))
    assert calls_of(first) == [("Bash", {"command": "ls"})]
    assert words_of(first) == "look"
    assert words_of(DemoModel().reply(read(user(prompt), *called("Bash", "ok")))) == "done"
    after_all = [user(prompt), assistant("a"), system("x"), assistant("b"), user(EMPTY_NOTICE)]
    assert words_of(DemoModel().reply(read(*after_all))) == SCRIPT_ENDED


def test_failing_attempts_give_way_to_the_next_step() -> None:
    model = DemoModel()
    request = read(user(script({"status": 529, "times": 2, "retry_after": 3}, {"text": "up"})))
    failure = Failure(
        status=529,
        error_type="overloaded_error",
        message="overloaded_error (scripted)",
        retry_after_s=3,
    )
    assert [model.reply(request) for _ in range(2)] == [failure, failure]
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
    model = DemoModel()
    prompt = user(script({"text": "one"}, {"drop": True, "after_chars": 3}, {"text": "two"}))
    talk = [[prompt], [prompt, assistant("one")], [prompt, assistant("one")]]
    assert [type(model.reply(read(*messages))) for messages in talk] == [Answer, Broken, Answer]


def test_a_repeated_call_counts_once_for_each_answer() -> None:
    repeated = {"repeat": {"name": "Bash", "input": {"command": "x"}}, "times": 3}
    talk = [user(script(repeated, {"text": "z"}))]
    for _ in range(3):
        assert calls_of(DemoModel().reply(read(*talk))) == [("Bash", {"command": "x"})]
        talk += called("Bash", "ok")
    assert words_of(DemoModel().reply(read(*talk))) == "z"


def test_blocks_stop_reasons_and_pace_are_as_written() -> None:
    tools = [
        {"name": None, "input": [1, "x"], "id": "same"},
        {"name": 7, "input": "ls", "id": None},
        {"name": "Bash", "raw_input": '{"command": '},
    ]
    found = find_script(
        script(
            {"thinking": "hm", "text": "a", "tools": tools},
            {"max_tokens": True, "text": "cut", "delay_ms": 5, "delta_delay_ms": 7},
            {"empty": True},
            {"empty": True, "text": ""},
            {"stop_reason": "pause_turn"},
            {"hang": True},
        )
    )
    assert found is not None
    blocks, cut, empty, blank, paused, hang = (step.reply for step in found.steps)
    assert blocks == Answer(
        blocks=(
            Thinking("hm"),
            Text("a"),
            ToolCall(None, [1, "x"], id="same"),
            ToolCall(7, "ls", id=None),
            ToolCall("Bash", {}, raw_arguments='{"command": '),
        ),
        stop_reason="tool_use",
    )
    assert isinstance(cut, Answer)
    assert (cut.stop_reason, cut.pace.delay_ms, cut.pace.delta_delay_ms) == ("max_tokens", 5, 7)
    assert empty == Answer(blocks=())
    assert blank == Answer(blocks=(Text(""),))
    assert paused == Answer(blocks=(), stop_reason="pause_turn")
    assert isinstance(hang, Broken)
    assert (hang.ending, hang.after_chars) == ("hang", None)


def test_a_refusal_without_text_leaves_no_trace_and_is_counted_by_attempts() -> None:
    """The agent asks once more with the very same request; only the second refusal ends the turn."""
    model = DemoModel()
    request = read(user(script({"refusal": True}, {"text": "third"})))
    replies = [model.reply(request) for _ in range(3)]
    reasons = [reply.stop_reason for reply in replies if isinstance(reply, Answer)]
    assert reasons == ["refusal", "refusal", "end_turn"]


def test_an_echo_shows_what_reached_the_model() -> None:
    expected = {
        "system": "You are a Claude agent.",
        "context": f"{HOOK}green",
        "memory": "green",
        "tools": "Bash\nRead",
    }
    echoed = {
        part: words_of(
            DemoModel().reply(read(user(script({"echo": part})), system(f"{HOOK}green")))
        )
        for part in expected
    }
    assert echoed == expected


def test_followups_play_over_the_prompts_that_have_no_script() -> None:
    prompt = script({"text": "one"}, {"on_followup": [{"text": "f1"}, {"text": "f2"}]})
    model = DemoModel()
    talk = [user(prompt), assistant("one"), user("summarise")]
    assert words_of(model.reply(read(*talk))) == "f1"
    talk += [assistant("f1"), user("and again")]
    assert words_of(model.reply(read(*talk))) == "f2"
    talk += [assistant("f2"), user("hello")]
    assert "candor-demo" in words_of(model.reply(read(*talk)))
    later = [user(script({"text": "two"})), assistant("two"), user("hello")]
    assert "f1" not in words_of(DemoModel().reply(read(*talk[:2], *later)))
