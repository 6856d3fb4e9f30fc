"""What a command line for Windows must not hold, whichever shell it is for.

cmd, PowerShell or bash may read the line, and the same character ends a command in one and belongs to a name
in the other. A character is allowed if all of them take it literally, and else refused under its own rule.
"""

from policies.verdict import DenialText, Refused
from policies.visible_text import NO_REDIRECT, ONE_COMMAND, check_command_text

_WRITE_OUT = "Write the name out as it is."
_QUOTE = "Put the name in double quotes."

SMART_DOUBLE = frozenset("“”„")
SMART_SINGLE = frozenset("‘’‚‛")
SMART_DASHES = frozenset("–—―")
"""PowerShell takes all of these for the plain ones."""

INNER_QUOTE: DenialText = (
    "quote_inside_word",
    "A quotation mark must stand around the whole word.",
    "Put the whole name in one pair of quotes.",
)
"""The shells join a quote in the middle of a word in different ways."""
UNCLOSED_QUOTE: DenialText = ("unclosed_quote", "A quotation mark is not closed.", "Close it.")

_OPERATORS: tuple[tuple[str, DenialText], ...] = (
    ("&&", ("operator_and", "Several commands in one call are not allowed.", ONE_COMMAND)),
    ("||", ("operator_or", "Several commands in one call are not allowed.", ONE_COMMAND)),
    ("&", ("operator_ampersand", "& starts another command.", ONE_COMMAND)),
    ("|", ("operator_pipe", "Pipes are not allowed.", ONE_COMMAND)),
    ("<#", ("block_comment", "Comments are not allowed in commands.", "Leave the comment out.")),
    ("<", ("redirect", "Redirections are not allowed.", NO_REDIRECT)),
    (">", ("redirect", "Redirections are not allowed.", NO_REDIRECT)),
    (";", ("separator_semicolon", "; separates commands or words.", ONE_COMMAND)),
    ("%", ("variable_percent", "Variables such as %X% are not expanded here.", _WRITE_OUT)),
    ("!", ("variable_delayed", "Variables such as !X! are not expanded here.", _WRITE_OUT)),
    ("^", ("caret", "^ escapes characters in cmd and is not allowed.", _QUOTE)),
    ("$(", ("subexpression", "A command inside a command is not allowed.", ONE_COMMAND)),
    ("$", ("variable_dollar", "Variables are not expanded here.", _WRITE_OUT)),
    ("`", ("backtick", "A backtick escapes characters in PowerShell.", _WRITE_OUT)),
    ("@'", ("here_string", "Here-strings are not allowed.", NO_REDIRECT)),
    ('@"', ("here_string", "Here-strings are not allowed.", NO_REDIRECT)),
    ("@(", ("array_expression", "Array expressions are not allowed.", "Write 'a','b' instead.")),
    ("@{", ("hash_table", "Hash tables are not allowed.", "Write each parameter out.")),
    ("(", ("grouping", "Parentheses group commands and are not allowed.", _QUOTE)),
    (")", ("grouping", "Parentheses group commands and are not allowed.", _QUOTE)),
    ("{", ("script_block", "Braces hold commands and are not allowed.", _QUOTE)),
    ("}", ("script_block", "Braces hold commands and are not allowed.", _QUOTE)),
)
"""Outside quotes; the longer first."""

_AT_WORD_START: tuple[tuple[str, DenialText], ...] = (
    ("--%", ("stop_parsing", "--% hands the rest on unread.", "Write plain words.")),
    ("@", ("splatting", "@ hands on a variable's content.", "Write each parameter out.")),
    ("#", ("comment", "Comments are not allowed in commands.", "Leave the comment out.")),
)


def check_line(command: str) -> None:
    """Refuse a line that is too long, or more than one line, or not plainly visible."""
    check_command_text(command)
    if "\r" not in command and "\n" not in command:
        return
    lines = command.splitlines()
    if any(line.endswith(("`", "^")) for line in lines[:-1]):
        raise Refused("line_continuation", "A command must be one line.", ONE_COMMAND)
    if any(line.endswith(("@'", '@"')) for line in lines):
        raise Refused("here_string", "Here-strings are not allowed.", NO_REDIRECT)
    raise Refused("newline", "A command must be one line.", ONE_COMMAND)


def check_plain(line: str, at: int, *, starts: bool) -> None:
    """Refuse the character at a place outside quotes; `starts`: a word begins there."""
    char = line[at]
    if char in SMART_DOUBLE or char in SMART_SINGLE:
        raise Refused(
            "smart_quote",
            f"{char} is a quotation mark to PowerShell and a letter to cmd.",
            "Use straight quotes.",
        )
    if starts and char in SMART_DASHES:
        raise Refused("smart_dash", f"{char} is a dash to PowerShell.", "Use a plain - instead.")
    for sign, rule in _AT_WORD_START if starts else ():
        if line.startswith(sign, at) and not line.startswith(("@'", '@"', "@(", "@{"), at):
            raise Refused(*rule)
    for sign, rule in _OPERATORS:
        if line.startswith(sign, at):
            raise Refused(*rule)
