"""May a remembered item be shown now? What memory says of the tools in use is held back where it is old.

The tools' live definitions are the truth: a remembered schema, field mapping, call format or failed
call, put beside them, misleads. An item is held back if it names a tool in use, and is about how that tool
is called, and is not of lasting use: a warning, a known issue, a workaround, who owns it, whom to call,
where its credentials are. English and Chinese. An item is shown whole or not at all.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from policies.recall_lasting import is_durable
from policies.recall_markers import ABOUT_IT, FIELD_TOLD, USAGE, USAGE_BESIDE_A_NAME
from policies.recall_names import ToolNames
from policies.recall_plain import plain_of
from policies.recall_reach import REACH_CHARS, SENTENCE_END, goes_on_about_a_call

_HEADING: Final = re.compile(r"^#{1,6} .*", re.MULTILINE)
_LINE_START: Final = re.compile(r"[\s#>*\-\d.、`]*")


@dataclass(frozen=True, slots=True)
class ActiveTools:
    """The tools in use just now, as what is remembered may name them."""

    names: ToolNames

    @classmethod
    def of(cls, names: Iterable[str]) -> "ActiveTools":
        """Take the tools' names: bare ones, `server::tool`, `mcp__server__tool`."""
        return cls(ToolNames.of(names))

    def holds_back(self, title: str, text: str) -> bool:
        """Whether an item must not be shown: old knowledge of how a tool in use is called."""
        head, body = plain_of(title), plain_of(text)
        whole = f"{head}\n{body}"
        if not self.names.may_be_in(whole):  # by far the most items, and at little cost
            return False
        return self._is_about_a_call(head, body, whole) and not is_durable(whole)

    def _is_about_a_call(self, head: str, body: str, whole: str) -> bool:
        if self.names.are_in("\n".join([head, *_HEADING.findall(body)])) and (
            USAGE.search(whole) or _has_a_heading_of_usage(body)
        ):
            return True
        named_at = self.names.distinct_in(whole)
        if named_at and _are_near(named_at, [one.start() for one in USAGE.finditer(whole)]):
            return True
        if self._sentences_are_about_a_call(whole):
            return True
        return goes_on_about_a_call(whole, self.names.introduced_in(whole))

    def _sentences_are_about_a_call(self, text: str) -> bool:
        before = ""  # the sentence before, where it may name one
        for sentence in SENTENCE_END.split(text):
            goes_on = before and ABOUT_IT.match(sentence) and USAGE_BESIDE_A_NAME.search(sentence)
            if goes_on and self.names.are_told_of_in(before):
                return True
            before = sentence if self.names.may_be_in(sentence) else ""
            if before and self._sentence_is_about_a_call(sentence):
                return True
        return False

    def _sentence_is_about_a_call(self, sentence: str) -> bool:
        if self.names.are_right_at_usage_in(sentence):
            return True
        if USAGE.search(sentence):
            return self.names.are_in(sentence)
        tells = USAGE_BESIDE_A_NAME.search(sentence) or (
            FIELD_TOLD.search(sentence) and FIELD_TOLD.search(self.names.taken_out_of(sentence))
        )
        return bool(tells) and self.names.are_told_of_in(sentence)


def _are_near(names: list[int], markers: list[int]) -> bool:
    """Whether a name and a marker stand within reach of each other; both in their order."""
    for marker in markers:
        at = bisect_left(names, marker)
        nearest = [abs(marker - one) for one in names[max(0, at - 1) : at + 1]]
        if nearest and min(nearest) <= REACH_CHARS:
            return True
    return False


def _has_a_heading_of_usage(body: str) -> bool:
    """Whether a line begins with a word such as "Parameters": under a tool's title it is that tool's."""
    for line in body.splitlines():
        start = _LINE_START.match(line)
        if USAGE_BESIDE_A_NAME.match(line, start.end() if start else 0):
            return True
    return False
