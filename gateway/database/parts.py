"""What the two databases hold, and in what they differ between SQLite and PostgreSQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from gateway.conversations import migrations as conversation_files
from gateway.conversations.migrations import postgres as conversation_schema
from gateway.lost_data import DATABASE
from gateway.storage import MEMORY_SCHEMA, SCHEMA
from memory.service.assemble import FILE
from memory.stores.sqlite import migrations as memory_files
from memory.stores.sqlite.database import migrations_of

ROWID: Final = frozenset({"cases", "turns", "webhooks"})
"""Tables that are read by `rowid`: a column in PostgreSQL, unnamed in SQLite. It is copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One database: a file, or a schema in PostgreSQL."""

    name: str
    """Also of the attached file."""
    file: str
    schema: str
    file_steps: str
    """The packages of the migrations."""
    schema_steps: str
    tables: tuple[str, ...]
    """Those that are copied, each after the tables that its rows refer to."""
    left: Mapping[str, str]
    """Those that are not, with the reason."""

    def steps(self, *, is_file: bool) -> Sequence[str]:
        """Return the migrations."""
        return _steps(self.file_steps if is_file else self.schema_steps)

    def version(self, *, is_file: bool) -> int:
        """Return the version that this program needs."""
        return len(self.steps(is_file=is_file))


@cache
def _steps(package: str) -> tuple[str, ...]:
    return tuple(migrations_of(package))


_DERIVED: Final = "a search index, made again from the texts"

PARTS: Final = (
    Part(
        name="main",
        file=DATABASE,
        schema=SCHEMA,
        file_steps=conversation_files.__name__,
        schema_steps=conversation_schema.__name__,
        tables=(
            "conversations",
            "turns",
            "idempotency",
            "events",
            "file_changes",
            "user_days",
            "record_changes",
            "approvals",
            "client_turns",
            "client_objects",
            "webhooks",
            "webhook_deliveries",
            "schedules",
            "leases",
            "work_trees",
            "agent_transcripts",
            "agent_entries",
            "agent_deletions",
            "users",
            "api_tokens",
            "audit",
            "user_quotas",
            "sessions",
            "sign_ins",
        ),
        left={
            "nodes": "servers that are running: none is",
            "workspace_locks": "of servers that are running",
            "duties": "what they do for each other",
            "approved": "the files of the data directory have the same",
            "search_texts": _DERIVED,
            "search_words": _DERIVED,
            "word_purge": "what is to be taken out of a search index",
        },
    ),
    Part(
        name="memory",
        file=FILE,
        schema=MEMORY_SCHEMA,
        file_steps=memory_files.__name__,
        schema_steps="memory.stores.postgres.migrations",
        tables=(
            "items",
            "note_files",
            "record_switch",
            "forgotten_items",
            "copied_turns",
            "intents",
            "pending_context",
            "ended_turns",
            "forgotten_on_request",
            "episodes",
            "episode_forms",
            "episode_sources",
            "facts",
            "profiles",
            "cases",
            "case_fingerprint_rules",
            "case_votes",
            "case_relations",
            "case_reports",
            "case_history",
            "case_views",
            "outbox",
            "memory_links",
        ),
        left={
            "item_words": _DERIVED,
            "item_vectors": "vectors, made again by the server",
            "vector_index": "the state of the vectors",
            "word_purge": "what is to be taken out of a search index",
        },
    ),
)
