"""The numbers that name what happened, not when or where: error codes, ports, versions, ids of known forms.

`ORA-00060` and `ORA-01555`, `exit code 137` and `139` or `端口 9092` and `2181` tell two incidents apart; a
count, a moment or a host's number does not.
"""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

CODE_MARK: Final = "#"
"""What a code begins with among the telling words."""

OCCASIONAL: Final = frozenset({"version"})
"""Sorts that one incident's tellings may name differently beside its root cause."""
PLACES: Final = frozenset({"port", "version", "java", "python", "php", "tls"})
"""Sorts that say where: one cause may be at two of them."""
_UNITS: Final = r"%|ms|s|m|h|d|min|sec|seconds?|minutes?|hours?|days?|[kmgt]i?b?|x|times|qps|rps"
_MANY: Final = (
    r"(?:of|out of|more|other|different|concurrent|rows?|records?|lines?|items?|keys?|entries|messages?"
    r"|requests?|queries|connections?|threads?|process(?:es)?|pods?|nodes?|hosts?|hits?|per|an?)\b"
)
_MANY_ZH: Final = r"次|秒|毫秒|分钟|小时|天|万|千|个(?!别)|条|点|行(?!锁)|倍|台(?!账)|笔|单|起|多|余|名|位|页|张|份|批|户|例|件|项"
_STOP: Final = r"(?![a-z0-9_]|[-:,]\d|\.\d{1,9}\.\d)"
"""The number goes on no further."""
_NO_TIME: Final = rf"{_STOP}(?!\s?(?:{_UNITS})(?![a-z0-9_]))"
_END: Final = rf"{_NO_TIME}(?!\s?(?:{_MANY}|{_MANY_ZH}))"
"""Nor is it a count, a duration or a moment, which it may well be where the word ahead leaves it open."""
_ALONE: Final = r"(?<![a-z0-9_.:-])"
_WORD: Final = r"(?<![a-z0-9_.-])"
_GAP: Final = r"[^\S\n]{0,16}"
"""Logs set their values in columns."""
_TO: Final = rf"""(?:{_GAP}(?:[=:#(\["']|\bis\b|\bwas\b|\bof\b|为|是)){{0,3}}{_GAP}"""
_ALSO: Final = r"(?:\s?[/、]\s?\d{1,6}){0,9}"
_NUMBER: Final = rf"(?:0x[0-9a-f]{{1,8}}|-?\d{{1,6}}{_ALSO})"
_RELEASE: Final = r"\d{1,5}(?:\.\d{1,5}){0,3}(?:_\d{1,5})?"
_STATUS: Final = r"(?:40\d|41[0-8]|42[1-689]|431|451|499|50[0-8]|51[01]|52[0-7]|530)"
"""An answer of HTTP that says what failed; another number as large is a count."""
_STATUSES: Final = rf"{_STATUS}(?:/{_STATUS}){{0,5}}"
_ENDED: Final = r"(?:exit(?:ed|s)?|terminated|died|ended|quit)"
_FAILED: Final = (
    rf"{_WORD}(?:(?:error|err|exit|ret(?:urn)?|status|response|result|reason|reply|grpc|rpc|sql|stop|vendor)"
    r"[ _-]?(?:code|number)|(?:grpc|rpc|exit|ret(?:urn)?)[ _-]?status|errno|winerr(?:or)?|bug ?check"
    rf"|{_ENDED} with (?:code|status)|rc(?=\s?[=:])"
    r"|(?:mysql|mariadb|innodb|oracle|kafka|redis|mongo(?:db)?|sql)(?: server)? error)"
    r"(?:\s(?:code|status|number)){0,1}"
    r"|(?:错误|异常|返回|退出|状态|响应|结果|报错)代?码|(?:错误|报错)(?:代号|编号|号)|退出状态"
)
_FAILED_MAYBE: Final = (
    rf"{_WORD}(?:err(?:or)?|code|{_ENDED} with|exit(?:ed)?)(?:\s(?:code|number|response|with)){{0,2}}"
    r"|代码|错误|报错"
)
_OTHER_CODE: Final = (
    rf"{_WORD}(?:sms|otp|pin|verification|confirmation|order|tracking|zip|postal|area|country|promo|coupon"
    r"|voucher|discount|invite|invitation|product|item|store|bar|source|access)[ _-]?code"
)
_HTTP: Final = (
    rf"{_WORD}(?:https?(?:/\d(?:\.\d)?)?|(?:upstream|downstream|backend|origin|target|proxy|elb|response)"
    r"[ _-]?(?:status|code))(?:[ _-]?(?:status|code|error|number|response|with)){0,3}"
)
_ANSWERED: Final = (
    r"(?<![a-z])(?:(?:returned|returns?|returning|responds? with|responded with|answer(?:s|ed)?(?: with)?|got"
    r"|(?:failed|fails|failing|rejected|refused|denied) with)(?: an?)?\s"
    rf"|status{_TO})|(?:返回|响应|报)\s?"
)
_OF_THINGS: Final = (
    r"(?!\s(?!errors|responses|status|always|sometimes|was|has|this|across|unless)[a-z]{2,20}s\b)"
)
_REASONS: Final = (
    r"unauthorized|forbidden|not found|bad gateway|(?:service )?(?:temporarily )?unavailable|gateway time"
    r"|internal server error|too many requests|bad request"
)
_ANNOUNCED: Final = rf"(?:errors?(?!\sper)|responses?|status)\b|(?:{_REASONS})|错误|状态码|响应"
_BESIDE: Final = (
    r"(?:denied|forbidden|unauthorized|unavailable|gateway|time-?out|requests|slowdown|found|response|error"
    r"|refused|throttled|exceeded|with)"
)
_KNOWN: Final = (
    r"(?:ora|tns|pls|rman)-[0-9a-z][0-9a-z:-]{1,18}[0-9a-z]"
    r"|(?:exp|imp|lrm|crs|dgm|kup|pcc|prcr|sp2)-\d{3,5}"
    r"|(?:cwe|ghsa|rhsa)-[0-9a-z][0-9a-z:-]{1,18}[0-9a-z]|cve-\d{4}-\d{3,7}"
    r"|(?<!at )(?<!address )0x(?:8[078]|c0)[0-9a-f]{6}|(?-i:(?:E|ERR|AMQ|KB)\d{3,7})"
)
_KNOWN_PORTS: Final = (
    "2181|2379|2380|3306|5432|5672|6379|6443|8080|8443|8848|9092|9200|9300|10250|11211|15672|27017"
)
"""Ports whose number says enough alone."""
_FIRST_OF_CLIENTS: Final = 32_768
"""From here on a port is given to whoever connects, and names one connection."""
_CODE: Final = re.compile(
    "|".join(
        (
            # `SMS code 482913`, `order code 77231` name one occasion
            rf"{_OTHER_CODE}{_TO}(?P<other>\d{{1,12}})",
            # `HTTP/1.1 503`, `http_status 503`, `upstream_status=502`
            rf"{_HTTP}{_TO}(?P<http>[1-5]\d\d(?:/[1-5]\d\d){{0,5}}{_NO_TIME})",
            # `Exit Code:    137`, `[Errno 28]`, `错误码 1213 行锁`, and without such a word: `error 1213`
            rf"(?:{_FAILED}){_TO}(?P<failure>{_NUMBER}{_STOP})",
            rf"{_WORD}sqlcode{_TO}(?P<sqlcode>-?\d{{1,6}}{_STOP})",
            rf"(?:{_FAILED_MAYBE}){_TO}(?P<failure_maybe>{_NUMBER}{_END})",
            rf"(?:{_WORD}event[ _-]?id|事件\s?(?:id|编号)){_TO}(?P<event>\d{{3,5}}{_STOP})",
            # `returned 503`, `503 error`, `502 Bad Gateway`, `AccessDenied (403)`, `137 退出码`
            rf"(?:{_ANSWERED})\(?(?P<answered>{_STATUSES}{_END}){_OF_THINGS}",
            rf"{_ALONE}(?<!\d/)(?P<announced>{_STATUSES})(?=\s?(?:{_ANNOUNCED}))",
            rf"{_BESIDE}\s?\((?P<beside>{_STATUS})(?=\))",
            rf"{_ALONE}(?P<exit>\d{{1,3}})(?=\s?(?:退出码|错误码))",
            # `port 9092`, `2181 端口`; not the port beside an address, which is a client's
            rf"(?:{_WORD}(?<!\d\s)ports?|端口号?){_TO}(?P<port>\d{{1,5}}{_ALSO}{_STOP})",
            rf"{_ALONE}(?<!node )(?<!host )(?<!pod )(?P<port_before>\d{{1,5}})(?=\s?(?:端口|port\b))",
            rf"(?:{_ALONE}|(?<=[a-z]:))(?P<port_of>(?:{_KNOWN_PORTS}){_END})",
            # `jdk17`, `TLS 1.2`, `signal 9`, `版本 3.1`
            rf"{_WORD}(?:openjdk|jdk|jre|java)[ -]?v?(?P<java>{_RELEASE}{_END})",
            rf"{_WORD}python[ -]?v?(?P<python>{_RELEASE}{_END})",
            rf"{_WORD}php[ -]?v?(?P<php>{_RELEASE}{_END})",
            rf"{_WORD}tls[ -]?v?(?P<tls>{_RELEASE}{_END})",
            rf"(?:{_WORD}version|版本号?){_TO}(?P<version>v?{_RELEASE}{_END})",
            rf"(?:{_WORD}signal|信号){_TO}(?P<signal>\d{{1,2}}{_END})",
            rf"{_WORD}sqlstate{_TO}(?P<sqlstate>(?=[a-z]*\d)[0-9a-z]{{5}}(?![a-z0-9]))",
            # ids of a known form
            rf"(?<![a-z0-9_-])(?P<id>{_KNOWN})(?![a-z0-9_])",
        )
    ),
    re.IGNORECASE,
)
_SINGLE: Final = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)*(?:_\d+)?", re.IGNORECASE)
_LETTERS: Final = re.compile(r"[a-z]+")
_IS_STATUS: Final = re.compile(_STATUS)
_FIRST_TWO: Final = re.compile(r"(\d+(?:\.\d+)?)")
_RELEASES: Final = {
    "java": re.compile(r"(?:1\.)?(\d+)"),
    "python": _FIRST_TWO,
    "php": _FIRST_TWO,
}
"""What names the release of a runtime; what follows is one of its patches."""
_SORTS: Final = {
    "failure": "code",
    "failure_maybe": "code",
    "sqlcode": "code",
    "exit": "code",
    "answered": "http",
    "announced": "http",
    "beside": "http",
    "port_before": "port",
    "port_of": "port",
}


