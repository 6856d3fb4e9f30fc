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
    r"|requests?|queries|connections?|threads?|pods?|nodes?|hosts?|hits?|per|an?)\b"
)
_END: Final = (
    r"(?![a-z0-9_]|[-:,]\d|\.\d+\.\d)"
    rf"(?!\s?(?:{_UNITS})(?![a-z0-9_]))(?!\s?(?:{_MANY}|[次秒毫分小天万千个条点行倍台]))"
)
"""The number goes on no further, and is no count, duration or moment."""
_ALONE: Final = r"(?<![a-z0-9_.:-])"
_WORD: Final = r"(?<![a-z0-9_.-])"
_TO: Final = r"""(?:\s*(?:[=:#(\["']|\bis\b|\bwas\b|\bof\b|为|是)){0,3}\s{0,2}"""
_ALSO: Final = r"(?:\s?[/、]\s?\d{1,6})*"
_RELEASE: Final = r"\d{1,5}(?:\.\d+){0,3}(?:_\d+)?"
_FAILED: Final = (
    rf"{_WORD}(?:https?(?:/\d(?:\.\d)?)?|error[ _-]?code|(?:win)?err(?:or|no|code)?"
    r"|(?:ret(?:urn)?|exit)[ _-]?code|sqlcode|code|status|exit(?:ed)?(?: with)?|rc)"
    r"(?:\s(?:code|status|error|number|response|with)){0,2}"
)
_FAILED_ZH: Final = r"(?:错误|异常|返回|退出|状态|响应|结果)代?码|代码|错误代?号|错误|报错|退出状态"
_ANSWERED: Final = (
    r"(?<![a-z])(?:returned|returns?|returning|responds? with|responded with|answer(?:s|ed)?(?: with)?|got)"
    r"(?: an?)?\s|(?:返回|响应|报)\s?"
)
_ANNOUNCED: Final = r"(?:errors?(?!\sper)|responses?|status)\b|错误|状态码|响应"
_KNOWN: Final = (
    r"(?:ora|tns|pls|rman|cwe|ghsa|rhsa)-[0-9a-z][0-9a-z:-]{1,18}[0-9a-z]"
    r"|cve-\d{4}-\d{3,7}|0x[89c][0-9a-f]{7}|(?-i:[A-Z]{2,5}-0\d{3,5}|(?:E|ERR|AMQ|KB)\d{3,7})"
)
_KNOWN_PORTS: Final = (
    "2181|2379|2380|3306|5432|5672|6379|6443|8080|8443|8848|9092|9200|9300|10250|11211|15672|27017"
)
"""Ports whose number says enough alone."""
_CODE: Final = re.compile(
    "|".join(
        (
            # `exit code 137`, `[Errno 28]`, `HTTP/1.1 503`, `错误码 1213`
            rf"(?:{_FAILED}|{_FAILED_ZH}){_TO}(?P<failure>(?:0x[0-9a-f]{{1,8}}|-?\d{{1,6}}{_ALSO}){_END})",
            # `returned 503`, `503 error`, `137 退出码`
            rf"(?:{_ANSWERED})(?P<answered>[45]\d\d{_END})",
            rf"{_ALONE}(?P<announced>[45]\d\d(?:/[45]\d\d)*)(?=\s?(?:{_ANNOUNCED}))",
            rf"{_ALONE}(?P<exit>\d{{1,3}})(?=\s?(?:退出码|错误码))",
            # `port 9092`, `2181 端口`; not the port beside an address, which is a client's
            rf"(?:{_WORD}(?<!\d\s)ports?|端口号?){_TO}(?P<port>\d{{1,5}}{_ALSO}{_END})",
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
_SORTS: Final = {
    "failure": "code",
    "answered": "code",
    "announced": "code",
    "exit": "code",
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
        return
    sort = _SORTS.get(group, group)
    singles = [value] if group == "sqlstate" else _SINGLE.findall(value)
    yield from (f"{CODE_MARK}{sort}-{one}" for one in singles)


def _known(value: str) -> str:
    """Name an id by its letters; a number alone is a failure's code like any."""
    letters = _LETTERS.match(value)
    if letters is None:
        return f"{CODE_MARK}code-{value}"
    rest = value[letters.end() :].lstrip("-").replace(":", "-")
    return f"{CODE_MARK}{letters.group()}-{rest}"
