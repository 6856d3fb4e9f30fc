"""Finds the names of tools in a text, in every spelling.

`mcp__prom__query_range` is also `prom::query_range` and `query_range`, and that may be written
`query-range` or `queryRange`. Humps count only as they stand, so `log_in` is not found in `login`.
Texts are normalized first, so that look-alikes, invisible characters and traditional Chinese count
the same.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_INVISIBLE: Final = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_SIMPLIFIED_CHARACTERS = (
    "参数调马证凭据负责败误题级径报变规绕过临时决办权归属护联系络钥对应结构说类义顺范传选"
    "请项约语签样"
    "栏为体内阵维风险当记团队账号码储档单经验训显发现执运从会无关开录务问谁给错试输实终将"
    "换逻辑检环"
)
_TRADITIONAL_CHARACTERS: Final = (
    "參數調馬證憑據負責敗誤題級徑報變規繞過臨時決辦權歸屬護聯繫絡鑰對應結構說類義順範傳選"
    "請項約語簽樣"
    "欄為體內陣維風險當記團隊帳號碼儲檔單經驗訓顯發現執運從會無關開錄務問誰給錯試輸實終將"
    "換邏輯檢環"
)
_SIMPLIFIED: Final = str.maketrans(_TRADITIONAL_CHARACTERS, _SIMPLIFIED_CHARACTERS)
_TRADITIONAL: Final = re.compile(f"[{_TRADITIONAL_CHARACTERS}]")
# Words of Taiwan, with characters simplified, and those of the mainland.
_SAME_THINGS: Final = dict(
    pair.split("=")
    for pair in "栏位=字段 呼叫=调用 引数=参数 字串=字符串 阵列=数组 物件=对象 布林=布尔 回传=返回 "
    "传回=返回 函式=函数".split()
)
_OTHER_WORD: Final = re.compile("|".join(_SAME_THINGS))


def normalize(text: str) -> str:
    """Return the text with compatibility forms resolved, no invisible characters, simplified
    Chinese.
    """
    if text.isascii():
        return text
    clean = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    if _TRADITIONAL.search(clean):
        clean = clean.translate(_SIMPLIFIED)
    return _OTHER_WORD.sub(lambda word: _SAME_THINGS[word.group()], clean)


TOOL: Final = "\ue000"
"""Stands for a name that no text contains by chance."""
WORD: Final = "\ue001"
"""Stands for a name that is an ordinary word as well, such as `Read` or `search`."""

_START: Final = r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9]-)"
_END: Final = r"(?![A-Za-z0-9_])(?!-[A-Za-z0-9])"
_PART_END: Final = re.compile(r"[-_]|(?<=[a-z0-9])(?=[A-Z])")
_CJK: Final = re.compile(r"[一-鿿]")
_TOOL_FOLLOWS: Final = r"(?=[`\"']?\s?(?:tool\b|[一-鿿]))"
_MIN_MCP_PARTS: Final = 3
# Names that only an agent's tools have; no class has a member with a hyphen.
_AGENT_TOOL: Final = re.compile(
    r"(?<![A-Za-z0-9_])mcp__[A-Za-z0-9]\w*(?:-\w+)*"
    r"|(?<![\w:\-])[a-z]\w{0,40}::(?!first-|file-selector|view-)[a-z]\w{0,30}-[\w\-]{1,60}"
    r"|(?<![\w\-])(?:Bash|Edit|Glob|Grep|Read|Skill|Task|TodoWrite|ToolSearch|WebFetch"
    r"""|WebSearch|Write)(?=[`\"'」”]?\s?(?:tool\b|工具))""",
)


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The names of some tools, ready to be found in texts made by `normalize`."""

    distinct: re.Pattern[str] | None
    words: re.Pattern[str] | None

    @classmethod
    def of(cls, names: Iterable[str]) -> "ToolNames":
        """Take bare names, `server::tool` and `mcp__server__tool`."""
        aliases = {alias for name in names for alias in _aliases(normalize(name).strip())}
        words = {alias for alias in aliases if _is_word(alias)}
        return cls(
            _pattern(f"(?:{_START}|(?<=__)|(?<=::))", _spellings(aliases - words)),
            _pattern(_START, [_word_spellings(word) for word in _longest_first(words)]),
        )

    def mark(self, text: str) -> str:
        """Return the text with `TOOL` and `WORD` in place of the names."""
        if self.distinct is not None:
            text = self.distinct.sub(TOOL, text)
        return text if self.words is None else self.words.sub(WORD, text)


def mark_agent_tools(text: str) -> str:
    """Return the text with `TOOL` in place of each name that only an agent's tool has."""
    return _AGENT_TOOL.sub(TOOL, text)


def _aliases(name: str) -> Iterator[str]:
    if not name:
        return
    yield name
    server, separator, last = name.rpartition("::")
    if separator and last:
        yield last
        yield f"mcp__{server.replace('::', '__')}__{last}"
    parts = name.split("__")
    if parts[0].lower() == "mcp" and len(parts) >= _MIN_MCP_PARTS and parts[-1]:
        yield "__".join(parts[2:])
        yield parts[-1]
        yield f"{parts[1]}::{'__'.join(parts[2:])}"


def _is_word(alias: str) -> bool:
    if _CJK.search(alias):
        return True
    return alias.isalpha() and alias[1:] == alias[1:].lower()


def _word_spellings(word: str) -> str:
    """Return an expression for a word; in small letters `Read` is a verb, unless more
    shows a tool.
    """
    any_case = f"(?i:{re.escape(word)})"
    return any_case if word.islower() else f"(?:{re.escape(word)}|{any_case}{_TOOL_FOLLOWS})"


def _pattern(start: str, spellings: list[str]) -> re.Pattern[str] | None:
    return re.compile(f"{start}(?:{'|'.join(spellings)}){_END}") if spellings else None


def _longest_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (-len(name), name))


def _spellings(names: Iterable[str]) -> list[str]:
    """Return expressions for names with any separator, in any case, and with humps."""
    ordered = _longest_first(names)
    found: dict[str, None] = {}
    for name in ordered:
        found[f"(?i:{'[-_]'.join(map(re.escape, re.split('[-_]', name)))})"] = None
        parts = [] if "__" in name or "::" in name else _PART_END.split(name)
        parts = [part for part in parts if part]
        if len(parts) > 1:
            found[f"(?i:{'[-_]'.join(map(re.escape, parts))})"] = None
            first, *rest = parts
            humps = re.escape("".join(part[:1].upper() + part[1:] for part in rest))
            found[f"{re.escape(first.lower())}{humps}"] = None
            found[f"{re.escape(first[:1].upper() + first[1:])}{humps}"] = None
    return list(found)
