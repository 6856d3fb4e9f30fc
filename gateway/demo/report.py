"""The closing words after tool calls: what the tools really returned, and plainly what failed."""

import json
import re
from collections.abc import Sequence

from gateway.demo.calling import Missing, Round, read_lines
from gateway.demo.conversation import ToolOutcome
from gateway.demo.editing import NOTES_PATH
from gateway.demo.intents import (
    AppendText,
    CopyFile,
    DeleteFile,
    Forget,
    Language,
    ListFiles,
    MakeFolder,
    MoveFile,
    ReadFile,
    Recall,
    Remember,
    ReplaceText,
    SearchCases,
    SearchText,
    ToolIntent,
    UseSkill,
    WriteFile,
)

_MAX_QUOTED_CHARS = 3000


_WRAPPING = re.compile(r"\APreToolUse:\S+ hook error: |</?tool_use_error>")
"""What the agent program puts around the reason of a call that failed."""


def report(intent: ToolIntent, rounds: Sequence[Round], language: Language) -> str:
    """What came of `intent`; claims success only where the last calls succeeded."""
    if not rounds:
        return _report_nothing_done(intent, language)
    outcomes = rounds[-1]
    failed = [outcome for outcome in outcomes if outcome.is_error]
    quotes = "\n\n".join(quote(outcome, language) for outcome in outcomes)
    if failed:
        lead = "没有成功。" if language == "zh" else "That did not work."
    else:
        lead = _lead(intent, rounds, language)
    return f"{lead}\n\n{quotes}"


def report_missing(missing: Missing, language: Language) -> str:
    """Says that nothing was done for want of a tool."""
    names = " / ".join(f"`{name}`" for name in missing.tools)
    if language == "zh":
        return f"我什么也没做：这里没有提供所需的工具（{names}）。"
    return f"I did nothing: the tool this needs is not available here ({names})."


def quote(outcome: ToolOutcome, language: Language, *, max_chars: int = _MAX_QUOTED_CHARS) -> str:
    """One outcome with the tool's own words."""
    what = describe(outcome)
    if outcome.is_error:
        verb = "失败了" if language == "zh" else "failed"
    else:
        verb = "返回" if language == "zh" else "returned"
    words = clip(_own_words(outcome), max_chars, language)
    if not words:
        return f"`{what}` {verb}。" if language == "zh" else f"`{what}` {verb} nothing."
    fence = "````" if "```" in words else "```"
    return f"`{what}` {verb}{'：' if language == 'zh' else ':'}\n{fence}\n{words}\n{fence}"


def describe(outcome: ToolOutcome) -> str:
    """A call in a few words: the command, or the tool and what it was about."""
    arguments = outcome.arguments
    if outcome.name == "Bash":
        return str(arguments.get("command", "Bash"))
    for key in ("file_path", "pattern", "query", "skill", "path"):
        if key in arguments:
            return f"{outcome.name} {arguments[key]}"
    return outcome.name


def _own_words(outcome: ToolOutcome) -> str:
    """The tool's text; for a file that was read, its lines without their numbers."""
    if outcome.is_error:
        return _WRAPPING.sub("", outcome.text).strip()
    lines = read_lines(outcome.text) if outcome.name == "Read" else []
    if outcome.name.endswith("memory_case_search"):
        lines = _case_lines(outcome.text)
    return ("\n".join(lines) if lines else outcome.text).strip()


def _case_lines(text: str) -> list[str]:
    """A line a case, out of the tool's JSON; none where it is something else."""
    try:
        cases = json.loads(text)["cases"]
        return [f"{one['case_id']} ({one['lifecycle']}): {one['symptom_summary']}" for one in cases]
    except (ValueError, KeyError, TypeError):
        return []


def clip(text: str, max_chars: int, language: Language) -> str:
    """`text`, cut to `max_chars` with a word about the rest."""
    if len(text) <= max_chars:
        return text
    rest = len(text) - max_chars
    note = f"（还有 {rest} 个字符）" if language == "zh" else f"({rest} more characters)"
    return f"{text[:max_chars]}\n… {note}"


def _report_nothing_done(intent: ToolIntent, language: Language) -> str:
    if isinstance(intent, UseSkill):
        if language == "zh":
            return f"技能 {intent.name} 已载入，但我是按脚本回答的演示模型，不会自由地执行它；要记下内容，请写在技能名后面。"
        return (
            f"The skill {intent.name} is loaded, but as a scripted demo model I cannot follow it freely; "
            "to have something noted, write it after the skill's name."
        )
    return "没有什么要做的。" if language == "zh" else "There was nothing to do."


