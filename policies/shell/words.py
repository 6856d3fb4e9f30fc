"""Splits a POSIX command line into literal words and refuses everything else.

The shell's grammar is large and its corners are where checks are bypassed, so this reads almost none of it:
words, quotes, a few escaped characters and unquoted globs. Anything that a shell would expand, redirect,
join or run is refused under its own name, with what would work instead. It never guesses.
"""

import unicodedata
from dataclasses import dataclass

from policies.verdict import Deny

MAX_COMMAND_CHARS = 4096
MAX_WORDS = 512

_BLANK = " \t"
_GLOB = "*?["
_ESCAPABLE = frozenset(" '\"()[]{}&;|<>#!$`*?^~=,@%+")
"""What a backslash may stand before; not letters, dots and slashes, which look like Windows paths."""
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"})

_ONE_COMMAND = "Run one command in each call, one after the other."
_NO_SHELL = (
    "Write the words out as they are; quote a name in single quotes if it holds such a character."
)
_NO_REDIRECT = "Use the Write tool to create a file and the Read tool to read one."

_Rule = tuple[str, str, str]

_OPERATORS: tuple[tuple[str, _Rule], ...] = (
    ("$((", ("arithmetic", "Arithmetic expansion is not allowed.", _NO_SHELL)),
    ("$[", ("arithmetic", "Arithmetic expansion is not allowed.", _NO_SHELL)),
    ("$(", ("command_substitution", "A command inside a command is not allowed.", _ONE_COMMAND)),
    ("$'", ("ansi_c_quoting", "Quoting with $'…' is not allowed.", _NO_SHELL)),
    ('$"', ("locale_quoting", 'Quoting with $"…" is not allowed.', _NO_SHELL)),
    ("$", ("parameter_expansion", "Variables are not expanded here.", _NO_SHELL)),
    ("`", ("command_substitution", "A command inside a command is not allowed.", _ONE_COMMAND)),
    (";", ("operator_semicolon", "Several commands in one call are not allowed.", _ONE_COMMAND)),
    ("||", ("operator_or", "Several commands in one call are not allowed.", _ONE_COMMAND)),
    ("|", ("operator_pipe", "Pipes are not allowed.", _ONE_COMMAND)),
    ("&&", ("operator_and", "Several commands in one call are not allowed.", _ONE_COMMAND)),
    ("&>", ("redirect", "Redirections are not allowed.", _NO_REDIRECT)),
    ("&", ("operator_background", "Background commands are not allowed.", _ONE_COMMAND)),
    ("<(", ("process_substitution", "Process substitution is not allowed.", _ONE_COMMAND)),
    (">(", ("process_substitution", "Process substitution is not allowed.", _ONE_COMMAND)),
    ("<<<", ("herestring", "Here-strings are not allowed.", _NO_REDIRECT)),
    ("<<", ("heredoc", "Here-documents are not allowed.", _NO_REDIRECT)),
    ("<", ("redirect", "Redirections are not allowed.", _NO_REDIRECT)),
    (">", ("redirect", "Redirections are not allowed.", _NO_REDIRECT)),
    ("(", ("grouping", "Parentheses group commands and are not allowed.", _NO_SHELL)),
    (")", ("grouping", "Parentheses group commands and are not allowed.", _NO_SHELL)),
    ("{", ("brace_expansion", "Braces are not expanded here.", "List every name by itself.")),
    ("}", ("brace_expansion", "Braces are not expanded here.", "List every name by itself.")),
    ("!", ("history_expansion", "An exclamation mark is not allowed outside quotes.", _NO_SHELL)),
    ("^", ("history_expansion", "A caret is not allowed outside quotes.", _NO_SHELL)),
    ("\n", ("newline", "A command must be one line.", _ONE_COMMAND)),
    ("\r", ("newline", "A command must be one line.", _ONE_COMMAND)),
)
_OPERATORS_BY_START: dict[str, tuple[tuple[str, _Rule], ...]] = {
    start: tuple(one for one in _OPERATORS if one[0][0] == start)
    for start in {operator[0] for operator, _ in _OPERATORS}
}
_AT_WORD_START: dict[str, _Rule] = {
    "#": ("comment", "Comments are not allowed in commands.", "Leave the comment out."),
    "~": ("tilde", "~ means a home folder, which is outside.", "Use paths inside the workspace."),
    "=": ("equals", "A word must not begin with =.", "Put ./ before the name."),
}
_IN_DOUBLE_QUOTES: dict[str, _Rule] = {
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
        """Say whether a shell would try to expand it."""
        return any(c in _GLOB and not q for c, q in zip(self.text, self.quoted, strict=True))


def _find_text_fault(command: str) -> Deny | None:
    if len(command) > MAX_COMMAND_CHARS:
        return Deny(
            "command_too_long",
            f"The command is longer than {MAX_COMMAND_CHARS} characters.",
            "Split it into several calls.",
        )
    for char in command:
        if char not in "\t\n\r " and unicodedata.category(char) in _REFUSED_CATEGORIES:
            return Deny(
                "control_character",
                f"The command holds the invisible character U+{ord(char):04X}.",
                "Write it with visible characters and plain spaces.",
            )
    return None


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
            return Deny(
                "too_many_words", "The command has too many words.", "Split it into several calls."
            )
        return tuple(self.words)

    def _step(self, char: str) -> Deny | None:
        if char in _BLANK:
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
                return Deny("newline", "A name must not hold a line break or a tab.", _ONE_COMMAND)
            self._take(char, quoted=True)
        self.at = end + 1
        return None

    def _take_escaped(self) -> Deny | None:
        following = self.command[self.at + 1 : self.at + 2]
        if following in {"\n", "\r"}:
            return Deny("line_continuation", "A command must be one line.", _ONE_COMMAND)
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
    fault = _find_text_fault(command)
    return _Splitter(command).run() if fault is None else fault
