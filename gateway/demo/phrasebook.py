"""Recognises what a person asks for, in English and Chinese, by patterns; anything else is `Unknown`.

Pure. Patterns are tried in order and must fit the whole request, so that a sentence that merely mentions a file is not taken for an order.
"""

import re

from gateway.demo.intents import (
    AppendText,
    CopyFile,
    CountTo,
    Courtesy,
    DeleteFile,
    Forget,
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
    ReplaceText,
    RunCommand,
    SearchCases,
    SearchText,
    Summarise,
    TellMy,
    ToolIntent,
    Unknown,
    UseSkill,
    WhatIsMy,
    WriteFile,
)
from gateway.demo.patterns import QUOTES, folder_of, joined, name, name_zh, path_of, rules, words_of
from memory.notes.memory_questions import asks_about_memory

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_POLITE = re.compile(
    r"\A(?:(?:please|can you|could you|would you|will you|now|then|and|also|tell me(?=\s+(?:what|which))"
    r"|i(?:'d|\s+would)?\s+(?:want|like|need)\s+(?:you\s+)?to|(?:hi|hello|hey)(?:\s+there)?[,!.]+(?=\s*\w))(?!\w)[,\s]*|"
    r"(?:(?:你好|您好)[，,！!。]\s*(?=\w)|(?:我想|我要)(?:让|请)?你|你?(?:能不能|能否|能|可以|可否)?帮我|请你|请帮我|请(?!问)|麻烦你?"
    r"|能不能|可以|给我|请问|然后|再(?!见))[，,\s]*)+",
    re.IGNORECASE,
)
_AND_THEN = re.compile(
    r"\s*(?:[,;.]?\s+(?:and\s+)?then\s+|[，,；;。]?\s*(?:然后|接着|之后再)[，,]?\s*)", re.IGNORECASE
)
_STORY_MAX_COUNT = 5000
# These keep the patterns quick on any input: they are many, and gaps are what they backtrack on.
_MAX_ORDER_CHARS = 20_000
_WIDE_GAP = re.compile(r"[ \t\r\n]{12,}")


_ENGLISH_ORDER = re.compile(
    r"\s*(?:please|can|could|would|what|what's|which|who|how|do|did|tell|give|list|show|ls|read|cat|open|print|view|write"
    r"|save|put|store|create|make|mkdir|add|append|replace|change|in|move|rename|mv|copy|cp|delete|remove|rm|find|search"
    r"|grep|look|remember|note|my|run|execute|use)\s",
    re.IGNORECASE,
)
_MEMORY_ITSELF = re.compile(
    r"(?:你的?|您的?|我的)?记忆(?:系统|库)?(?:里面|里|中)?|(?:your\s+)?memory\s+system|your\s+memory|memory",
    re.IGNORECASE,
)
_EVERYTHING = frozenset(
    {
        "everything",
        "all",
        "anything",
        "it",
        "that",
        "this",
        "me",
        "所有",
        "全部",
        "一切",
        "它",
        "这个",
    }
)
_MAX_QUESTION_CHARS = 400


def detect_language(text: str) -> Language:
    """English where it begins like an English order, else Chinese where there is any outside quotation."""
    if _ENGLISH_ORDER.match(text):
        return "en"
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
            return _corrected(build(fields))
    if len(text) <= _MAX_QUESTION_CHARS and asks_about_memory(text):
        return Recall()
    return Summarise() if _SUMMARISE.search(text) else Unknown()


def _corrected(intent: Intent) -> Intent:
    """What was meant where the words name no file: memory itself is shown or noted in, and "everything" is not deleted."""
    match intent:
        case DeleteFile(path) | Forget(path) if path.casefold() in _EVERYTHING:
            return Unknown()
        case ListFiles(path) | ReadFile(path) if path != "memory" and _is_memory(path):
            return Recall()
        case SearchText(_, path) if path != "memory" and _is_memory(path):
            return Recall()
        case WriteFile(path, text) | AppendText(path, text) if text and _is_memory(path):
            return Remember(text)
        case Remember(fact) if fact.endswith(("?", "？", "吗")):
            return Recall()
        case _:
            return intent


def _is_memory(path: str) -> bool:
    return _MEMORY_ITSELF.fullmatch(path.strip()) is not None


_SUMMARISE = re.compile(r"\bsummari[sz]e\b|\bsummary\b|总结|概括", re.IGNORECASE)