def _lead(intent: ToolIntent, rounds: Sequence[Round], language: Language) -> str:
    english, chinese = _lead_texts(intent, rounds)
    return chinese if language == "zh" else english


def _lead_texts(intent: ToolIntent, rounds: Sequence[Round]) -> tuple[str, str]:
    match intent:
        case ListFiles(folder):
            where, wo = ("", "") if folder == "." else (f" in {folder}", f" {folder} 里")
            return (
                f"These are the files{where}.",
                f"这是{wo}的文件。" if wo else "这是工作区里的文件。",
            )
        case ReadFile(path):
            return f"This is {path}.", f"这是 {path} 的内容。"
        case WriteFile() | AppendText() | ReplaceText():
            return _edit_lead_texts(intent, rounds)
        case MoveFile() | CopyFile() | DeleteFile() | MakeFolder():
            return _change_lead_texts(intent)
        case SearchText(text, _):
            return f"I searched for “{text}”.", f"我搜索了“{text}”。"
        case _:
            return _memory_lead_texts(intent, rounds)


def _edit_lead_texts(
    intent: WriteFile | AppendText | ReplaceText, rounds: Sequence[Round]
) -> tuple[str, str]:
    match intent:
        case WriteFile(path, _):
            return f"I wrote {path}.", f"已写入 {path}。"
        case AppendText(path, _):
            return f"I added it to {path}.", f"已加到 {path} 的末尾。"
        case ReplaceText(path, old, new):
            if rounds[-1][-1].name != "Edit":
                return (
                    f"“{old}” is not in {path}; I changed nothing.",
                    f"{path} 里没有“{old}”，我什么也没有改。",
                )
            return (
                f"I replaced “{old}” with “{new}” in {path}.",
                f"已把 {path} 里的“{old}”改成“{new}”。",
            )


def _change_lead_texts(intent: MoveFile | CopyFile | DeleteFile | MakeFolder) -> tuple[str, str]:
    match intent:
        case MoveFile(source, target):
            return f"I moved {source} to {target}.", f"已把 {source} 移动到 {target}。"
        case CopyFile(source, target):
            return f"I copied {source} to {target}.", f"已把 {source} 复制到 {target}。"
        case DeleteFile(path, _):
            return f"I deleted {path}.", f"已删除 {path}。"
        case MakeFolder(path):
            return f"I made the folder {path}.", f"已建立文件夹 {path}。"


def _memory_lead_texts(intent: ToolIntent, rounds: Sequence[Round]) -> tuple[str, str]:
    has_written = rounds[-1][-1].name in {"Edit", "Write"}
    match intent:
        case Remember() | UseSkill(name="memory-capture") if has_written:
            return f"I wrote it down in {NOTES_PATH}.", f"我已记在 {NOTES_PATH} 里。"
        case Forget(about):
            return _forgotten_texts(about, has_written=has_written)
        case Remember():
            return f"{NOTES_PATH} says it already.", f"{NOTES_PATH} 里已经有了。"
        case SearchCases(query):
            return f"I searched the cases for “{query}”.", f"我在案例里搜索了“{query}”。"
        case Recall() if rounds[-1][-1].name != "Read":
            return (
                "Nothing is noted in memory yet. To note something, say “remember that …”.",
                "记忆里还没有内容。要记下什么，请说“记住……”。",
            )
        case Recall():
            return "This is what the memory folder says.", "这是记忆文件夹里的内容。"
        case UseSkill(name):
            return (
                f"I used the skill {name} as far as a scripted demo model can.",
                f"我用了技能 {name}；作为按脚本回答的演示模型，我只能做到这里。",
            )
        case _:
            return "Done.", "完成了。"


def _forgotten_texts(about: str, *, has_written: bool) -> tuple[str, str]:
    if has_written:
        return (
            f"I took “{about}” out of {NOTES_PATH}.",
            f"我已把“{about}”从 {NOTES_PATH} 里去掉。",
        )
    return (
        f"{NOTES_PATH} holds nothing on “{about}”.",
        f"{NOTES_PATH} 里没有关于“{about}”的内容。",
    )
