"""Journal lines as a person reads them in a terminal.

What a model or a tool wrote is shown with its control characters spelt out, so that no log can move
the cursor, change the terminal's title or hide a line.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.journal.reading import LogLine
from gateway.jsonsafe import json_text
from gateway.observability.terminal import spell_out

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_COLOURS: Mapping[str, str] = {
    "request": "\x1b[1;36m",
    "context": "\x1b[35m",
    "message": "\x1b[37m",
    "permission": "\x1b[33m",
    "tool": "\x1b[34m",
    "error": "\x1b[1;31m",
    "response": "\x1b[1;32m",
    "damaged": "\x1b[1;31m",
}
_ENVELOPE = frozenset({"ts", "seq", "conversation_id", "turn_id", "kind"})
_TOLD_WHOLE: Mapping[str, str] = {"request": "message", "response": "reply"}
"""The field of a kind that is shown with all its lines."""
_FIRST: Mapping[str, tuple[str, ...]] = {
    "permission": ("tool", "name", "verdict", "rule", "reason"),
    "tool": ("name", "status", "summary", "error", "duration_ms"),
    "error": ("code", "message", "reason"),
    "response": ("outcome", "stop_reason", "duration_ms", "model", "cost_usd"),
}
_MAX_SUMMARY_CHARS = 300
_NOTHING = (None, "")


def cut(text: str, most: int) -> str:
    """Shorten to `most` characters, the last one then an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def first_words(text: str, most: int) -> str:
    """Give the beginning of a text on one line."""
    return cut(spell_out(" ".join(text[: most * 4].split())), most)


class LinePrinter:
    """Turns lines into text; coloured or not."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours

    def paint(self, text: str, kind: str) -> str:
        """Give the text in a kind's colour."""
        colour = _COLOURS.get(kind, _DIM)
        return f"{colour}{text}{_RESET}" if self._colours else text

    def show(self, line: LogLine) -> Iterator[str]:
        """Give the rows that one line becomes."""
        if line.fields is None:
            shown = cut(spell_out(line.raw.decode("utf-8", "backslashreplace")), _MAX_SUMMARY_CHARS)
            yield f"{'':12}  {self.paint('damaged   ', 'damaged')}  line {line.number}: {shown}"
            return
        kind = str(line.fields.get("kind"))
        moment = spell_out(str(line.fields.get("ts", "")))[11:23]
        summary = cut(spell_out(_summarise(kind, line.fields)), _MAX_SUMMARY_CHARS)
        yield f"{moment:12}  {self.paint(f'{spell_out(kind):10}', kind)}  {summary}".rstrip()
        told = line.fields.get(_TOLD_WHOLE.get(kind, ""))
        if isinstance(told, str):
            yield from (f"{'':26}{spell_out(row)}" for row in told.split("\n"))


def is_piece(line: LogLine) -> bool:
    """Say whether a line holds a piece of an answer that a later line holds whole."""
    message = (line.fields or {}).get("message")
    return isinstance(message, dict) and message.get("type") == "StreamEvent"


def _summarise(kind: str, fields: Mapping[str, Any]) -> str:
    if kind == "message":
        return _summarise_message(fields.get("message"))
    named = _FIRST.get(kind, ())
    first = [fields[name] for name in named if fields.get(name) not in _NOTHING]
    if kind in _TOLD_WHOLE:
        return "  ".join(map(_say, first))
    rest = [f"{key}={_say(one)}" for key, one in fields.items() if key not in {*named, *_ENVELOPE}]
    return "  ".join([*map(_say, first), *rest])


def _summarise_message(message: Any) -> str:
    if not isinstance(message, dict):
        return _say(message)
    words = [message.get("type"), message.get("subtype"), message.get("error")]
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content or message.get("result")]
    said = [_summarise_block(one) for one in blocks]
    return "  ".join([*(_say(one) for one in words if one not in _NOTHING), *filter(None, said)])


def _summarise_block(block: Any) -> str:
    match block:
        case {"type": "ToolUseBlock", "name": name, "input": given}:
            return f"{_say(name)} {_say(given)}"
        case {"type": "ToolResultBlock", "content": content, "is_error": failed}:
            return f"{'failed' if failed else 'returned'}: {_say(content)}"
        case {"text": text} | {"thinking": text}:
            return _say(text)
        case None:
            return ""
        case _:
            return _say(block)


def _say(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
