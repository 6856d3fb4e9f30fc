"""What must hold of a history; each check yields the violations that it finds."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.history.records import History, Record

COMPLETED = "turn.completed"
STARTED = "turn.started"
ENDED = {"completed", "withdrawn"}


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not happen, and the records that show it."""

    code: str
    message: str
    records: Sequence[Record]


Found = Iterator[Violation]


def judge(history: History) -> list[Violation]:
    """Return all violations of a history, those of one rule together."""
    return [violation for check in CHECKS for violation in check(history)]


def messages(history: History) -> Found:
    """Each acknowledged message is one turn; who asks again with its key gets the same answer."""
    turns, endings = _grouped(history.of("turn"), "text"), _endings(history)
    going = history.first_of("deletion")
    for text, sent in _grouped(history.of("message"), "text").items():
        accepted = [message for message in sent if message.is_ok]
        ids = {message["turn_id"] for message in accepted}
        stored = turns.get(text, [])
        if len(ids) > 1:
            yield Violation("answers_differ", "One key was answered with two turns.", accepted)
        if len(stored) > 1:
            yield Violation("message_ran_twice", "One message is two turns.", [*sent, *stored])
        is_going = any(message["conversation_id"] in going for message in accepted)
        if ids - {turn["turn_id"] for turn in stored} and not is_going:
            yield Violation("message_lost", "An acknowledged message is no turn.", accepted)
        for turn_id in ids:
            ending = [endings[turn_id]] if turn_id in endings else []
            answers = [record for record in accepted if record.get("answer") is not None]
            told = [record["answer"] for record in answers]
            told += [record["data"] for record in ending if record.get("data") is not None]
            if any(one != other for one, other in pairwise(told)):
                message = "What a client was answered is not what others were, or what is stored."
                yield Violation("answers_differ", message, [*answers, *ending])


def turns(history: History) -> Found:
    """Each turn ends, by one `turn.completed`, and its events are numbered from 1 without gaps."""
    events = _grouped(history.of("event"), "turn_id")
    for turn in history.of("turn"):
        own = sorted(events.pop(turn["turn_id"], []), key=lambda event: int(event["n"]))
        if turn["state"] not in ENDED:
            yield Violation("turn_unfinished", "A turn has not ended.", [turn, *own[-1:]])
        elif [event["type"] for event in own].count(COMPLETED) != 1:
            message = "A turn that has ended has not one completion."
            completions = [event for event in own if event["type"] == COMPLETED]
            yield Violation("completed_not_once", message, [turn, *completions])
        elif own[-1]["type"] != COMPLETED:
            yield Violation("event_after_completion", "A turn went on after its end.", own[-1:])
        if [event["n"] for event in own] != list(range(1, len(own) + 1)):
            yield Violation("event_gap", "The events of a turn are not 1, 2, 3 …", [turn, *own])
        for one, other in pairwise(own):
            if one["seq"] >= other["seq"]:
                message = "The order of a turn's events is not that of their conversation."
                yield Violation("events_disordered", message, [one, other])
    for own in events.values():
        yield Violation("events_without_turn", "Events belong to no stored turn.", own)


def owners(history: History) -> Found:
    """Epochs never fall, and each has one writer."""
    for events in _in_order(history).values():
        told = [event for event in events if event.get("epoch") is not None]
        for one, other in pairwise(told):
            if other["epoch"] < one["epoch"]:
                message = "An event of an older epoch stands after one of a newer."
                yield Violation("epoch_fell", message, [one, other])
            elif other["epoch"] == one["epoch"] and other.get("writer") != one.get("writer"):
                message = "Two servers wrote under one epoch."
                yield Violation("two_writers", message, [one, other])


def runs(history: History) -> Found:
    """A conversation has one running turn, and one agent at a time."""
    for events in _in_order(history).values():
        running: Record | None = None
        for event in events:
            if event["type"] == STARTED:
                if running is not None:
                    message = "A turn began before the one before it had ended."
                    yield Violation("two_running_turns", message, [running, event])
                running = event
            elif event["type"] == COMPLETED and running is not None:
                running = None if event["turn_id"] == running["turn_id"] else running
    for sample in history.of("agents"):
        if len(sample["agents"]) > 1:
            message = "A conversation had more than one agent at a time."
            yield Violation("two_agents", message, [sample])


def places(history: History) -> Found:
    """A conversation that was acknowledged is found until it is deleted, and never again then."""
    going, gone = history.first_of("deletion"), history.first_of("deleted")
    known: dict[str, Record] = {}
    for record in history.records:
        if record.kind == "message" and record.is_ok:
            known.setdefault(record["conversation_id"], record)
        elif record.kind == "lookup":
            where = record["conversation_id"]
            yield from _place(record, where, {where} if record.is_ok else set(), known, going, gone)
        elif record.kind == "list":
            shown = set(record["conversation_ids"])
            for where in known:
                yield from _place(record, where, shown, known, going, gone)
    stored = {record["conversation_id"]: record for record in history.of("conversation")}
    for where, message in known.items():
        if where not in stored and where not in going:
            text = "An acknowledged conversation is not stored."
            yield Violation("conversation_lost", text, [message])
        elif where in stored and where in gone:
            text = "A deleted conversation is stored."
            yield Violation("conversation_back", text, [gone[where], stored[where]])


