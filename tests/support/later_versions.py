"""Migrations of versions that are not there yet, for servers of two versions on one database."""

from collections.abc import Callable, Mapping

from gateway.conversations.migrations import postgres as conversations
from memory.stores.postgres import migrations as memory

TAKING_AWAY = "contract"
"""The version whose migration renames a table; all others only add."""


def _conversations(name: str) -> str:
    if name == TAKING_AWAY:
        return "-- contract\nALTER TABLE candor.client_objects RENAME TO things;"
    tables = ("conversations", "turns", "events", "leases", "nodes", "approvals", "duties")
    added = [_column(f"candor.{table}", name) for table in (*tables, "webhook_deliveries")]
    return "\n".join(
        [
            "-- expand",
            *added,
            f"CREATE TABLE candor.version_{name} (turn_id TEXT PRIMARY KEY, state TEXT NOT NULL);",
            f"CREATE INDEX version_{name}_states ON candor.turns (state, version_{name});",
            f"CREATE FUNCTION candor.version_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN",
            f"INSERT INTO candor.version_{name} VALUES (new.id, new.state) ON CONFLICT (turn_id)",
            "DO UPDATE SET state = excluded.state; RETURN new; END $$;",
            f"CREATE TRIGGER version_{name} AFTER INSERT OR UPDATE ON candor.turns",
            f"FOR EACH ROW EXECUTE FUNCTION candor.version_{name}();",
        ]
    )


def _memory(name: str) -> str:
    if name == TAKING_AWAY:
        return "SELECT 1"
    return "-- expand\n" + "\n".join(
        _column(f"candor_memory.{table}", name) for table in ("intents", "items", "outbox")
    )


def _column(table: str, name: str) -> str:
    return f"ALTER TABLE {table} ADD COLUMN version_{name} TEXT NOT NULL DEFAULT '{name}';"


STEPS: Mapping[str, Callable[[str], str]] = {
    conversations.__name__: _conversations,
    memory.__name__: _memory,
}
"""By the package of the migrations that they follow: returns the next one of a version."""
