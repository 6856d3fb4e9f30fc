"""The division of a POSIX command line into literal words; everything else is refused.

Checks are bypassed in the corners of the shell's large grammar, so this reads almost none of it: words, quotes,
a few escaped characters and unquoted globs. Whatever a shell would expand, redirect, join or run is refused
under its own rule, with what would work instead.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from policies.verdict import DenialText, Refused
from policies.visible_text import (
    MAX_WORDS,
    NO_REDIRECT,
    ONE_COMMAND,
    TOO_MANY_WORDS,
    check_command_text,
)

_GLOB = "*?["
_ESCAPABLE = frozenset(" '\"()[]{}&;|<>#!$`*?^~=,@%+")
"""What a backslash may stand before; not letters, dots and slashes, which look like Windows paths."""
_NO_SHELL = (
    "Write the words out as they are; quote a name in single quotes if it holds such a character."
)

_OPERATORS: dict[str, DenialText] = {
    "$((": ("arithmetic", "Arithmetic expansion is not allowed.", _NO_SHELL),
    "$[": ("arithmetic", "Arithmetic expansion is not allowed.", _NO_SHELL),
    "$(": ("command_substitution", "A command inside a command is not allowed.", ONE_COMMAND),
    "$'": ("ansi_c_quoting", "Quoting with $'…' is not allowed.", _NO_SHELL),
    '$"': ("locale_quoting", 'Quoting with $"…" is not allowed.', _NO_SHELL),
    "$": ("parameter_expansion", "Variables are not expanded here.", _NO_SHELL),
    "`": ("command_substitution", "A command inside a command is not allowed.", ONE_COMMAND),
    ";": ("operator_semicolon", "Several commands in one call are not allowed.", ONE_COMMAND),
    "||": ("operator_or", "Several commands in one call are not allowed.", ONE_COMMAND),
    "|": ("operator_pipe", "Pipes are not allowed.", ONE_COMMAND),
    "&&": ("operator_and", "Several commands in one call are not allowed.", ONE_COMMAND),
    "&>": ("redirect", "Redirections are not allowed.", NO_REDIRECT),
    "&": ("operator_background", "Background commands are not allowed.", ONE_COMMAND),
    "<(": ("process_substitution", "Process substitution is not allowed.", ONE_COMMAND),
    ">(": ("process_substitution", "Process substitution is not allowed.", ONE_COMMAND),
    "<<<": ("herestring", "Here-strings are not allowed.", NO_REDIRECT),
    "<<": ("heredoc", "Here-documents are not allowed.", NO_REDIRECT),
    "<": ("redirect", "Redirections are not allowed.", NO_REDIRECT),
    ">": ("redirect", "Redirections are not allowed.", NO_REDIRECT),
    "(": ("grouping", "Parentheses group commands and are not allowed.", _NO_SHELL),
    ")": ("grouping", "Parentheses group commands and are not allowed.", _NO_SHELL),
    "{": ("brace_expansion", "Braces are not expanded here.", "List every name by itself."),
    "}": ("brace_expansion", "Braces are not expanded here.", "List every name by itself."),
    "!": ("history_expansion", "An exclamation mark is not allowed outside quotes.", _NO_SHELL),
    "^": ("history_expansion", "A caret is not allowed outside quotes.", _NO_SHELL),
    "\n": ("newline", "A command must be one line.", ONE_COMMAND),
    "\r": ("newline", "A command must be one line.", ONE_COMMAND),
}
"""Outside quotes; the longer first."""
_OPERATOR = re.compile("|".join(map(re.escape, _OPERATORS)))
_BACKSLASH: DenialText = (
    "backslash",
    "A backslash may stand only before a space or a punctuation mark.",
    "Separate folders with / and quote names in single quotes.",
)
_AT_WORD_START: dict[str, DenialText] = {
    "#": ("comment", "Comments are not allowed in commands.", "Leave the comment out."),
    "~": ("tilde", "~ means a home folder, which is outside.", "Use paths inside the workspace."),
    "=": ("equals", "A word must not begin with =.", "Put ./ before the name."),
}
_IN_DOUBLE_QUOTES: dict[str, DenialText] = {
    "$": ("parameter_expansion", "$ is expanded inside double quotes.", "Use single quotes."),
    "`": ("command_substitution", "` runs a command inside double quotes.", "Use single quotes."),
    "\\": ("quoted_backslash", "A backslash in double quotes is ambiguous.", "Use single quotes."),
    "!": ("history_expansion", "! may be expanded inside double quotes.", "Use single quotes."),
}


@dataclass(frozen=True, slots=True)
class Word:
    """One literal word: its text with the quotes taken off, and which characters were quoted."""

    text: str
    quoted: tuple[bool, ...]
    bare: bool
    """Nothing in it was quoted or escaped."""

    @property
    def is_glob(self) -> bool:
        """Return whether a shell would try to expand it."""
        return any(c in _GLOB and not q for c, q in zip(self.text, self.quoted, strict=True))


_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)|'(?P<single>[^']*)'|"(?P<double>[^"]*)"|\\(?P<escaped>.)|(?P<plain>.)""",
    re.DOTALL,
)


def _check_plain(command: str, at: int, *, starts: bool) -> None:
    """Refuse a character outside quotes; `starts`: a shell would take a word to begin there."""
    char = command[at]
    if char in "'\"":
        name = "single" if char == "'" else "double"
        raise Refused("unclosed_quote", f"A {name} quote is not closed.", "Close it.")
    if char == "\\":
        raise Refused(*_BACKSLASH)
    if starts and char in _AT_WORD_START:
        raise Refused(*_AT_WORD_START[char])
    if operator := _OPERATOR.match(command, at):
        raise Refused(*_OPERATORS[operator[0]])


def _check_quoted(kind: str, text: str) -> None:
    """Refuse quoted or escaped text that a shell would not take as it is."""
    if kind == "escaped":
        if text in "\n\r":
            raise Refused("line_continuation", "A command must be one line.", ONE_COMMAND)
        if text not in _ESCAPABLE:
            raise Refused(*_BACKSLASH)
        return
    for char in text if kind == "double" else "":
        if char in _IN_DOUBLE_QUOTES:
            raise Refused(*_IN_DOUBLE_QUOTES[char])
    if not set("\n\r\t").isdisjoint(text):
        raise Refused("newline", "A name must not hold a line break or a tab.", ONE_COMMAND)


def _read_word(command: str, tokens: Iterable[re.Match[str]]) -> Word:
    chars: list[str] = []
    quoted: list[bool] = []
    bare = True
    for number, token in enumerate(tokens):
        kind = str(token.lastgroup)
        if kind == "plain":
            # bash expands ~ also behind = and :
            starts = number == 0 or (token[kind] == "~" and chars[-1:] in (["="], [":"]))
            _check_plain(command, token.start(), starts=starts)
        else:
            bare = False
            _check_quoted(kind, token[kind])
        chars += token[kind]
        quoted += [kind != "plain"] * len(token[kind])
    return Word("".join(chars), tuple(quoted), bare)


def split_words(command: str) -> tuple[Word, ...]:
    """Split a command into words exactly as bash would, or refuse it; linear in its length."""
    check_command_text(command)
    groups = itertools.groupby(
        _TOKEN.finditer(command), key=lambda token: token.lastgroup == "blank"
    )
    words = tuple(_read_word(command, group) for is_blank, group in groups if not is_blank)
    if len(words) > MAX_WORDS:
        raise Refused(*TOO_MANY_WORDS)
    return words
