"""Places where only secrets stand: headers, addresses, command lines, elements and key blocks."""

import re
from collections.abc import Callable, Iterator, Mapping

from policies.secrets.looks import is_mixed, is_placeholder, looks_chosen, looks_random
from policies.secrets.pairs import AND_INSIDE
from policies.secrets.text import MASK, Span

_STOP = r"\s\"'\\;&|<>，。；、！？“”「」『』（）…"
_PARTS = {
    "ARGUMENT": rf"(?P<value>[^{_STOP}\-](?:[^{_STOP}]|{AND_INSIDE}){{3,2047}})",
    "HEADER_VALUE": rf"(?P<value>[^{_STOP},]{{6,4096}})",
    "ASSIGN": r"\\{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,7}[\"']?",
    "OPTIONS": r"(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]",
    "SCHEMES": "(?:bearer|basic|token|digest|apikey)",
    "SECRET": "(?:pass(?:word|wd|phrase|code)|token|secret|api-?key)",
    "HEAD": r"(?<![A-Za-z0-9_])",
    "GAP": r"[ \t]{1,4}",
}
_TABLE = r"""
plain ://
 ://[^\s/:@"'…]{0,128}:(?P<value>[^\s/"'<>…]{1,256})(?=@)
mixed ://
 ://(?P<value>[^\s/:@"'…]{16,256})(?=@)
plain sig|x-amz-|code=|auth=
 [?&](?:sig|signature|x-amz-signature|x-amz-credential|code|auth)=(?P<value>[A-Za-z0-9%._~+/\-]{16,})
mixed key=
 [?&]key=(?P<value>(?-i:(?=[A-Za-z0-9_.\-]{0,80}[A-Z])(?=[A-Za-z0-9_.\-]{0,80}[a-z]))[A-Za-z0-9_.\-]{20,})
plain hook
 (?:/api/webhooks/[0-9]{10,22}/|\.webhook\.office\.com/webhookb2/|/bot/v2/hook/|/webhook/send\?key=)
 (?P<value>[A-Za-z0-9_\-@/]{20,})
plain cookie
 {HEAD}(?:set-)?cookie{ASSIGN}(?P<value>[A-Za-z0-9_\-.]{1,64}=[^\n"'\\…]{4,})
no_word authorization
 {HEAD}authorization{ASSIGN}(?:(?:{SCHEMES}|key|negotiate){GAP}
 |[A-Za-z][A-Za-z0-9\-]{1,30}{GAP}(?=[A-Za-z._~+/:=\-]{0,200}[0-9])(?=[A-Za-z0-9._~+/:=\-]{16}))?{HEADER_VALUE}
token bearer|basic|token|digest|apikey
 {HEAD}{SCHEMES}{GAP}(?P<value>(?=[A-Za-z._~+/\-]{0,200}[0-9=])[A-Za-z0-9._~+/=\-]{12,})
no_word --|pass|-token|-secret|-apikey
 (?<![A-Za-z0-9_\-])--?[A-Za-z0-9_\-]{0,40}
 (?:{SECRET}|(?:access|secret|private|auth)-?key|storepass|keypass|(?<=-)pass){GAP}(?!(?:pass|env|file|fd):)["']?{ARGUMENT}
any sshpass
 {HEAD}(?-i:sshpass{GAP}-p[ \t]{0,4})["']?{ARGUMENT}
any mysql|mariadb
 {HEAD}(?-i:(?:mysql|mysqldump|mysqladmin|mariadb){OPTIONS}-p)["']?{ARGUMENT}
any redis-cli
 {HEAD}(?-i:redis-cli{OPTIONS}-a{GAP})["']?{ARGUMENT}
any 7z|rar_
 {HEAD}(?-i:(?:7z[ar]?|rar|unrar){OPTIONS}-h?p)["']?{ARGUMENT}
any zip_|sqlcmd|bcp|mosquitto
 {HEAD}(?-i:(?:zip|unzip|sqlcmd|bcp|mosquitto_(?:pub|sub)){OPTIONS}-P[ \t]{0,4})["']?{ARGUMENT}
any openssl
 {HEAD}(?-i:openssl{OPTIONS}(?:-k{GAP}|pass:))["']?{ARGUMENT}
any htpasswd
 {HEAD}(?-i:htpasswd{GAP}-[A-Za-z]{0,8}b[A-Za-z]{0,8}{GAP}[^\s…]{1,256}{GAP}[^\s…]{1,128}{GAP})["']?{ARGUMENT}
any ldap
 {HEAD}(?-i:ldap(?:search|add|modify|delete|passwd|whoami){OPTIONS}-w{GAP})["']?{ARGUMENT}
any ssh-keygen
 {HEAD}(?-i:ssh-keygen{OPTIONS}-[NP]{GAP})["']?{ARGUMENT}
any smb|rpcclient
 {HEAD}(?-i:(?:smbclient|smbmap|rpcclient){OPTIONS}-U[ \t]{0,4}["']?[^\s%"'…]{1,64}%)["']?{ARGUMENT}
any convertto-securestring
 {HEAD}convertto-securestring{GAP}(?:-string{GAP})?["']{ARGUMENT}
any docker|podman|helm
 {HEAD}(?-i:(?:docker|podman|helm){GAP}(?:registry{GAP})?login{OPTIONS}-p{GAP})["']?{ARGUMENT}
any curl
 {HEAD}(?-i:curl(?![A-Za-z0-9_])[^\n|;…]{0,400}?[ \t](?:-u|--user|-U|--proxy-user)[ \t=]{0,4}["']?[^\s:"'…]{1,128}:)["']?{ARGUMENT}
chosen requirepass|masterauth
 {HEAD}(?:requirepass|masterauth){GAP}["']?{ARGUMENT}
chosen _-p
 (?<![^ \t])(?-i:(?:-u|--user(?:name)?)[ \t=]{1,4}[^\s…]{1,128}[ \t](?:[^\n|;&…]{0,100}?[ \t])?-p){GAP}["']?{ARGUMENT}
any echo_|printf_
 {HEAD}(?:echo|printf){GAP}(?:-n{GAP})?["']?(?P<value>[^\s"'|…]{4,256})(?=["']?[ \t]{0,4}\|[ \t]{0,4}
 (?:sudo[ \t][^\n|…]{0,40}-[A-Za-z]{0,4}S|[^\n|…]{1,200}--?(?:with-token|{SECRET})(?:-?stdin)?(?![A-Za-z0-9])))
plain auth=(
 (?<![A-Za-z0-9])auth=\(["'][^"'\n…]{0,128}["'],[ \t]?["'](?P<value>[^"'\s…]{4,256})(?=["'])
plain identified|password
 {HEAD}(?:identified{GAP}(?:with{GAP}[^\s…]{1,64}{GAP})?(?:by|as)|(?:with|encrypted|login|by){GAP}password){GAP}
 ["'](?P<value>[^"'\n…]{4,256})(?=["'])
any login
 {HEAD}(?-i:login[ \t]{1,8}[^\s…]{1,128}[ \t]{1,8}password)[ \t]{1,8}(?P<value>[^\s，。；、！？“”「」『』（）…]{4,512})
plain </
 <[A-Za-z0-9_:.\-]{0,64}(?:{SECRET}|密码|密钥|令牌)(?:[ \t][^<>…\n]{0,200})?>(?P<value>[^<>\s…]{4,2048})(?=</)
"""
"""What a value must be, words of which one is in every such text (`_` is a blank), and an indented pattern."""
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


