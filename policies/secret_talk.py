"""Secrets as people tell them: "the root password is …", `管理员密码改为 …`, a row of a table, `passwd …`.

Here nothing is assigned, so a word behind a key is mostly talk: "the password is required", `密码改为从环境
变量读取`. Only what looks like a secret counts, or a single word in quotes that "is" introduces.
"""

import re

from policies.masks import MASK
from policies.secret_keys import Key
from policies.secret_looks import is_placeholder, is_technical, looks_chosen, looks_random

MARKS = r"[*_`~]{0,3}"
"""Markdown, between a name and what is said of it."""
_BLANKS = r"[ \t]{1,4}"
_FOR_WHOM = (
    rf"(?:{_BLANKS}(?:for|of|on|in|at)(?:{_BLANKS}[^\s…|:：=]{{1,40}}){{1,5}}?"
    r"|[ \t]?[(（][^()（）\n…]{1,40}[)）])?"
)
AND_INSIDE = (
    r"&(?=[^\s\"'\\&;<>，。；、！？“”「」『』…])(?![A-Za-z0-9_.\-\[\]%]{1,64}=|[a-z]{2,4};|#)"
)
"""An `&` that a value goes on behind; before `name=` the next value of an address begins."""
_TO = r"(?:set|changed?|reset|updated?|rotated?|switched)[ \t](?:back[ \t])?to"
_IS = (
    r"(?:has[ \t]been|have[ \t]been|is|was|are|were|will[ \t]be)"
    rf"(?:[ \t](?:now|still|currently|just|again|temporarily|always))?(?:[ \t]{_TO})?[ \t]?[:：]?"
)
_CHINESE_BEFORE = (
    "[已经經现現在目前应應该該就还還仍依然默认認暂暫时時临臨统統一被都将將会會要重新先又再]{0,6}"
)
_CHINESE_IS = (
    rf"{_CHINESE_BEFORE}(?:(?:修改|改|变更|變更|更改|更换|更換|更新|换|換|设置|設置|设定|設定|设|設|重置|调整|調整|定|配置)"
    r"[成为為爲到]|[是为為爲]|如下|(?:发|發|告诉|告訴)?[给給]?你|[先就]用)[了：:]?"
)
_VERB = (
    rf"{_BLANKS}(?P<is>{_IS})|[ \t]{{0,4}}(?P<zh>{_CHINESE_IS})|{_BLANKS}(?:{_TO}|to|now)[ \t]?:?"
)
_SIGN = r"[ \t]{0,4}(?:\||[=:：]|->|=>|→)"
_OPENING = r"(?:\*\*|\"|'|`{1,3}|[“「『‘])?"
_VALUE_CHAR = r"[!#-%(-:=?-\[\]-{}~]"
"""ASCII without blanks, quotes, backslashes, `&`, `;`, `<`, `>` and `|`."""
_VALUE = rf"(?P<value>(?:{_VALUE_CHAR}|{AND_INSIDE}){{1,128}})"
_VALUE_REST = re.compile(rf"(?:{_VALUE_CHAR}|{AND_INSIDE})*")
_TOLD = re.compile(
    rf"[\"']?{MARKS}[\"']?"
    rf"(?:{_FOR_WHOM}(?:{_VERB}|{_SIGN})[*_]{{0,3}}[ \t]{{0,4}}|(?P<blank>[ \t]{{1,8}}|(?<=[^!-~])))"
    rf"(?P<opening>{_OPENING}){_VALUE}",
    re.IGNORECASE,
)
_WORDS = (
    r"is|was|are|were|will|be|has|have|been|now|still|currently|just|again|temporarily|always"
    r"|set|changed?|reset|updated?|rotated?|switched|back|to"
)
OPEN_TALK = (
    rf"[\"']?{MARKS}[\"']?"
    rf"(?:{_BLANKS}(?:for|of|on|in|at)(?:{_BLANKS}[^\s…|:：=]{{1,40}}){{0,5}}"
    r"|[ \t]?[(（][^()（）\n…]{0,40}[)）]?)?"
    rf"(?:{_BLANKS}(?:{_WORDS})(?![A-Za-z0-9])){{0,5}}"
    rf"(?:[ \t]{{0,4}}{_CHINESE_BEFORE}(?:[修更变變改换換设設置定重调調整新配换換成为為爲到是了如下给給你发發告诉訴先就用]{{0,5}}))?"
    rf"(?:{_SIGN}|[:：])?{MARKS}[ \t]{{0,8}}{_OPENING}[!-~]*"
)
"""What a text that is still coming may have of this behind a key."""
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "「": "」", "『": "』", "‘": "’"}
_TRAILING = ",.)]}:!?*_`"
_MIN_DIGITS = 6
_MIN_OPAQUE_CHARS = 12


def told_secret(text: str, key: Key) -> tuple[int, int] | None:
    """Give where the secret begins and ends that is told behind a key; None: there is none."""
    match = None if key.is_loose else _TOLD.match(text, key.end)
    if match is None or text.startswith(MASK, match.end()):
        return None
    start, value = match.start("value"), match["value"]
    value = value.partition("`")[0].rstrip(_TRAILING)
    if not _is_secret(value, match, key):
        return None
    end = start + len(value)
    rest = _VALUE_REST.match(text, end) if end == match.end() else None
    return start, end if rest is None else rest.end()


def _is_secret(value: str, match: re.Match[str], key: Key) -> bool:
    is_told = bool(match["is"] or match["zh"])
    if not key.is_phrase:
        return len(value) >= _MIN_OPAQUE_CHARS and looks_random(value)
    if looks_random(value):
        return True
    if match["blank"] is not None:
        return False
    if looks_chosen(value):
        return True
    if is_told and value.isdigit():
        return len(value) >= _MIN_DIGITS
    return (
        is_told and _is_quoted(value, match) and not (is_placeholder(value) or is_technical(value))
    )


def _is_quoted(value: str, match: re.Match[str]) -> bool:
    closing = _CLOSING.get(match["opening"][:1])
    end = match.start("value") + len(value)
    return (
        closing is not None and len(value) >= _MIN_QUOTED and match.string.startswith(closing, end)
    )


_MIN_QUOTED = 4