_IN_FOLDER = rf"(?:\s+(?:in|of|under|inside|at|from)\s+(?:the\s+|this\s+|my\s+)*(?:current\s+|workspace\s+)?{name('folder')})?"
_ZH_FOLDER = (
    rf"(?:[{QUOTES}](?P<folder_quoted>[^{QUOTES}]+)[{QUOTES}]|(?P<folder>[^\s{QUOTES}，。！？]*?))\s*"
    r"(?:这个)?(?:文件夹|目录)?\s*(?:里面|里|中|下面|下|内)?\s*(?:的)?"
)

_RULES = joined(
    [
        rules(
            lambda f: UseSkill(f["name"], f["text"].strip()),
            r"use the skill (?P<name>[\w:-]+): call the skill tool .+? follows\.(?P<text>.*)",
            r"请?使用技能\s*(?P<name>[\w:-]+)：先用这个名称调用.+?附在后面。(?P<text>.*)",
            r"/(?P<name>[\w:-]+)(?:\s+(?P<text>.*))?",
            r"(?:use|run|invoke|call|follow|apply)\s+(?:the\s+)?(?P<name>[\w:-]+)\s+skill(?:\s*(?:,|:|to|for|with|on|and)\s*(?P<text>.+))?",
            r"(?:使用|用|运行|调用)\s*(?P<name>[\w:-]+)\s*(?:技能|skill)(?:[，,：:\s]*(?P<text>.+))?",
        ),
        rules(
            lambda f: SearchCases(words_of(f)),
            r"(?:search|find|look\s+up)\s+(?:for\s+)?(?:the\s+|my\s+|similar\s+)?(?:memory\s+)?cases?\s*(?:for|about|on|of|with|:)?\s*(?P<text>.+)",
            r"(?:搜索|查找|搜|查)(?:一下)?(?:记忆)?(?:案例|个案)(?:库)?(?:里|中)?(?:的|关于|有关)?[：:\s]*(?P<text>.+)",
        ),
        rules(
            lambda f: Recall(),  # noqa: ARG005 - one shape for all
            r"what\s+(?:do|can)\s+you\s+(?:still\s+)?remember(?:\s+(?:about|of|on)\s+.+)?",
            r"(?:search|check|show|look\s+(?:in|into|through))(?:\s+me)?\s+(?:your|the)\s+memor(?:y|ies)(?:\s+system)?(?:\s+(?:for|about|on)\s+.+)?",
            r"(?:搜索|查看|查找|查|看看|看一下|读取|列出|打开)(?:一下)?\s*(?:你的?|您的?)?记忆(?:系统|库)?(?:(?:里面|里|中)(?:的|有|关于)?.*)?",
            r"what\s+do\s+you\s+know\s+about\s+me|what(?:'s|\s+is)\s+in\s+your\s+memory|do\s+you\s+remember\s+(?:me|anything)",
            r"你(?:现在|还|都)*(?:记得|记住了?|知道)(?:关于)?(?:我)?(?:的)?(?:些)?(?:什么|哪些|啥)(?:东西|事情|事)?(?:吗)?",
        ),
        rules(
            lambda f: WhatIsMy("name"),  # noqa: ARG005 - one shape for all
            r"who\s+am\s+i",
        ),
        rules(
            lambda f: WhatIsMy("名字"),  # noqa: ARG005 - one shape for all
            r"(?:你(?:还)?(?:记得|知道))?我(?:叫|是)(?:什么名字|什么|啥|谁)(?:吗|来着|呢)?",
        ),
        rules(
            lambda f: WhatIsMy(f["text"].strip()),
            r"(?:what(?:'s|\s+is|\s+was|\s+are)|do\s+you\s+(?:know|remember)|tell\s+me)\s+my\s+(?P<text>(?!last|previous).+?)",
            r"(?:你(?:还)?(?:记得|知道))?我的(?P<text>[^，。？！]+?)(?:是|叫)(?:什么|啥|多少|谁|哪个|几)(?:吗|来着|呢)?",
        ),
        rules(
            lambda f: LastMessage(),  # noqa: ARG005 - one shape for all
            r"what\s+did\s+i\s+(?:just\s+)?(?:say|write|ask|tell).*",
            r"(?:what\s+(?:was|is)\s+|repeat\s+|tell\s+me\s+)?my\s+(?:last|previous)\s+(?:message|question|prompt).*",
            r"我(?:刚才|刚刚|刚|之前|上次|上一条|上一句|前面)(?:跟你)?(?:都)?(?:说|问|发|写)(?:了|过|的)*(?:是)?(?:什么|啥|哪些).*",
        ),
        rules(
            lambda f: Remember(words_of(f)),
            r"remember\s*(?:that|this)?\s*[:,]?\s+(?P<text>.+)",
            r"(?:note|keep\s+in\s+mind)\s+that\s+(?P<text>.+)",
            r"(?:记住|记下来?|记一下|记得|牢记)(?:了)?[：:，,\s]*(?P<text>.+)",
        ),
        rules(
            lambda f: Forget(words_of(f)),
            r"forget\s+(?:about\s+|that\s+|what\s+(?:i|you)\s+(?:said|know|noted|remember)\s+(?:about|of|on)\s+)?(?P<text>.+?)",
            r"(?:忘掉|忘记|忘了)(?:关于)?[：:，,\s]*(?P<text>.+?)(?:的(?:事情?|内容|笔记))?",
        ),
        rules(
            lambda f: MakeFolder(path_of(f, "path")),
            rf"(?:make|create|add|mkdir)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:folder|directory|dir)\s+(?:named\s+|called\s+)?{name('path')}",
            rf"mkdir\s+(?:-p\s+)?{name('path')}",
            rf"(?:新建|创建|建立|建)(?:一个|个)?(?:新的?)?(?:名为|叫做?)?\s*(?:文件夹|目录)(?![./])(?:名为|叫做?)?\s*{name_zh('path')}",
            rf"(?:新建|创建|建立|建)(?:一个|个)?(?:名为|叫做?)?\s*(?:[{QUOTES}](?P<path_quoted>[^{QUOTES}]+)[{QUOTES}]|(?P<path>[^\s{QUOTES}，。]+?))\s*(?:的)?(?:文件夹|目录)",
        ),
        rules(
            lambda f: AppendText(path_of(f, "path"), words_of(f)),
            rf"(?:append|add)\s+(?P<text>.+)\s+(?:to|onto|at)\s+(?:the\s+end\s+of\s+)?(?=\S*\.\w|\S*[{QUOTES}]|(?:the\s+)?file\s){name('path')}",
            rf"(?:在|往|给)\s*{name_zh('path')}\s*(?:的)?(?:末尾|最后|结尾|后面|里面|里|中)?\s*(?:加上|追加|添加|加入|加)(?:一行|一句)?\s*[：:]?\s*(?P<text>.+)",
            rf"(?:把|将)\s*(?P<text>.+?)\s*(?:追加到|添加到|加到|加进|加入)\s*{name_zh('path')}\s*(?:的)?(?:末尾|最后|结尾|后面|里面|里|中)?",
        ),
        rules(
            lambda f: ReplaceText(path_of(f, "path"), words_of(f, "old"), words_of(f, "new")),
            rf"(?:replace|change)\s+(?P<old>.+?)\s+(?:with|by|to|into)\s+(?P<new>.+)\s+in\s+{name('path')}",
            rf"(?:in|edit|update)\s+{name('path')}\s*[,:]?\s+(?:replace|change)\s+(?P<old>.+?)\s+(?:with|by|to|into)\s+(?P<new>.+?)",
            rf"(?:把|将)\s*(?=[{QUOTES}]|\S*?\.\w+?\s*(?:里|中)|文件){name_zh('path')}\s*(?:里面|里|中)\s*的?\s*(?P<old>.+?)\s*(?:改成|改为|替换成|替换为|换成)\s*(?P<new>.+?)",
            rf"在?\s*{name_zh('path')}\s*(?:里面|里|中)\s*[，,]?\s*(?:把|将)\s*(?P<old>.+?)\s*(?:改成|改为|替换成|替换为|换成)\s*(?P<new>.+?)",
        ),
        rules(
            lambda f: WriteFile(path_of(f, "path"), words_of(f)),
            rf"(?:create|make|write|add)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:empty\s+)?(?:text\s+)?(?:file\s+)?(?:named\s+|called\s+)?{name('path')}"
            r"\s*,?\s*(?:with|containing|saying|that\s+says)\s+(?:the\s+)?(?:(?:text|contents?|words?)\b)?\s*:?\s*(?P<text>.+)",
            rf"(?:write|save|put|store)\s+(?P<text>.+)\s+(?:to|in|into|as)\s+(?:a\s+)?(?:new\s+)?(?:file\s+)?(?:named\s+|called\s+)?{name('path')}",
            rf"(?:create|make)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+)?(?:empty\s+)?file\s+(?:named\s+|called\s+)?{name('path')}(?P<text>)",
            rf"(?:create|make)\s+(?=\S*\.\w+\W*\Z){name('path')}(?P<text>)",
            rf"(?:把|将)\s*(?:下面|以下|这些?|这段)的?(?:内容|文字|文本|话)?\s*(?:写入|写到|写进|保存到|存到|存入)\s*{name_zh('path')}\s*(?:里面|里|中)?\s*[：:]\s*(?P<text>.+)",
            rf"(?:把|将)\s*(?P<text>.+?)\s*(?:写入|写到|写进|写在|保存到|保存为|保存在|存到|存入|放进|放到|记到|记在)\s*{name_zh('path')}\s*(?:里面|里|中)?",
            rf"(?:创建|新建|写)(?:一个|个)?(?:新的?)?(?:名为|叫)?\s*{name_zh('path')}\s*[，,]?\s*(?:内容|里面)?(?:为|是|写上|写入|写着|写|：|:)\s*[：:]?\s*(?P<text>.+)",
            rf"(?:在|往)\s*{name_zh('path')}\s*(?:里面|里|中)?\s*(?:写入|写上|写)\s*[：:]?\s*(?P<text>.+)",
            rf"(?:创建|新建)(?:一个|个)?(?:空)?(?:的)?\s*(?=文件|\S*\.\w|[{QUOTES}]){name_zh('path')}(?P<text>)",
            rf"写入\s*{name_zh('path')}\s*[：:，,]\s*(?P<text>.+)",
            rf"(?:写|保存)\s*(?P<text>.+?)\s+(?:到|进|入)\s*{name_zh('path')}\s*(?:里面|里|中)?",
        ),
        rules(
            lambda f: MoveFile(path_of(f, "source"), path_of(f, "target")),
            rf"(?:move|rename|mv)\s+{name('source')}\s+(?:to|into|as)\s+{name('target')}",
            rf"mv\s+{name('source')}\s+{name('target')}",
            rf"(?:把|将)\s*{name_zh('source')}\s*(?:移动到|移到|移至|改名为|改名成|重命名为|重命名成|改成|改为)\s*{name_zh('target')}\s*(?:里面|里|中|下)?",
            rf"(?:移动|重命名|改名)\s*{name_zh('source')}\s*(?:到|为|成|至)\s*{name_zh('target')}\s*(?:里面|里|中|下)?",
        ),
        rules(
            lambda f: CopyFile(path_of(f, "source"), path_of(f, "target")),
            rf"(?:copy|cp|duplicate)\s+{name('source')}\s+(?:to|into|as)\s+{name('target')}",
            rf"cp\s+{name('source')}\s+{name('target')}",
            rf"(?:把|将)\s*{name_zh('source')}\s*(?:复制|拷贝)(?:到|为|成|至|一份到)\s*{name_zh('target')}\s*(?:里面|里|中|下)?",
            rf"(?:复制|拷贝)\s*{name_zh('source')}\s*(?:到|为|成|至)\s*{name_zh('target')}\s*(?:里面|里|中|下)?",
        ),
        rules(
            lambda f: DeleteFile(
                path_of(f, "path"), is_folder=bool(f["kind"]) or f.get("path", "").endswith("/")
            ),
            r"(?:delete|remove|rm|erase)\s+(?=(?P<kind>(?:the\s+)?(?:folder|directory)\b|.*\s(?:folder|directory)\W*$)?)"
            + name("path"),
            rf"(?:删除|删掉|移除|删)(?:一下)?\s*(?=(?P<kind>(?:文件夹|目录)(?![./])|.*(?:文件夹|目录)\W*$)?){name_zh('path')}",
            rf"(?:把|将)\s*(?=(?P<kind>(?:文件夹|目录)(?![./])|.*(?:文件夹|目录)(?=\s*(?:删|移除)))?){name_zh('path')}\s*(?:删除|删掉|删了|移除)",
        ),
        rules(
            lambda f: ListFiles(folder_of(f)),
            rf"(?:list|show|ls|give|display|see)(?:\s+me)?(?:\s+all)?(?:\s+of)?(?:\s+(?:the|my|our))?\s+(?:files|contents?|folder|directory|workspace)(?:\s+and\s+folders)?(?:\s+here)?{_IN_FOLDER}",
            rf"(?:what|which)\s+files\s+(?:are|do\s+(?:you|we|i)\s+(?:see|have))(?:\s+there|\s+here)?{_IN_FOLDER}",
            rf"(?:ls|dir)(?:\s+{name('folder')})?",
            rf"list\s+{name('folder')}",
            rf"(?:看看|看一下|查看)?\s*(?:当前)?{_ZH_FOLDER}\s*(?:都)?有(?:哪些|什么|些什么|啥)\s*(?:文件|东西)",
            rf"(?:列出|列一下|列举|显示|看看|查看|看一下)(?:一下)?(?:当前)?\s*{_ZH_FOLDER}\s*(?:所有|全部)?(?:的)?(?:文件|内容|文件列表)",
            rf"列出\s*(?:[{QUOTES}](?P<folder_quoted>[^{QUOTES}]+)[{QUOTES}]|(?P<folder>[^\s{QUOTES}，。]+?))\s*(?:文件夹|目录)",
            r"文件列表(?P<folder>)",
        ),
        rules(
            lambda f: SearchText(words_of(f), folder_of(f)),
            r"(?:find|search(?:\s+for)?|grep|look\s+for)\s+(?:the\s+)?(?:text\s+|word\s+|string\s+|for\s+)?(?P<text>.+?)"
            rf"\s+(?:in|inside|within|across)\s+(?:all\s+)?(?:of\s+)?(?:the\s+|my\s+)?(?:files?|workspace|{name('folder')})",
            r"(?:search\s+for|grep|find\s+the\s+(?:text|word|string)|search)\s+(?P<text>.+?)(?P<folder>)",
            rf"find\s+(?P<text>[{QUOTES}].+?[{QUOTES}]|\S+)(?P<folder>)",
            rf"在\s*(?:所有|全部)?(?:文件|工作区|{name_zh('folder')})\s*(?:里面|里|中)?\s*(?:搜索|查找|搜|找)(?:一下)?\s*(?P<text>.+?)",
            r"(?:搜索|查找|搜一下|找一下|搜|寻找)(?:一下)?(?:文件|所有文件)?(?:里的|中的|里|中)?(?:文字|文本)?[：:\s]*(?P<text>.+?)(?P<folder>)",
        ),
        rules(
            lambda f: ReadFile(path_of(f, "path")),
            rf"(?:read|cat)(?:\s+me)?(?:\s+the\s+contents?\s+of)?\s+{name('path')}(?:\s+(?:to|for)\s+me)?",
            rf"(?:open|show|print|display|view|look\s+at|see)(?:\s+me)?(?:\s+the\s+contents?\s+of)?\s+(?=\S*[./`'\"]|(?:the\s+)?file\s){name('path')}",
            rf"what\s+does\s+(?=\S*\.\w){name('path')}\s+(?:say|contain|have)",
            rf"what(?:'s|\s+is)\s+in(?:side)?\s+(?=\S*[./`'\"]|(?:the\s+)?file\s){name('path')}",
            rf"(?:读取|读一下|读一读|读)(?:一下)?\s*{name_zh('path')}\s*(?:里面|里)?(?:的)?(?:内容)?",
            rf"(?:打开|查看|看看|看一下|显示|看)(?:一下)?\s*(?=\S*[./]|文件|\S+\s*文件){name_zh('path')}\s*(?:里面|里)?(?:的)?(?:内容)?",
            rf"(?=\S*[./]|[{QUOTES}]|文件\s){name_zh('path')}\s*(?:里面|里)(?:写了|有|是)(?:什么|啥)(?:内容)?",
            rf"(?=\S*\.\w|[{QUOTES}]|文件\s){name_zh('path')}\s*的?内容(?:是什么|是啥)?",
        ),
        rules(
            lambda f: ListFiles(folder_of(f)),
            r"(?:看看|看一下|查看)?\s*(?P<folder>[A-Za-z0-9_./-]+|当前|这里|工作区)\s*(?:文件夹|目录)?(?:里面|里|中|下)?(?:都)?有(?:什么|哪些|啥)",
        ),
        rules(
            lambda f: RunCommand(words_of(f)),
            r"(?:run|execute)\s+(?:the\s+)?(?:command\s*:?\s*)?(?P<text>.+?)",
            r"(?:运行|执行)(?:一下)?(?:命令)?[：:\s]*(?P<text>.+?)",
        ),
        rules(
            lambda f: CountTo(min(int(f["text"]), _STORY_MAX_COUNT)),
            r"count\s+(?:from\s+\w+\s+)?(?:up\s+)?to\s+(?P<text>\d{1,9})(?:\W.*)?",
            r"(?:从\s*(?:1|一)\s*)?数到\s*(?P<text>\d{1,9}).*",
        ),
        rules(
            lambda f: LongStory(),  # noqa: ARG005 - one shape for all
            r"(?:write|tell)(?:\s+me)?\s+a\s+(?:very\s+|really\s+)?(?:long\s+)?(?:story|text|tale).*",
            r"(?:写|讲|说)(?:一个|一篇|个|一段)?(?:很|非常)?(?:长)?(?:的)?(?:长)?(?:故事|文章|文字).*",
        ),
        rules(
            lambda f: TellMy(f["key"].strip(), f["text"].strip()),
            r"my\s+(?P<key>\w[\w ]{0,40}?)\s+(?:is|are)\s+(?P<text>[^\n,;!?]+?)(?:\.\s[^?]*)?",
            r"我的(?P<key>[^\s，。？！是叫]{1,20})(?:是|叫)\s*(?P<text>[^\n，。；？?！!]+)(?:[，。；][^？?]*)?",
        ),
        rules(
            lambda f: TellMy("名字", f["text"].strip()),
            r"我(?:的名字)?叫\s*(?![你您他她它])(?P<text>[^\s，。；？?！!]{1,20})(?:[，。；][^？?]*)?",
        ),
        rules(
            lambda f: Courtesy("thanks"),  # noqa: ARG005 - one shape for all
            r"(?:(?:ok(?:ay)?|great|nice|no)[,.!\s]+)?(?:many\s+)?(?:thanks|thank\s+you|thx)(?:\s+(?:a\s+lot|so\s+much|very\s+much|again|for\s+[^?]{1,40}))?(?:[\s,]+(?:candor|claude))?",
            r"(?:好的?[，,\s]*)?(?:非常|太|多|十分)?(?:谢谢|感谢|多谢|谢了|谢啦|辛苦了?)(?:你|您|啦|了)*(?:的帮助|帮忙)?",
        ),
        rules(
            lambda f: Courtesy("farewell"),  # noqa: ARG005 - one shape for all
            r"(?:good)?bye(?:[\s-]bye)?|good\s+night|see\s+you(?:\s+(?:later|soon|tomorrow))?|再见|拜拜|晚安|回头见",
        ),
        rules(
            lambda f: Courtesy("agreed"),  # noqa: ARG005 - one shape for all
            r"ok(?:ay)?|yes|no|sure|fine|great|good|nice|cool|got\s+it|well\s+done|好的?|好吧|是的?|不是|嗯+|行|不错|很好|明白了?|知道了",
        ),
        rules(
            lambda f: Help(),  # noqa: ARG005 - one shape for all
            r"(?:hi|hello|hey|good\s+(?:morning|evening|day)|help|help\s+me)(?:\s+there)?(?:[\s,]+(?:candor|claude))?",
            r"(?:who|what)\s+are\s+you|what\s+(?:can|do)\s+(?:you|i|we)\s+(?:do|understand|ask|say)(?:\s+(?:you|here|for\s+me|with\s+you))?|how\s+(?:are\s+you|do(?:es)?\s+(?:i|you|this|it)\s+(?:use|work).*)|what\s+is\s+this|which\s+model\s+are\s+you",
            r"(?:你好|您好|嗨|哈喽)[啊呀吗]?(?:[，,！!。\s]*你是谁)?|你是(?:谁|什么|哪个模型|什么模型)|帮助|(?:你|这个)?(?:怎么|如何)(?:使?用).*|这是什么|你有(?:什么|哪些)(?:功能|能力)|(?:你)?(?:自我)?介绍(?:一下)?(?:你)?(?:自己)?|你会(?:什么|啥)|(?:你)?(?:都)?(?:能|会|可以)(?:做|干)(?:什么|啥|些什么).*",
        ),
    ]
)
