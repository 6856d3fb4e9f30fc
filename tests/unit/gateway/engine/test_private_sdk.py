"""The SDK still has what the gateway uses of it without being promised it."""

import inspect

from claude_agent_sdk import ClaudeSDKClient
from claude_agent_sdk._internal.query import Query

from gateway.engine.private_sdk import MessageParseError, SubprocessCLITransport, parse_message


def test_a_client_sends_control_requests_through_its_query() -> None:
    assert ClaudeSDKClient()._query is None  # noqa: SLF001
    assert "self._query = Query(" in inspect.getsource(ClaudeSDKClient)
    send = Query._send_control_request  # noqa: SLF001
    assert inspect.iscoroutinefunction(send)
    assert list(inspect.signature(send).parameters) == ["self", "request", "timeout"]


def test_the_transport_is_what_is_wrapped() -> None:
    source = inspect.getsource(SubprocessCLITransport)
    assert "self._stdout_stream = TextReceiveStream(" in source
    assert "self._max_buffer_size" in source
    assert list(inspect.signature(SubprocessCLITransport).parameters)[:2] == ["prompt", "options"]


def test_the_parser_names_what_it_refused() -> None:
    assert list(inspect.signature(parse_message).parameters) == ["data"]
    assert MessageParseError("x", {"a": 1}).data == {"a": 1}
