"""What a value looks like: a secret, a word of talk, a piece of code, the name of an algorithm."""

import re

ORDINARY_VALUES = frozenset(
    "true false none null nil undefined empty unset set missing required optional invalid expired "
    "valid changed reset updated rejected accepted incorrect wrong denied failed masked redacted "
    "hidden omitted string str text bytes int bool boolean number any object type optional[str] "
    "str|none yes no on off default example changeme placeholder your-password "
    "your_password".split()
)
_RULES = re.compile(r"[a-z_]+(?::[\w,./\-]+)?(?:\|[a-z_]+(?::[\w,./\-]+)?)+")
CODE = re.compile(
    r"[\$\{<%\[(*]|![A-Za-z]\w*\Z|[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+[,;)?]*\Z"
    r"|[A-Za-z_][\w.]*[\[(]|(?:x{4,}|\*{3,}|\.{3,})\Z",
)
NAME_OF_A_KEY = re.compile(
    r"(?:env:)?[A-Za-z_]*(?:pass|pwd|secret|token|key|cred)[A-Za-z_]*", re.IGNORECASE
)
"""`DB_PASSWORD`, `env:DB_PASSWORD`."""
# What prose says behind "the password is" although it has digits.
_TECHNICAL_NAME = (
    "(?<![a-z0-9])(?:"
    r"(?:base|b)(?:16|32|58|62|64)(?:url)?|sha-?[1235]\d{0,2}(?:sum)?|md[45](?:sum|crypt)?"
    "|argon2(?:id|i|d)?"
    r"|pbkdf2|[rhep]s\d{3}|aes-?\d{0,3}|rsa-?\d{0,4}|x?ed25519|x25519|x509|pkcs\d{1,2}|p12"
    r"|o?auth[0-3](?:\.\d)?"
    "|http[123]|utf-?(?:8|16|32)|ipv[46]|ntlmv?[12]|crc32|blake[23][bs]?|k8s|i18n|l10n"
    r"|v\d{1,3}(?:(?:alpha|beta|rc)\d{0,2})?"
    "|1password|office365|win(?:32|64)|x86|[236]fa|bcrypt|scrypt|jwt|ldap|vault"
    "|hash(?:ed)?|plaintext)(?![0-9])"
)
_TECHNICAL = re.compile(_TECHNICAL_NAME, re.IGNORECASE)
_MODE = "(?-i:[A-Z]{2,5})"
# `AES-256-CBC`, `PBKDF2-HMAC-SHA256`.
_TECHNICAL_NAMES = re.compile(
    rf"(?=\D*\d)(?:{_MODE}[-_/])*{_TECHNICAL_NAME}(?:[-_/](?:{_TECHNICAL_NAME}|{_MODE}))+",
    re.IGNORECASE,
)
# `12-characters-long`, `3600s`, `8-64`.
_MEASURED = re.compile(
    r"\d{1,6}(?:[\-+.~]\d{1,6})?[\-+]?"
    "(?:chars?|characters?|bits?|bytes?|days?|hours?|min(?:ute)?s?|sec(?:ond)?s?|[smhdkx]"
    "|ms|[kmg]i?b|st|nd|rd|th)?(?:-[A-Za-z]+){0,4}",
    re.IGNORECASE,
)
# Paths, addresses, options, dates, versions.
_ELSEWHERE = re.compile(
    r"[/.~@#\-+]|.*://|[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+\Z|[a-z][a-z\-]*@[a-z][\w.\-]*\Z"
    r"|[\w./\-]+\.(?:py|js|ts|tsx|md|txt|json|ya?ml|toml|sh|go|rs|java|html?|css|png|log"
    r"|conf|cfg|ini|sql|csv|xml|pem|key|crt|db|sqlite3?|env|lock|gz|zip|rst|ps1|php|rb)\Z"
    r"|\d{4}-\d\d-\d\d|\d{1,3}(?:\.\d{1,3}){2,3}",
    re.ASCII,
)
# A standard, a ticket: `RFC-7617-encoded`, `OPS-4821`.
_NUMBERED = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:rfc|iso|iec|cve|fips|nist|ieee|ansi|pci|cp|gbk?|level|step|part|version"
    r"|issue|ticket|bug|policy|chapter|section|page|figure|table)[-_ ]?\d[\d.\-]{0,12}"
    r"|(?-i:[A-Z]{2,10}-\d{1,6})(?![A-Za-z0-9]))",
    re.IGNORECASE,
)
_JOINTS = re.compile(r"[\-_./:,=+()\[\]{}|?]+")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^A-Za-z0-9]", re.ASCII)
_SIGN_INSIDE = re.compile(r"[A-Za-z0-9][!@#$%^~*]+[A-Za-z0-9]", re.ASCII)
_DOTTED = re.compile(r"[\w.\-]+", re.ASCII)
_MIN_PART_DIGITS = 3
_MIN_CHARS = 7
_JUDGED_CHARS = 96
"""The beginning of a value decides; the cost of a key must not grow with what follows it."""
_MIN_DENSE_CHARS = 6
_MIN_DENSE_PIECES = 3
_DENSE_CHARS_EACH = 3.0
_LONG_CHARS = 16
_LONG_CHARS_EACH = 5.0
_MIN_DENSE_LETTERS = 8
_MIN_LETTER_PIECES = 4
_MIN_SPOKEN_CHARS = 6
_MIN_SPOKEN_DIGITS = 2
_MIN_WORD_CHARS = 4
_MIN_WORDS_JOINED = 4
_MIN_PARTS_WITH_NUMBER = 3
_MIN_PASSPHRASE_WORDS = 3
_LONG_NUMBER = re.compile(r"\d{3}")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9]{2,20}")
_REMARKS = frozenset(
    "a an the is are was be been being to of on in at by for from with without and or not no nor "
    "as than that this it its too very must should may might can cannot could will would has have "
    "had if when please your you my our their use used uses using enter type already "
    "least most only all any more less long short weak strong character characters digits letters "
    "password passwords passphrase per each every before after does do did".split()
)
"""Words that a remark on a password has, and a passphrase hardly."""
_LETTERS_EACH = 2.5


