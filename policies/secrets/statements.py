"""Values that a sentence states: "my password is blue-Horse-4821", `银行卡密码 889900`.

A key and a verb behind it prove little, because "the password is base64-encoded" has both. So the
value must have what hardly any other word has there: several digits among letters, the words of a
passphrase between quotes, or digits alone that measure nothing.
"""

import re
from typing import Final

from policies.secrets.keys import Key
from policies.secrets.looks import is_passphrase, looks_spoken, looks_spoken_and_mixed
from policies.secrets.text import MASK, Span

_BLANKS = r"[ \t]{1,4}"
_WORDS = rf"(?:{_BLANKS}[^\s…|:：=]{{1,40}})"
_ABOUT = (
    rf"(?:{_BLANKS}(?:for|of|on|in|at|that|which|i|we|you|he|she|they"
    rf"|to(?={_BLANKS}(?:the|my|our|his|her|their|your)[ \t])){_WORDS}{{1,5}}?"
    r"|[ \t]?[(（][^()（）\n…]{1,40}[)）])?"
)
_TO = r"(?:set|changed?|reset|updated?|rotated?|switched)[ \t](?:back[ \t])?to"
_IS = (
    r"(?:(?:has|have)[ \t]been|(?:will|should|would|must|used[ \t]to)[ \t]be|is|was|are|were)"
    r"(?:[ \t](?:now|still|currently|just|simply|actually|again|temporarily|always))?"
    rf"(?:[ \t]{_TO})?|{_TO}"
)
_CHINESE_IS = (
    "[我你他她们們咱已经經现現在目前应應该該就還还仍依然默认認暂暫时時临臨统統一被都将將会會要重新先又再"
    "修改变變更换換设設置定调調整配用写寫填的]{0,12}"
    "(?:[是为為爲成到叫]|如下|[给給]你)(?:(?:原来|原來|以前|之前)的)?[了：:]?"
)
_OPENING = r"(?P<opening>(?:\*\*|\"|'|`{1,3}|[“「『])?)"
_VALUE_CHAR = r"[!#-%(-:=?-\[\]-_a-{}~]"
"""ASCII without quotes, blanks, backslashes, `&`, `;`, `<`, `>`, `|`: Chinese goes on behind it."""
_ENGLISH_IS = rf"(?:['’]s|{_ABOUT}{_BLANKS}(?:{_IS}))[ \t]?[:：]?"
_STATED = re.compile(
    r"[\"'*_`]{0,3}(?:"
    rf"(?P<is>{_ENGLISH_IS}|{_ABOUT}[ \t]{{0,4}}{_CHINESE_IS})"
    r"|(?P<to>[ \t]{1,4}(?:to|now|remains|-{1,2}|[–—]))(?=[ \t])"
    rf"|{_ABOUT}[ \t]{{0,4}}(?P<sign>[:：=])|(?P<blank>[ \t]{{0,8}}(?=[!-~])))"
    r"(?P<below>[ \t]{0,4}\r?\n[ \t]{0,4}(?=\w))?[*_]{0,3}[ \t]{0,4}"
    rf"(?:\"(?P<double>[^\"\n…]{{4,64}})\"|'(?P<single>[^'\n…]{{4,64}})'"
    r"|[“「『](?P<corner>[^”」』\n…]{3,64})[”」』]"
    rf"|{_OPENING}(?P<bare>{_VALUE_CHAR}{{4,64}}))",
    re.IGNORECASE,
)
QUOTED_STATEMENT = re.compile(
    rf"[\"'*_`]{{0,3}}{_ENGLISH_IS}[*_]{{0,3}}[ \t]{{0,4}}"
    r"(?:\"[^\"\n…]{0,64}|'[^'\n…]{0,64}|[“「『][^”」』\n…]{0,64})",
    re.IGNORECASE,
)
"""The same as far as the end of a quoted value that may still come."""
_REST = re.compile(rf"{_VALUE_CHAR}*+")
_MAX_CHARS: Final = 64
_TRAILING = ",.)]}:!?*_`"
_CODE_DIGITS = range(4, 13)
_PIN_DIGITS = range(4, 9)
_POSTAL_DIGITS = 6
"""`Pin code: 560001` is an address in India."""
UNIT_CHARS = r"[ \t]{1,4}\(?[A-Za-z]{0,16}|[ \t]{0,4}[\u4e00-\u9fff]"
"""As far as is read behind digits."""
MEASURES = re.compile(
    "[ \t]{0,4}[位个個次天年月日号號字名人条條种種秒分小时時毫元块塊行多余餘以张張页頁套台组組端左]"
    "|[ \t]{1,4}(?:bits?|bytes?|chars?|characters?|digits?|letters?|symbols?|words?|times|days?"
    "|hours?|min(?:ute)?s?|sec(?:ond)?s?|ms|weeks?|months?|years?|iterations?|rounds?|attempts?"
    "|users?|rows?|items?|lines?|entries|percent|or|to|of|long|k?i?b|mi?b)(?![A-Za-z])",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"[.,;!?)\]}]?(?:\s*\Z|[ \t]*[\r\n])|[,;!?)\]}”」』。，；！？、）*`\"']|\.(?!\w)"
    r"|[ \t]{1,4}(?:\(|(?:if|and|but|so|for|on|at|please|thanks?|don|do|in|is|now|you|when|with"
    "|which|as|only|by|not|because|since|it|i|he|she|they|we)(?![A-Za-z]))"
    r"|[ \t]{0,4}[\u4e00-\u9fff]",
    re.IGNORECASE,
)
"""What follows a PIN; `pin: 1000 pieces` has none."""
_CHINESE = re.compile(r"[\u4e00-\u9fff]{3,10}")
_TALK = re.compile(
    "必填|必选|可选|为空|错误|默认|初始|密码|密碼|口令|暗号|字符|字段|明文|加密|请[输填设]|输入|长度|用户|过期|失败|成功|意思"
    "|自动|随机|手机|生日|身份|设置|修改|不[能得可对匹一正足符会需同]|[未已没无]|數字|数字|字母|安全|简单|复杂|通用|公开"
)
"""What Chinese says of a password between quotes."""


