"""What the gateway itself says, in the language of the person's message.

English and Chinese to begin with; a test holds that both have the same keys and places.
"""

import re
from collections.abc import Sequence
from typing import Literal

from gateway.version import COMMAND
from policies.configuration import Concern

Language = Literal["en", "zh"]

_MANY_HAN = 0.15
"""From this share of Han characters among the letters on, a message is taken for Chinese."""

_READ_CHARS = 4000
"""The start of a message tells enough; the rest may be 200 000 characters of a log."""

_PASTED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
"""A fenced block: a log or code, in whatever language that is."""


def language_of(message: str) -> Language:
    """Tell the language of a message; English where nothing speaks for Chinese."""
    start = _PASTED.sub("", message[:_READ_CHARS])
    han = sum(1 for one in start if "\u3400" <= one <= "\u9fff")
    letters = sum(1 for one in start if one.isalpha())
    return "zh" if han and han >= _MANY_HAN * letters else "en"


_EN = {
    "tools_failed": "{failed} of {total} tool calls did not succeed: {which}.",
    "tool_failed": "This was not carried out. {which}.\nThe whole story is in the log {log_file}.",
    "tool_line_failed": "{summary} failed: {error}",
    "tool_line_denied": "{summary} was denied: {error}",
    "tool_line_interrupted": "{summary} was interrupted",
    "tool_line_unknown": "{summary} never reported back; whether it took effect is not known",
    "tool_line_ok": "{summary} succeeded",
    "no_reason": "no reason was given",
    "nobody_allowed": "nobody had allowed it when the server stopped, so it did not run",
    "interrupted_user": "You stopped this turn before it was finished. {done}Log: {log_file}",
    "interrupted_left": "This conversation was left while the turn was running, so it was stopped. {done}Log: {log_file}",
    "interrupted_policy": "A rule stopped this turn: {reason}. {done}Log: {log_file}",
    "interrupted_error": "The run was broken off before it was finished. {done}Log: {log_file}",
    "withdrawn": "This message was taken back before it was answered.",
    "withdrawn_left": "The conversation was left before this message was answered; it was not run.",
    "done_so_far": "Until then: {which}. ",
    "stopped_doom_loop": "I stopped this turn: the same calls were repeated {count} times in a row, {summary} last. {done}Log: {log_file}",
    "stopped_max_turns": "I stopped this turn: it reached the limit of steps for one turn. {done}Say “go on” to continue. Log: {log_file}",
    "stopped_timeout": "I stopped this turn: it took longer than {seconds} seconds. {done}Log: {log_file}",
    "stopped_budget": "I stopped this turn: it reached the spending limit. {done}Log: {log_file}",
    "shutdown": "The server was shut down while this turn was running, so it was broken off. {done}Log: {log_file}",
    "crashed": "The server stopped unexpectedly while this turn was running, so it was not finished. {done}Please send the message again if you still need it. Log: {log_file}",
    "engine_crash": "The agent's process ended unexpectedly in the middle of this turn. {done}Your next message starts it again with its memory of the conversation. Log: {log_file}",
    "engine_unavailable": "The agent could not be started, so your message was not answered. Check the server with `{command} doctor`. Log: {log_file}",
    "workspace_untrusted": "The agent was not started, so your message was not answered: the workspace holds configuration that acts by itself and that nobody approved ({which}). Whoever runs this server can look at it and approve it with `{command} policy trust`, or remove it; then send the message again. Log: {log_file}",
    "config_link": "a link",
    "config_unreadable": "cannot be read",
    "config_too_large": "too large",
    "config_too_many": "too many files",
    "config_syntax": "cannot be understood",
    "config_unknown_kind": "of an unknown kind",
    "internal": "Something went wrong inside the gateway, so this turn was not finished. {done}Log: {log_file}",
    "api_400": "The model's service refused the request as malformed (400). {done}Check that the model's name and the service fit together; starting a new conversation may help. Log: {log_file}",
    "api_401": "The model's service did not accept the credentials (401). {done}Check ANTHROPIC_API_KEY (or your token or login) and start the server again. Log: {log_file}",
    "api_403": "The model's service denied access (403). {done}Check that your key may use this model. Log: {log_file}",
    "api_404": "The model's service does not know the model {model}, or ANTHROPIC_BASE_URL leads somewhere else (404). {done}Check CANDOR_MODEL and ANTHROPIC_BASE_URL. Log: {log_file}",
    "api_429": "The model's service kept refusing because of too many requests (429). {done}Wait a little and send the message again. Log: {log_file}",
    "api_overloaded": "The model's service was overloaded and stayed so ({status}). {done}Wait a little and send the message again. Log: {log_file}",
    "api_unreachable": "The model's service could not be reached{code}. {done}Check the network and ANTHROPIC_BASE_URL, then send the message again. Log: {log_file}",
    "api_connection": "The connection to the model's service kept failing{code}. {done}Check the network, then send the message again. Log: {log_file}",
    "api_not_messages": "The model's service answered with something that is not the Messages API. {done}Check ANTHROPIC_BASE_URL: it may lead to a proxy, a login page or another kind of service. Log: {log_file}",
    "api_5xx": "The model's service kept failing with an error of its own ({status}). {done}Wait a little and send the message again. Log: {log_file}",
    "api_credit": "The account of the model's service has no credit left, so the service refused the request. {done}Add credit or use another key. Log: {log_file}",
    "api_too_long": "The conversation with this message is longer than the model can read, so its service refused it. {done}Start a new conversation, or send a shorter message. Log: {log_file}",
    "api_context_window": "The conversation has filled the model's context window, so there was no room for an answer. {done}Start a new conversation, or ask for less at a time. Log: {log_file}",
    "model_timeout": "The model's service was silent for {seconds} seconds, so this turn was ended. {done}Send the message again; if it stays so, check the service. Log: {log_file}",
    "api_other": "The model's service failed ({status}). {done}Send the message again; if it stays so, look into the log {log_file}.",
    "refusal": "The model declined to answer this.",
    "empty": "The turn finished without text. Nothing failed.",
    "empty_after_tools": "The turn finished without text. What it did: {which}.",
    "model_retrying": "The model's service failed ({what}); attempt {attempt} of {max_attempts} follows in {seconds} s.",
    "model_silent": "The model's service has been silent for {seconds} s; if it stays silent for {limit} s, the turn ends.",
    "what_429": "429, too many requests",
    "what_529": "529, overloaded",
    "what_status": "status {status}",
    "what_connection": "the connection broke",
    "session_lost": "The agent's memory of this conversation was gone, so it started afresh: it does not remember what was said before.",
    "client_restarted": "The agent's process had ended in the meantime and was started again; it remembers the conversation.",
    "partial_text": "The run broke off, so the text is only as far as the answer came.",
    "max_tokens": "The answer was cut off at the model's output limit.",
    "context_window": "The answer was cut off: the conversation has filled the model's context window. Start a new conversation to go on.",
    "pause_turn": "The model paused before it was finished. Say “go on” to let it continue.",
    "unknown_stop_reason": "The model's service ended the answer for a reason that is not known here ({reason}), so it may be incomplete.",
    "forced_summary": "The agent ended without a word, so it was asked once for a summary.",
    "followed_skill": "The agent had only read a skill's instructions, so it was asked once to follow them.",
    "summary_failed": "The summary did not come, so only what the tool calls returned is told.",
    "journal_lost": "Part of this turn could not be written to the log: {lines} lines are missing.",
    "journal_late": "The log of this turn is not written completely yet; the rest follows.",
    "memory_not_written": "This turn could not be written into memory: it will not be remembered.",
    "skill_request": "Use the skill {name}: call the Skill tool with this name, then follow its instructions. What the person wrote with it, if anything, follows.",
    "answered_by_gateway": "The gateway answered this itself; the model was not asked.",
    "command_clear": "This is a new conversation. It knows nothing of the messages before it; the earlier conversation is kept.",
    "command_compact": "There is nothing to do: a long conversation is compacted by itself when the model needs it. For a fresh start type /clear.",
    "command_unknown": "There is no command /{name} here, so nothing was done. What can be typed: /clear for a new conversation, and the skills of this workspace ({skills}). To send this as text, write it into a sentence.",
    "kill": "The agent did not stop when asked, so its process was ended.",
}

