"""Recognises what a person asks for, in English and Chinese, by patterns; anything else is `Unknown`.

Pure. Patterns are tried in order and must fit the whole request, so that a sentence that merely mentions a file is not taken for an order.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from gateway.demo.intents import (
    CopyFile,
    CountTo,
    DeleteFile,
    Help,
    Intent,
    Language,
    LastMessage,
    ListFiles,
    LongStory,
    MakeFolder,
    MoveFile,
    ReadFile,
    Recall,
    Remember,
    RunCommand,
    SearchCases,
    SearchText,
    Summarise,
    ToolIntent,
    Unknown,
    UseSkill,
    WhatIsMy,
    WriteFile,
)

_Fields: TypeAlias = dict[str, str]
_Build: TypeAlias = Callable[[_Fields], Intent]

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_POLITE = re.compile(
    r"\A(?:(?:please|can you|could you|would you|now|then|and|also)\b[,\s]*|"
    r"(?:请你|请帮我|请|麻烦你?|能不能|可以|帮我|给我|然后|再)[，,\s]*)+",
    re.IGNORECASE,
)
_AND_THEN = re.compile(
    r"\s*(?:[,;.]?\s+(?:and\s+)?then\s+|[，,；;。]?\s*(?:然后|接着|之后再)[，,]?\s*)", re.IGNORECASE
)
_HERE = frozenset(
    {
        "",
        ".",
        "here",
        "this",
        "folder",
        "directory",
        "workspace",
        "current",
        "it",
        "there",
        "当前",
        "这里",
        "工作区",
        "工作",
    }
)
_QUOTES = "`'\"“”‘’「」『』《》"
_STORY_MAX_COUNT = 5000
# Both keep the patterns quick on any input: they are many, and gaps are what they backtrack on.
_MAX_ORDER_CHARS = 20_000
_WIDE_GAP = re.compile(r"[ \t\r\n]{12,}")


def detect_language(text: str) -> Language:
    """Chinese where there is any Chinese outside quotation, English otherwise."""
    bare = re.sub(r"[`'\"“「].*?[`'\"”」]", "", text, flags=re.DOTALL)
    return "zh" if _CHINESE.search(bare or text) else "en"


def recognise(prompt: str) -> tuple[Intent, ...]:
    """The requests in `prompt`, in order; several only where every part of "… then …" is an order for tools."""
    if len(prompt) > _MAX_ORDER_CHARS:
        return (Unknown(),)
    text = _WIDE_GAP.sub(" ", prompt.strip())
    whole = _recognise_one(text)
    parts = [part for part in _AND_THEN.split(text) if part]
    if len(parts) > 1 and not isinstance(whole, WriteFile | Remember | UseSkill):
        intents = tuple(_recognise_one(part) for part in parts)
        if all(isinstance(intent, ToolIntent) for intent in intents):
            return intents
    return (whole,)


def _recognise_one(prompt: str) -> Intent:
    text = _POLITE.sub("", prompt).strip()
    for pattern, build in _RULES:
        found = pattern.fullmatch(text)
        if found is not None:
            fields = {key: value or "" for key, value in found.groupdict().items()}
            return build(fields)
    return Summarise() if _SUMMARISE.search(text) else Unknown()


_SUMMARISE = re.compile(r"\bsummari[sz]e\b|\bsummary\b|总结|概括", re.IGNORECASE)


def _name(group: str) -> str:
    """A pattern for a file name: quoted with anything in it, or a bare word; "the", "file" and "folder" around it are skipped."""
    return (
        rf"(?:the\s+|a\s+|my\s+)?(?:(?:file|folder|directory)\s+)?"
        rf"(?:[{_QUOTES}](?P<{group}_quoted>[^{_QUOTES}]+)[{_QUOTES}]|(?P<{group}>[^\s{_QUOTES}，。！？；]+))"
        r"(?:\s+(?:file|folder|directory))?"
    )


def _name_zh(group: str) -> str:
    return (
        rf"(?:文件夹|文件|目录)?\s*(?:[{_QUOTES}](?P<{group}_quoted>[^{_QUOTES}]+)[{_QUOTES}]|"
        rf"(?P<{group}>[^\s{_QUOTES}，。！？；]+?))\s*(?:这个)?(?:文件夹|文件|目录)?"
    )


def _path(fields: _Fields, group: str) -> str:
    quoted = fields.get(f"{group}_quoted", "")
    bare = fields.get(group, "")
    return quoted or (bare if bare in {".", ".."} else bare.rstrip(".?!,:;"))


def _folder(fields: _Fields, group: str = "folder") -> str:
    name = _path(fields, group)
    return "." if name.lower() in _HERE else name


def _words(fields: _Fields, group: str = "text") -> str:
    text = fields.get(group, "").strip()
    fence = re.fullmatch(r"```[^\n]*\n(.*?)\n?```", text, re.DOTALL)
    if fence is not None:
        return fence[1]
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return text[1:-1]
    return text


def _rules(build: _Build, *patterns: str) -> list[tuple[re.Pattern[str], _Build]]:
    return [
        (
            re.compile(rf"(?:{pattern})[\s.?!。？！]*(?:please\W*)?", re.IGNORECASE | re.DOTALL),
            build,
        )
        for pattern in patterns
    ]


def _joined(
    rules: Sequence[list[tuple[re.Pattern[str], _Build]]],
) -> list[tuple[re.Pattern[str], _Build]]:
    return [rule for group in rules for rule in group]


_IN_FOLDER = rf"(?:\s+(?:in|of|under|inside|at|from)\s+(?:the\s+|this\s+|my\s+)*(?:current\s+|workspace\s+)?{_name('folder')})?"
_ZH_FOLDER = (
    rf"(?:[{_QUOTES}](?P<folder_quoted>[^{_QUOTES}]+)[{_QUOTES}]|(?P<folder>[^\s{_QUOTES}，。！？]*?))\s*"
    r"(?:这个)?(?:文件夹|目录)?\s*(?:里面|里|中|下面|下|内)?\s*(?:的)?"
)

_RULES = _joined(
    [
        _rules(
            lambda f: UseSkill(f["name"], f["text"].strip()),
            r"/(?P<name>[\w:-]+)(?:\s+(?P<text>.*))?",
            r"(?:use|run|invoke|call|follow|apply)\s+(?:the\s+)?(?P<name>[\w:-]+)\s+skill(?:\s*(?:,|:|to|for|with|on|and)\s*(?P<text>.+))?",
            r"(?:使用|用|运行|调用)\s*(?P<name>[\w:-]+)\s*(?:技能|skill)(?:[，,：:\s]*(?P<text>.+))?",
        ),
        _rules(
            lambda f: SearchCases(_words(f)),
            r"(?:search|find|look\s+up)\s+(?:for\s+)?(?:the\s+|my\s+|similar\s+)?(?:memory\s+)?cases?\s*(?:for|about|on|of|with|:)?\s*(?P<text>.+)",
            r"(?:搜索|查找|搜|查)(?:一下)?(?:记忆)?(?:案例|个案)(?:库)?(?:里|中)?(?:的|关于|有关)?[：:\s]*(?P<text>.+)",
        ),
        _rules(
            lambda f: Recall(),  # noqa: ARG005 - one shape for all
            r"what\s+(?:do|can)\s+you\s+(?:still\s+)?remember(?:\s+about\s+(?:me|us|this))?",
            r"what\s+do\s+you\s+know\s+about\s+me|what(?:'s|\s+is)\s+in\s+your\s+memory|do\s+you\s+remember\s+(?:me|anything)",
            r"你(?:现在|还|都)*(?:记得|记住了?|知道)(?:关于)?(?:我)?(?:的)?(?:些)?(?:什么|哪些|啥)(?:东西|事情|事)?(?:吗)?",
        ),
        _rules(
            lambda f: WhatIsMy(f["text"].strip()),
            r"(?:what(?:'s|\s+is|\s+was|\s+are)|do\s+you\s+(?:know|remember)|tell\s+me)\s+my\s+(?P<text>(?!last|previous).+?)",
            r"(?:你(?:还)?(?:记得|知道))?我的(?P<text>[^，。？！]+?)(?:是|叫)(?:什么|啥|多少|谁|哪个|几)(?:吗|来着|呢)?",
        ),
        _rules(
            lambda f: LastMessage(),  # noqa: ARG005 - one shape for all
            r"what\s+did\s+i\s+(?:just\s+)?(?:say|write|ask|tell).*",
            r"(?:what\s+(?:was|is)\s+|repeat\s+|tell\s+me\s+)?my\s+(?:last|previous)\s+(?:message|question|prompt).*",
            r"我(?:刚才|刚刚|刚|之前|上次|上一条|上一句|前面)(?:跟你)?(?:都)?(?:说|问|发|写)(?:了|过|的)*(?:是)?(?:什么|啥|哪些).*",
        ),
        _rules(
            lambda f: Remember(_words(f)),
            r"remember\s*(?:that|this)?\s*[:,]?\s+(?P<text>.+)",
            r"(?:note|keep\s+in\s+mind)\s+that\s+(?P<text>.+)",
            r"(?:记住|记下来?|记一下|记得|牢记)(?:了)?[：:，,\s]*(?P<text>.+)",
        ),
        _rules(
            lambda f: MakeFolder(_path(f, "path")),
            rf"(?:make|create|add|mkdir)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:folder|directory|dir)\s+(?:named\s+|called\s+)?{_name('path')}",
            rf"mkdir\s+(?:-p\s+)?{_name('path')}",
            rf"(?:新建|创建|建立|建)(?:一个|个)?(?:新的?)?(?:名为|叫做?)?(?:文件夹|目录)(?:名为|叫做?)?\s*{_name_zh('path')}",
            r"(?:新建|创建|建立|建)(?:一个|个)?(?:名为|叫做?)?\s*(?P<path>[^\s，。]+?)\s*(?:的)?(?:文件夹|目录)",
        ),
        _rules(
            lambda f: WriteFile(_path(f, "path"), _words(f)),
            rf"(?:create|make|write|add)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:empty\s+)?(?:text\s+)?(?:file\s+)?(?:named\s+|called\s+)?{_name('path')}"
            r"\s*,?\s*(?:with|containing|saying|that\s+says)\s+(?:the\s+)?(?:(?:text|contents?|words?)\b)?\s*:?\s*(?P<text>.+)",
            rf"(?:write|save|put|store)\s+(?P<text>.+)\s+(?:to|in|into|as)\s+(?:a\s+)?(?:new\s+)?(?:file\s+)?(?:named\s+|called\s+)?{_name('path')}",
            rf"(?:create|make)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+)?(?:empty\s+)?file\s+(?:named\s+|called\s+)?{_name('path')}(?P<text>)",
            rf"(?:把|将)\s*(?P<text>.+?)\s*(?:写入|写到|写进|保存到|保存为|存到|存入|放进|放到)\s*{_name_zh('path')}\s*(?:里面|里|中)?",
            rf"(?:创建|新建|写)(?:一个|个)?(?:新的?)?(?:名为|叫)?\s*{_name_zh('path')}\s*[，,]?\s*(?:内容|里面)?(?:为|是|写上|写入|写着|写|：|:)\s*[：:]?\s*(?P<text>.+)",
            rf"(?:在|往)\s*{_name_zh('path')}\s*(?:里面|里|中)?\s*(?:写入|写上|写)\s*[：:]?\s*(?P<text>.+)",
            r"(?:创建|新建)(?:一个|个)?(?:空)?(?:的)?文件\s*(?P<path>[^\s，。]+)(?P<text>)",
            r"写入\s*(?P<path>[^\s，。：:]+)\s*[：:，,]\s*(?P<text>.+)",
        ),
        _rules(
            lambda f: MoveFile(_path(f, "source"), _path(f, "target")),
            rf"(?:move|rename|mv)\s+{_name('source')}\s+(?:to|into|as)\s+{_name('target')}",
            r"mv\s+(?P<source>\S+)\s+(?P<target>\S+)",
            rf"(?:把|将)\s*{_name_zh('source')}\s*(?:移动到|移到|移至|改名为|改名成|重命名为|重命名成|改成|改为)\s*{_name_zh('target')}\s*(?:里面|里|中|下)?",
            rf"(?:移动|重命名|改名)\s*{_name_zh('source')}\s*(?:到|为|成|至)\s*{_name_zh('target')}\s*(?:里面|里|中|下)?",
        ),
        _rules(
            lambda f: CopyFile(_path(f, "source"), _path(f, "target")),
            rf"(?:copy|cp|duplicate)\s+{_name('source')}\s+(?:to|into|as)\s+{_name('target')}",
            r"cp\s+(?P<source>\S+)\s+(?P<target>\S+)",
            rf"(?:把|将)\s*{_name_zh('source')}\s*(?:复制|拷贝)(?:到|为|成|至|一份到)\s*{_name_zh('target')}\s*(?:里面|里|中|下)?",
            rf"(?:复制|拷贝)\s*{_name_zh('source')}\s*(?:到|为|成|至)\s*{_name_zh('target')}\s*(?:里面|里|中|下)?",
        ),
        _rules(
            lambda f: DeleteFile(
                _path(f, "path"), is_folder=bool(f["kind"]) or f.get("path", "").endswith("/")
            ),
            r"(?:delete|remove|rm|erase)\s+(?=(?P<kind>(?:the\s+)?(?:folder|directory)\b|.*\s(?:folder|directory)\W*$)?)"
            + _name("path"),
            rf"(?:删除|删掉|移除|删)(?:一下)?\s*(?=(?P<kind>文件夹|目录|.*(?:文件夹|目录)$)?){_name_zh('path')}",
            rf"(?:把|将)\s*(?=(?P<kind>文件夹|目录|.*(?:文件夹|目录))?){_name_zh('path')}\s*(?:删除|删掉|删了|移除)",
        ),
        _rules(
            lambda f: ListFiles(_folder(f)),
            rf"(?:list|show|ls|give|display|see)(?:\s+me)?(?:\s+all)?(?:\s+of)?(?:\s+(?:the|my|our))?\s+(?:files|contents?|folder|directory|workspace)(?:\s+and\s+folders)?(?:\s+here)?{_IN_FOLDER}",
            rf"(?:what|which)\s+files\s+(?:are|do\s+(?:you|we|i)\s+(?:see|have))(?:\s+there|\s+here)?{_IN_FOLDER}",
            r"(?:ls|dir)(?:\s+(?P<folder>\S+))?",
            rf"list\s+{_name('folder')}",
            rf"(?:列出|列一下|列举|显示|看看|查看|看一下)(?:一下)?(?:当前)?\s*{_ZH_FOLDER}\s*(?:所有|全部)?(?:的)?(?:文件|内容|文件列表)",
            rf"(?:看看|看一下|查看)?\s*(?:当前)?{_ZH_FOLDER}\s*(?:都)?有(?:哪些|什么|些什么|啥)\s*(?:文件|东西)",
            r"列出\s*(?P<folder>[^\s，。]+?)\s*(?:文件夹|目录)",
            r"文件列表(?P<folder>)",
        ),
        _rules(
            lambda f: SearchText(_words(f), _folder(f)),
            r"(?:find|search(?:\s+for)?|grep|look\s+for)\s+(?:the\s+)?(?:text\s+|word\s+|string\s+|for\s+)?(?P<text>.+?)"
            r"\s+(?:in|inside|within|across)\s+(?:all\s+)?(?:of\s+)?(?:the\s+|my\s+)?(?:files?|workspace|(?P<folder>\S+?))",
            r"(?:search\s+for|grep|find\s+the\s+(?:text|word|string)|search)\s+(?P<text>.+?)(?P<folder>)",
            rf"find\s+(?P<text>[{_QUOTES}].+?[{_QUOTES}])(?P<folder>)",
            r"在\s*(?:所有|全部)?(?:文件|工作区|(?P<folder>\S+?))\s*(?:文件夹|目录)?(?:里面|里|中)?(?:搜索|查找|搜|找)(?:一下)?\s*(?P<text>.+?)",
            r"(?:搜索|查找|搜一下|找一下|搜|寻找)(?:一下)?(?:文件|所有文件)?(?:里的|中的|里|中)?(?:文字|文本)?[：:\s]*(?P<text>.+?)(?P<folder>)",
        ),
        _rules(
            lambda f: ReadFile(_path(f, "path")),
            rf"(?:read|cat)(?:\s+me)?(?:\s+the\s+contents?\s+of)?\s+{_name('path')}(?:\s+(?:to|for)\s+me)?",
            rf"(?:open|show|print|display|view|look\s+at|see)(?:\s+me)?(?:\s+the\s+contents?\s+of)?\s+(?=\S*[./`'\"]|(?:the\s+)?file\s){_name('path')}",
            rf"what(?:'s|\s+is)\s+in(?:side)?\s+(?=\S*[./`'\"]|(?:the\s+)?file\s){_name('path')}",
            rf"(?:读取|读一下|读一读|读)(?:一下)?\s*{_name_zh('path')}\s*(?:里面|里)?(?:的)?(?:内容)?",
            rf"(?:打开|查看|看看|看一下|显示|看)(?:一下)?\s*(?=\S*[./]|文件|\S+\s*文件){_name_zh('path')}\s*(?:里面|里)?(?:的)?(?:内容)?",
            rf"{_name_zh('path')}\s*(?:里面|里)(?:写了|有|是)(?:什么|啥)(?:内容)?",
        ),
        _rules(
            lambda f: RunCommand(_words(f)),
            r"(?:run|execute)\s+(?:the\s+)?(?:command\s*:?\s*)?(?P<text>.+?)",
            r"(?:运行|执行)(?:一下)?(?:命令)?[：:\s]*(?P<text>.+?)",
        ),
        _rules(
            lambda f: CountTo(min(int(f["text"]), _STORY_MAX_COUNT)),
            r"count\s+(?:from\s+\w+\s+)?(?:up\s+)?to\s+(?P<text>\d{1,9})(?:\W.*)?",
            r"(?:从\s*(?:1|一)\s*)?数到\s*(?P<text>\d{1,9}).*",
        ),
        _rules(
            lambda f: LongStory(),  # noqa: ARG005 - one shape for all
            r"(?:write|tell)(?:\s+me)?\s+a\s+(?:very\s+|really\s+)?(?:long\s+)?(?:story|text|tale).*",
            r"(?:写|讲|说)(?:一个|一篇|个|一段)?(?:很|非常)?(?:长)?(?:的)?(?:长)?(?:故事|文章|文字).*",
        ),
        _rules(
            lambda f: Help(),  # noqa: ARG005 - one shape for all
            r"(?:hi|hello|hey|good\s+(?:morning|evening|day)|help|help\s+me)(?:\s+there)?(?:[\s,]+(?:candor|claude))?",
            r"(?:who|what)\s+are\s+you|what\s+(?:can|do)\s+you\s+(?:do|understand)|which\s+model\s+are\s+you",
            r"(?:你好|您好|嗨|哈喽)[啊呀吗]?(?:[，,！!。\s]*你是谁)?|你是(?:谁|什么|哪个模型|什么模型)|帮助|(?:你)?(?:能|会|可以)(?:做|干)(?:什么|啥|些什么).*",
        ),
    ]
)