def parts_of(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Cut a text where its codes are: each stretch of it, with the codes that stand at its end."""
    at = 0
    for match in _CODE.finditer(text):
        group = str(match.lastgroup)
        yield text[at : match.start(group)], tuple(_codes(match, group))
        at = match.end(group)
    yield text[at:], ()


def codes_differ(one: Iterable[str], other: Iterable[str], *, but: AbstractSet[str]) -> bool:
    """Whether of some sort both name codes and each one that the other does not; `but`: sorts left out.

    Both are telling words; what only one names a code of speaks for nothing.
    """
    mine, theirs = _by_sort(one), _by_sort(other)
    return any(
        mine[sort] - theirs[sort] and theirs[sort] - mine[sort]
        for sort in mine.keys() & theirs.keys() - but
    )


def _by_sort(words: Iterable[str]) -> dict[str, set[str]]:
    sorted_out: dict[str, set[str]] = {}
    for word in words:
        if word.startswith(CODE_MARK):
            sorted_out.setdefault(word.partition("-")[0].removeprefix(CODE_MARK), set()).add(word)
    return sorted_out


def _codes(match: re.Match[str], group: str) -> Iterator[str]:
    value = match[group].casefold()
    if group == "id":
        yield _known(value)
    elif group == "sqlstate":
        yield f"{CODE_MARK}{group}-{value}"
    elif group != "other":
        sort = _SORTS.get(group, group)
        for single in _SINGLE.findall(value):
            yield from _code(sort, single, group)


def _code(sort: str, value: str, group: str) -> Iterator[str]:
    """Name a code by its sort, unless it names one occasion after all."""
    if sort == "port" and int(value) >= _FIRST_OF_CLIENTS:
        return
    if group.startswith("failure") and _IS_STATUS.fullmatch(value):
        sort = "http"
    if (release := _RELEASES.get(sort)) is not None:
        value = next(iter(release.findall(value)), value)
    yield f"{CODE_MARK}{sort}-{value}"


def _known(value: str) -> str:
    """Name an id by its letters; a number alone is a failure's code like any."""
    letters = _LETTERS.match(value)
    if letters is None:
        return f"{CODE_MARK}code-{value}"
    rest = value[letters.end() :].lstrip("-").replace(":", "-")
    return f"{CODE_MARK}{letters.group()}-{rest}"