_ZH = {
    "tools_failed": "{total} 次工具调用中有 {failed} 次没有成功：{which}。",
    "tool_failed": "没有执行成功。{which}。\n完整经过见日志 {log_file}。",
    "tool_line_failed": "{summary} 失败：{error}",
    "tool_line_denied": "{summary} 被拒绝：{error}",
    "tool_line_interrupted": "{summary} 被中断",
    "tool_line_unknown": "{summary} 没有返回结果，不清楚是否生效",
    "tool_line_ok": "{summary} 成功",
    "no_reason": "没有给出原因",
    "nobody_allowed": "服务器停止时还没有人允许，因此没有执行",
    "interrupted_user": "你在完成之前停止了这一轮。{done}日志：{log_file}",
    "interrupted_left": "这一轮还在运行时你离开了此对话，因此已停止。{done}日志：{log_file}",
    "interrupted_policy": "一条规则停止了这一轮：{reason}。{done}日志：{log_file}",
    "interrupted_error": "执行在完成之前中断了。{done}日志：{log_file}",
    "withdrawn": "这条消息在得到回答之前已被撤回。",
    "withdrawn_left": "这条消息在得到回答之前你离开了此对话，因此没有执行。",
    "done_so_far": "在此之前：{which}。",
    "stopped_doom_loop": "我停止了这一轮：同样的调用连续重复了 {count} 次，最后是 {summary}。{done}日志：{log_file}",
    "stopped_max_turns": "我停止了这一轮：已达到单轮的步数上限。{done}说“继续”即可接着做。日志：{log_file}",
    "stopped_timeout": "我停止了这一轮：用时超过 {seconds} 秒。{done}日志：{log_file}",
    "stopped_budget": "我停止了这一轮：已达到费用上限。{done}日志：{log_file}",
    "shutdown": "这一轮运行时服务器被关闭，因此中断了。{done}日志：{log_file}",
    "crashed": "这一轮运行时服务器意外停止，因此没有完成。{done}如果仍然需要，请重新发送这条消息。日志：{log_file}",
    "engine_crash": "代理进程在这一轮中途意外结束。{done}你的下一条消息会重新启动它，并保留对话记忆。日志：{log_file}",
    "engine_unavailable": "代理无法启动，因此没有回答你的消息。请用 `{command} doctor` 检查服务器。日志：{log_file}",
    "workspace_untrusted": "代理没有启动，因此没有回答你的消息：工作区里有会自行执行、但没有人批准的配置（{which}）。请让服务器的管理者检查后用 `{command} policy trust` 批准，或者将其删除，然后重新发送这条消息。日志：{log_file}",
    "config_link": "链接",
    "config_unreadable": "无法读取",
    "config_too_large": "太大",
    "config_too_many": "文件太多",
    "config_syntax": "无法解析",
    "config_unknown_kind": "未知类型",
    "internal": "网关内部出错，这一轮没有完成。{done}日志：{log_file}",
    "api_400": "模型服务认为请求格式有误（400）。{done}请检查模型名称与服务是否匹配；新建对话也可能有帮助。日志：{log_file}",
    "api_401": "模型服务不接受凭据（401）。{done}请检查 ANTHROPIC_API_KEY（或令牌、登录）后重新启动服务器。日志：{log_file}",
    "api_403": "模型服务拒绝访问（403）。{done}请检查你的密钥是否可以使用该模型。日志：{log_file}",
    "api_404": "模型服务找不到模型 {model}，或者 ANTHROPIC_BASE_URL 指向了别处（404）。{done}请检查 CANDOR_MODEL 和 ANTHROPIC_BASE_URL。日志：{log_file}",
    "api_429": "模型服务因请求过多一直拒绝（429）。{done}请稍等片刻再发送。日志：{log_file}",
    "api_overloaded": "模型服务一直过载（{status}）。{done}请稍等片刻再发送。日志：{log_file}",
    "api_unreachable": "无法连接模型服务{code}。{done}请检查网络和 ANTHROPIC_BASE_URL，然后重新发送。日志：{log_file}",
    "api_connection": "与模型服务的连接一再失败{code}。{done}请检查网络，然后重新发送。日志：{log_file}",
    "api_not_messages": "模型服务返回的内容不符合 Messages API。{done}请检查 ANTHROPIC_BASE_URL：它可能指向代理、登录页面或另一种服务。日志：{log_file}",
    "api_5xx": "模型服务自身一直出错（{status}）。{done}请稍等片刻再发送。日志：{log_file}",
    "api_credit": "模型服务的账户余额不足，因此拒绝了请求。{done}请充值或更换密钥。日志：{log_file}",
    "api_too_long": "这个对话加上这条消息超出了模型能读取的长度，因此模型服务拒绝了请求。{done}请新建对话，或者发送更短的消息。日志：{log_file}",
    "api_context_window": "这个对话已占满模型的上下文窗口，没有空间再回答。{done}请新建对话，或者一次少问一些。日志：{log_file}",
    "model_timeout": "模型服务连续 {seconds} 秒没有任何响应，因此结束了这一轮。{done}请重新发送；如果仍然如此，请检查模型服务。日志：{log_file}",
    "api_other": "模型服务出错（{status}）。{done}请重新发送；如果仍然如此，请查看日志 {log_file}。",
    "refusal": "模型拒绝回答这个问题。",
    "empty": "这一轮已结束，但没有文本输出；没有任何失败。",
    "empty_after_tools": "这一轮已结束，但没有文本输出。执行情况：{which}。",
    "model_retrying": "模型服务出错（{what}）；{seconds} 秒后进行第 {attempt} 次重试，最多 {max_attempts} 次。",
    "model_silent": "模型服务已有 {seconds} 秒没有响应；如果持续 {limit} 秒，这一轮将结束。",
    "what_429": "429，请求过多",
    "what_529": "529，过载",
    "what_status": "状态 {status}",
    "what_connection": "连接中断",
    "session_lost": "代理对此对话的记忆已不存在，因此重新开始：它不记得之前说过的内容。",
    "client_restarted": "代理进程在此期间结束，已重新启动；它仍记得此对话。",
    "partial_text": "执行中途中断，文本只到回答中断之处。",
    "max_tokens": "回答达到模型的输出上限而被截断。",
    "context_window": "回答被截断：这个对话已占满模型的上下文窗口。请新建对话再继续。",
    "pause_turn": "模型在完成之前暂停了。说“继续”即可让它接着做。",
    "unknown_stop_reason": "模型服务以未知的原因（{reason}）结束了回答，因此回答可能不完整。",
    "forced_summary": "代理结束时没有说明，因此请它补充了一次总结。",
    "followed_skill": "代理只阅读了技能说明，因此请它照着执行了一次。",
    "summary_failed": "没有得到总结，因此只说明工具调用的结果。",
    "journal_lost": "这一轮的部分日志无法写入：缺少 {lines} 行。",
    "journal_late": "这一轮的日志尚未写完，其余部分稍后写入。",
    "memory_not_written": "这一轮未能写入记忆：以后不会被记起。",
    "skill_request": "请使用技能 {name}：先用这个名称调用 Skill 工具，再按照其中的说明去做。如果用户还写了别的内容，附在后面。",
    "answered_by_gateway": "这是网关自己的回答，没有询问模型。",
    "command_clear": "这是一个新对话，它不知道之前的消息；之前的对话仍然保留。",
    "command_compact": "无需操作：对话很长时，会在模型需要时自动压缩。想重新开始，请输入 /clear。",
    "command_unknown": "这里没有命令 /{name}，因此没有执行任何操作。可以输入：/clear 新建对话，以及此工作区的技能（{skills}）。如果想把它作为文字发送，请写成一句话。",
    "kill": "代理没有按要求停止，因此结束了它的进程。",
}

