"""Definitions of tools are found, and taken out of a text that says more."""

import json

import pytest

from policies.content.tool_definitions import is_tool_definition, without_tool_definitions
from policies.content.write_gate import without_unsavable

SCHEMA = json.dumps(
    {
        "name": "article_query",
        "description": "Query articles",
        "input_schema": {
            "type": "object",
            "properties": {"topic": {"type": "string"}, "page": {"type": "integer"}},
            "required": ["topic"],
        },
    },
    indent=2,
)
PARAMETERS = """Tool: article_query
Parameters:
- topic (string, required): what to look for
- page (integer): from 1"""
IN_CHINESE = """工具：article_query
参数：
- topic（字符串，必填）：主题
- page：整数，从 1 开始"""


def test_json_that_is_no_schema_is_none() -> None:
    assert not is_tool_definition('{"parameters": 3}')
    assert not is_tool_definition("[]")
    assert not is_tool_definition('[{"a": 1}]')
    assert not is_tool_definition("{broken")
    assert is_tool_definition(json.dumps({"tools": [json.loads(SCHEMA)]}))
    assert is_tool_definition(
        json.dumps({"type": "function", "function": {"name": "f", "parameters": {}}})
    )


@pytest.mark.parametrize(
    "definition",
    [
        SCHEMA,
        json.dumps(json.loads(SCHEMA)),
        json.dumps({"tools": [json.loads(SCHEMA)]}, indent=2),
        f"```json\n{SCHEMA}\n```",
        f"Input schema:\n```json\n{SCHEMA}\n```",
        PARAMETERS,
        PARAMETERS.replace("\n", "\n\n"),
        IN_CHINESE,
        f"{PARAMETERS}\n{SCHEMA}",
    ],
    ids=range(9),
)
def test_a_definition_beside_other_words_is_taken_out(definition: str) -> None:
    assert without_tool_definitions(definition)[0].strip() == ""
    text = f"The lab opens at 8.\n{definition}\n王芳负责实验室。"
    assert without_tool_definitions(text) == ("The lab opens at 8.\n王芳负责实验室。", 1)
    assert without_unsavable(text).text == "The lab opens at 8.\n王芳负责实验室。"


@pytest.mark.parametrize(
    "takes", [{}, {"type": "object"}, {"page": {"type": "integer"}, "topic": {"description": "a"}}]
)
def test_a_definition_needs_no_list_of_properties(takes: dict[str, object]) -> None:
    definition = json.dumps({"name": "find", "parameters": takes})
    assert without_tool_definitions(f"Ann: {definition}") == ("Ann: ", 1)


def test_a_definition_within_a_line_is_taken_out() -> None:
    text = f"The lab opens at 8. It takes {json.dumps(json.loads(SCHEMA))} and Ann owns it."
    told = without_tool_definitions(text)
    assert told == ("The lab opens at 8. It takes  and Ann owns it.", 1)


@pytest.mark.parametrize(
    "text",
    [
        "The users table has these columns:\n- id (integer)\n- name (string)",
        "Our API's parameters:\n- id (integer): of the order\n- name (string): of the customer",
        "Tool: the torque wrench hangs beside the door.\n- Ann owns it.",
        "```\nmake\n```\nName: Ann\n- age: number 42",
        'The shop is {"name": "shop", "parameters": 3}.',
        'Orders follow {"type": "object", "properties": {"id": {"type": "string"}}}.',
        "工具：扭矩扳手挂在门边。\n- 王芳负责",
        '{"name": "a", "parameters": {"page": ',
        'The job is {"name": "nightly", "parameters": {"retries": 3, "type": "full"}}.',
        '任务是 {"name": "夜间备份", "parameters": {"重试": {"次数": 3}}}，由王芳负责。',
    ],
    ids=range(10),
)
def test_what_only_resembles_a_definition_stays(text: str) -> None:
    assert without_tool_definitions(text) == (text, 0)


def test_a_text_that_begins_json_again_and_again_is_read_a_few_times() -> None:
    text = '"name" "tools": ' + '[{"tools": ' * 20_000
    assert without_tool_definitions(text) == (text, 0)


@pytest.mark.parametrize("depth", [300, 480, 700, 900, 20_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"tools": ', "}")])
def test_json_that_is_nested_too_deep_is_no_definition(depth: int, begin: str, end: str) -> None:
    text = f'the "tools": {begin * depth}1{end * depth}'
    assert without_tool_definitions(text) == (text, 0)
