"""Finds the secrets in a text and masks them, also in a text that is still coming.

A piece border can cut a secret in two, or part it from its key. So what a secret could still come
of is buffered: the unfinished word, a key until its value is over, a line with a program that takes
passwords, a key block. Text that is cut only where `settled_chars` allows gives in pieces what it
gives as a whole.
"""

import re
from collections.abc import Iterator, Sequence

from policies.secrets.formats import token_spans
from policies.secrets.keys import CHINESE_KEYS, keys_in
from policies.secrets.known import mask_known
from policies.secrets.pairs import pair_spans
from policies.secrets.places import BLOCK_BEGIN, BLOCK_END, BLOCK_REST, block_spans, place_spans
from policies.secrets.statements import QUOTED_STATEMENT, UNIT_CHARS
from policies.secrets.text import MASK, Masked, Plain, Span, lowered, mask_spans

MOST_WAITING_CHARS = 4_096
"""More is shown as it comes: no secret of a known form is that long on one line."""
MOST_BLOCK_CHARS = 16_384
"""The longest key blocks are a little shorter."""

_SIGNS = (
    r"(?:[ \t\"'\\*_`~\[\]){}|<>=:：,→+“「『‘’–—\-]|是|为|為|爲|\r?\n[ \t]{0,40}(?=[\"'\w]|\Z))"
)
_LINK_WORDS = (
    "(?:has|have|been|is|was|are|were|will|be|now|still|currently|just|again|temporarily"
    "|always|simply|actually|set|changed?"
    "|reset|updated?|rotated?|switched|back|v[a-z]{0,4}|none|should|would|must|used|remains|s"
    "|(?:for|of|on|in|at|that|which|i|we|you|he|she|they"
    r"|to(?=[ \t]{1,4}(?:the|my|our|his|her|their|your)[ \t]))(?:[ \t]{1,4}[^\s…]{1,40}){0,5}"
    r"|to)(?![A-Za-z0-9])|[(（][^()（）\n…]{0,40}[)）]?|"
    "[已经經现現在目前应應该該就還还仍依然默认認暂暫时時临臨统統一被都將将会會要重新先又"
    "再修改变變更换換设設置定调調整配成到如下发發告诉訴给給你用了"
    "我他她们們咱写寫填的叫原来來以之前]{1,12}"
)
_BEFORE_QUOTE = r"[\s=:：(\[{,>|是为為爲了给給到成\\*_`~+]"
_BARE = r"[^\s\"'\\;<>，。；、！？“”「」『』…]*"
_ASSIGNED_BEFORE = "|".join(rf"(?<=[=:：>|是为為爲][ \t]{{{blanks}}})" for blanks in range(6))
_QUOTED = (
    rf"(?<={_BEFORE_QUOTE}\")(?:[^\"\\\n…]|\\[^\n])*\\?"
    rf"|(?<={_BEFORE_QUOTE}')[^'\\\n…]*\\*|(?<=[“「『])[^”」』\n…]*"
)
_VALUE = (
    rf"(?:{_QUOTED}"
    # what follows an assigned name shows whether it is code
    rf"|(?:{_ASSIGNED_BEFORE}){_BARE}[ \t]{{0,8}}(?:\|[ \t]?\w{{0,16}}[ \t]{{0,8}})?"
    rf"(?:[,=][ \t]{{0,8}}[\"']?{_BARE})?"
    r"|[!-~]*)"
)
_AFTER_KEY = re.compile(
    rf"{_SIGNS}{{0,64}}(?:(?:{_LINK_WORDS}){_SIGNS}{{0,16}}){{0,8}}{_VALUE}"
    rf"(?:(?<=[0-9])(?:{UNIT_CHARS}))?",
    re.IGNORECASE,
)
"""All that the reading of a key may depend on, or more."""
_QUOTED_AFTER_KEY = re.compile(rf"{_SIGNS}{{1,64}}?(?:{_QUOTED})")
"""The same of a quoted value that begins with signs."""
_BEGUN = sorted({word[:end] for word in CHINESE_KEYS for end in range(1, len(word))}, reverse=True)
_OPEN = re.compile(
    # the beginning of a block, of a key, or of what stands before one
    r"-----begin [a-z0-9 ]{0,60}-{0,5}|"
    rf"api[ \t]?|(?:{'|'.join(_BEGUN)})\Z|(?:with|encrypted|by|as)[ \t]{{1,4}}[a-z]{{0,8}}"
    r"|(?:bearer|basic|token|digest|apikey)[ \t]{0,4}[a-z0-9._~+/=\-]*"
    r"|login(?:[ \t]{1,8}[^\s…]*){0,3}"
    r"|auth=\([^)\n]{0,400}"
    r"|(?:--|(?<![a-z0-9_])-)[a-z0-9_\-]{0,60}[ \t]{0,4}[\"']?[^\s\"'\\;|<>…]*"
    r"|<(?:[a-z_:][a-z0-9_:.\-]{0,63}(?:[ \t][^<>…\n]{0,200})?(?:>[^<>\s…]*(?:</?)?)?)?"
)
"""For a text in small letters, as is `_LINE`: ignoring the case takes three times as long."""
# What makes the rest of its line wait: it may hold a password anywhere.
_LINE = re.compile(
    "(?:(?:cookie|authorization|identified|sshpass|mysql|mysqldump|mysqladmin|mariadb"
    "|redis-cli|curl|docker|podman|helm|7z|7za|7zr|rar|unrar|zip|unzip|sqlcmd|bcp"
    "|mosquitto_[ps]ub|openssl"
    "|htpasswd|requirepass|masterauth|ssh-keygen|smbclient|smbmap|rpcclient"
    r"|ldap[a-z]{3,6}|echo|printf|convertto-securestring)(?![a-z0-9_])|(?<![^ \t])(?:-u"
    r"|--user(?:name)?)(?![a-z0-9_]))[^\n]*+",
)