def is_placeholder(value: str) -> bool:
    """Return whether a text only stands for a value: a word of talk, a name of a key, a variable,
    asterisks.
    """
    return (
        value.casefold() in ORDINARY_VALUES
        or is_list_of_rules(value)
        or NAME_OF_A_KEY.fullmatch(value) is not None
        or CODE.match(value) is not None
    )


def is_list_of_rules(value: str) -> bool:
    """Return whether a form asks this of what is typed into it: `required|min:8|confirmed`."""
    return _RULES.fullmatch(value) is not None and not ORDINARY_VALUES.isdisjoint(value.split("|"))


def is_dotted_token(value: str) -> bool:
    """Return whether what stands between dots is too random for names of a program:
    `s.xWZHK56l0v1x4mmjYlYcPd9V`.
    """
    return _DOTTED.fullmatch(value) is not None and any(
        len(part) >= _LONG_CHARS
        and sum(map(str.isdigit, part)) >= _MIN_PART_DIGITS
        and looks_random(part)
        for part in value.split(".")
    )


def is_mixed(value: str) -> bool:
    """Return whether a value holds letters and digits both, as few words do."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def is_technical(value: str) -> bool:
    """Return whether a value is the name of an algorithm, a format or a product."""
    is_name = _TECHNICAL.fullmatch(value) is not None
    return is_name or _TECHNICAL_NAMES.fullmatch(value) is not None


def looks_chosen(value: str) -> bool:
    """Return whether prose would hardly have this word where it tells a password: `hunter22`,
    `pa$$word`.
    """
    if len(value) < _MIN_CHARS or _is_something_else(value):
        return False
    if looks_random(value):
        return True
    if _JOINTS.search(value) or _TECHNICAL.search(value):
        return False
    return is_mixed(value) or _SIGN_INSIDE.search(value) is not None


def looks_spoken(value: str) -> bool:
    """Return whether a sentence would hardly have this word behind "the password is", which proves
    less of a key than of these: `blue-Horse-4821`, `abc123`, `correct-horse-battery-staple`.
    """
    value = value[:_JUDGED_CHARS]
    if _is_something_else(value):
        return False
    if looks_chosen(value):
        return True
    rest = _NUMBERED.sub("", _TECHNICAL.sub("", value))
    parts = _JOINTS.split(rest)
    letters, digits = sum(map(str.isalpha, rest)), sum(map(str.isdigit, rest))
    if len(parts) == 1:
        return len(rest) >= _MIN_SPOKEN_CHARS and letters > 0 and digits >= _MIN_SPOKEN_DIGITS
    if digits == 0:
        is_long = all(len(part) >= _MIN_WORD_CHARS and part.isalpha() for part in parts)
        return is_long and len(parts) >= _MIN_WORDS_JOINED
    if letters < _MIN_WORD_CHARS - 1:
        return False
    return (
        _LONG_NUMBER.search(rest) is not None
        or any(len(part) > _MIN_WORD_CHARS and is_mixed(part) for part in parts)
        or (len(parts) >= _MIN_PARTS_WITH_NUMBER and digits >= _MIN_SPOKEN_DIGITS)
    )


def looks_spoken_and_mixed(value: str) -> bool:
    """Return whether a value also has letters of both sizes and a number, as few names have:
    `Lisi8842`, and not `user-0042`.
    """
    rest = _NUMBERED.sub("", _TECHNICAL.sub("", value[:_JUDGED_CHARS]))
    is_mixed_up = _has_both_sizes(rest) and _LONG_NUMBER.search(rest) is not None
    return is_mixed_up and looks_spoken(value)


def is_passphrase(value: str) -> bool:
    """Return whether words between quotes are chosen ones, and no remark: `tall green mountain`."""
    found = value.split()
    has_number = any(map(str.isdigit, value))
    return (
        len(found) >= _MIN_PASSPHRASE_WORDS - has_number
        and all(_PLAIN_WORD.fullmatch(word) for word in found)
        and _REMARKS.isdisjoint(map(str.lower, found))
        and ORDINARY_VALUES.isdisjoint(map(str.lower, found))
    )


def _has_both_sizes(value: str) -> bool:
    return any(map(str.islower, value)) and any(map(str.isupper, value))


def looks_random(value: str) -> bool:
    """Return whether letters of both sizes, digits and signs change as often as in no name:
    `Zq9vTr7m`.
    """
    value = value[:_JUDGED_CHARS]
    if len(value) < _MIN_CHARS or _is_something_else(value):
        return False
    return _has_dense_part(value) and _has_dense_part(_TECHNICAL.sub("", value))


def looks_scattered(value: str) -> bool:
    """Return whether letters, digits and signs change so often that no words are in it, as in
    `TestOfUser2`.
    """
    return len(value) <= _DENSE_CHARS_EACH * len(_PIECE.findall(value))


def looks_made(value: str) -> bool:
    """Return whether no person wrote this: scattered letters of both sizes, and digits."""
    has_digit = any(map(str.isdigit, value))
    return value.lower() != value != value.upper() and has_digit and looks_scattered(value)


def _is_something_else(value: str) -> bool:
    return (
        is_placeholder(value)
        or _ELSEWHERE.match(value) is not None
        or _MEASURED.fullmatch(value) is not None
    )


def _has_dense_part(value: str) -> bool:
    return any(len(part) >= _MIN_DENSE_CHARS and _is_dense(part) for part in _JOINTS.split(value))


def _is_dense(part: str) -> bool:
    pieces = len(_PIECE.findall(part))
    if is_mixed(part):
        if len(part) >= _LONG_CHARS and pieces > _MIN_DENSE_PIECES:
            return len(part) <= _LONG_CHARS_EACH * pieces
        most = _DENSE_CHARS_EACH * pieces
        return pieces >= _MIN_DENSE_PIECES and len(part) <= most
    return (
        len(part) >= _MIN_DENSE_LETTERS
        and pieces >= _MIN_LETTER_PIECES
        and len(part) <= _LETTERS_EACH * pieces
    )
