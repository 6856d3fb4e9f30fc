"""What the database of a cluster holds, as records of `bench.history`."""

import json

from tests.support.fault_clients import Notes
from tests.support.fault_cluster import Cluster, Rows

_TURNS = (
    "SELECT id, conversation_id, message, state, schedule FROM candor.turns"
    " WHERE conversation_id = ANY(%s) AND copy_of IS NULL ORDER BY conversation_id, seq"
)
_EVENTS = (
    "SELECT e.conversation_id, e.turn_id, e.n, e.seq, e.type,"
    " CASE WHEN e.data = '' THEN t.result ELSE e.data END, h.epoch, h.writer"
    " FROM candor.events e LEFT JOIN candor.turns t ON t.id = e.turn_id"
    " LEFT JOIN candor.history_events h"
    " ON h.conversation_id = e.conversation_id AND h.seq = e.seq"
    " WHERE e.conversation_id = ANY(%s) ORDER BY e.conversation_id, e.seq"
)
_BUSY = (
    "SELECT count(*) FROM candor.turns WHERE state IN ('queued', 'running')"
    " UNION ALL SELECT count(*) FROM candor.webhook_deliveries WHERE status = 'pending'"
)
_LAST = (
    "SELECT turn_id || ':' || n FROM candor.events WHERE conversation_id = %s"
    " ORDER BY seq DESC LIMIT 1"
)
_HOLDER = (
    "SELECT url FROM candor.leases JOIN candor.nodes"
    " ON nodes.id = leases.node_id AND nodes.incarnation = leases.incarnation"
    " WHERE conversation_id = %s"
)


def holder_of(cluster: Cluster, conversation_id: str) -> str | None:
    """Return the address of the server that has the lease of a conversation, dead or alive."""
    found = cluster.rows(_HOLDER, conversation_id)
    return str(found[0][0]) if found else None


def is_quiet(cluster: Cluster) -> bool:
    """Return whether no turn runs or waits, and every webhook's message was delivered or given up."""
    return _is_quiet(cluster.rows)


def last_event(cluster: Cluster, conversation_id: str) -> str:
    """Return the id of a conversation's last event; empty if it has none."""
    found = cluster.rows(_LAST, conversation_id)
    return str(found[0][0]) if found else ""


def note_state(notes: Notes, cluster: Cluster, *, also_busy: bool = False) -> bool:
    """Note what is stored of the conversations that the notes name, and of schedules' runs.

    All is of one moment. Return whether it was noted: while anything runs or waits it is not,
    unless `also_busy`, because a schedule's turn may begin whenever one looks.
    """
    with cluster.one_moment() as rows:
        is_noted = also_busy or _is_quiet(rows)
        if is_noted:
            _note(notes, rows)
    return is_noted


def _is_quiet(rows: Rows) -> bool:
    return not any(count for (count,) in rows(_BUSY))


def _note(notes: Notes, rows: Rows) -> None:
    named = {row["conversation_id"] for row in notes.rows if row.get("conversation_id")}
    scheduled = rows("SELECT conversation_id FROM candor.turns WHERE schedule IS NOT NULL")
    where = sorted(named | {row[0] for row in scheduled})
    stored = "SELECT id FROM candor.conversations WHERE id = ANY(%s)"
    for (conversation_id,) in rows(stored, where):
        notes.add("conversation", conversation_id=conversation_id)
    for turn_id, conversation_id, text, state, schedule in rows(_TURNS, where):
        row = {"turn_id": turn_id, "conversation_id": conversation_id, "state": state}
        run = json.loads(schedule) if schedule else {}
        due = {"schedule_id": run.get("id"), "due_at": run.get("due_at")} if run else {}
        notes.add("turn", **row, text=text, **due)
    for place, turn_id, n, seq, kind, data, epoch, writer in rows(_EVENTS, where):
        row = {"conversation_id": place, "turn_id": turn_id, "n": n, "seq": seq, "type": kind}
        told = json.loads(data) if data else None
        notes.add("event", **row, data=told, epoch=epoch, writer=writer)
    for (message_id,) in rows(
        "SELECT id FROM candor.webhook_deliveries WHERE conversation_id = ANY(%s)",
        sorted(named),
    ):
        notes.add("webhook_message", message_id=message_id)
