"""Detects sentences that describe how an agent's tool is called: schemas, call formats, guesses,
failed calls.

The live definition of a tool is the truth, and an old or guessed one misleads. So such sentences
are never saved (`write_gate`), and items with them are not recalled while the tool is in use
(`ActiveTools`).

Two linear models score each sentence: one for the description of a call, one for what is of lasting
use, such as warnings, known issues, workarounds, owners and the places of credentials. Their
features are single tokens and pairs of neighbours, with the names of tools replaced by a mark;
`bench/tool_usage` trains them. English and Chinese. The time grows linearly with the length of the
text.
"""

import json
import re
from array import array
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Final
from zlib import crc32

from policies.content.name_parts import NameParts
from policies.content.parameters import PARAMETER, PARAMETER_WORD, Parameters, split_signature
from policies.content.tool_names import TOOL, WORD, ToolNames, mark_agent_tools, normalize

JOINT: Final = " § "
"""Stands between the sentence that names a tool and a later one of the same paragraph."""
_PARAMETERS: Final = {PARAMETER, PARAMETER_WORD}
_MODEL_FILE: Final = Path(__file__).with_name("tool_usage.json")
_MAX_NGRAM: Final = 2
_MAX_SENTENCE_CHARS: Final = 1_000
"""A longer sentence is judged by its beginning."""
_REACH_CHARS: Final = 1_200
"""How far behind a tool's name a paragraph may still be about that tool."""

_TOKEN: Final = re.compile(
    rf"[{TOOL}{WORD}{PARAMETER}{PARAMETER_WORD}]"
    r"|(?P<ident>[A-Za-z]+(?:_[A-Za-z0-9]+)+|[A-Za-z]?[a-z0-9]+[A-Z]\w*)"
    r"|(?P<kebab>[A-Za-z]\w*(?:-\w+)+)|(?P<path>[\w\-]{1,120}+(?:[./][\w\-]++)+)"
    r"|(?P<option>--?[a-z][\w\-]*)"
    r"|(?P<word>[A-Za-z]+)|(?P<number>\d+)|(?P<type>字符串|整数|整型|数组|布尔值?|浮点数?)"
    r"|(?P<arrow>[-=]>|→)|(?P<quote>[\"'`“”「」])|::|[^\W_]|[^\w\s]",
    re.ASCII,
)
_UNLIKE_WORD: Final = re.compile(r"[_\-:\d]|[a-z][A-Z]")
_TYPES: Final = frozenset("string str integer int boolean bool array float enum dict".split())
_STEM_CHARS: Final = 6
_MIN_PLURAL_CHARS: Final = 4
SENTENCE_END: Final = re.compile(
    r"(?<=[。！？!?])\s*|(?<=\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bno\.)\s+",
    re.IGNORECASE,
)

_MARKER: Final = (
    r"(?:(?:parameter|argument|tool|input|call|request|response)[ \-]schemas?"
    "|call(?:ing)? format|usage reference"
    "|(?:tool|call) (?:usage|signature)|api doc(?:s|umentation)|field mappings?"
    r"|failed (?:tool[ \-]?)?calls?"
    r"|guessed (?:tool[ \-]?)?calls?|(?:参数|调用|接口)(?:的)?(?:格式|模式|结构|说明|方式"
    "|签名|文档)"
    "|字段(?:的)?映射|失败(?:的)?(?:工具)?调用|猜测的(?:调用|参数|格式)|工具用法)"
)
_MARKED_TOOL: Final = re.compile(
    rf"(?:{TOOL}[`\"'*]{{0,3}}(?: tool|'s)?|{WORD}[`\"'*]{{0,3}}\s?(?:tool|工具))"
    rf"(?:{JOINT}(?:the|its) |\s?的?\s?){_MARKER}"
    rf"|{_MARKER}(?: of| for|\s?[:的])?\s?(?:the )?[`\"'*]{{0,3}}{TOOL}",
    re.IGNORECASE,
)
"""The plainest descriptions: a word for them right at the name."""
_MARKED_BONUS: Final = 3.0
_MARKED_MALUS: Final = 1.0
_HEADING_MALUS: Final = 0.5
"""A heading has few words, the name of a tool often alone."""


@dataclass(frozen=True, slots=True)
class Model:
    """A linear model over hashed features."""

    weights: "array[int]"
    scale: float
    bias: float

    def score(self, features: Iterable[int]) -> float:
        """Return the logit of the features; 0 for none."""
        found = set(features)
        total = sum(map(self.weights.__getitem__, found))
        return self.bias + self.scale * total / sqrt(len(found) or 1)


@cache
def _load_models() -> tuple[Model, Model, Mapping[str, float]]:
    """Return the models of calls and of lasting use, and the scores from which each decides."""
    stored = json.loads(_MODEL_FILE.read_text(encoding="ascii"))

    def load(name: str) -> Model:
        model = stored[name]
        return Model(array("b", b64decode(model["weights"])), model["scale"], model["bias"])

    return load("call"), load("durable"), stored


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "word":
            word = token.lower()
            if word in _TYPES:
                yield "<type>"
            else:
                plural = len(word) >= _MIN_PLURAL_CHARS and word.endswith("s")
                yield (word[:-1] if plural else word)[:_STEM_CHARS]
        else:
            yield token if kind is None else f"<{kind}>"


