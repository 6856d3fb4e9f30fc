"""Values under keys, as settings, programs and people write them.

`password=…`, `密码：…`, "the root password is now …", `{"name": "DB_PASSWORD", "value": "…"}`. A
key alone proves nothing: `password: required` is prose and `token: str` is code. The link between
key and value decides how much the value itself must look like a secret.
"""

import re
from collections.abc import Iterator

from policies.secrets.keys import Key, any_of, keys_in
from policies.secrets.looks import (
    CODE,
    NAME_OF_A_KEY,
    ORDINARY_VALUES,
    is_dotted_token,
    is_list_of_rules,
    is_mixed,
    is_placeholder,
    is_technical,
    looks_chosen,
    looks_random,
    looks_scattered,
)
from policies.secrets.statements import MEASURES, stated
from policies.secrets.text import MASK, Span

# Markdown between a name and its value.
MARKS = "[*_`~]{0,3}"
# An `&` within a value; before `name=` the next value of an address begins.
AND_INSIDE = (
    r"""&(?=[^\s\"'\\&;<>，。；、！？“”「」『』…])(?![A-Za-z0-9_.\-\[\]%]{1,64}=|[a-z]{2,4};"""
    "|#)"
)
_BLANKS = r"[ \t]{1,4}"
_FOR_WHOM = (
    rf"(?:{_BLANKS}(?:for|of|on|in|at)(?:{_BLANKS}[^\s…|:：=]{{1,40}}){{1,5}}?"
    r"|[ \t]?[(（][^()（）\n…]{1,40}[)）])?"
)
_TO = r"(?:set|changed?|reset|updated?|rotated?|switched)[ \t](?:back[ \t])?to"
_IS = (
    r"(?:has[ \t]been|have[ \t]been|is|was|are|were|will[ \t]be)"
    r"(?:[ \t](?:now|still|currently|just|again|temporarily"
    rf"|always))?(?:[ \t]{_TO})?[ \t]?[:：]?"
)
_CHINESE_IS = (
    "[已经經现現在目前应應该該就还還仍依然默认認暂暫时時临臨统統一被都将將会會要重新先又"
    "再]{0,6}"
    "(?:(?:修改|改|变更|變更|更改|更换|更換|更新|换|換|设置|設置|设定|設定|设|設|重置"
    "|调整|調整|定|配置)"
    "[成为為爲到]|[是为為爲]|如下|(?:发|發|告诉|告訴)?[给給]?你|[先就]用)[了：:]?"
)
# ASCII without blanks, quotes, backslashes, `;`, `<`, `>` and `|`: Chinese goes on behind it.
_TOLD_CHAR = rf"(?:[!#-%(-:=?-\[\]-{{}}~]|{AND_INSIDE})"
_QUOTE = r"""\\{0,7}[\"']"""
_SPACE = r"[ \t]{0,8}"
_GAP = r"[ \t]{0,8}(?:\r?\n[ \t]{0,40})?"
_BELOW = r"[ \t]{0,4}\r?\n[ \t]{1,40}"
_SEPARATORS = rf"=>|:=|[=:：]|{any_of(('是', '为', '為', '爲', '：'))}"
_INDEX = r"(?:(?<=[\"'])\](?=[ \t]{0,4}=[ \t]{0,4}[\"']))?"
"""`os.environ["DB_PASSWORD"] = "…"`."""
_BARE_CHAR = rf"(?:[^\s\"'\\&;<>，。；、！？“”「」『』…]|{AND_INSIDE})"
_JUDGED_CHARS = 64
"""A longer value is judged by its beginning: a key must not cost more, whatever follows it."""
_ASSIGNED = re.compile(
    rf"(?:\\{{0,7}}{MARKS}[\"']?{_INDEX}{MARKS}[ \t]{{0,4}}"
    rf"(?:{_SEPARATORS})(?:(?:\*\*|__)(?=[ \t]))?[ \t]{{0,4}}"
    r"|[ \t]{0,4}(?=[“「『]))(?:"
    rf"\"(?:\"\")?(?P<double>(?:[^\"\\\n…]|\\[^\n]){{4,{_JUDGED_CHARS}}})"
    rf"|\\{{1,7}}\"(?P<nested>[^\"\\\n…]{{4,{_JUDGED_CHARS}}})"
    rf"|\\{{0,7}}'(?:'')?(?P<single>[^'\\\n…]{{4,{_JUDGED_CHARS}}})"
    rf"|[“「『](?P<corner>[^”」』\n…]{{4,{_JUDGED_CHARS}}})"
    r"|`{1,3}(?P<tick>[^`\s…]{4,128})(?=`)|\*\*(?P<bold>[^*\s…]{4,128})(?=\*\*)"
    rf"|(?P<bare>{_BARE_CHAR}{{4,{_JUDGED_CHARS}}}))",
    re.IGNORECASE,
)
_REST = {
    "double": re.compile(r"(?:[^\"\\\n…]|\\[^\n])*+"),
    "nested": re.compile(r"[^\"\\\n…]*+"),
    "single": re.compile(r"[^'\\\n…]*+"),
    "corner": re.compile(r"[^”」』\n…]*+"),
    "bare": re.compile(rf"{_BARE_CHAR}*+"),
}
_IDENTIFIER = re.compile(r"_*[A-Za-z]{1,16}(?:[_\-][A-Za-z]{1,16})+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]")
_RANGE = re.compile(r"\d{1,4}[ \t]?[~\-–—到至][ \t]?\d{1,4}")
_NAME = re.compile(r"[A-Za-z_]+")
_NAME_OF_A_TYPE = re.compile(
    r"[A-Za-z_]{1,12}\d{0,5}[A-Za-z_]{0,12}(?:Key|Token|Secret|Password)\d?",
)
# Asterisks, and the places that templates leave open.
_NO_VALUE = re.compile(
    r"[*:.•\-_x# ]+|\{\{[^{}]*\}\}|\$\{[^{}]*\}|\$\([^()]*\)|%\([^()]*\)s|<%[^%]*%>"
    "|<[^<>]*>",
)
_CODE_GOES_ON = re.compile(r"[ \t]*(?:=|,[ \t]*[A-Za-z_])|[(\[.]")
"""`password = user, password`: the value is a name in a program."""
_CODE_AFTER_QUOTE = re.compile(r"[,)\]}:;+][ \t,)\]}:;+]")
"""`prompt="Password: ", stream=None`: the quote closes a text and opens none."""
_TRAILING = ",;.)]}>:!?）"
# `"password": "password must be at least 8 characters"`: what a form says of a field.
_MESSAGE = re.compile(
    "(?:(?:the|your|this) )?(?:password|passphrase|passcode)s? [a-z]",
    re.IGNORECASE,
)
_IS_WORD = re.compile("[是为為爲]")
_LONG_TOKEN_CHARS = 20
_SHORT_TOKEN_CHARS = 8
_MIN_OPAQUE_CHARS = 12


