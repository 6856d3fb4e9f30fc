"""Render journal lines for a person at a terminal.

Control characters in what a model or a tool wrote are spelt out, so that no log can move the cursor,
change the terminal's title or hide a line.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from gateway.journal.reader import LogLine
from gateway.jsonsafe import json_text
from gateway.observability.terminal import spell_out

_DIM = "2"
_COLOURS: Mapping[str, str] = {
    "request": "1;36",
    "context": "35",
    "message": "37",
    "permission": "33",
    "tool": "34",
    "error": "1;31",
    "response": "1;32",
    "damaged": "1;31",
}
_ENVELOPE = ("ts", "seq", "conversation_id", "turn_id", "kind")
_SHOWN_WHOLE: Mapping[str, str] = {"request": "message", "response": "reply"}
"""The field of a kind that is shown with all its lines."""
_FIRST: Mapping[str, tuple[str, ...]] = {
    "permission": ("tool", "name", "verdict", "rule", "reason"),
    "tool": ("name", "status", "summary", "error", "duration_ms"),
    "error": ("code", "message", "reason"),
    "response": ("outcome", "stop_reason", "duration_ms", "model", "cost_usd"),
}
_MAX_SUMMARY_CHARS = 300


def first_words(text: str, max_chars: int) -> str:
    """Return the beginning of a text on one line."""
    return _cut(spell_out(" ".join(text[: max_chars * 4].split())), max_chars)


class LinePrinter:
    """Turns lines into text, coloured or not."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours

    def paint(self, text: str, kind: str) -> str:
        """Return the text in a kind's colour."""
        return f"\x1b[{_COLOURS.get(kind, _DIM)}m{text}\x1b[0m" if self._colours else text

    def show_all(self, lines: Iterable[LogLine], *, count_pieces: bool = True) -> Iterator[str]:
        """Yield the rows of some lines; pieces of an answer in a row become one row, or none."""
        pieces = 0
        for line in chain(lines, [None]):
            if line is not None and _is_piece(line):
                pieces += count_pieces
                continue
            if pieces:
                yield f"{'':12}  {self.paint(f'{pieces} pieces of an answer', '')}"
            pieces = 0
            if line is not None:
                yield from self._show(line)

    def _show(self, line: LogLine) -> Iterator[str]:
        if line.fields is None:
            shown = _cut(
                spell_out(line.raw.decode("utf-8", "backslashreplace")), _MAX_SUMMARY_CHARS
            )
            yield f"{'':12}  {self.paint('damaged   ', 'damaged')}  line {line.number}: {shown}"
            return
        kind = str(line.fields.get("kind"))
        moment = spell_out(str(line.fields.get("ts", "")))[11:23]
        summary = _cut(spell_out(_summarise(kind, line.fields)), _MAX_SUMMARY_CHARS)
        yield f"{moment:12}  {self.paint(f'{spell_out(kind):10}', kind)}  {summary}".rstrip()
        whole = line.fields.get(_SHOWN_WHOLE.get(kind, ""))
        if isinstance(whole, str):
            yield from (f"{'':26}{spell_out(row)}" for row in whole.split("\n"))
        notices = line.fields.get("notices")
        for notice in notices if isinstance(notices, list) else []:
            shown = _join(notice.values()) if isinstance(notice, dict) else _text(notice)
            yield f"{'':14}{self.paint('notice    ', 'error')}  {spell_out(shown)}"


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _is_piece(line: LogLine) -> bool:
    """Return whether a line holds a piece of an answer that a later line holds whole."""
    message = (line.fields or {}).get("message")
    return isinstance(message, dict) and message.get("type") == "StreamEvent"


def _summarise(kind: str, fields: Mapping[str, Any]) -> str:
    message = fields.get("message")
    if kind == "message" and isinstance(message, dict):
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content or message.get("result")]
        first = [message.get(name) for name in ("type", "subtype", "error")]
        return _join(first + [_summarise_block(block) for block in blocks])
    named = _FIRST.get(kind, ())
    first = [fields.get(name) for name in named]
    if kind in _SHOWN_WHOLE:
        return _join(first)
    rest = fields.keys() - {*named, *_ENVELOPE}
    return _join(first + [f"{key}={_text(fields[key])}" for key in fields if key in rest])


def _summarise_block(block: Any) -> str:
    match block:
        case {"type": "ToolUseBlock", "name": name, "input": given}:
            return f"{_text(name)} {_text(given)}"
        case {"type": "ToolResultBlock", "content": content, "is_error": failed}:
            return f"{'failed' if failed else 'returned'}: {_text(content)}"
        case {"text": text} | {"thinking": text}:
            return _text(text)
        case _:
            return _text(block)


def _join(values: Iterable[Any]) -> str:
    return "  ".join(_text(value) for value in values if value not in (None, ""))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json_text(value)