def stated(text: str, key: Key) -> Span | None:
    """Return where the value stands that a sentence states behind a key."""
    is_pw = text[key.start : key.end].lower() == "pw"
    if not key.is_phrase or (key.is_loose and not is_pw):
        return None
    match = _STATED.match(text, key.end)
    if match is None or text.startswith(MASK, match.end()):
        return None
    kind = match.lastgroup
    assert kind is not None
    if kind != "bare":
        return match.span(kind) if _is_quoted_secret(match, key, kind) else None
    value = match["bare"].partition("`")[0].rstrip(_TRAILING)
    start = match.start("bare")
    is_secret = (
        _is_code(text, key, match, value)
        if value.isdigit()
        else not key.is_pin and _is_secret_word(text, key, match, value)
    )
    if not is_secret:
        return None
    if len(value) == _MAX_CHARS:
        rest = _REST.match(text, match.end())
        assert rest is not None
        return start, rest.end()
    return start, start + len(value)


def _is_secret_word(text: str, key: Key, match: re.Match[str], value: str) -> bool:
    """Return whether a bare value is a secret; the weaker the link, the more it must show."""
    if match["is"] and not match["below"]:
        return looks_spoken(value)
    if match["sign"] and not match["below"]:
        return key.is_spoken and looks_spoken(value)
    if match["blank"] is not None and (match["below"] or not _is_chinese(text, key)):
        return False
    return looks_spoken_and_mixed(value)


def _is_code(text: str, key: Key, match: re.Match[str], value: str) -> bool:
    """Return whether digits open something, and neither count nor measure."""
    end = match.start("bare") + len(value)
    if match["below"] or match["to"]:
        return False
    if key.is_pin:
        name = text[key.start : key.end]
        if match["blank"] is not None and not name.startswith("PIN"):
            return False
        is_postal = "code" in name.lower() and len(value) == _POSTAL_DIGITS
        return len(value) in _PIN_DIGITS and not is_postal and _GOES_ON.match(text, end) is not None
    if match["blank"] is not None and not _is_chinese(text, key):
        return False
    return len(value) in _CODE_DIGITS and MEASURES.match(text, end) is None


def _is_quoted_secret(match: re.Match[str], key: Key, kind: str) -> bool:
    value = match[kind]
    if key.is_pin or match["to"] or match["blank"] is not None:
        return False
    if kind == "corner" and _is_chinese(match.string, key):
        chinese = _CHINESE.fullmatch(value) is not None and _TALK.search(value) is None
        return chinese or is_passphrase(value)
    return bool(match["is"]) and is_passphrase(value)


def _is_chinese(text: str, key: Key) -> bool:
    return not text[key.start : key.end].isascii()