def _place(
    record: Record,
    where: str,
    shown: set[str],
    known: dict[str, Record],
    going: dict[str, Record],
    gone: dict[str, Record],
) -> Found:
    """Judge one conversation in an answer of a server; a refusal with 5xx says nothing about it."""
    if record.kind == "lookup" and not record.is_ok and record["status"] != 404:
        return
    if where in shown:
        if where in gone and gone[where].line < record.line:
            message = "A deleted conversation was shown."
            yield Violation("conversation_back", message, [gone[where], record])
    elif where in known and (where not in going or going[where].line > record.line):
        message = "A server hid a conversation that was acknowledged."
        yield Violation("conversation_hidden", message, [known[where], record])


def readers(history: History) -> Found:
    """Each reader saw each event from its first on once, in order and as it is stored."""
    orders = _in_order(history)
    for own in _grouped(history.of("connection", "read", "reader_end"), "reader").values():
        began = next((record for record in own if record.kind == "connection"), None)
        seen = [record for record in own if record.kind == "read"]
        if began is None:
            continue
        stored = orders.get(began["conversation_id"])
        if stored is None:  # deleted: what is left is the order within each turn
            yield from _numbers_rise(seen)
            continue
        yield from _seen_as_stored(began, seen, stored)
        end = next((record for record in own if record.kind == "reader_end"), None)
        if end is not None and (not seen or seen[-1]["id"] != _id(stored[-1])):
            message = "A reader ended without the last events."
            yield Violation("event_missed", message, [*seen[-1:], end, stored[-1]])


def _seen_as_stored(began: Record, seen: Sequence[Record], stored: Sequence[Record]) -> Found:
    place = {_id(event): number for number, event in enumerate(stored)}
    asked = began.get("after")
    before = None
    if asked is not None:  # the number 0 stands before a turn's first event
        before = place.get(asked, place.get(asked.removesuffix(":0") + ":1", 0) - 1)
    last = began
    for record in seen:
        number = place.get(record["id"])
        if number is None:
            yield Violation("event_not_stored", "A reader saw what is not stored.", [record])
            continue
        event = stored[number]
        if before is not None and number <= before:
            message = "A reader saw an event again, or too late."
            yield Violation("event_read_twice", message, [last, record, event])
        elif before is not None and number > before + 1:
            message = "A reader missed events."
            yield Violation("event_missed", message, [last, record, *stored[before + 1 : number]])
        told, kept = record.get("data"), event.get("data")
        is_other = told is not None and kept is not None and told != kept
        if is_other or record["type"] != event["type"]:
            message = "A reader saw an event otherwise than it is stored."
            yield Violation("event_differs", message, [record, event])
        before, last = number, record


def _numbers_rise(seen: Sequence[Record]) -> Found:
    last: dict[str, Record] = {}
    for record in seen:
        turn_id, _, n = record["id"].rpartition(":")
        before = last.get(turn_id)
        if before is not None and int(n) != int(before["id"].rpartition(":")[2]) + 1:
            again = int(n) <= int(before["id"].rpartition(":")[2])
            code = "event_read_twice" if again else "event_missed"
            yield Violation(code, "A reader saw a turn's events out of order.", [before, record])
        last[turn_id] = record


def schedules(history: History) -> Found:
    """Each due time of a schedule is one turn."""
    runs_: dict[tuple[str, str], Record] = {}
    for turn in history.of("turn"):
        if turn.get("schedule_id") is None or turn.get("due_at") is None:
            continue
        due = turn["schedule_id"], turn["due_at"]
        if due in runs_:
            message = "A due time of a schedule is two turns."
            yield Violation("schedule_ran_twice", message, [runs_[due], turn])
        runs_.setdefault(due, turn)


def webhooks(history: History) -> Found:
    """Each message is accepted once by its receiver. It may come again if a fault hit meanwhile:
    its sender cannot know then whether it had been accepted.
    """
    accepted: dict[str, tuple[Record, int]] = {}
    faults = lasting = 0
    for record in history.of("delivery", "fault", "healed"):
        if record.kind == "fault":
            faults, lasting = faults + 1, lasting + 1
        elif record.kind == "healed":
            lasting -= 1
        elif record.is_ok:
            earlier, before = accepted.get(record["message_id"], (None, 0))
            if earlier is not None and faults == before:
                message = "A webhook's message was accepted twice."
                yield Violation("webhook_twice", message, [earlier, record])
            accepted[record["message_id"]] = record, faults - (lasting > 0)
    for record in history.of("webhook_message"):
        if record["message_id"] not in accepted:
            yield Violation("webhook_lost", "A webhook's message never came.", [record])


CHECKS: Sequence[Callable[[History], Found]] = (
    messages,
    turns,
    owners,
    runs,
    places,
    readers,
    schedules,
    webhooks,
)


def _grouped(records: Iterable[Record], name: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        found[record[name]].append(record)
    return dict(found)


def _in_order(history: History) -> dict[str, list[Record]]:
    """Return the events of each conversation by `seq`."""
    found = _grouped(history.of("event"), "conversation_id")
    for events in found.values():
        events.sort(key=lambda event: int(event["seq"]))
    return found


def _endings(history: History) -> dict[str, Record]:
    return {event["turn_id"]: event for event in history.of("event") if event["type"] == COMPLETED}


def _id(event: Record) -> str:
    return f"{event['turn_id']}:{event['n']}"
