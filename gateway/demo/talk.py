"""Answers that need no tools: who it is, what was said before, what memory it was shown, long texts."""

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from gateway.demo.conversation import Conversation, Prompt
from gateway.demo.intents import (
    CountTo,
    Courtesy,
    Help,
    Language,
    LastMessage,
    LongStory,
    Summarise,
    TalkIntent,
    TellMy,
    Unknown,
    WhatIsMy,
)
from gateway.demo.memory_told import quote_memory
from gateway.demo.report import clip, quote

_MAX_PROMPTS_QUOTED = 5
_MAX_PROMPT_CHARS = 500
_MAX_RESULT_CHARS = 600
_STORY_PARAGRAPHS = 60

_HELP_EN = """\
I am `candor-demo`, the demo model built into this gateway. No language model is behind me: my answers are scripted, my tool calls are real.

I understand plain requests, in English and Chinese:
- **files**: “list the files”, “read notes.md”, “write hello to a.txt”, “rename a.txt to b.txt”, “add eggs to a.txt”, “replace hello with bye in a.txt”, “copy a.txt to c.txt”, “delete b.txt”, \
“create a folder docs”, “find 'hello' in files”, “run `ls -l`” — also one after another with “then”
- **memory**: “remember that …”, “what do you remember?”, “forget …”, “search cases …”, “use the memory-capture skill: …”
- **this conversation**: “what did I say before?”, “my codeword is …” and later “what is my codeword?”, “summarise”
- **long answers**: “count to 50”, “tell me a long story”

To talk to a real model, set `ANTHROPIC_API_KEY` (and `ANTHROPIC_BASE_URL` where you use a proxy) and start the gateway without the demo."""

_HELP_ZH = """\
我是 `candor-demo`，网关内置的演示模型。我背后没有大语言模型：回答是按脚本写好的，工具调用是真的。

我听得懂这样的话（中文、英文都可以）：
- **文件**：“列出文件”、“读取 notes.md”、“把 你好 写入 a.txt”、“把 a.txt 改名为 b.txt”、“在 a.txt 末尾加上 再见”、“把 a.txt 里的 你好 改成 您好”、“复制 a.txt 到 c.txt”、“删除 b.txt”、\
“新建文件夹 docs”、“搜索 你好”、“运行 ls -l”；也可以用“然后”连起来
- **记忆**：“记住 ……”、“你记得什么”、“忘掉 ……”、“搜索案例 ……”、“使用 memory-capture 技能：……”
- **这次对话**：“我刚才说了什么”、先说“我的暗号是……”再问“我的暗号是什么”、“总结”
- **长回答**：“数到 50”、“讲一个长故事”

要接真正的模型，请设置 `ANTHROPIC_API_KEY`（用代理时再设 `ANTHROPIC_BASE_URL`），并且不用演示方式启动网关。"""

_SHORT_HELP: dict[Language, str] = {
    "en": " I am `candor-demo`, and my answers are scripted; say “help” for what I do understand.",
    "zh": "我是按脚本回答的演示模型 `candor-demo`；说“帮助”，我告诉你我听得懂什么。",
}

_COURTESIES: dict[str, dict[Language, str]] = {
    "thanks": {"en": "You are welcome.", "zh": "不客气。"},
    "farewell": {"en": "Goodbye.", "zh": "再见。"},
    "agreed": {"en": "All right.", "zh": "好的。"},
}


def talk(intent: TalkIntent, conversation: Conversation, language: Language) -> str:
    """The answer to a request that needs no tools."""
    match intent:
        case Help():
            return _HELP_ZH if language == "zh" else _HELP_EN
        case Unknown():
            return _admit_lost(conversation, language)
        case Courtesy(kind):
            return _COURTESIES[kind][language]
        case CountTo(limit):
            return ", ".join(str(number) for number in range(1, limit + 1))
        case LongStory():
            return "\n\n".join(_story(language))
        case _:
            return _talk_of_before(intent, conversation, language)


def _talk_of_before(
    intent: LastMessage | WhatIsMy | TellMy | Summarise,
    conversation: Conversation,
    language: Language,
) -> str:
    earlier = conversation.prompts[:-1]
    match intent:
        case LastMessage():
            return _last_messages(earlier, language)
        case WhatIsMy(key):
            return _what_is_my(key, conversation, language)
        case TellMy(key, value):
            if language == "zh":
                return f"好的，在这次对话里我知道你的{key}是{value}。要长期记住，请说“记住……”。"
            return f"Noted for this conversation: your {key} is {value}. To keep it for longer, say “remember that …”."
        case Summarise():
            return _summarise(earlier, language)
        case _:
            assert_never(intent)


def scripted_note(language: Language) -> str:
    """One line of honesty for the first answer of a conversation."""
    if language == "zh":
        return "（我是内置的演示模型 candor-demo，回答是按脚本写好的。）"
    return "(I am candor-demo, the built-in demo model; my answers are scripted.)"