def pair_spans(text: str) -> Iterator[Span]:
    """Yield where the values under keys stand."""
    last = (0, 0)
    for key in keys_in(text):
        if not last[0] <= key.start < last[1]:  # no part of the value before
            span = None if key.is_spoken else _assigned(text, key) or _told(text, key)
            if span is None and key.is_phrase:
                span = stated(text, key)
            if span is None and not key.is_spoken:
                span = _paired(text, key)
            if span is not None:
                yield span
                last = span


def _assigned(text: str, key: Key) -> Span | None:
    match = _ASSIGNED.match(text, key.end)
    if match is None:
        return None
    kind = match.lastgroup
    assert kind is not None
    whole = value = match[kind]
    (start, end), link = match.span(kind), text[key.start : match.start(kind)]
    if text.startswith(MASK, end):
        return None
    if kind == "bare":
        value = value.rstrip(_TRAILING)
        count = _RANGE.match(text, start)
        if count is not None and MEASURES.match(text, count.end()):
            return None
        if _is_name_in_code(match, key, value):
            return None
    elif _CODE_AFTER_QUOTE.match(value):
        return None
    if _is_ordinary(value, whole, key, link, quoted=kind != "bare"):
        return None
    if len(whole) == _JUDGED_CHARS and kind in _REST:
        rest = _REST[kind].match(text, end)
        assert rest is not None
        return start, rest.end()
    return start, start + len(value)


