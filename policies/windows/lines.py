"""What no command line for Windows may hold, whichever shell it is for.

A line is read by cmd, by PowerShell or by bash, and the same character ends a command in one and belongs
to a name in the other; so a character is allowed where all of them take it literally, and refused under
its own rule with what would work instead.
"""

import unicodedata

from policies.verdict import Deny

MAX_COMMAND_CHARS = 4096
MAX_WORDS = 512
BLANK = " \t"

_ONE_COMMAND = "Run one command in each call, one after the other."
_WRITE_OUT = "Write the name out as it is."
_QUOTE = "Put the name in double quotes."
_NO_REDIRECT = "Use the Write tool to create a file and the Read tool to read one."
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"})

SMART_DOUBLE = frozenset("“”„")
SMART_SINGLE = frozenset("‘’‚‛")
SMART_DASHES = frozenset("–—―")
"""PowerShell takes all of these for the plain ones."""

Rule = tuple[str, str, str]

OPERATORS: tuple[tuple[str, Rule], ...] = (
    ("&&", ("operator_and", "Several commands in one call are not allowed.", _ONE_COMMAND)),
    ("||", ("operator_or", "Several commands in one call are not allowed.", _ONE_COMMAND)),
    ("&", ("operator_ampersand", "& starts another command.", _ONE_COMMAND)),
    ("|", ("operator_pipe", "Pipes are not allowed.", _ONE_COMMAND)),
    ("<#", ("block_comment", "Comments are not allowed in commands.", "Leave the comment out.")),
    ("<", ("redirect", "Redirections are not allowed.", _NO_REDIRECT)),
    (">", ("redirect", "Redirections are not allowed.", _NO_REDIRECT)),
    (";", ("separator_semicolon", "; separates commands or words.", _ONE_COMMAND)),
    ("%", ("variable_percent", "Variables such as %X% are not expanded here.", _WRITE_OUT)),
    ("!", ("variable_delayed", "Variables such as !X! are not expanded here.", _WRITE_OUT)),
    ("^", ("caret", "^ escapes characters in cmd and is not allowed.", _QUOTE)),
    ("$(", ("subexpression", "A command inside a command is not allowed.", _ONE_COMMAND)),
    ("$", ("variable_dollar", "Variables are not expanded here.", _WRITE_OUT)),
    ("`", ("backtick", "A backtick escapes characters in PowerShell.", _WRITE_OUT)),
    ("@'", ("here_string", "Here-strings are not allowed.", _NO_REDIRECT)),
    ('@"', ("here_string", "Here-strings are not allowed.", _NO_REDIRECT)),
    ("@(", ("array_expression", "Array expressions are not allowed.", "Write 'a','b' instead.")),
    ("@{", ("hash_table", "Hash tables are not allowed.", "Write each parameter out.")),
    ("(", ("grouping", "Parentheses group commands and are not allowed.", _QUOTE)),
    (")", ("grouping", "Parentheses group commands and are not allowed.", _QUOTE)),
    ("{", ("script_block", "Braces hold commands and are not allowed.", _QUOTE)),
    ("}", ("script_block", "Braces hold commands and are not allowed.", _QUOTE)),
)
"""Outside quotes; the longer first."""

_AT_WORD_START: tuple[tuple[str, Rule], ...] = (
    ("--%", ("stop_parsing", "--% hands the rest on unread.", "Write plain words.")),
    ("@", ("splatting", "@ hands on a variable's content.", "Write each parameter out.")),
    ("#", ("comment", "Comments are not allowed in commands.", "Leave the comment out.")),
)


def find_line_fault(command: str) -> Deny | None:
    """Refuse a line that is too long, or more than one line, or not plainly visible."""
    if len(command) > MAX_COMMAND_CHARS:
        return Deny(
            "command_too_long",
            f"The command is longer than {MAX_COMMAND_CHARS} characters.",
            "Split it into several calls.",
        )
    for char in command:
        if char in "\r\n":
            return _refuse_line_break(command)
        if char not in BLANK and unicodedata.category(char) in _REFUSED_CATEGORIES:
            return Deny(
                "control_character",
                f"The command holds the invisible character U+{ord(char):04X}.",
                "Write it with visible characters and plain spaces.",
            )
    return None


def _refuse_line_break(command: str) -> Deny:
    lines = command.splitlines()
    if any(line.endswith(("`", "^")) for line in lines[:-1]):
        return Deny("line_continuation", "A command must be one line.", _ONE_COMMAND)
    if any(line.endswith(("@'", '@"')) for line in lines):
        return Deny("here_string", "Here-strings are not allowed.", _NO_REDIRECT)
    return Deny("newline", "A command must be one line.", _ONE_COMMAND)


def find_plain_fault(line: str, at: int, *, starts: bool) -> Deny | None:
    """Refuse the character at a place outside quotes; `starts`: a word begins there."""
    char = line[at]
    if char in SMART_DOUBLE or char in SMART_SINGLE:
        return Deny(
            "smart_quote",
            f"{char} is a quotation mark to PowerShell and a letter to cmd.",
            "Use straight quotes.",
        )
    if starts and char in SMART_DASHES:
        return Deny("smart_dash", f"{char} is a dash to PowerShell.", "Use a plain - instead.")
    for sign, rule in _AT_WORD_START if starts else ():
        if line.startswith(sign, at) and not line.startswith(("@'", '@"', "@(", "@{"), at):
            return Deny(*rule)
    for sign, rule in OPERATORS:
        if line.startswith(sign, at):
            return Deny(*rule)
    return None


def refuse_inner_quote() -> Deny:
    """Refuse a quote in the middle of a word, which the shells join in different ways."""
    return Deny(
        "quote_inside_word",
        "A quotation mark must stand around the whole word.",
        "Put the whole name in one pair of quotes.",
    )


def refuse_unclosed() -> Deny:
    """Refuse a quote without its partner."""
    return Deny("unclosed_quote", "A quotation mark is not closed.", "Close it.")


def refuse_many_words() -> Deny:
    """Refuse a line of too many words."""
    return Deny("too_many_words", "The command has too many words.", "Split it into several calls.")