def note_asides(asides: Sequence[str], language: Language) -> str:
    """Says that messages sent in between were seen and not acted upon."""
    quoted = "; ".join(f"“{clip(text, _MAX_PROMPT_CHARS, language)}”" for text in asides)
    if language == "zh":
        return f"（处理期间你又说了 {quoted}；这一条我没有处理，请再发一次。）"
    return f"(While I worked you also wrote {quoted}; I did not act on it, please send it again.)"


def _admit_lost(conversation: Conversation, language: Language) -> str:
    """Say that it is not understood: with all that would be, once, and with what memory has on it."""
    lost = "这句话我听不懂。" if language == "zh" else "I do not understand that."
    told = quote_memory(conversation.memory, language)
    if told:
        return f"{lost}{_SHORT_HELP[language]}\n\n{told}"
    if len(conversation.prompts) > 1:
        return f"{lost}{_SHORT_HELP[language]}"
    return f"{lost}{_HELP_ZH}" if language == "zh" else f"{lost} {_HELP_EN}"


def _last_messages(earlier: Sequence[Prompt], language: Language) -> str:
    if not earlier:
        return (
            "这是你在这次对话里的第一条消息。"
            if language == "zh"
            else "This is your first message in this conversation."
        )
    shown = [
        clip(prompt.text, _MAX_PROMPT_CHARS, language) for prompt in earlier[-_MAX_PROMPTS_QUOTED:]
    ]
    if language == "zh":
        lead = f"你刚才说的是：“{shown[-1]}”"
        more = "更早的消息："
    else:
        lead = f"Just before this you said: “{shown[-1]}”"
        more = "Before that:"
    before = "\n".join(f"- “{text}”" for text in shown[:-1])
    return f"{lead}\n\n{more}\n{before}" if before else lead


def _what_is_my(key: str, conversation: Conversation, language: Language) -> str:
    for prompt in reversed(conversation.prompts[:-1]):
        value = find_value(key, prompt.text)
        if value is not None:
            return f"你的{key}是{value}。" if language == "zh" else f"Your {key} is {value}."
    lines = [
        line.strip()
        for line in conversation.memory.splitlines()
        if key.casefold() in line.casefold()
    ]
    if lines:
        found = "\n".join(f"> {line}" for line in lines[:_MAX_PROMPTS_QUOTED])
        if language == "zh":
            return f"这次对话里你没有告诉我你的{key}，但是给我的记忆里写着：\n\n{found}"
        return f"You have not told me your {key} in this conversation, but the memory I was shown says:\n\n{found}"
    if language == "zh":
        return f"我不知道：这次对话里你没有告诉我你的{key}，给我的记忆里也没有。"
    return f"I do not know: you have not told me your {key} in this conversation, and no memory I was shown says it."


def find_value(key: str, text: str) -> str | None:
    """What `text` says that "my `key`" is, or `None`."""
    quoted = re.escape(key)
    english = (
        rf"\bmy\s+{quoted}\s+(?:is|are|was)\s+(?P<value>[^\n,;!?]+?)(?=\.(?:\s|\Z)|[\n,;!?]|\Z)"
    )
    called = "|我叫" if key in {"名字", "姓名"} else ""
    chinese = rf"(?:我的{quoted}(?:是|叫){called})\s*(?P<value>[^\n，。；！？,;!?]+)"
    for pattern in (english, chinese):
        found = re.search(pattern, text, re.IGNORECASE)
        if found is not None and found["value"].strip() not in {"什么", "啥"}:
            return found["value"].strip()
    return None


def _summarise(earlier: Sequence[Prompt], language: Language) -> str:
    worked = next((prompt for prompt in reversed(earlier) if prompt.rounds), None)
    if worked is None:
        return (
            "之前没有用过任何工具。" if language == "zh" else "No tool has been used before this."
        )
    outcomes = [outcome for each in worked.rounds for outcome in each]
    quotes = "\n\n".join(
        quote(outcome, language, max_chars=_MAX_RESULT_CHARS) for outcome in outcomes
    )
    lead = "工具的结果是：" if language == "zh" else "This is what the tools returned:"
    return f"{lead}\n\n{quotes}"


def _story(language: Language) -> Iterator[str]:
    for number in range(1, _STORY_PARAGRAPHS + 1):
        if language == "zh":
            yield (
                f"第{number}天，守门人点起灯，把昨天发生的事一件一件写进本子里。"
                "有人问他为什么连失败也要写，他说：没有写下来的失败，明天还会再来一次。"
            )
        else:
            yield (
                f"On day {number} the gatekeeper lit the lamp and wrote down what had happened, one thing after another. "
                "Asked why she wrote down the failures too, she said that a failure nobody writes down comes again tomorrow."
            )