def settled_chars(text: str) -> int:
    """Return how many characters can be masked by themselves: what follows changes
    nothing in them.
    """
    plain = Plain.of(text)
    read = plain.text
    blocks = list(_blocks(read))
    open_block = bool(blocks) and blocks[-1][1] == len(read)
    if len(text) > (MOST_BLOCK_CHARS if open_block else MOST_WAITING_CHARS):
        return len(text)
    at = _before_word(read, len(read))
    for start, end in sorted([*blocks, *_undivided(read)], reverse=True):
        if start < at <= end:
            at = _before_word(read, start)
    return plain.source_start(at)


def may_be_in_block(text: str, start: int, at: int) -> bool:
    """Return whether a key block that begins after `start` may reach over `at`: it ends soon, or
    goes on.
    """
    before = Plain.of(text[max(start, at - MOST_BLOCK_CHARS) : at]).text
    last = max(_blocks(before), default=None)
    if last is None or BLOCK_END.search(before, last[0]) is not None:
        return False
    body = BLOCK_BEGIN.sub("", before[last[0] :], count=1)
    after = Plain.of(text[at : at + MOST_BLOCK_CHARS - len(body)]).text
    return BLOCK_REST.fullmatch(body) is not None or BLOCK_END.search(after) is not None


def _undivided(text: str) -> Iterator[Span]:
    """Yield what must not be cut, each as far as its reading may reach."""
    low = lowered(text)
    for match in _LINE.finditer(low):
        yield match.span()
    for key in keys_in(text):
        after = [_AFTER_KEY.match(text, key.end), _QUOTED_AFTER_KEY.match(text, key.end)]
        if key.is_phrase:
            after += [QUOTED_STATEMENT.match(text, key.end)]
        end = max((found.end() for found in after if found is not None), default=key.end)
        yield key.start, end - (end < len(text))  # nothing that follows the end belongs to it
        if end == len(text):
            break  # it holds all later ones
    at = 0
    while (begun := _OPEN.search(low, at)) is not None:
        yield begun.span()
        if begun.end() == len(low):
            break
        at = begun.start() + 1  # another may begin inside, and reach further


def _blocks(text: str) -> Iterator[Span]:
    """Yield key blocks; one without an end goes to the end of the text."""
    at = 0
    while (begin := BLOCK_BEGIN.search(text, at)) is not None:
        end = BLOCK_END.search(text, begin.end())
        yield begin.start(), len(text) if end is None else end.end() - 1
        at = len(text) if end is None else end.end()


def _before_word(text: str, at: int) -> int:
    """Go back over the word at a position, and over the blanks and the comma before it."""
    while at and ("!" <= text[at - 1] <= "~" or text[at - 1] == MASK[0]):
        at -= 1
    while at and text[at - 1] in " \t":
        at -= 1
    return at - 1 if at and text[at - 1] == "," else at


PART_CHARS = 8_000
"""Longer texts are masked in parts. One search in a long text would keep all other threads
waiting."""

MOST_PARTS = 6


def mask_secrets_counted(text: str, *, known: Sequence[str] = ()) -> Masked:
    """Mask every secret in a text and count them.

    `known` are values to mask wherever they stand, also encoded; those shorter than six characters
    are left alone. Masking the result again changes nothing and counts nothing.
    """
    once = mask_known(text, known)
    masked = [_mask_part(part) for part in parts_of(once.text)]
    count = once.count + sum(part.count for part in masked)
    return Masked("".join(part.text for part in masked), count)


def mask_secrets(text: str, *, known: Sequence[str] = ()) -> str:
    """Mask every secret in a text; see `mask_secrets_counted`."""
    return mask_secrets_counted(text, known=known).text


def parts_of(text: str) -> Iterator[str]:
    """Yield a text in parts that can be masked by themselves; a run without a safe
    cut stays whole.
    """
    start = 0
    end = PART_CHARS
    while end < len(text):
        cut = _find_cut(text, start, end)
        if cut > start:
            yield text[start:cut]
            start = cut
        end += PART_CHARS
    yield text[start:]


def _find_cut(text: str, start: int, end: int) -> int:
    """Return the last safe place to cut before `end`, or `start`.

    An open key block that is longer than any is cut at a line.
    """
    if end - start > MOST_PARTS * PART_CHARS:
        return max(start, text.rfind("\n", start, end) + 1)
    if may_be_in_block(text, start, end):
        return start
    window = end - MOST_WAITING_CHARS
    settled = settled_chars(text[window:end])
    return window + settled if settled else start


def _mask_part(text: str) -> Masked:
    plain = Plain.of(text)
    read = plain.text
    spans = [*block_spans(read), *place_spans(read)]
    placed = {start for start, _ in spans}  # a place knows better than a key where its value ends
    spans += [span for span in pair_spans(read) if span[0] not in placed]
    spans += token_spans(read)
    return mask_spans(text, plain, spans) if spans else Masked(text, 0)
