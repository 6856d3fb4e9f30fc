"""Places where only secrets stand: headers, addresses, command lines, elements and key blocks."""

import re
from collections.abc import Callable, Iterator

from policies.secrets.looks import is_mixed, is_placeholder, looks_chosen, looks_random
from policies.secrets.pairs import AND_INSIDE
from policies.secrets.text import MASK, Span

_STOP = r"""\s\"'\\;&|<>，。；、！？“”「」『』（）…"""
_ARGUMENT = rf"(?P<value>[^{_STOP}\-](?:[^{_STOP}]|{AND_INSIDE}){{3,2047}})"
_HEADER_VALUE = rf"(?P<value>[^{_STOP},]{{6,4096}})"
_ASSIGN = r"""\\{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,7}[\"']?"""
_OPTIONS = r"(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]"
_SCHEMES = "(?:bearer|basic|token|digest|apikey)"
_KIND = "(?:pass(?:word|wd|phrase|code)|token|secret|api-?key)"
_HEAD = "(?<![A-Za-z0-9_])"
_GAP = r"[ \t]{1,4}"
_LONG_CHARS = 20
_VARIABLE = re.compile(r"\$\{?\w+\}?")
_NAME_OF_A_SCHEME = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+){1,3}")
"""`AWS4-HMAC-SHA256`."""
_WORD_WITH_NUMBER = re.compile(r"[A-Za-z]?[a-z\-]+\d{0,4}[.]?")
"""`Bearer authentication2`."""


def _is_no_word(value: str) -> bool:
    bare = value.rstrip(".,:;)]}!?）")
    if bare.isdigit() or bare.startswith("/") or _NAME_OF_A_SCHEME.fullmatch(bare):
        return False
    if bare.isalpha() and not looks_random(bare):
        return False
    return (is_mixed(bare) or len(bare) >= _LONG_CHARS) and not is_placeholder(value)


def _is_no_variable(value: str) -> bool:
    """Accept however plain a value looks: nothing else stands there."""
    return value != "password" and _VARIABLE.fullmatch(value) is None


def _is_no_placeholder(value: str) -> bool:
    return not is_placeholder(value)


def _is_mixed_value(value: str) -> bool:
    return is_mixed(value) and not is_placeholder(value)


def _is_token(value: str) -> bool:
    return not (_WORD_WITH_NUMBER.fullmatch(value) or is_placeholder(value))


def _is_chosen(value: str) -> bool:
    return looks_chosen(value) or looks_random(value)


_Place = tuple[tuple[str, ...], re.Pattern[str], Callable[[str], bool]]


def _place(words: str, accepts: Callable[[str], bool], pattern: str) -> _Place:
    return tuple(words.split("|")), re.compile(pattern, re.IGNORECASE), accepts


