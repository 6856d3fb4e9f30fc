"""What the tools of an agent are called, by the form of the name alone.

For texts of which nobody says what tools there were. English and Chinese; texts are given as `plain_of` makes
them. Every repetition is bounded: a text of any length is read in one go.
"""

import re
from typing import Final

_VERB: Final = (
    r"(?:add|cancel|create|delete|describe|edit|exec|execute|fetch|find|get|insert|list|lookup|patch|post|publish"
    r"|query|read|remove|reply|run|search|send|set|show|submit|update|upload|write)"
)
_ANY_VERB: Final = (
    rf"(?:{_VERB}|approve|assign|book|check|close|comment|copy|deploy|export|generate|import|merge|move|notify|open"
    r"|resolve|restart|scale|schedule|start|stop|sync|upsert|validate)"
)
"""With those that English puts before the word "tool" as well: a data-import tool."""
_PART: Final = r"[a-z0-9]{1,30}"
SNAKE: Final = rf"{_PART}(?:_{_PART}){{1,6}}"
CAMEL: Final = r"[a-z]{1,20}[A-Z][A-Za-z0-9]{1,40}"
_KEBAB: Final = rf"(?:{_VERB}(?:-{_PART}){{1,6}}|(?:{_PART}-){{1,6}}{_VERB})"
COMPOUND: Final = rf"(?:{SNAKE}|{CAMEL}|{_KEBAB})(?![\w\-]|\.\w)"
"""Names as tools have them; not `pt-table-sync`, and `build-tool` and `run_all.py` are no tool's either."""
_KEBAB_BEFORE: Final = (
    rf"(?:(?:{_PART}-){{1,6}}{_VERB}|(?:create|delete|describe|fetch|find|get|list|query|search|send|update)"
    rf"(?:-(?!based|driven|engine|free|like|only|time|together){_PART}){{1,6}})"
)
"""Before the word "tool" an adjective may have a hyphen as well: a read-only tool."""
_OWN: Final = (
    r"(?:Bash|BashOutput|Edit|Glob|Grep|KillShell|LS|MultiEdit|NotebookEdit|Read|Skill|Task|TodoWrite|ToolSearch"
    r"|WebFetch|WebSearch|Write)"
)
ACTION_NAME: Final = re.compile(
    rf"(?<![\w\-./])(?:{_ANY_VERB}[_\-]{_PART}|(?:{_PART}[_\-]){{1,6}}{_ANY_VERB}(?![\w\-])|{_ANY_VERB}[A-Z][A-Za-z0-9]{{1,40}})"
)
"""A name that says what is done: `create_event`, and not `max_connections`."""
_MARK: Final = r"[`\"'「“]?"
_END_MARK: Final = r"[`\"'」”]?"

CERTAIN_NAME: Final = re.compile(
    r"(?<![A-Za-z0-9_])mcp__[A-Za-z0-9]"
    r"|\bMCP\s?(?:[\w\-]{1,40}\s)?(?:tools?\b|工具)"
    rf"|(?<![\w\-]){_OWN}{_END_MARK}\s?(?:tool\b|工具)|(?:\bthe tool|工具)\s?{_MARK}{_OWN}(?![\w\-])"
    r"|(?<![\w:\-])[A-Za-z]\w{0,40}::(?!first-|file-selector|view-)[a-z]\w{0,30}-[\w\-]{1,60}"
)
"""Only an agent's tool is called so: no class has a member with a hyphen: `ata::article-list-query` is a server's."""

_LIBRARY: Final = r"(?:std|core|alloc|boost|tokio|serde|crate|self|super|absl|folly|fmt|detail)"
LIKELY_NAME: Final = re.compile(
    rf"(?i:\btools?|\bfunction calls?|工具|函数调用)(?:\s?(?i:calls?|names?|调用|名称?))?\s?:?\s?(?:{_MARK}{COMPOUND}|[`\"「“][\w\-]{{1,60}}[`\"」”])"
    r"|[`\"「“][\w\-]{1,60}[`\"」”]\s?(?:tool\b|工具)"
    rf"|(?<![\w\-./])(?:{SNAKE}|{CAMEL}|{_KEBAB_BEFORE}){_END_MARK}\s?\(?(?:这个|这一)?(?:tool\b|工具)"
    rf"|(?<![\w:\-])(?!{_LIBRARY}::)[a-z][a-z0-9]{{1,30}}::(?:{_ANY_VERB}_[a-z0-9_]{{1,60}}|[a-z0-9_]{{1,60}}_{_ANY_VERB})(?![\w:])"
    r"|(?i:\b(?:the|this|that) tool (?:only |also )?(?:expects|takes|accepts|wants|needs|requires)\b)"
    r"|(?:^[\s\-*•>]{0,12}|[,;]|[该此本这]个?)工具(?=的|只?(?:需|要|期望|接受|收))"
)
"""Most likely an agent's tool, and maybe a program or a function: it takes more words about a call."""
