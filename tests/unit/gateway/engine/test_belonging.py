"""A result is taken by its prompt's uuid alone; the rest goes by the last uuid that was told."""

from typing import cast

from claude_agent_sdk import Message, SystemMessage, UserMessage

from gateway.engine.belonging import TurnSorter
from tests.support.engine_fakes import result, says, streams

BACKGROUND = {"kind": "task-notification"}
INIT = SystemMessage(subtype="init", data={})


def sorted_by(sorter: TurnSorter, *messages: Message) -> list[bool]:
    return [sorter.is_solicited(one) for one in messages]


def begun(run_uuid: str = "mine") -> TurnSorter:
    sorter = TurnSorter()
    sorter.begin(run_uuid)
    return sorter


def test_a_result_that_names_the_prompt_is_the_runs_own() -> None:
    assert begun().is_solicited(result(uuids=["other", "mine"]))
    assert begun().is_solicited(result(user_message_uuid="mine"))


def test_a_result_that_names_another_prompt_is_not() -> None:
    assert not begun().is_solicited(result(uuids=["other"]))
    assert not begun().is_solicited(result(user_message_uuid="other"))


def test_an_interrupted_run_may_get_a_result_without_a_name() -> None:
    sorter = begun()
    sorter.interrupt()
    assert sorter.is_solicited(result(uuids=[]))
    assert not sorter.is_solicited(result(uuids=["other"]))


def test_a_background_turns_result_is_not_taken_even_by_an_interrupted_run() -> None:
    sorter = begun()
    assert not sorter.is_solicited(result(origin=BACKGROUND))
    sorter.interrupt()
    assert not sorter.is_solicited(result(origin=BACKGROUND))


def test_a_result_that_names_nobody_is_taken_when_nothing_else_explains_it() -> None:
    assert begun().is_solicited(result())


def test_without_a_run_nothing_is_solicited() -> None:
    sorter = TurnSorter()
    assert sorted_by(sorter, INIT, streams("a"), says("a"), result()) == [False] * 4


def test_a_turn_that_began_before_the_run_keeps_its_messages_to_itself() -> None:
    sorter = TurnSorter()
    sorter.is_solicited(streams("background"))
    sorter.begin("mine")
    tool_result = cast("Message", UserMessage(content="background"))
    messages = (streams("background"), tool_result, says("background"), result(origin=BACKGROUND))
    assert sorted_by(sorter, *messages) == [False] * 4
    assert sorted_by(sorter, streams("a"), says("a"), result(uuids=["mine"])) == [True] * 3


def test_a_turn_that_takes_the_prompt_in_becomes_the_runs_own() -> None:
    sorter = TurnSorter()
    sorter.is_solicited(streams("background"))
    sorter.begin("mine")
    messages = (streams("a", uuids=["mine"]), says("a"), result(uuids=["mine"], origin=BACKGROUND))
    assert sorted_by(sorter, *messages) == [True] * 3


def test_the_name_last_told_holds_until_the_next() -> None:
    sorter = begun()
    messages = (
        streams("a", uuids=["mine"]),
        says("a"),
        says("b", uuids=["other"]),
        streams("b"),
        says("c", uuids=["other", "mine"]),
    )
    assert sorted_by(sorter, *messages) == [True, True, False, False, True]


def test_a_new_run_is_not_taken_for_an_interrupted_one() -> None:
    sorter = begun()
    sorter.interrupt()
    sorter.begin("next")
    sorter.is_solicited(says("other", uuids=["other"]))
    assert not sorter.is_solicited(result(uuids=[]))
