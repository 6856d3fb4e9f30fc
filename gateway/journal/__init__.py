"""The JSONL log of each turn."""

from gateway.journal.line import JournalKind
from gateway.journal.reader import LogEntry, LogLine, LogPage, list_logs, read_log
from gateway.journal.writer import Journal, TurnJournal

__all__ = [
    "Journal",
    "JournalKind",
    "LogEntry",
    "LogLine",
    "LogPage",
    "TurnJournal",
    "list_logs",
    "read_log",
]
