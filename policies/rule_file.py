"""A file of rules. Each error names the file, the line and the fix in one sentence;
`rule_file.toml` has them.

`tomllib` does not keep line numbers, so the line of a wrong key or value is looked up in the text
again.
"""

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from policies.visible_text import show

MAX_FILE_BYTES = 256 * 1024

_FAULTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_TOML_LINE = re.compile(r"(?<!\s)\s*\(at (?:line (\d+), column \d+|end of document)\)$")


class RulesError(ValueError):
    """A file of rules cannot be used; the text names the file, the line and what to do."""


def suggest(word: str, known: Collection[str]) -> str:
    """Return the known word that was probably meant, or else all of them."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word[:100].casefold(), folded, n=1, cutoff=0.6)
    return f"did you mean {folded[near[0]]}" if near else f"known are {', '.join(sorted(known))}"


class RuleFile:
    """The tables of one file, and the lines of their keys and values."""

    def __init__(
        self, path: Path, what: str = "policy file", setting: str = "CANDOR_POLICY_FILE"
    ) -> None:
        """Read the file, which errors call `what` and which `setting` names.

        Raise `RulesError` if it cannot be read, or is not TOML.
        """
        self.path = path
        self._what, self._setting = what, setting
        self.lines: list[str] = []
        text = self._read_text()
        self.lines = text.split("\n")
        self.values = self._parse(text)

    def _read_text(self) -> str:
        try:
            if not self.path.is_file():  # a pipe or a device would be waited for
                raise self.fault(None, "no_file", self._setting)
            with self.path.open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        except OSError as exc:
            raise self.fault(None, "unreadable", exc.strerror) from exc
        if len(raw) > MAX_FILE_BYTES:
            raise self.fault(None, "too_large", MAX_FILE_BYTES)
        try:
            return raw.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as exc:
            line = raw[: exc.start].count(b"\n") + 1
            raise self.fault(line, "not_utf8") from exc

    def _parse(self, text: str) -> Mapping[str, Any]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as exc:
            told = _TOML_LINE.search(str(exc))
            line = int(told[1]) if told and told[1] else len(self.lines)
            raise self.fault(line, "not_toml", show(_TOML_LINE.sub("", str(exc)))) from exc
        except (RecursionError, ValueError) as exc:
            raise self.fault(None, "too_deep") from exc

    def fault(self, line: int | None, problem: str, *shown: object) -> RulesError:
        """Return the error about one line of the file, with the values of `shown` in its text."""
        where = "" if line is None else f", line {line}"
        what, fix = (text.format(*shown) for text in _FAULTS[problem])
        return RulesError(f"The {self._what} {show_path(self.path)}{where}: {what}; {fix}.")

    def find_line(self, table: str, key: str = "", value: str = "", *, nth: int = 0) -> int | None:
        """Return the line of a value, else of its key, else of its table; `nth` counts tables of
        one name.
        """
        begin = self._find_header(table, nth)
        if not key:
            return begin or self._find_from(0, _key_pattern(table))
        line = self._find_from(begin or 0, _key_pattern(key)) or begin
        if value:
            quoted = re.compile(f"[\"']{re.escape(value)}[\"']")
            line = self._find_from((line or 1) - 1, quoted) or line
        return line

    def _find_header(self, table: str, nth: int) -> int | None:
        header = re.compile(rf"\s*\[\[?\s*[\"']?{re.escape(table)}[\"']?\s*\]")
        hits = [i for i, line in enumerate(self.lines, start=1) if header.match(line)]
        return hits[nth] if nth < len(hits) else None

    def _find_from(self, start: int, pattern: re.Pattern[str]) -> int | None:
        for i, line in enumerate(self.lines[start:], start=start + 1):
            if not line.lstrip().startswith("#") and pattern.search(line):
                return i
        return None


def _key_pattern(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[\s{{,.])[\"']?{re.escape(key)}[\"']?\s*[=.]")


def show_path(path: Path) -> str:
    """Return a path safe to print, and not shortened, because a person has to find it."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


class Section:
    """One table of a file, whose keys and values are checked as they are taken."""

    def __init__(
        self, file: RuleFile, name: str, keys: Sequence[str], *, nth: int | None = None
    ) -> None:
        """Take the table `name`, or the `nth` of several; a missing table is empty.

        Raise `RulesError` if it is not a table, or has other keys than `keys`.
        """
        self.file, self.name, self.nth = file, name, nth or 0
        values = file.values.get(name, {})
        if nth is not None:
            values = values[nth]
        if not isinstance(values, dict):
            raise self.fault("", "", "not_a_table", name)
        self.values: dict[str, Any] = values
        for key in values:
            if key not in keys:
                raise self.fault(key, "", "unknown_key", show(key), name, suggest(key, keys))

    def fault(self, key: str, value: str, problem: str, *shown: object) -> RulesError:
        """Return the error about one key or value of this table; see `RuleFile.fault`."""
        line = self.file.find_line(self.name, key, value, nth=self.nth)
        return self.file.fault(line, problem, *shown)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return a list of texts; `None`: the key is missing.

        Raise `RulesError` if the value is not a list of texts.
        """
        found = self.values.get(key)
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            raise self.fault(key, "", "not_texts", key)
        return tuple(found)

    def names(self, key: str, known: Collection[str], kind: str) -> frozenset[str]:
        """Return a list of known names; empty if the key is missing.

        Raise `RulesError` if the value is not a list of texts, or a name in it is not known.
        """
        found = self.texts(key) or ()
        for name in found:
            if name not in known:
                known_names = suggest(name, known)
                raise self.fault(key, name, "unknown_name", kind, show(name), known_names)
        return frozenset(found)
