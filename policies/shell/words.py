"""The division of a POSIX command line into literal words; everything else is refused.

Checks are bypassed in the corners of the shell's large grammar, so this reads almost none of it:
words, quotes, a few escaped characters and unquoted globs. Whatever a shell would expand, redirect,
join or run is refused under its own rule, with what would work instead.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from policies.denials import denied, refused_signs
from policies.verdict import Refused
from policies.visible_text import MAX_WORDS, check_command_text

_GLOB = "*?["
_ESCAPABLE = frozenset(" '\"()[]{}&;|<>#!$`*?^~=,@%+")
"""What a backslash may stand before; not letters, dots and slashes, which look like Windows
paths."""
_OPERATORS = refused_signs("bash")
"""Outside quotes; the longer first."""
_OPERATOR = re.compile("|".join(map(re.escape, _OPERATORS)))
_AT_WORD_START = refused_signs("bash_word_start")
_IN_DOUBLE_QUOTES = refused_signs("bash_double_quotes")


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
        raise denied("unclosed_quote", name)
    if char == "\\":
        raise denied("backslash")
    if starts and char in _AT_WORD_START:
        raise Refused(*_AT_WORD_START[char])
    if operator := _OPERATOR.match(command, at):
        raise Refused(*_OPERATORS[operator[0]])


def _check_quoted(kind: str, text: str) -> None:
    """Refuse quoted or escaped text that a shell would not take as it is."""
    if kind == "escaped":
        if text in "\n\r":
            raise denied("line_continuation")
        if text not in _ESCAPABLE:
            raise denied("backslash")
        return
    for char in text if kind == "double" else "":
        if char in _IN_DOUBLE_QUOTES:
            raise Refused(*_IN_DOUBLE_QUOTES[char])
    if not set("\n\r\t").isdisjoint(text):
        raise denied("newline")


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
        raise denied("too_many_words")
    return words
