"""The division of a line for PowerShell into parameters and values; everything else is refused.

A value is a plain word, a quoted one, or several of them with commas between. Strings that PowerShell would
expand are refused, so that a value is what is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policies.denials import denied, refused_signs
from policies.verdict import Refused
from policies.visible_text import BLANK, MAX_WORDS, show
from policies.windows.lines import SMART_DOUBLE, SMART_SINGLE, check_plain

_IN_DOUBLE = refused_signs("powershell_double_quotes")
_IN_SINGLE = refused_signs("powershell_single_quotes")
_CONSTANTS = {":$true": True, ":$false": False}


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter, or a value by itself."""

    parameter: str | None
    """In lower case, without the dash; `None`: a value by itself."""
    elements: tuple[str, ...]
    """The plain texts of the value, without quotes; empty: a parameter."""
    constant: bool | None = None
    """The value of `:$true` or `:$false`."""


class _Reader:
    """One pass over the arguments of one line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.words = 0

    def run(self) -> tuple[Argument, ...]:
        arguments: list[Argument] = []
        while self._skip_blanks():
            arguments.append(self._read_argument())
            self.words += 1
            if self.words > MAX_WORDS:
                raise denied("too_many_words")
        return tuple(arguments)

    def _skip_blanks(self) -> bool:
        while self.text[self.at : self.at + 1] in {*BLANK}:
            self.at += 1
        return self.at < len(self.text)

    def _ends_word(self, at: int) -> bool:
        return self.text[at : at + 1] in {"", *BLANK}

    def _read_argument(self) -> Argument:
        if self.text.startswith("--%", self.at):
            check_plain(self.text, self.at, starts=True)
        if self.text[self.at] == "-":
            return self._read_parameter()
        return Argument(None, self._read_elements())

    def _read_parameter(self) -> Argument:
        end = self.at + 1
        while self.text[end : end + 1].isascii() and self.text[end : end + 1].isalpha():
            end += 1
        name = self.text[self.at + 1 : end].lower()
        if name and self._ends_word(end):
            self.at = end
            return Argument(name, ())
        for word, value in _CONSTANTS.items():
            after = end + len(word)
            if name and self.text[end:after].lower() == word and self._ends_word(after):
                self.at = after
                return Argument(name, (), value)
        raise self._refuse_parameter()

    def _refuse_parameter(self) -> Refused:
        word = self.text[self.at :].split(maxsplit=1)[0]
        for at in range(self.at, self.at + len(word)):
            check_plain(self.text, at, starts=False)
        return denied("parameter_form", show(word))

    def _read_elements(self) -> tuple[str, ...]:
        elements: list[str] = []
        while True:
            elements.append(self._read_element())
            self.words += 1
            end = self.at
            if not self._skip_blanks() or self.text[self.at] != ",":
                self.at = end
                return tuple(elements)
            self.at += 1
            if not self._skip_blanks() or self.text[self.at] in {",", "-"}:
                raise denied("array_form.elements")

    def _read_element(self) -> str:
        quote = self.text[self.at]
        if quote == "'":
            return self._read_single_quoted()
        if quote == '"':
            return self._read_double_quoted()
        return self._read_plain()

    def _read_plain(self) -> str:
        start = self.at
        while not self._ends_word(self.at) and self.text[self.at] != ",":
            if self.text[self.at] in {"'", '"'}:
                raise denied("quote_inside_word")
            check_plain(self.text, self.at, starts=self.at == start)
            self.at += 1
        if self.at == start:
            raise denied("array_form")
        return self.text[start : self.at]

    def _read_single_quoted(self) -> str:
        chars: list[str] = []
        at = self.at + 1
        while True:
            end = self.text.find("'", at)
            if end < 0:
                raise denied("unclosed_quote.windows")
            chars.append(self.text[at:end])
            if self.text[end + 1 : end + 2] != "'":
                break
            chars.append("'")
            at = end + 2
        return self._close("".join(chars), end + 1, _IN_SINGLE, SMART_SINGLE)

    def _read_double_quoted(self) -> str:
        end = self.text.find('"', self.at + 1)
        if end < 0:
            raise denied("unclosed_quote.windows")
        inner = self.text[self.at + 1 : end]
        return self._close(inner, end + 1, _IN_DOUBLE, SMART_DOUBLE | SMART_SINGLE)

    def _close(
        self, inner: str, after: int, rules: Mapping[str, tuple[str, ...]], smart: frozenset[str]
    ) -> str:
        for char in inner:
            if char in rules:
                raise Refused(*rules[char])
            if char in smart:
                check_plain(char, 0, starts=False)
        if not self._ends_word(after) and self.text[after] != ",":
            raise denied("quote_inside_word")
        self.at = after
        return inner


def split_powershell_words(text: str) -> tuple[Argument, ...]:
    """Split what follows a cmdlet's name, or refuse it; linear in its length."""
    return _Reader(text).run()


def quote_for_powershell(text: str) -> str:
    """Quote a text so that PowerShell takes it literally, and cmd and bash run nothing of it."""
    if any(char in "&|<>" for char in text):
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"
