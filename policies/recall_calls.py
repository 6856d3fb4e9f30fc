"""Where something is said of a call right at a tool's name: `get_pods takes …`, `how to call get_pods`.

A schema is often told without any word for it: by what the tool takes, by a call written out, by what it
answered to a wrong one.
"""

import re
from collections.abc import Sequence
from typing import Final

from policies.recall_markers import IDENTIFIER, RIGHT_AT_A_NAME, WORDS_AT_A_NAME
from policies.recall_spelling import NAME_END, NAME_START, initials_of, spellings_of

_MARK: Final = r"[`\"'*」』”]{0,3}"
_OPEN: Final = r"[`\"'*「『“]{0,3}"

_FIELD_NAME: Final = r"(?:[`{]|[a-z][a-z0-9]{0,40}_\w|[a-z]{1,40}[A-Z])"
"""Begins as no word of a sentence does."""
_TAKEN: Final = (
    rf"(?:\w{{1,40}}(?:,\s|\s(?:and|or)\s)){{0,5}}{_FIELD_NAME}"
    r"|[^.;:\n]{0,40}?\b(?i:arguments?|param(?:eter)?s?)\b|\w{1,40},\s\w{1,40},?\s(?:and|or)\s\w"
)
_TAKES: Final = (
    r"\s(?:tool\s)?(?:(?:only|now|also|just|simply)\s)?(?i:takes?|accepts?|expects?|wants?|needs?|requires?)\s"
    rf"(?:(?:the|an?|only|both|either)\s){{0,2}}(?:{_TAKEN})"
    rf"|\s?(?:[只仅还]?(?:接受|接收|需要|要求)|[要需须]传)\s?{_FIELD_NAME}"
)
"""By name, as "arguments", or at least three in a row: two bare words may be anything (`needs time and luck`)."""
_CALL_WRITTEN_OUT: Final = r"\(\s*(?:\{|[\"'`]?\w{1,64}[\"'`]?\s?(?:\??\s?[:=](?!=)|,\s?\w{1,64}\s?[,:=)]))|\s?\{\s?[\"'`\w]"
_OF_ITS_FIELDS: Final = (
    r"(?:'s\s|\s?的\s?)[A-Za-z_]\w{0,40}\s?"
    r"(?:(?i:arguments?|param(?:eter)?s?|fields?|inputs?)\b|参数|字段|[是为要](?:字符串|整数|数字|布尔|数组|对象))"
)
_FIELD_BEHIND_A_COLON: Final = (
    rf"(?:\s\w{{1,20}}){{0,2}}\s?[:：][^.。\n]{{0,60}}?(?:{IDENTIFIER}"
    r"(?:\s(?:is|are|must|has\sto|have\sto|should|goes|defaults\sto|cannot|can't)\b|\s?(?:只能|必须|不能|缺失|可取))"
    rf"|\b(?:is|are)\s(?:called|named)\s{IDENTIFIER}|叫\s?{IDENTIFIER})"
    rf"|\s?的\s?[^。\n]{{0,20}}?(?:{IDENTIFIER}\s?(?:只能|必须|不能|缺失|可取)|叫\s?{IDENTIFIER})"
)
"""`search_issues complained: 'org' is missing`; without the colon it may be any service that is missing."""
_GIVES: Final = r"\s(?:returns|gives(?:\sback)?|yields|answers(?:\swith)?)\s(?:an?\s(?:object|array|list)\s(?:of\s)?)?[{\[]"
_REFUSES: Final = r"\s(?i:rejected|refused)\s(?:(?:the|my|our|this|every|each|both)\s)?(?i:calls?|arguments?|inputs?|requests?)\b"
_FAILS: Final = r"(?i:fail(?:s|ed)|errored|(?:was|were|is|are|gets?|got)\s(?:rejected|refused))\b"
_BODY: Final = r"(?i:(?:request|response|json)\s(?:body|payload|structure)|payload)"


def at_usage(names: Sequence[str], unlike_words: Sequence[str]) -> re.Pattern[str] | None:
    """Find names with what is said of how they are called right behind them, or right before.

    `unlike_words` are those of them that no sentence has by chance: with them English words are enough.
    """
    if not names:
        return None
    name = spellings_of(names)
    forms = [
        rf"{NAME_START}{name}{_MARK}\s?(?:(?:这个)?工具|命令)?(?:使用|调用)?时?(?:的|需要的?|所需的?)?\s?(?i:{RIGHT_AT_A_NAME})",
        rf"(?:(?:用法|使用(?:方法|方式|说明))\s?[:：]\s?|(?:如何|怎么|怎样)(?:使用|调用)\s?){_OPEN}{name}{NAME_END}",
        rf"{NAME_START}{name}{_MARK}(?=\stool\s){_TAKES}",
    ]
    if unlike_words:
        forms.extend(_forms_in_sentences(spellings_of(unlike_words)))
    return re.compile("|".join(forms), re.MULTILINE)


def _forms_in_sentences(name: str) -> list[str]:
    behind = (
        rf"(?:\stool)?(?:'s)?\s(?:{WORDS_AT_A_NAME}|{_BODY})",
        _TAKES,
        _OF_ITS_FIELDS,
        _FIELD_BEHIND_A_COLON,
        _CALL_WRITTEN_OUT,
        _GIVES,
        _REFUSES,
    )
    before = (
        rf"{_BODY}\s(?:of|for)\s(?:the\s)?{_OPEN}{name}{NAME_END}",
        rf"(?i:how)\s{_OPEN}{name}{_MARK}\s(?:is|gets)\s(?:called|used|invoked)\b",
        rf"(?i:how\sto\s(?:call|use|invoke))\s{_OPEN}{name}{_MARK}(?=\s?(?:tool\b|[:：,—–]|-\s|\.\s|$))",
        rf"(?i:hand|pass|give)\s{_OPEN}{name}{_MARK}\s(?:\w{{1,20}}\s){{0,3}}{_FIELD_NAME}",
        rf"(?i:to\s(?:call|use|invoke))\s{_OPEN}{name}{_MARK},?\s(?i:pass|give|send|set|provide)\b",
        rf"(?i:calls?\s(?:to|of)|to\s(?:call|use|invoke)|calling)\s{_OPEN}{name}{_MARK}\s(?:(?:again|always|has|have|had)\s)?{_FAILS}",
    )
    return [
        rf"{NAME_START}{name}{_MARK}(?:{'|'.join(behind)})",
        rf"{initials_of(('request', 'json', 'payload', 'how', 'hand', 'give', 'to', 'calls'))}\b(?:{'|'.join(before)})",
        rf"(?:调用|执行|使用)\s?{_OPEN}{name}{_MARK}\s?(?:时|总是|又|都|一直){{0,2}}(?:失败|报错|出错|被拒)",
    ]