def features_of(text: str, buckets: int) -> set[int]:
    """Return the hashed features of a marked sentence: each n-gram, and once more if a tool is
    named.
    """
    tokens = ["^", *_tokens(text[:_MAX_SENTENCE_CHARS]), "$"]
    names_tool = TOOL in tokens or WORD in tokens
    grams = {
        " ".join(tokens[at : at + length])
        for length in range(1, _MAX_NGRAM + 1)
        for at in range(len(tokens) - length + 1)
    }
    found = {crc32(gram.encode("utf-8", "replace")) % buckets for gram in grams}
    if names_tool:
        found |= {crc32(f"@{gram}".encode("utf-8", "replace")) % buckets for gram in grams}
    return found


def _judge(text: str, *, is_heading: bool = False) -> tuple[bool, bool]:
    call_model, durable_model, least = _load_models()
    features = features_of(text, len(call_model.weights))
    call, durable = call_model.score(features), durable_model.score(features)
    if _MARKED_TOOL.search(text) is not None:
        call, durable = call + _MARKED_BONUS, durable - _MARKED_MALUS
    least_call = least["min_call"] + _HEADING_MALUS * is_heading
    describes = call > least_call and durable < least["max_durable"]
    return describes, durable >= least["min_durable"]


def describes_call(text: str, *, is_heading: bool = False) -> bool:
    """Return whether a marked sentence describes a call and nothing of lasting use."""
    return _judge(text, is_heading=is_heading)[0]


def is_durable(text: str) -> bool:
    """Return whether a marked sentence is of lasting use."""
    return _judge(text)[1]


class UsageReader:
    """Reads a text sentence by sentence and relates each to the tool that its paragraph names."""

    def __init__(self, tools: "ActiveTools", *, by_form: bool, title: str = "") -> None:
        """Take the tools to look for; `by_form` adds names that only tools have."""
        self._tools = tools
        self._by_form = by_form
        marked = self.mark(title)
        self._title = TOOL if _names_tool(marked) else ""
        self._context, self._chars_left = self._title, 0

    def mark(self, text: str) -> str:
        """Return the normalized text with the names of tools replaced."""
        marked = self._tools.mark(normalize(text))
        return mark_agent_tools(marked) if self._by_form else marked

    def begin_line(self, line: str) -> None:
        """Start a line; a blank one or a heading ends the paragraph."""
        if not line.strip() or line.startswith("#"):
            self._context = self._title

    def read(self, sentence: str) -> tuple[str, str]:
        """Return the marked sentence, alone and behind what names its tool, or has its parameters,
        if any.
        """
        marked = self.mark(sentence)
        if _names_tool(marked):
            self._context, self._chars_left = TOOL, _REACH_CHARS
            return marked, marked
        if self._context is not self._title:
            self._chars_left -= len(sentence)
            if self._chars_left < 0:
                self._context = self._title
        context = self._context or PARAMETER * (not _PARAMETERS.isdisjoint(marked))
        return marked, f"{context}{JOINT}{marked}" if context else marked


def _names_tool(marked: str) -> bool:
    return TOOL in marked or WORD in marked


@dataclass(frozen=True, slots=True)
class ActiveTools:
    """The tools in use, whose remembered schemas must not be shown."""

    names: ToolNames
    parameters: Parameters
    parts: NameParts

    @classmethod
    def of(cls, tools: Iterable[str], *, with_words: bool = True) -> "ActiveTools":
        """Take bare names, `server::tool` and `mcp__server__tool`, each alone or as a `signature`.

        Without words only names and parameters that are no ordinary words are looked for.
        """
        known = list(tools)
        split = [split_signature(tool) for tool in known]
        names = [name for name, _ in split]
        return cls(
            ToolNames.of(name for name in names if with_words or _UNLIKE_WORD.search(name)),
            Parameters.of(known, with_words=with_words),
            NameParts.of(normalize(part) for name, given in split for part in (name, *given)),
        )

    def mark(self, text: str) -> str:
        """Return a normalized text with the names of tools and parameters replaced."""
        return self.parameters.mark(self.names.mark(text))

    def is_stale(self, title: str, text: str) -> bool:
        """Return whether an item describes a call of a tool in use and nothing of lasting use."""
        whole = normalize(f"{title}\n{text}")
        if not self.parts.may_be_in(whole) or self.mark(whole) == whole:
            return False
        reader = UsageReader(self, by_form=False, title=title)
        heading = reader.mark(title)
        sentences = [(heading, heading), *read_sentences(reader, text)]
        named = [joint for _, joint in sentences if JOINT in joint or _names_tool(joint)]
        if not any(describes_call(joint, is_heading=joint is heading) for joint in named):
            return False
        return not any(is_durable(alone) or is_durable(joint) for alone, joint in sentences)


def read_sentences(reader: UsageReader, text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a text as `UsageReader.read` returns them."""
    for line in text.split("\n"):
        reader.begin_line(line)
        for sentence in SENTENCE_END.split(line):
            if sentence.strip():
                yield reader.read(sentence)
