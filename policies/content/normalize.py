"""Normalizes a text before it is judged: full-width letters, invisible characters, Chinese variants.

Traditional characters become simplified ones, and Taiwan's technical words the mainland's (欄位 becomes 字段).
Only the judged copy is rewritten, never what is shown.
"""

import re
import unicodedata
from typing import Final

from policies.patterns import read_patterns

_INVISIBLE: Final = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_PATTERNS = read_patterns(__file__)
_TRADITIONAL_CHARACTERS: Final = _PATTERNS["traditional_characters"]
_SIMPLIFIED: Final = str.maketrans(
    _TRADITIONAL_CHARACTERS,
    "参数调马证凭据负责败误题级径报变规绕过临时决办权归属护联系络钥对应结构说类义顺范传选请项约语签样"
    "栏为体内阵维风险当记团队账号码储档单经验训显发现执运从会无关开录务问谁给错试输实终将换逻辑检环",
)
_TRADITIONAL: Final = re.compile(f"[{_TRADITIONAL_CHARACTERS}]")
_SAME_THINGS: Final = {
    "栏位": "字段",
    "呼叫": "调用",
    "引数": "参数",
    "字串": "字符串",
    "阵列": "数组",
    "物件": "对象",
    "布林": "布尔",
    "回传": "返回",
    "传回": "返回",
    "函式": "函数",
}
_OTHER_WORD: Final = re.compile("|".join(_SAME_THINGS))


def normalize(text: str) -> str:
    """Return the text with compatibility forms resolved, no invisible characters, simplified Chinese."""
    if text.isascii():
        return text
    clean = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    if _TRADITIONAL.search(clean):
        clean = clean.translate(_SIMPLIFIED)
    return _OTHER_WORD.sub(lambda word: _SAME_THINGS[word.group()], clean)