_ACCEPTS: Mapping[str, Callable[[str], bool]] = {
    # however plain it looks: nothing else stands there
    "any": lambda value: value != "password" and _VARIABLE.fullmatch(value) is None,
    "plain": lambda value: not is_placeholder(value),
    "mixed": lambda value: is_mixed(value) and not is_placeholder(value),
    "token": lambda value: not (_WORD_WITH_NUMBER.fullmatch(value) or is_placeholder(value)),
    "chosen": lambda value: looks_chosen(value) or looks_random(value),
    # where prose stands as often
    "no_word": _is_no_word,
}
_Place = tuple[tuple[str, ...], re.Pattern[str], Callable[[str], bool]]


def _read_table(table: str) -> Iterator[_Place]:
    for entry in re.split(r"\n(?=\w)", table.strip()):
        head, *lines = entry.splitlines()
        accepts, _, words = head.partition(" ")
        pattern = "".join(line[1:] for line in lines)
        for name, part in _PARTS.items():
            pattern = pattern.replace(f"{{{name}}}", part)
        alternatives = tuple(words.replace("_", " ").split("|"))
        yield alternatives, re.compile(pattern, re.IGNORECASE), _ACCEPTS[accepts]


_PLACES = tuple(_read_table(_TABLE))
BLOCK_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_REST = re.compile(r"[A-Za-z0-9+/=:,\s\\]*+")
_MIN_KEY_CHARS = 16
"""A shorter block is somebody talking about key blocks."""


def block_spans(text: str) -> Iterator[Span]:
    """Yield the bodies of private keys; without an end, as far as it could be one."""
    at = 0
    while (begin := BLOCK_BEGIN.search(text, at)) is not None:
        end = BLOCK_END.search(text, begin.end())
        if end is None:
            rest = _BLOCK_REST.match(text, begin.end())
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
