"""Values under a telling key, `password=`, `密码：`, as they stand in settings, JSON, YAML, logs and talk.

A key alone proves nothing: `password: required` is talk, and `token: str` is code. Under keys for words
that people choose, any value counts that is assigned; under keys for tokens only what looks like one.
"""

import re
from collections.abc import Sequence

from policies.masks import MASK, mask_value
from policies.secret_keys import Key, any_of, keys_in
from policies.secret_looks import (
    CODE,
    NAME_OF_A_KEY,
    ORDINARY_VALUES,
    is_dotted_token,
    is_list_of_rules,
    is_mixed,
    is_technical,
    looks_chosen,
    looks_random,
    looks_scattered,
)
from policies.secret_pairs import paired_secret
from policies.secret_shadow import Page
from policies.secret_talk import AND_INSIDE, MARKS, told_secret

SEPARATORS = rf"=>|:=|[=:：]|{any_of(('是', '为', '為', '爲', '：'))}"
_INDEX = r"(?:(?<=[\"'])\](?=[ \t]{0,4}=[ \t]{0,4}[\"']))?"
"""`os.environ["DB_PASSWORD"] = "…"`."""
_SEPARATOR = rf"(?:\\{{0,7}}{MARKS}[\"']?{_INDEX}{MARKS}[ \t]{{0,4}}(?:{SEPARATORS})(?:(?:\*\*|__)(?=[ \t]))?[ \t]{{0,4}}|[ \t]{{0,4}}(?=[“「『]))"
_QUOTED = (
    r"\"(?:\"\")?(?P<double>(?:[^\"\\\n…]|\\[^\n])(?:[^\"\\\n…]|\\[^\n]){3,})"
    r"|\\{1,7}\"(?P<nested>[^\"\\\n…]{4,})"
    r"|\\{0,7}'(?:'')?(?P<single>[^'\\\n…]{4,})"
    r"|[“「『](?P<corner>[^”」』\n…]{4,256})"
    r"|`{1,3}(?P<tick>[^`\s…]{4,})(?=`)"
    r"|\*\*(?P<bold>[^*\s…]{4,256})(?=\*\*)"
)
MAX_BARE_CHARS = 128
_BARE_CHAR = rf"(?:[^\s\"'\\&;<>，。；、！？“”「」『』…]|{AND_INSIDE})"
_BARE = rf"(?P<bare>{_BARE_CHAR}{{4,{MAX_BARE_CHARS}}})"
"""Bounded, because a value that turns out ordinary is read again in search of a key inside it."""
_BARE_REST = re.compile(rf"{_BARE_CHAR}*")
_ASSIGNED = re.compile(rf"{_SEPARATOR}(?:{_QUOTED}|{_BARE})", re.IGNORECASE)
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
_MESSAGE = re.compile(
    r"(?:(?:the|your|this) )?(?:password|passphrase|passcode)s? [a-z]", re.IGNORECASE
)
"""`"password": "password must be at least 8 characters"`: what a form says of a field."""
_IS_TOLD = re.compile("[是为為爲]")
_LONG_TOKEN_CHARS = 20
_SHORT_TOKEN_CHARS = 8
_TELLING_CHARS = 128
"""Of a longer value the beginning tells enough; such keys can stand one behind the other, each to be read."""


def mask_keyed(page: Page) -> None:
    """Mask the values under telling keys."""
    text = page.read
    found: list[tuple[int, int]] = []
    for key in keys_in(text):
        if found and found[-1][0] <= key.start < found[-1][1]:
            continue  # a part of the value before
        secret = _assigned_secret(text, key) or told_secret(text, key) or paired_secret(text, key)
        if secret is not None:
            found.append(secret)
    page.mask([(start, end, mask_value(text[start:end])) for start, end in _united(found)])


def _united(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Put what stands in each other together: "the password for bob, key …, is …" can be read in two ways."""
    united: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if united and start < united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united


def _assigned_secret(text: str, key: Key) -> tuple[int, int] | None:
    """Give where the secret under a key begins and ends; None: it is masked already, or no secret."""
    match = _ASSIGNED.match(text, key.end)
    if match is None:
        return None
    found = match.lastgroup
    assert found is not None
    value, start = match[found], match.start(found)
    if text.startswith(MASK, match.end(found)):
        return None
    whole = value
    if found == "bare":
        value = value.rstrip(_TRAILING)
        if _is_name_in_code(match, key, value):
            return None
    elif _CODE_AFTER_QUOTE.match(value):
        return None
    if _is_ordinary(value, whole, key, text[key.start : start], quoted=found != "bare"):
        return None
    rest = _BARE_REST.match(text, match.end()) if len(value) == MAX_BARE_CHARS else None
    return start, start + len(value) if rest is None else rest.end()


def _is_ordinary(value: str, whole: str, key: Key, separator: str, *, quoted: bool) -> bool:
    """Say whether a value under a telling key is only talk or code; `whole` has its punctuation."""
    word = value.casefold().rstrip("?!.:")
    if word in ORDINARY_VALUES or NAME_OF_A_KEY.fullmatch(value) or _NO_VALUE.fullmatch(value):
        return True
    if is_list_of_rules(value) or (quoted and _MESSAGE.match(value)):
        return True
    if not separator.isascii() and _ASCII_WORD.search(value) is None:
        return True
    if not quoted and (
        (CODE.match(value) and not is_dotted_token(value))
        or (is_technical(value) and _IS_TOLD.search(separator))
    ):
        return True
    if key.is_loose:
        return not _looks_secret(value, key, told=quoted or "=" in separator)
    if not key.is_phrase:
        if "`" in separator and "://" in value:  # the target of a link in reStructuredText
            return True
        dense = " " not in value and (is_mixed(value) or _is_long_random(value))
        return len(whole) < _SHORT_TOKEN_CHARS or value.isdigit() or not dense
    chinese = value.isascii() and (not separator.isascii() or "\\u" in separator)
    assigned = quoted or "=" in separator or chinese
    return value.isalpha() and not (assigned and (value.isascii() or separator.isascii()))


def _looks_secret(value: str, key: Key, *, told: bool) -> bool:
    """Whether a value is a secret although its key tells little: `DB_PASS="…"`, not `PASS: TestOfUser2`."""
    if " " in value:
        return False
    value = value[:_TELLING_CHARS]
    if key.is_phrase and told:
        return looks_chosen(value)
    return (
        len(value) >= _SHORT_TOKEN_CHARS
        and (told or value.lower() != value)
        and looks_random(value)
        and looks_scattered(value)
    )


def _is_name_in_code(match: re.Match[str], key: Key, value: str) -> bool:
    """Whether a value without quotes is a variable: of an assignment, a call or a dictionary."""
    text, start = match.string, match.start("bare")
    if _NAME_OF_A_TYPE.fullmatch(value):
        return True
    if not _NAME.fullmatch(value):
        return False
    key_is_quoted = any(one in "\"'" for one in text[key.end : start])
    unpacked = " = " in text[key.end : start] and text.endswith(", ", 0, key.start)
    goes_on = value.isalpha() and _CODE_GOES_ON.match(text, start + len(value))
    return key_is_quoted or unpacked or goes_on is not None


def _is_long_random(value: str) -> bool:
    return len(value) >= _LONG_TOKEN_CHARS and not _IDENTIFIER.fullmatch(value)
