"""The requests that the demo model understands, in English and Chinese.

An expression must fit the whole message, so that a sentence that merely mentions a file is not
taken for a request. A question is no statement, also if it has the form of one: "my name is what?".
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache

QUOTES = "`'\"“”‘’「」『』《》"
_NAME = (
    r"(?:(?:the\s+|a\s+|an\s+)?(?:empty\s+)?file\s+(?:named\s+|called\s+)?|the\s+|文件\s+"
    r"|文件(?=\w*[\u4e00-\u9fff]\w*\.))?"
    rf"(?:[{QUOTES}](?P<NAME_quoted>[^{QUOTES}]+)[{QUOTES}]"
    rf"|(?P<NAME>[^\s{QUOTES}，。！？；：]{{1,200}}?))"
)
"""The name of a file: a bare word, or anything in quotes; a noun before it is skipped."""
_NO_EN = r"(?:no|nope|actually|correction)[,:]?\s+"
_NO_ZH = r"(?:不对|不是|更正|错了|其实)[，,：:\s]*"
# 记住：… is an order, whatever its words are.
_DO_YOU_RECALL = r"你?(?:还|都)?记得(?!\s*[：:，,])|(?:你|还|都){1,2}记住了?|记住(?:了|(?=吗))"
_MY_EN = r"my (?P<key>\w[\w ]{0,40}?) is "
_MY_ZH = r"我的(?P<key>[^\s，。？！是叫]{1,20})(?:是|叫)\s*"
_FORMS: Mapping[str, Sequence[tuple[str, str]]] = {
    # kinds and expressions in the order in which they are tried; {PATH} and {TARGET} stand for a
    # file's name
    "en": (
        (
            "skill",
            r"use the skill (?P<name>[\w:-]+): call the skill tool .+? follows\.(?P<text>.*)",
        ),
        ("skill", r"use the (?P<name>[\w:-]+) skill(?:\s*:(?P<text>.+))?"),
        ("cases", "(?:search|find) (?:the |memory )*cases? (?:for |about |on )?(?P<text>.+)"),
        ("recall", "what (?:do|can) you (?:still )?remember.*|what(?:'s| is) in your memory"),
        ("what_is_my", rf"(?:{_NO_EN})?what(?:'s| is) my (?P<key>.+?)"),
        ("remember", r"(?:remember|note)(?: that|\s*:)?\s+(?P<text>.+)"),
        (
            "forget",
            (
                r"(?:forget|erase|don't (?:remember|save|store|keep))\b(?P<text>.*)|(?:delete"
                "|remove) .+ from (?:your )?memory"
            ),
        ),
        ("correct", rf"{_NO_EN}(?P<text>.+)"),
        ("list", "(?:list|show)(?: me)?(?: all)?(?: the)? files(?: here| in {PATH}(?: folder)?)?"),
        ("list", "ls(?: {PATH})?|(?:what|which) files are (?:there|here)"),
        ("write", "(?:write|save|put) (?P<text>.+) (?:to|into|as) {PATH}"),
        ("write", "(?:create|make|write) {PATH}(?:,? (?:with|containing|saying) (?P<text>.+))?"),
        ("move", "(?:move|rename|mv) {PATH} (?:to |into )?{TARGET}"),
        ("delete", r"(?:delete|remove|rm) (?!(?:all|everything|it|that|them|this)\W*$){PATH}"),
        ("read", "(?:read|open|cat|show(?: me)?|what(?:'s| is) in) {PATH}"),
        ("tell_my", rf"{_MY_EN}(?P<text>[^\n,;!?]+?)(?:\.\s.*)?"),
        # reached only by questions
        ("what_is_my", rf"(?:{_NO_EN}|remember(?: that)?\s+)?{_MY_EN}[^\n,;!?]+?(?:\.\s.*)?"),
    ),
    "zh": (
        ("skill", r"请?使用技能\s*(?P<name>[\w:-]+)：先用这个名称调用.+?附在后面。(?P<text>.*)"),
        ("cases", r"(?:搜索|查找|搜)(?:一下)?(?:记忆)?案例[：:\s]*(?P<text>.+)"),
        ("recall", f"(?:{_DO_YOU_RECALL}).*(?:什么|哪些|啥|吗)"),
        ("recall", "(?:查看|看看)?(?:你的)?记忆(?:系统)?(?:里|中)?(?:都?有(?:什么|哪些).*)?"),
        ("what_is_my", rf"(?:{_NO_ZH})?我的(?P<key>[^，。？！]+?)(?:是|叫)(?:什么|啥|多少|谁)"),
        ("remember", r"(?:记住|记下来?|记得)[：:，,\s]*(?P<text>.+)"),
        (
            "forget",
            (
                "(?:你?(?:忘掉|忘记|忘了)|(?:别|不要)记).*|把.+(?:忘掉|忘了|忘记"
                "|从记忆[里中]?删[掉除])吧?"
            ),
        ),
        ("correct", rf"{_NO_ZH}(?P<text>.+)"),
        (
            "list",
            (
                r"(?:列出|显示|看看|查看)\s*(?:{PATH}\s*(?:目录|文件夹)?[里中下]面?的?)?(?:所有"
                "|全部)?文件"
            ),
        ),
        (
            "list",
            (
                r"(?:看看)?(?:(?:当前|这里|工作区|{PATH})\s*(?:目录"
                "|文件夹)?[里中下]?面?)?都?有(?:哪些|什么)(?:文件|东西)?"
            ),
        ),
        ("write", r"(?:把|将)\s*(?P<text>.+?)\s*(?:写入|写到|写进|保存到|存到)\s*{PATH}\s*[里中]?"),
        ("write", r"(?:新建|创建)\s*{PATH}(?:[，,\s]+(?:内容[为是]?[：:\s]*|写着?)(?P<text>.+))?"),
        ("move", r"(?:把|将)\s*{PATH}\s*(?:移动?到|改名为|重命名为)\s*{TARGET}"),
        ("delete", r"(?:删除|删掉)\s*(?!所有|全部|一切|它){PATH}"),
        ("delete", r"(?:把|将)\s*{PATH}\s*(?:删除|删掉)"),
        ("read", r"(?:读取|读一下|读|打开)\s*{PATH}(?:\s*的内容)?"),
        ("tell_my", rf"{_MY_ZH}(?P<text>[^\n，。；？！]+)"),
        # reached only by questions
        ("what_is_my", rf"(?:{_NO_ZH}|记[住得][：:，,\s]*)?{_MY_ZH}[^\n，。；？！]+"),
    ),
}
# The question words are looked for in what has the form of a statement, nowhere else.
_MARK = r"[?？][\s.!！]*\Z"
_WHAT = r"\b(?:what|who|whom|whose|which)\b"
_WHAT_ZH = "(?:什么|啥|谁|哪(?!吒)|多少|怎么)(?![\u4e00-\u9fff]{0,2}[都也])"
"""What asks; 什么都 and 谁也 mean everything and nobody."""
_QUESTION = re.compile(
    rf"{_MARK}|{_WHAT_ZH}|[吗呢][\s.!！]*\Z|\A(?:{_NO_EN})?(?:my\b.*{_WHAT}|{_WHAT}"
    r"|(?:where|when|why|how)\b)",
    re.IGNORECASE | re.DOTALL,
)
_QUESTIONS: Mapping[str, re.Pattern[str]] = {
    # "Can you remember that …?" and "note: ask Ann who has the key" are wishes; "remember my boat?"
    # asks.
    "remember": re.compile(
        rf"\A(?=.*{_MARK})(?:remember\s+(?!that\b)|记得(?!\s*[：:])|.*(?:{_WHAT}|{_WHAT_ZH}))",
        re.IGNORECASE | re.DOTALL,
    ),
    "correct": _QUESTION,
    "tell_my": _QUESTION,
}
_SENTENCE_END = re.compile(r"[.!]\s|[。！]")


def _compile(pattern: str) -> re.Pattern[str]:
    for place in ("path", "target"):
        pattern = pattern.replace(f"{{{place.upper()}}}", _NAME.replace("NAME", place))
    return re.compile(rf"(?:{pattern})[\s.?!。？！]*(?:please)?", re.IGNORECASE | re.DOTALL)


def is_question(kind: str, message: str) -> bool:
    """Return whether `message`, of the form of the statement `kind`, asks in its first sentence.

    It is false of kinds that are no statements.
    """
    question = _QUESTIONS.get(kind)
    sentence = _SENTENCE_END.split(message, maxsplit=1)[0]
    return question is not None and question.search(sentence) is not None


@cache
def requests() -> Sequence[tuple[str, str, re.Pattern[str]]]:
    """Return kind, language and pattern of each request.

    They are compiled when the first message comes: it takes 60 ms.
    """
    return [
        (kind, language, _compile(pattern))
        for language, forms in _FORMS.items()
        for kind, pattern in forms
    ]
