"""Takes the agent program's wrapping off the results of tools, for people."""

import re

_TAGS = re.compile(r"</?(?:tool_use_error|persisted-output|truncated-output)>\n?")
_HOOK_ERROR = re.compile(r"\A(?:PreToolUse|PostToolUse)(?::\S+)? hook error: (?:\[callback\]: )?")
_FOR_MODEL = re.compile(r" \(file state is current in your context[^()\n]*\)")
_SAVED_TO = re.compile(r" (?:Full output|The whole result is) saved (?:to: |at )[^\n]*")

_REPORT = re.compile(
    r"\A[^\[]{0,2000}\[Subagent hand-back\][^\n]* The report follows:\n(?P<report>.*)\nagentId: ",
    re.DOTALL,
)
"""A sub-agent's report in the frame that tells the model whose words it is, its lines indented."""

_CUT = re.compile(r"\.\.\. \[(\d+) characters truncated\] \.\.\.")
"""The agent program's mark in the middle of a failed command's output; it counts what it kept of it
alone.
"""


def honest_failure(text: str) -> tuple[str, bool]:
    """Return the text of a failed call with a true mark where its middle is missing, and whether it
    is.
    """
    told, cuts = _CUT.subn(r"… at least \1 characters left out …", text)
    return told, cuts > 0


def report_of(text: str) -> str:
    """Return a sub-agent's report out of what its call returned."""
    found = _REPORT.match(text)
    if found is None:
        return text
    return "\n".join(line.removeprefix("  ") for line in found["report"].split("\n"))


def plain_result(text: str) -> str:
    """Return the text of a result without the agent program's wrapping."""
    for wrapping in (_TAGS, _HOOK_ERROR, _SAVED_TO, _FOR_MODEL):
        text = wrapping.sub("", text)
    return text
