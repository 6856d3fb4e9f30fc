"""Takes the agent program's wrapping off the results of tools, for people."""

import re

_TAGS = re.compile(r"</?(?:tool_use_error|persisted-output|truncated-output)>\n?")
_HOOK_ERROR = re.compile(r"\A(?:PreToolUse|PostToolUse)(?::\S+)? hook error: (?:\[callback\]: )?")
_FOR_MODEL = re.compile(r" \(file state is current in your context[^()\n]*\)")
_SAVED_TO = re.compile(r" (?:Full output|The whole result is) saved (?:to: |at )[^\n]*")


def plain_result(text: str) -> str:
    """Return the text of a result without the agent program's wrapping."""
    for wrapping in (_TAGS, _HOOK_ERROR, _SAVED_TO, _FOR_MODEL):
        text = wrapping.sub("", text)
    return text
