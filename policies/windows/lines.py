"""What a command line for Windows must not hold, whichever shell it is for.

cmd, PowerShell or bash may read the line, and the same character ends a command in one and belongs to a name
in the other. A character is allowed if all of them take it literally, and else refused under its own rule.
"""

from policies.denials import denied, refused_signs
from policies.verdict import Refused
from policies.visible_text import check_command_text

SMART_DOUBLE = frozenset("“”„")
SMART_SINGLE = frozenset("‘’‚‛")
SMART_DASHES = frozenset("–—―")
"""PowerShell takes all of these for the plain ones."""

_OPERATORS = refused_signs("windows")
"""Outside quotes; the longer first."""
_AT_WORD_START = refused_signs("windows_word_start")


def check_line(command: str) -> None:
    """Refuse a line that is too long, or more than one line, or not plainly visible."""
    check_command_text(command)
    if "\r" not in command and "\n" not in command:
        return
    lines = command.splitlines()
    if any(line.endswith(("`", "^")) for line in lines[:-1]):
        raise denied("line_continuation")
    if any(line.endswith(("@'", '@"')) for line in lines):
        raise denied("here_string")
    raise denied("newline.line")


def check_plain(line: str, at: int, *, starts: bool) -> None:
    """Refuse the character at a place outside quotes; `starts`: a word begins there."""
    char = line[at]
    if char in SMART_DOUBLE or char in SMART_SINGLE:
        raise denied("smart_quote", char)
    if starts and char in SMART_DASHES:
        raise denied("smart_dash", char)
    for sign, rule in _AT_WORD_START.items() if starts else ():
        if line.startswith(sign, at) and not line.startswith(("@'", '@"', "@(", "@{"), at):
            raise Refused(*rule)
    for sign, rule in _OPERATORS.items():
        if line.startswith(sign, at):
            raise Refused(*rule)
