"""Values under a telling key, `password=`, `密码：`, as they stand in settings, JSON, YAML, logs and talk.

A key alone proves nothing: `password: required` is talk, and `token: str` is code. Under keys for words
that people choose, any value counts that is assigned; under keys for tokens only what looks like one.
"""

import re

from policies.masks import MASK, Masked, mask_value

_CHINESE_PHRASES = ("密码", "密碼", "口令")
_CHINESE_TOKENS = (
    *("密钥", "密鑰", "秘钥", "秘鑰", "令牌", "私钥", "私鑰"),
    *("凭证", "凭据", "授权码"),
)


def _escaped(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give words as JSON in ASCII writes them: a backslash, `u`, and four digits a character."""
    return tuple("".join(f"\\u{ord(one):04x}" for one in word) for word in words)


def _any_of(words: tuple[str, ...]) -> str:
    """Match words, also escaped, and escaped again."""
    escaped = [one.replace("\\", r"\\{1,7}") for one in _escaped(words)]
    return "|".join((*words, *escaped))


PHRASE_KEYS = rf"pass(?:word|wd|phrase|code)|pwd|{_any_of(_CHINESE_PHRASES)}"
OPAQUE_KEYS = (
    r"token|secret[_\-]?key[_\-]?base|secret[_\-]?key|secret|api[_\- ]?key|apikey|"
    r"access[_\-]?key(?:[_\-]?id)?|private[_\-]?key|account[_\-]?key|shared[_\-]?access[_\-]?key|"
    r"auth[_\-]?key|signing[_\-]?key|encryption[_\-]?key|license[_\-]?key|"
    rf"credentials?|{_any_of(_CHINESE_TOKENS)}"
)
SEPARATORS = rf"=>|:=|[=:：]|{_any_of(('是', '为', '為', '：'))}"
KEY_WORDS = (
    *("pass", "pwd", "token", "secret", "key", "credential"),
    *(*_CHINESE_PHRASES, *_CHINESE_TOKENS),
    *(one.rpartition("\\")[2] for one in _escaped((*_CHINESE_PHRASES, *_CHINESE_TOKENS))),
)
"""One of them, in lower case, is in every text that holds such a key."""
_SEPARATOR = rf"(?:\\{{0,7}}[\"']?[ \t]{{0,4}}(?:{SEPARATORS})[ \t]{{0,4}}|[ \t]{{0,4}}(?=[“「『]))"
_QUOTED = (
    r"\"(?P<double>(?:[^\"\\\n…]|\\[^\n])(?:[^\"\\\n…]|\\[^\n]){3,})"
    r"|\\{1,7}\"(?P<nested>[^\"\\\n…]{4,})"
    r"|\\{0,7}'(?P<single>[^'\\\n…]{4,})"
    r"|[“「『](?P<corner>[^”」』\n…]{4,256})"
)
MAX_BARE_CHARS = 2048
_BARE_CHAR = r"[^\s\"'\\&;<>，。；、！？“”「」『』…]"
_BARE = rf"(?P<bare>{_BARE_CHAR}{{4,{MAX_BARE_CHARS}}})"
"""Bounded, because a value that turns out ordinary is read again in search of a key inside it."""
_BARE_REST = re.compile(rf"{_BARE_CHAR}*")
_KEYED = re.compile(
    rf"(?:(?P<password>{PHRASE_KEYS})|(?P<token>{OPAQUE_KEYS})){_SEPARATOR}(?:{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
_ORDINARY = (
    "true false none null nil undefined empty unset set missing required optional invalid expired valid "
    "changed reset updated rejected accepted incorrect wrong denied failed masked redacted hidden omitted "
    "string str text bytes int bool boolean number any object type optional[str] str|none yes no on off "
    "default example changeme placeholder your-password your_password"
)
_ORDINARY_VALUES = frozenset(_ORDINARY.split())
_CODE = re.compile(
    r"[\$\{<%\[(*]|![A-Za-z]\w*\Z|[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+[,;)?]*\Z|[A-Za-z_][\w.]*[\[(]|(?:x{4,}|\*{3,}|\.{3,})\Z"
)
_NAME_OF_A_KEY = re.compile(
    r"[A-Za-z_]*(?:pass|pwd|secret|token|key|cred)[A-Za-z_]*", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"_*[A-Za-z]{1,16}(?:[_\-][A-Za-z]{1,16})+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]")
_NAME = re.compile(r"[A-Za-z_]+")
_NAME_OF_A_TYPE = re.compile(
    r"[A-Za-z_]{1,12}\d{0,5}[A-Za-z_]{0,12}(?:Key|Token|Secret|Password)\d?"
)
_NO_VALUE = re.compile(
    r"[*:.•\-_x# ]+|\{\{[^{}]*\}\}|\$\{[^{}]*\}|\$\([^()]*\)|%\([^()]*\)s|<%[^%]*%>|<[^<>]*>"
)
"""Asterisks, and the places that templates leave open."""
_CODE_GOES_ON = re.compile(r"[ \t]*(?:=|,[ \t]*[A-Za-z_])|[(\[.]")
"""`password = user, password`: the value is a name in a program."""
_CODE_AFTER_QUOTE = re.compile(r"[,)\]}:;+][ \t,)\]}:;+]")
"""`prompt="Password: ", stream=None`: the quote closes a text and opens none."""
_TRAILING = ",;.)]}>:!?）"
_LONG_TOKEN_CHARS = 20
_SHORT_TOKEN_CHARS = 8


def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one: a word of talk, a name of a key, a variable, asterisks."""
    return (
        value.casefold() in _ORDINARY_VALUES
        or _NAME_OF_A_KEY.fullmatch(value) is not None
        or _CODE.match(value) is not None
    )


def is_mixed(value: str) -> bool:
    """Whether a value holds letters and digits both, as few words do."""
    return any(one.isdigit() for one in value) and any(one.isalpha() for one in value)


def mask_keyed(text: str) -> Masked:
    """Mask the values under telling keys."""
    out: list[str] = []
    copied = at = count = 0
    while (match := _KEYED.search(text, at)) is not None:
        span = _read(match)
        if span is None:
            at = match.end("password") if match["password"] else match.end("token")
            continue
        out += [text[copied : span[0]], mask_value(text[span[0] : span[1]])]
        copied = at = span[1]
        count += 1
    return Masked("".join([*out, text[copied:]]), count)


def _read(match: re.Match[str]) -> tuple[int, int] | None:
    """Give where the secret under a key begins and ends; None: it is masked already, or no secret."""
    found = match.lastgroup
    assert found is not None
    text, value, start = match.string, match[found], match.start(found)
    if text.startswith(MASK, match.end(found)):
        return None
    whole = value
    if found == "bare":
        value = value.rstrip(_TRAILING)
        if _is_name_in_code(match, value):
            return None
    elif _CODE_AFTER_QUOTE.match(value):
        return None
    key = "token" if match["token"] else "password"
    if _is_ordinary(value, whole, key, text[match.start() : start], quoted=found != "bare"):
        return None
    rest = _BARE_REST.match(text, match.end()) if len(value) == MAX_BARE_CHARS else None
    return start, start + len(value) if rest is None else rest.end()


def _is_ordinary(value: str, whole: str, key: str, separator: str, *, quoted: bool) -> bool:
    """Say whether a value under a telling key is only talk or code; `whole` has its punctuation."""
    word = value.casefold().rstrip("?!.:")
    if word in _ORDINARY_VALUES or _NAME_OF_A_KEY.fullmatch(value) or _NO_VALUE.fullmatch(value):
        return True
    if not separator.isascii() and _ASCII_WORD.search(value) is None:
        return True
    if not quoted and _CODE.match(value):
        return True
    if key == "token":
        dense = " " not in value and (is_mixed(value) or _is_long_random(value))
        return len(whole) < _SHORT_TOKEN_CHARS or value.isdigit() or not dense
    chinese = value.isascii() and (not separator.isascii() or "\\u" in separator)
    assigned = quoted or "=" in separator or chinese
    return value.isalpha() and not (assigned and (value.isascii() or separator.isascii()))


def _is_name_in_code(match: re.Match[str], value: str) -> bool:
    """Whether a value without quotes is a variable: of an assignment, a call or a dictionary."""
    text, start = match.string, match.start("bare")
    if _NAME_OF_A_TYPE.fullmatch(value):
        return True
    if not _NAME.fullmatch(value):
        return False
    key_is_quoted = any(one in "\"'" for one in text[match.start() : start])
    unpacked = " = " in text[match.start() : start] and text.endswith(", ", 0, match.start())
    goes_on = value.isalpha() and _CODE_GOES_ON.match(text, start + len(value))
    return key_is_quoted or unpacked or goes_on is not None


def _is_long_random(value: str) -> bool:
    return len(value) >= _LONG_TOKEN_CHARS and not _IDENTIFIER.fullmatch(value)
