"""How a prompt is sent to the agent program."""

from dataclasses import replace

from gateway.engine.runs import SdkRun, Send
from tests.support.engine_talk import prompt


async def test_only_a_command_of_the_gateway_is_expanded_by_the_agent_program() -> None:
    for is_command in (False, True):
        given = replace(prompt("/compact @file"), is_command=is_command)
        (sent,) = [message async for message in Send(SdkRun(lambda _: None), given).messages()]
        assert sent["client_composed"] is not is_command