def _is_ordinary(value: str, whole: str, key: Key, link: str, *, quoted: bool) -> bool:
    """Return whether an assigned value is only prose or code; `whole` has its punctuation."""
    word = value.casefold().rstrip("?!.:")
    if word in ORDINARY_VALUES or NAME_OF_A_KEY.fullmatch(value) or _NO_VALUE.fullmatch(value):
        return True
    if is_list_of_rules(value) or (quoted and _MESSAGE.match(value)):
        return True
    if not link.isascii() and _ASCII_WORD.search(value) is None:
        return True
    if not quoted and (
        (CODE.match(value) and not is_dotted_token(value))
        or (_IS_WORD.search(link) and is_technical(value))
    ):
        return True
    if key.is_loose:
        return not _looks_secret(value, key, assigned=quoted or "=" in link)
    if not key.is_phrase:
        if "`" in link and "://" in value:  # the target of a link in reStructuredText
            return True
        dense = " " not in value and (is_mixed(value) or _is_long_token(value))
        return len(whole) < _SHORT_TOKEN_CHARS or value.isdigit() or not dense
    chinese = value.isascii() and (not link.isascii() or "\\u" in link)
    assigned = quoted or "=" in link or chinese
    return value.isalpha() and not (assigned and (value.isascii() or link.isascii()))


def _looks_secret(value: str, key: Key, *, assigned: bool) -> bool:
    """Return whether the value alone shows a secret: `DB_PASS="…"`, not `PASS: TestOfUser2`."""
    if " " in value:
        return False
    if key.is_phrase and assigned:
        return looks_chosen(value)
    return (
        len(value) >= _SHORT_TOKEN_CHARS
        and (assigned or value.lower() != value)
        and looks_random(value)
        and looks_scattered(value)
    )


def _is_long_token(value: str) -> bool:
    return len(value) >= _LONG_TOKEN_CHARS and not _IDENTIFIER.fullmatch(value)


def _is_name_in_code(match: re.Match[str], key: Key, value: str) -> bool:
    """Return whether a bare value is a variable: of an assignment, a call or a dictionary."""
    text, start = match.string, match.start("bare")
    if _NAME_OF_A_TYPE.fullmatch(value):
        return True
    if not _NAME.fullmatch(value):
        return False
    key_is_quoted = any(char in "\"'" for char in text[key.end : start])
    unpacked = " = " in text[key.end : start] and text.endswith(", ", 0, key.start)
    goes_on = value.isalpha() and _CODE_GOES_ON.match(text, start + len(value))
    return key_is_quoted or unpacked or goes_on is not None


# 64 is `_JUDGED_CHARS`.
_TOLD = re.compile(
    rf"""[\"']?{MARKS}[\"']?"""
    rf"(?:{_FOR_WHOM}(?:{_BLANKS}(?P<is>{_IS})|[ \t]{{0,4}}(?P<zh>{_CHINESE_IS})"
    rf"|{_BLANKS}(?:{_TO}|to|now)[ \t]?:?"
    r"|[ \t]{0,4}(?:\||[=:：]|->|=>|→))[*_]{0,3}[ \t]{0,4}|(?P<blank>[ \t]{1,8}"
    "|(?<=[^!-~])))"
    rf"""(?P<opening>(?:\*\*|\"|'|`{{1,3}}|[“「『‘])?)(?P<value>{_TOLD_CHAR}{{1,64}})""",
    re.IGNORECASE,
)
_TOLD_REST = re.compile(rf"{_TOLD_CHAR}*+")
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "「": "」", "『": "』", "‘": "’"}
_MIN_DIGITS = 6
_MIN_QUOTED_CHARS = 4


