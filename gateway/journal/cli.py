"""The command `logs`: lists, shows and follows the journal, also while a server writes it."""

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn, TextIO

from gateway.journal.files import LOG_FILE, TURN_ID
from gateway.journal.follow import Follower
from gateway.journal.reading import (
    MAX_LIMIT,
    LogEntry,
    LogLine,
    find_log,
    list_logs,
    read_log,
)
from gateway.journal.show import LinePrinter, first_words, is_piece
from gateway.observability.terminal import spell_out

DEFAULT_LIMIT = 20
POLL_S = 0.3
BAD_ARGUMENTS = 2
_MESSAGE_CHARS = 48
_LOOKED_AT_LINES = 5
_ID_CHARS = 30
_OUTCOME_CHARS = 22


class _ArgumentsError(Exception):
    """The arguments make no sense; the text says why in one sentence."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong instead of leaving the process."""

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
    """Run one `logs` command and give the exit code: 0, 1 for no such log, 2 for bad arguments.

    `follow` ends with `KeyboardInterrupt`, which counts as success. Blocks.
    """
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")
    try:
        given = _parse(args, out, program)
    except _ArgumentsError as fault:
        (err or sys.stderr).write(f"logs: {spell_out(str(fault))}\n")
        return BAD_ARGUMENTS
    if given is None:
        return 0
    try:
        return _run(given, log_dir, out, err or sys.stderr, wait)
    except BrokenPipeError:
        return 0


def _run(
    given: argparse.Namespace,
    log_dir: Path,
    out: TextIO,
    err: TextIO,
    wait: Callable[[float], None],
) -> int:
    match given.command:
        case "show":
            return _show(given.log, log_dir, out, err, as_json=given.json)
        case "follow":
            return _follow(given.conversation, log_dir, out, wait)
        case _:
            return _list(given.conversation, given.limit, log_dir, out)


def _parse(args: list[str], out: TextIO, program: str) -> argparse.Namespace | None:
    """Read the arguments; None when help was asked for and given."""
    parser = _Parser(prog="logs", description="Read the journal.", add_help=False)
    commands = parser.add_subparsers(dest="command", metavar="list | show | follow")
    listing = commands.add_parser("list", add_help=False)
    listing.add_argument("--conversation", metavar="ID")
    listing.add_argument("--limit", type=_limit, default=DEFAULT_LIMIT, metavar="N")
    show = commands.add_parser("show", add_help=False)
    show.add_argument("log", type=_log_name, metavar="turn_id|log_file")
    show.add_argument("--json", action="store_true")
    follow = commands.add_parser("follow", add_help=False)
    follow.add_argument("--conversation", metavar="ID")
    if {"-h", "--help"} & set(args):
        out.write(_HELP.replace("PROGRAM", program))
        return None
    bare = not args or args[0].startswith("-")
    return parser.parse_args(["list", *args] if bare else args)


_HELP = f"""\
PROGRAM logs                    the latest {DEFAULT_LIMIT} turns
PROGRAM logs list [--conversation ID] [--limit N]
PROGRAM logs show <turn_id|log_file> [--json]
PROGRAM logs follow [--conversation ID]
"""


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
        out.write(
            "No logs yet.\n" if conversation_id is None else "No logs of that conversation.\n"
        )
        return 0
    out.write(_row("time (UTC)", "outcome", "conversation", "turn", "message"))
    out.writelines(_describe(entry, log_dir) for entry in entries)
    return 0


def _describe(entry: LogEntry, log_dir: Path) -> str:
    return _row(
        f"{entry.started_at:%Y-%m-%d %H:%M:%S}",
        first_words(entry.outcome or "-", _OUTCOME_CHARS),
        entry.conversation_id or "(damaged)",
        entry.turn_id,
        first_words(_message_of(log_dir, entry), _MESSAGE_CHARS),
    )


def _row(moment: str, outcome: str, conversation_id: str, turn_id: str, message: str) -> str:
    ids = f"{conversation_id:{_ID_CHARS}}  {turn_id:{_ID_CHARS}}"
    return f"{moment:19}  {outcome:{_OUTCOME_CHARS}}  {ids}  {message}".rstrip() + "\n"


def _message_of(log_dir: Path, entry: LogEntry) -> str:
    for line in read_log(log_dir, entry.log_file) or ():
        fields = line.fields or {}
        if fields.get("kind") == "request":
            message = fields.get("message")
            return message if isinstance(message, str) else ""
        if line.number >= _LOOKED_AT_LINES:
            break
    return ""


def _show(log: str, log_dir: Path, out: TextIO, err: TextIO, *, as_json: bool) -> int:
    log_file = log if "/" in log else find_log(log_dir, log)
    lines = read_log(log_dir, log_file) if log_file is not None else None
    if lines is None:
        err.write(f"logs: there is no log of {log}\n")
        return 1
    if as_json:
        out.writelines(line.raw.decode("utf-8", "backslashreplace") + "\n" for line in lines)
        return 0
    printer = LinePrinter(colours=out.isatty())
    out.write(printer.paint(str(log_file), "") + "\n")
    out.writelines(row + "\n" for row in _rows(lines, printer))
    return 0


def _rows(lines: Iterator[LogLine], printer: LinePrinter) -> Iterator[str]:
    """Give the rows of a log; pieces of an answer, one after the other, become one row."""
    pieces = 0
    for line in lines:
        if is_piece(line):
            pieces += 1
            continue
        if pieces:
            yield f"{'':12}  {printer.paint(f'{pieces} pieces of an answer', '')}"
        pieces = 0
        yield from printer.show(line)
    if pieces:
        yield f"{'':12}  {printer.paint(f'{pieces} pieces of an answer', '')}"


def _follow(
    conversation_id: str | None, log_dir: Path, out: TextIO, wait: Callable[[float], None]
) -> int:
    follower = Follower(log_dir, conversation_id=conversation_id)
    printer = LinePrinter(colours=out.isatty())
    shown = ""
    try:
        while True:
            wait(POLL_S)
            for log_file, line in follower.look():
                if is_piece(line):
                    continue
                if log_file != shown:
                    out.write(printer.paint(log_file, "") + "\n")
                    shown = log_file
                out.writelines(row + "\n" for row in printer.show(line))
            out.flush()
    except KeyboardInterrupt:
        return 0