SENTENCES: dict[Language, dict[str, str]] = {"en": _EN, "zh": _ZH}

SUMMARY_PROMPT: dict[Language, str] = {
    "en": "You ended without telling the person anything. Say in a few sentences what your tool "
    "calls really did and returned, failures included. Do not call any tool.",
    "zh": "你结束时没有向用户说明任何内容。请用几句话如实说明你的工具调用做了什么、返回了什么，"
    "包括失败。不要调用任何工具。",
}

FOLLOW_SKILL_PROMPT: dict[Language, str] = {
    "en": "You have read the skill's instructions but not followed them yet. Follow them now, "
    "step by step, for what the person asked.",
    "zh": "你已经阅读了技能说明，但还没有照着执行。请现在按照说明，一步一步完成用户的请求。",
}


def say(language: Language, key: str, **places: object) -> str:
    """Give a sentence with its places filled."""
    return SENTENCES[language][key].format(command=COMMAND, **places)


_MOST_CONCERNS = 4


def describe_concerns(concerns: Sequence[Concern], language: Language) -> str:
    """Name what was not approved, the first few of it: the file, and what acts in it."""
    sentences, mark = SENTENCES[language], "：" if language == "zh" else ": "
    named = [
        f"{_shown(one.path)}{mark}{sentences.get(f'config_{one.what}', one.what)}"
        for one in concerns[:_MOST_CONCERNS]
    ]
    if len(concerns) > _MOST_CONCERNS:
        named.append("…")
    return ("；" if language == "zh" else "; ").join(named)


_SHOWN_CHARS = 120


def _shown(path: str) -> str:
    """Give a path so that it can stand in a sentence: whoever wrote the folder chose it."""
    plain = "".join(char if char.isprintable() and char != "`" else "?" for char in path)
    return plain if len(plain) <= _SHOWN_CHARS else f"{plain[:_SHOWN_CHARS]}…"