def _told(text: str, key: Key) -> Span | None:
    """Find a value in prose or a table row; most words behind a key are no secret there."""
    match = None if key.is_loose else _TOLD.match(text, key.end)
    if match is None or text.startswith(MASK, match.end()):
        return None
    start, whole = match.start("value"), match["value"]
    value = whole.partition("`")[0].rstrip(",.)]}:!?*_`")
    is_told = bool(match["is"] or match["zh"])
    closing = _CLOSING.get(match["opening"][:1])
    is_quoted = closing is not None and text.startswith(closing, start + len(value))
    if not key.is_phrase:
        is_secret = len(value) >= _MIN_OPAQUE_CHARS and looks_random(value)
    elif match["blank"] is not None:
        is_secret = looks_random(value)
    else:
        is_secret = (
            looks_chosen(value)
            or looks_random(value)
            or (is_told and value.isdigit() and len(value) >= _MIN_DIGITS)
            or (
                is_told
                and is_quoted
                and len(value) >= _MIN_QUOTED_CHARS
                and not (is_placeholder(value) or is_technical(value) or value.isdigit())
            )
        )
    if not is_secret:
        return None
    rest = _TOLD_REST.match(text, match.end()) if len(value) == _JUDGED_CHARS else None
    return start, start + len(value) if rest is None else rest.end()


_PAIRED = re.compile(
    rf"""(?:(?P<call>\([\"'])|(?P<argument>[\"'],{_SPACE}[\"'])"""
    # attributes, and members of an object
    rf"|{_QUOTE}(?:[ \t]{{1,8}}value{_SPACE}={_SPACE}"
    rf"|{_GAP},{_GAP}{_QUOTE}value{_QUOTE}{_SPACE}:{_SPACE}){_QUOTE}"
    rf"|{_QUOTE}{_SPACE}>"
    rf"|{_QUOTE}{_SPACE}:{_SPACE}\{{{_GAP}{_QUOTE}value{_QUOTE}{_SPACE}:{_SPACE}{_QUOTE}"
    # a type between: `api_key: str = "…"`
    r"|:[ \t]{0,4}[A-Za-z_][A-Za-z0-9_.\[\]|]{0,40}(?:[ \t]\|[ \t][A-Za-z]{1,16})?"
    rf"""{_SPACE}={_SPACE}[\"']"""
    # YAML: another entry, or the text below
    rf"""|[\"']?(?:{_BELOW}|,[ \t]{{1,8}})value:[ \t]{{1,8}}[\"']?"""
    rf"|:{_SPACE}(?:[|>][+\-]?)?{_BELOW})"
    r"""(?P<value>[^\s\"'\\<>…]{7,2048})""",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.\-]{0,64}\Z")
_ASKS = re.compile(r"(?:get|find|fetch|read|load|has|lookup|resolve)\w*\Z", re.IGNORECASE)


def _paired(text: str, key: Key) -> Span | None:
    """Find a value whose key is a value itself; labels and rules of forms stand there, too."""
    match = _PAIRED.match(text, key.end)
    if match is None or text.startswith(MASK, match.end()):
        return None
    before = text[max(0, key.start - 64) : key.start]
    name = _NAME_BEFORE.search(before)
    assert name is not None
    if match["call"] and _ASKS.match(name[0]):
        return None  # what is asked for is a name
    if match["argument"] and not before.endswith(("('", '("'), 0, name.start()):
        return None  # one of a list of words
    start, value = match.start("value"), match["value"].rstrip(",;.)]}:!?")
    is_secret = looks_chosen(value) if key.is_phrase else looks_random(value)
    if not is_secret or (not key.is_phrase and len(value) < _MIN_OPAQUE_CHARS):
        return None
    return start, start + len(value)
