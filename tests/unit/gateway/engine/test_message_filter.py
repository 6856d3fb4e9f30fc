"""A result is taken by its prompt's uuid alone; the rest goes by the last uuid that was told."""

from typing import cast

from claude_agent_sdk import Message, SystemMessage, UserMessage

from gateway.engine.message_filter import MessageFilter
from tests.support.engine_fakes import result, says, streams

BACKGROUND = {"kind": "task-notification"}
INIT = SystemMessage(subtype="init", data={})


def sorted_by(filter_: MessageFilter, *messages: Message) -> list[bool]:
    return [filter_.is_solicited(message) for message in messages]


def begun(run_uuid: str = "mine") -> MessageFilter:
    filter_ = MessageFilter()
    filter_.begin(run_uuid)
    return filter_


def test_a_result_is_taken_by_the_prompts_it_names() -> None:
    assert begun().is_solicited(result(uuids=["other", "mine"]))
    assert begun().is_solicited(result(user_message_uuid="mine"))
    assert not begun().is_solicited(result(uuids=["other"]))
    assert not begun().is_solicited(result(user_message_uuid="other"))
    assert begun().is_solicited(result()), "no other turn explains it"


def test_an_interrupted_run_may_get_a_result_without_a_name() -> None:
    filter_ = begun()
    filter_.interrupt()
    assert filter_.is_solicited(result(uuids=[]))
    assert not filter_.is_solicited(result(uuids=["other"]))


def test_a_background_turns_result_is_not_taken_even_by_an_interrupted_run() -> None:
    filter_ = begun()
    assert not filter_.is_solicited(result(origin=BACKGROUND))
    filter_.interrupt()
    assert not filter_.is_solicited(result(origin=BACKGROUND))


def test_without_a_run_nothing_is_solicited() -> None:
    filter_ = MessageFilter()
    assert sorted_by(filter_, INIT, streams("a"), says("a"), result()) == [False] * 4


def test_a_turn_that_began_before_the_run_keeps_its_messages_to_itself() -> None:
    filter_ = MessageFilter()
    filter_.is_solicited(streams("background"))
    filter_.begin("mine")
    tool_result = cast("Message", UserMessage(content="background"))
    messages = (streams("background"), tool_result, says("background"), result(origin=BACKGROUND))
    assert sorted_by(filter_, *messages) == [False] * 4
    assert sorted_by(filter_, streams("a"), says("a"), result(uuids=["mine"])) == [True] * 3


def test_a_turn_that_takes_the_prompt_in_becomes_the_runs_own() -> None:
    filter_ = MessageFilter()
    filter_.is_solicited(streams("background"))
    filter_.begin("mine")
    messages = (streams("a", uuids=["mine"]), says("a"), result(uuids=["mine"], origin=BACKGROUND))
    assert sorted_by(filter_, *messages) == [True] * 3


def test_the_name_last_told_holds_until_the_next() -> None:
    filter_ = begun()
    messages = (
        streams("a", uuids=["mine"]),
        says("a"),
        says("b", uuids=["other"]),
        streams("b"),
        says("c", uuids=["other", "mine"]),
    )
    assert sorted_by(filter_, *messages) == [True, True, False, False, True]


def test_a_new_run_is_not_taken_for_an_interrupted_one() -> None:
    filter_ = begun()
    filter_.interrupt()
    filter_.begin("next")
    filter_.is_solicited(says("other", uuids=["other"]))
    assert not filter_.is_solicited(result(uuids=[]))
