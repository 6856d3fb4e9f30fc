"""The `logs` command: list, show and follow the journal, also while a server writes it."""

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TextIO

from gateway.journal.files import LOG_FILE, TURN_ID, open_for_reading, parse_line
from gateway.journal.reader import (
    MAX_LIMIT,
    LogLine,
    find_log,
    list_days,
    list_files,
    list_logs,
    read_head,
    read_log,
)
from gateway.jsonsafe import json_text
from gateway.observability.effects import describe_effects
from gateway.observability.masking import spell_out

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
        if kind == "response":
            did = spell_out(describe_effects(line.fields))
            yield f"{'':14}{self.paint('did       ', kind)}  {did}"
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
    """Return the fields that say something; those of a message in its place."""
    left_out = {*_ENVELOPE, _SHOWN_WHOLE.get(kind), "notices"}
    shown = {name: value for name, value in fields.items() if name not in left_out}
    if isinstance(shown.get("message"), dict):
        shown |= shown.pop("message")
    return _join(f"{name}={_text(value)}" for name, value in shown.items() if _text(value))


def _join(values: Iterable[Any]) -> str:
    return "  ".join(map(_text, values))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json_text(value)


DEFAULT_LIMIT = 20
POLL_S = 0.3
BAD_ARGUMENTS = 2
_FOLLOWED_DAYS = 3
"""A turn that began before midnight still writes into its own day's directory."""
_HELP = Path(__file__).with_name("cli_help.txt")


class _ArgumentsError(Exception):
    """The arguments are wrong; the text says why in one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _ArgumentsError(message)


def run_logs_command(
    args: list[str],
    *,
    log_dir: Path,
    out: TextIO,
    program: str = "candor",
    err: TextIO | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Run one `logs` command; return the exit code: 0, 1 for no such log, 2 for bad arguments.

    `follow` ends with `KeyboardInterrupt`, which counts as success. Blocks.
    """
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")
    if {"-h", "--help"} & set(args):
        out.write(_HELP.read_text(encoding="utf-8").replace("PROGRAM", program))
        return 0
    err = err or sys.stderr
    try:
        given = _parse(args)
    except _ArgumentsError as exc:
        err.write(f"logs: {spell_out(str(exc))}\n")
        return BAD_ARGUMENTS
    if given.command == "list":
        return _list(given.conversation, given.limit, log_dir, out)
    if given.command == "follow":
        return _follow(given.conversation, log_dir, out, wait)
    log_file = given.log if "/" in given.log else find_log(log_dir, given.log)
    lines = read_log(log_dir, log_file) if log_file is not None else None
    if lines is None:
        err.write(f"logs: there is no log of {given.log}\n")
        return 1
    if given.json:
        out.writelines(line.raw.decode("utf-8", "backslashreplace") + "\n" for line in lines)
        return 0
    printer = LinePrinter(colours=out.isatty())
    out.write(printer.paint(str(log_file), "") + "\n")
    out.writelines(row + "\n" for row in printer.show_all(lines))
    return 0


def _parse(args: list[str]) -> argparse.Namespace:
    parser = _Parser(prog="logs", add_help=False)
    commands = parser.add_subparsers(dest="command", metavar="list | show | follow")
    listing = commands.add_parser("list", add_help=False)
    listing.add_argument("--conversation", metavar="ID")
    listing.add_argument("--limit", type=_limit, default=DEFAULT_LIMIT, metavar="N")
    show = commands.add_parser("show", add_help=False)
    show.add_argument("log", type=_log_name, metavar="turn_id|log_file")
    show.add_argument("--json", action="store_true")
    follow = commands.add_parser("follow", add_help=False)
    follow.add_argument("--conversation", metavar="ID")
    is_bare = not args or args[0].startswith("-")
    return parser.parse_args(["list", *args] if is_bare else args)


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_LIMIT:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {MAX_LIMIT} is needed")
    return int(text)


def _log_name(text: str) -> str:
    if TURN_ID.fullmatch(text) is None and LOG_FILE.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(
            "a turn id (trn_…) or a log file (date/trn_….jsonl) is needed"
        )
    return text


def _list(conversation_id: str | None, limit: int, log_dir: Path, out: TextIO) -> int:
    entries = list_logs(log_dir, limit=limit, conversation_id=conversation_id).entries
    if not entries:
        what = "yet" if conversation_id is None else "of that conversation"
        out.write(f"No logs {what}.\n")
        return 0
    out.write(_row("time (UTC)", "outcome", "conversation", "turn", "message"))
    for entry in entries:
        first = next(read_log(log_dir, entry.log_file) or iter(()), None)
        message = ((first and first.fields) or {}).get("message", "")
        out.write(
            _row(
                f"{entry.started_at:%Y-%m-%d %H:%M:%S}",
                first_words(entry.outcome or "-", 22),
                entry.conversation_id or "(damaged)",
                entry.turn_id,
                first_words(message if isinstance(message, str) else "", 48),
            )
        )
    return 0


def _row(moment: str, outcome: str, conversation_id: str, turn_id: str, message: str) -> str:
    row = f"{moment:19}  {outcome:22}  {conversation_id:30}  {turn_id:30}  {message}"
    return row.rstrip() + "\n"


def _follow(
    conversation_id: str | None, log_dir: Path, out: TextIO, wait: Callable[[float], None]
) -> int:
    follower = _Follower(log_dir, conversation_id)
    printer = LinePrinter(colours=out.isatty())
    shown = ""
    try:
        while True:
            wait(POLL_S)
            for log_file, lines in follower.read_new():
                rows = list(printer.show_all(lines, count_pieces=False))
                if rows and log_file != shown:
                    out.write(printer.paint(log_file, "") + "\n")
                    shown = log_file
                out.writelines(row + "\n" for row in rows)
            out.flush()
    except KeyboardInterrupt:
        return 0


class _Follower:
    """Reads what is added to any log, new files and new days included."""

    def __init__(self, directory: Path, conversation_id: str | None) -> None:
        self._directory = directory
        self._conversation_id = conversation_id
        self._offsets = self._sizes()

    def read_new(self) -> Iterator[tuple[str, list[LogLine]]]:
        """Yield the whole lines that each file got since the last call."""
        sizes = self._sizes()
        self._offsets = {
            name: at for name, at in self._offsets.items() if at <= sizes.get(name, -1)
        }
        for log_file, size in sorted(sizes.items()):
            if size > self._offsets.setdefault(log_file, 0) and self._is_wanted(log_file):
                yield log_file, self._read(log_file)

    def _sizes(self) -> dict[str, int]:
        sizes = {}
        for day in list_days(self._directory)[:_FOLLOWED_DAYS]:
            for file in list_files(self._directory, day):
                with suppress(FileNotFoundError):
                    sizes[f"{day}/{file.name}"] = file.stat(follow_symlinks=False).st_size
        return sizes

    def _is_wanted(self, log_file: str) -> bool:
        wanted = self._conversation_id
        return wanted is None or read_head(self._directory / log_file)[1] == wanted

    def _read(self, log_file: str) -> list[LogLine]:
        try:
            with os.fdopen(open_for_reading(self._directory / log_file), "rb") as file:
                file.seek(self._offsets[log_file])
                whole = file.read().rpartition(b"\n")[0]
        except OSError:
            return []
        self._offsets[log_file] += len(whole) + bool(whole)
        return [
            LogLine(n, raw, parse_line(raw)) for n, raw in enumerate(whole.split(b"\n"), 1) if raw
        ]
