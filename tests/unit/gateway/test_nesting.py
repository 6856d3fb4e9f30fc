import json

import pytest

from gateway.nesting import TOO_DEEP, bound_depth, depth_of

CUT = json.loads(TOO_DEEP)


@pytest.mark.parametrize(
    ("text", "depth"),
    [("1", 0), ("[]", 1), ('{"a": [1, {"b": 2}], "c": []}', 3), ('["[[[", "\\"[[", {}]', 2)],
)
def test_depth_counts_brackets_outside_of_strings(text: str, depth: int) -> None:
    assert depth_of(text) == depth


@pytest.mark.parametrize(
    "text", ["", "plain", "[[1]]", '["[[[[", "]]]]"]', '{"a": {"b": "[\\"["}}']
)
def test_text_within_the_limit_is_left_as_it_is(text: str) -> None:
    assert bound_depth(text, 2) == text


def test_what_lies_deeper_is_replaced_and_everything_beside_it_is_kept() -> None:
    value = {"a": [1, [2, [3]], {"b": {"c": "]"}}, []], "d": "[[["}
    assert json.loads(bound_depth(json.dumps(value), 3)) == {
        "a": [1, [2, CUT], {"b": CUT}, []],
        "d": "[[[",
    }


def test_what_no_parser_could_read_can_be_read_afterwards() -> None:
    deep = '{"a": 1, "b": ' + "[" * 100_000 + "]" * 100_000 + ', "c": 2}'
    with pytest.raises(RecursionError):
        json.loads(deep)
    read = json.loads(bound_depth(deep, 2))
    assert (read["a"], read["b"], read["c"]) == (1, [CUT], 2)


@pytest.mark.parametrize("text", ["[" * 50, "[[[[ 1", "]" * 50, '[[[["', "[[[]]]]]]]"])
def test_text_that_is_no_json_is_bounded_too(text: str) -> None:
    assert depth_of(bound_depth(text, 2)) <= 2
