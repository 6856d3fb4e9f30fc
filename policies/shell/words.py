"""The division of a POSIX command line into literal words; everything else is refused.

Checks are bypassed in the corners of the shell's large grammar, so this reads almost none of it: words, quotes,
a few escaped characters and unquoted globs. Whatever a shell would expand, redirect, join or run is refused
under its own rule, with what would work instead.
"""

from dataclasses import dataclass

from policies.verdict import Deny
from policies.visible_text import (
    BLANK,
    MAX_WORDS,
    NO_REDIRECT,
    ONE_COMMAND,
    TOO_MANY_WORDS,
    DenialText,
    find_command_text_fault,
)

_GLOB = "*?["
_ESCAPABLE = frozenset(" '\"()[]{}&;|<>#!$`*?^~=,@%+")
"""What a backslash may stand before; not letters, dots and slashes, which look like Windows paths."""
_NO_SHELL = (
    "Write the words out as they are; quote a name in single quotes if it holds such a character."
)

_OPERATORS: tuple[tuple[str, DenialText], ...] = (
    ("$((", ("arithmetic", "Arithmetic expansion is not allowed.", _NO_SHELL)),
    ("$[", ("arithmetic", "Arithmetic expansion is not allowed.", _NO_SHELL)),
    ("$(", ("command_substitution", "A command inside a command is not allowed.", ONE_COMMAND)),
    ("$'", ("ansi_c_quoting", "Quoting with $'…' is not allowed.", _NO_SHELL)),
    ('$"', ("locale_quoting", 'Quoting with $"…" is not allowed.', _NO_SHELL)),
    ("$", ("parameter_expansion", "Variables are not expanded here.", _NO_SHELL)),
    ("`", ("command_substitution", "A command inside a command is not allowed.", ONE_COMMAND)),
    (";", ("operator_semicolon", "Several commands in one call are not allowed.", ONE_COMMAND)),
    ("||", ("operator_or", "Several commands in one call are not allowed.", ONE_COMMAND)),
    ("|", ("operator_pipe", "Pipes are not allowed.", ONE_COMMAND)),
    ("&&", ("operator_and", "Several commands in one call are not allowed.", ONE_COMMAND)),
    ("&>", ("redirect", "Redirections are not allowed.", NO_REDIRECT)),
    ("&", ("operator_background", "Background commands are not allowed.", ONE_COMMAND)),
    ("<(", ("process_substitution", "Process substitution is not allowed.", ONE_COMMAND)),
    (">(", ("process_substitution", "Process substitution is not allowed.", ONE_COMMAND)),
    ("<<<", ("herestring", "Here-strings are not allowed.", NO_REDIRECT)),
    ("<<", ("heredoc", "Here-documents are not allowed.", NO_REDIRECT)),
    ("<", ("redirect", "Redirections are not allowed.", NO_REDIRECT)),
    (">", ("redirect", "Redirections are not allowed.", NO_REDIRECT)),
    ("(", ("grouping", "Parentheses group commands and are not allowed.", _NO_SHELL)),
    (")", ("grouping", "Parentheses group commands and are not allowed.", _NO_SHELL)),
    ("{", ("brace_expansion", "Braces are not expanded here.", "List every name by itself.")),
    ("}", ("brace_expansion", "Braces are not expanded here.", "List every name by itself.")),
    ("!", ("history_expansion", "An exclamation mark is not allowed outside quotes.", _NO_SHELL)),
    ("^", ("history_expansion", "A caret is not allowed outside quotes.", _NO_SHELL)),
    ("\n", ("newline", "A command must be one line.", ONE_COMMAND)),
    ("\r", ("newline", "A command must be one line.", ONE_COMMAND)),
)
_OPERATORS_BY_START: dict[str, tuple[tuple[str, DenialText], ...]] = {
    start: tuple(rule for rule in _OPERATORS if rule[0][0] == start)
    for start in {operator[0] for operator, _ in _OPERATORS}
}
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


class _Splitter:
    """One pass over one command; each step consumes characters or gives the refusal."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.at = 0
        self.words: list[Word] = []
        self.chars: list[str] = []
        self.quoted: list[bool] = []
        self.open = False
        self.bare = True

    def run(self) -> tuple[Word, ...] | Deny:
        while self.at < len(self.command):
            fault = self._step(self.command[self.at])
            if fault is not None:
                return fault
        self._close_word()
        if len(self.words) > MAX_WORDS:
            return TOO_MANY_WORDS
        return tuple(self.words)

    def _step(self, char: str) -> Deny | None:
        if char in BLANK:
            self._close_word()
            self.at += 1
            return None
        if char == "'":
            return self._take_single_quoted()
        if char == '"':
            return self._take_double_quoted()
        if char == "\\":
            return self._take_escaped()
        return self._take_plain(char)

    def _take_plain(self, char: str) -> Deny | None:
        at_start = not self.open or (char == "~" and self.chars[-1:] in (["="], [":"]))
        if at_start and char in _AT_WORD_START:  # bash expands ~ also behind = and :
            return Deny(*_AT_WORD_START[char])
        for operator, rule in _OPERATORS_BY_START.get(char, ()):
            if self.command.startswith(operator, self.at):
                return Deny(*rule)
        self._take(char, quoted=False)
        self.at += 1
        return None

    def _take_single_quoted(self) -> Deny | None:
        end = self.command.find("'", self.at + 1)
        if end < 0:
            return Deny("unclosed_quote", "A single quote is not closed.", "Close it.")
        return self._take_quoted(end)

    def _take_double_quoted(self) -> Deny | None:
        end = self.command.find('"', self.at + 1)
        if end < 0:
            return Deny("unclosed_quote", "A double quote is not closed.", "Close it.")
        for char in self.command[self.at + 1 : end]:
            if char in _IN_DOUBLE_QUOTES:
                return Deny(*_IN_DOUBLE_QUOTES[char])
        return self._take_quoted(end)

    def _take_quoted(self, end: int) -> Deny | None:
        self.open, self.bare = True, False
        for char in self.command[self.at + 1 : end]:
            if char in "\n\r\t":
                return Deny("newline", "A name must not hold a line break or a tab.", ONE_COMMAND)
            self._take(char, quoted=True)
        self.at = end + 1
        return None

    def _take_escaped(self) -> Deny | None:
        following = self.command[self.at + 1 : self.at + 2]
        if following in {"\n", "\r"}:
            return Deny("line_continuation", "A command must be one line.", ONE_COMMAND)
        if following not in _ESCAPABLE:
            return Deny(
                "backslash",
                "A backslash may stand only before a space or a punctuation mark.",
                "Separate folders with / and quote names in single quotes.",
            )
        self.bare = False
        self._take(following, quoted=True)
        self.at += 2
        return None

    def _take(self, char: str, *, quoted: bool) -> None:
        self.open = True
        self.chars.append(char)
        self.quoted.append(quoted)

    def _close_word(self) -> None:
        if self.open:
            self.words.append(Word("".join(self.chars), tuple(self.quoted), self.bare))
        self.chars, self.quoted, self.open, self.bare = [], [], False, True


def split_words(command: str) -> tuple[Word, ...] | Deny:
    """Split a command into words exactly as bash would, or refuse it; linear in its length."""
    fault = find_command_text_fault(command)
    return _Splitter(command).run() if fault is None else fault