_COMMANDS = (
    # words of which one is in each such command line, and what stands before the password
    ("sshpass", rf"sshpass{_GAP}-p[ \t]{{0,4}}"),
    ("mysql|mariadb", rf"(?:mysql|mysqldump|mysqladmin|mariadb){_OPTIONS}-p"),
    ("redis-cli", rf"redis-cli{_OPTIONS}-a{_GAP}"),
    ("7z|rar ", rf"(?:7z[ar]?|rar|unrar){_OPTIONS}-h?p"),
    (
        "zip |sqlcmd|bcp|mosquitto",
        rf"(?:zip|unzip|sqlcmd|bcp|mosquitto_(?:pub|sub)){_OPTIONS}-P[ \t]{{0,4}}",
    ),
    ("openssl", rf"openssl{_OPTIONS}(?:-k{_GAP}|pass:)"),
    (
        "htpasswd",
        (
            rf"htpasswd{_GAP}-[A-Za-z]{{0,8}}b[A-Za-z]{{0,8}}{_GAP}[^\s…]{{1,256}}{_GAP}"
            rf"[^\s…]{{1,128}}{_GAP}"
        ),
    ),
    ("ldap", rf"ldap(?:search|add|modify|delete|passwd|whoami){_OPTIONS}-w{_GAP}"),
    ("ssh-keygen", rf"ssh-keygen{_OPTIONS}-[NP]{_GAP}"),
    (
        "smb|rpcclient",
        rf"""(?:smbclient|smbmap|rpcclient){_OPTIONS}-U[ \t]{{0,4}}["']?[^\s%"'…]{{1,64}}%""",
    ),
    (
        "docker|podman|helm",
        rf"(?:docker|podman|helm){_GAP}(?:registry{_GAP})?login{_OPTIONS}-p{_GAP}",
    ),
    (
        "curl",
        (
            r"curl(?![A-Za-z0-9_])[^\n|;…]{0,400}?[ \t](?:-u|--user|-U|--proxy-user)[ \t=]{0,4}"
            r"""["']?[^\s:"'…]{1,128}:"""
        ),
    ),
)
_PLACES = (
    # words of which one is in each such text, what the value must be, and the expression
    _place(
        "://",
        _is_no_placeholder,
        r"""://[^\s/:@"'…]{0,128}:(?P<value>[^\s/"'<>…]{1,256})(?=@)""",
    ),
    _place(
        "://",
        _is_mixed_value,
        r"""://(?P<value>[^\s/:@"'…]{16,256})(?=@)""",
    ),
    _place(
        "sig|x-amz-|code=|auth=",
        _is_no_placeholder,
        "[?&](?:sig|signature|x-amz-signature|x-amz-credential|code"
        r"|auth)=(?P<value>[A-Za-z0-9%._~+/\-]{16,})",
    ),
    _place(
        "key=",
        _is_mixed_value,
        r"[?&]key=(?P<value>(?-i:(?=[A-Za-z0-9_.\-]{0,80}[A-Z])(?=[A-Za-z0-9_.\-]{0,80}[a-z]))"
        r"[A-Za-z0-9_.\-]{20,})",
    ),
    _place(
        "hook",
        _is_no_placeholder,
        r"(?:/api/webhooks/[0-9]{10,22}/|\.webhook\.office\.com/webhookb2/|/bot/v2/hook/"
        r"|/webhook/send\?key=)"
        r"(?P<value>[A-Za-z0-9_\-@/]{20,})",
    ),
    _place(
        "cookie",
        _is_no_placeholder,
        rf"""{_HEAD}(?:set-)?cookie{_ASSIGN}(?P<value>[A-Za-z0-9_\-.]{{1,64}}=[^\n"'\\…]{{4,}})""",
    ),
    _place(
        "authorization",
        _is_no_word,
        rf"{_HEAD}authorization{_ASSIGN}(?:(?:{_SCHEMES}|key|negotiate){_GAP}"
        rf"|[A-Za-z][A-Za-z0-9\-]{{1,30}}{_GAP}(?=[A-Za-z._~+/:=\-]{{0,200}}[0-9])(?="
        rf"[A-Za-z0-9._~+/:=\-]{{16}}))?{_HEADER_VALUE}",
    ),
    _place(
        "bearer|basic|token|digest|apikey",
        _is_token,
        rf"{_HEAD}{_SCHEMES}{_GAP}(?P<value>(?=[A-Za-z._~+/\-]{{0,200}}[0-9=])[A-Za-z0-9._~+/=\-]"
        r"{12,})",
    ),
    _place(
        "--|pass|-token|-secret|-apikey",
        _is_no_word,
        r"(?<![A-Za-z0-9_\-])--?[A-Za-z0-9_\-]{0,40}"
        rf"(?:{_KIND}|(?:access|secret|private|auth)-?key|storepass|keypass"
        rf"""|(?<=-)pass){_GAP}(?!(?:pass|env|file|fd):)["']?{_ARGUMENT}""",
    ),
    *(
        _place(words, _is_no_variable, rf"""{_HEAD}(?-i:{before})["']?{_ARGUMENT}""")
        for words, before in _COMMANDS
    ),
    _place(
        "convertto-securestring",
        _is_no_variable,
        rf"""{_HEAD}convertto-securestring{_GAP}(?:-string{_GAP})?["']{_ARGUMENT}""",
    ),
    _place(
        "requirepass|masterauth",
        _is_chosen,
        rf"""{_HEAD}(?:requirepass|masterauth){_GAP}["']?{_ARGUMENT}""",
    ),
    _place(
        " -p",
        _is_chosen,
        r"(?<![^ \t])(?-i:(?:-u|--user(?:name)?)[ \t=]{1,4}[^\s…]{1,128}[ \t]"
        rf"""(?:[^\n|;&…]{{0,100}}?[ \t])?-p){_GAP}["']?{_ARGUMENT}""",
    ),
    _place(
        "echo |printf ",
        _is_no_variable,
        rf"""{_HEAD}(?:echo|printf){_GAP}(?:-n{_GAP})?["']?(?P<value>[^\s"'|…]{{4,256}})"""
        r"""(?=["']?[ \t]{0,4}\|[ \t]{0,4}"""
        r"(?:sudo[ \t][^\n|…]{0,40}-[A-Za-z]{0,4}S|[^\n|…]{1,200}--?(?:with-token"
        rf"|{_KIND})(?:-?stdin)?(?![A-Za-z0-9])))",
    ),
    _place(
        "auth=(",
        _is_no_placeholder,
        r"""(?<![A-Za-z0-9])auth=\(["'][^"'\n…]{0,128}["'],[ \t]?["'](?P<value>[^"'\s…]{4,256})"""
        """(?=["'])""",
    ),
    _place(
        "identified|password",
        _is_no_placeholder,
        rf"{_HEAD}(?:identified{_GAP}(?:with{_GAP}[^\s…]{{1,64}}{_GAP})?(?:by|as)|(?:with"
        rf"|encrypted|login|by){_GAP}password){_GAP}"
        r"""["'](?P<value>[^"'\n…]{4,256})(?=["'])""",
    ),
    _place(
        "login",
        _is_no_variable,
        rf"{_HEAD}(?-i:login[ \t]{{1,8}}[^\s…]{{1,128}}[ \t]{{1,8}}password)[ \t]{{1,8}}(?P<value>"
        r"[^\s，。；、！？“”「」『』（）…]{4,512})",
    ),
    _place(
        "</",
        _is_no_placeholder,
        rf"<[A-Za-z0-9_:.\-]{{0,64}}(?:{_KIND}|密码|密钥"
        r"|令牌)(?:[ \t][^<>…\n]{0,200})?>(?P<value>[^<>\s…]{4,2048})(?=</)",
    ),
)
BLOCK_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BLOCK_REST = re.compile(r"[A-Za-z0-9+/=:,\s\\]*+")
_MIN_KEY_CHARS = 16
"""A shorter block is somebody talking about key blocks."""


def block_spans(text: str) -> Iterator[Span]:
    """Yield the bodies of private keys; without an end, as far as a key could reach."""
    at = 0
    while (begin := BLOCK_BEGIN.search(text, at)) is not None:
        end = BLOCK_END.search(text, begin.end())
        if end is None:
            rest = BLOCK_REST.match(text, begin.end())
            assert rest is not None
            at = rest.end()
        else:
            at = end.end()
        if at - begin.end() >= _MIN_KEY_CHARS and not text.startswith(MASK, begin.end()):
            yield begin.end(), at


def place_spans(text: str) -> Iterator[Span]:
    """Yield where values stand in places for secrets."""
    low = text.lower()
    for words, pattern, accepts in _PLACES:
        for word in words:  # not `any`: each line is searched, and a loop is twice as fast
            if word in low:
                for match in pattern.finditer(text):
                    start, end = match.span("value")
                    if not text.startswith(MASK, end) and accepts(match["value"]):
                        yield start, end
                break
