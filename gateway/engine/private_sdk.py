"""What the gateway uses of the SDK that is not public; the other modules import it from here.

`tests/unit/gateway/engine/test_options.py` fails when a version of the SDK changes one of these.
"""

from claude_agent_sdk import ClaudeSDKClient
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

__all__ = ["MessageParseError", "SubprocessCLITransport", "parse_message", "rewind"]

_REWIND_S = 5.0


async def rewind(sdk: ClaudeSDKClient, prompt_uuid: str) -> bool:
    """Take the conversation back to before a prompt; return whether the agent program did so.

    Raise `Exception` if the request was refused or not answered; the SDK raises bare Exceptions.
    """
    request = {"subtype": "rewind_conversation", "target_message_uuid": prompt_uuid}
    query = sdk._query  # noqa: SLF001
    if query is None:
        return False
    answer = await query._send_control_request(request, timeout=_REWIND_S)  # noqa: SLF001
    return answer.get("rewound") is True
