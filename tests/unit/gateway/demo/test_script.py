import json

import pytest

from gateway.demo.answer import Answer, Broken, Text, Thinking, ToolCall
from gateway.demo.script import ScriptError, find_script
from gateway.demo.server import DemoModel
from tests.unit.gateway.demo.dialogue import read, user, words_of

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
