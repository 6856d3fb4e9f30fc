"""The command `memory`: browses, writes, exports, repairs memory, also beside a running server."""

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn, TextIO, get_args

import anyio
import anyio.to_thread

from memory.cases.case import CaseCaller
from memory.cases.results import Refusal
from memory.episodes.episode import EpisodeDraft
from memory.errors import StoreConflict, StoreUnavailable
from memory.facts.gate import MAX_FACT_CHARS, FactRefused
from memory.intents.observe import observed_fields
from memory.intents.registry import UnknownIntent, form_of
from memory.items.item import KINDS
from memory.items.scope import Scope, is_users_name
from memory.outbox.delivery import Delivery, DeliveryStatus
from memory.recall.query import DEFAULT_BUDGET_CHARS, RECALLED_KINDS, QueryPack
from memory.service.memory import Memory
from memory.service.rebuilding import rebuild, redeliver
from memory.service.transfer import NotTransferable

FAILED = 1
BAD_ARGUMENTS = 2

_MAX_INPUT_BYTES = 64 * 1024 * 1024
_LIMIT = 200
_MAX_COUNT = 100_000
_MAX_DIGITS = 18

_HELP = Path(__file__).with_name("cli_help.txt")


class _Refused(Exception):
    """The command is not possible; the text says why in one sentence. `code` is the exit code."""

    def __init__(self, message: str, code: int = BAD_ARGUMENTS) -> None:
        super().__init__(message)
        self.code = code


_TOLD = (FactRefused, StoreUnavailable, StoreConflict, NotTransferable, UnknownIntent)
"""Errors whose text is one sentence for people."""


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise _Refused(f"{message.removesuffix('.')}; `memory --help` says more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCommand:
    """The memory command and its dependencies."""

    open_memory: Callable[[], AbstractAsyncContextManager[Memory]]
    program: str = "candor"
    """The command line's name in the help, such as `candor`."""
    owner_id: str
    """The owner unless `--owner` is given."""
    read_episode: Callable[[bytes, str], EpisodeDraft]
    """Parses JSON as an episode of an owner, with the rules of the HTTP API.

    Raises `ValueError` with one sentence for people.
    """

    def run(self, args: Sequence[str], *, source: BinaryIO, out: TextIO) -> int:
        """Run one command and return the exit code: 0, 1 if it failed, 2 for bad arguments. Blocks.

        Raise `OSError` if the output cannot be written.
        """
        if not args or args[0] in {"-h", "--help", "help"}:
            out.write(_HELP.read_text(encoding="utf-8").replace("PROGRAM", self.program))
            return 0
        try:
            given = _parse(args)
            return anyio.run(self._run, given, source, out)
        except _Refused as exc:
            out.write(f"{exc}\n")
            return exc.code
        except _TOLD as exc:
            out.write(f"{exc}\n")
            return FAILED

    async def _run(self, given: argparse.Namespace, source: BinaryIO, out: TextIO) -> int:
        work = _COMMANDS[given.command]
        owner_id = given.owner or self.owner_id
        refused: Exception | None = None
        async with self.open_memory() as memory:
            try:
                await work(_Call(memory, owner_id, given, source, out, self.read_episode))
            except (_Refused, *_TOLD) as exc:  # leaves the task group as it is, not in a group
                refused = exc
        if refused is not None:
            raise refused
        return 0


@dataclass(frozen=True, slots=True)
class _Call:
    memory: Memory
    owner_id: str
    given: argparse.Namespace
    source: BinaryIO
    out: TextIO
    read_episode: Callable[[bytes, str], EpisodeDraft]

    @property
    def scope(self) -> Scope:
        return Scope(owner_id=self.owner_id)

    @property
    def text(self) -> str:
        return " ".join(self.given.words)

    @property
    def statement(self) -> str:
        """The words as a fact. Raise `_Refused` if they cannot be one."""
        if len(self.text) > MAX_FACT_CHARS or not any(map(str.isalnum, self.text)):
            raise _Refused(f"A fact has a letter or digit, at most {MAX_FACT_CHARS} characters.")
        return self.text

    def say(self, line: str) -> None:
        self.out.write(f"{line}\n")

    async def read(self) -> str:
        raw = await anyio.to_thread.run_sync(self.source.read, _MAX_INPUT_BYTES + 1)
        if len(raw) > _MAX_INPUT_BYTES:
            raise _Refused("The input is larger than 64 MiB; split it.")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise _Refused("The input is not UTF-8 text.") from None


async def _search(call: _Call) -> None:
    found = await call.memory.search.search(call.text, scope=call.scope, limit=call.given.limit)
    if call.given.json:
        for hit in found.hits:
            item = hit.item
            value = {"id": item.id, "kind": item.kind, "title": item.title, "why": hit.why}
            call.say(json.dumps({**value, "score": round(hit.score, 4)}, ensure_ascii=False))
        return
    for hit in found.hits:
        call.say(f"{hit.score:.2f}  {hit.item.id}  {hit.item.title}")
        call.say(f"      {hit.item.summary}")
        call.say(f"      {hit.item.source}; {hit.why}")
    if not found.hits:
        call.say("Nothing was found.")
    if found.degraded:
        call.say(f"Without: {', '.join(found.degraded)}.")


async def _list(call: _Call) -> None:
    kinds = tuple(kind for kind in KINDS if kind in call.given.kind) or KINDS
    page = await call.memory.pages.page(
        call.scope, kinds=kinds, words=call.text, limit=call.given.limit
    )
    for listed in page.items:
        item = listed.item
        call.say(f"{item.occurred_at:%Y-%m-%d}  {item.kind:<7}  {item.id}  {item.title}")
        call.say(f"      {item.source}; {listed.why}")
    if not page.items:
        call.say("There is nothing.")
    if page.next_cursor is not None:
        call.say("There is more; a larger --limit shows it.")


async def _show(call: _Call) -> None:
    for item_id in call.given.words:
        item = await call.memory.items.get(item_id, call.scope)
        if item is not None:
            call.say(f"{item.title}\n{item.occurred_at:%Y-%m-%d}, {item.kind}, {item.source}\n")
            call.say(f"{item.body}\n")
            continue
        caller = CaseCaller(scope=call.scope, by="person")
        hidden = await call.memory.cases.render(caller, [item_id])
        if isinstance(hidden, Refusal):
            raise _Refused(f"There is no item {item_id}.", FAILED)
        call.say(hidden.cases[0].markdown)


async def _forget(call: _Call) -> None:
    for item_id in call.given.words:
        if not await call.memory.forget(item_id, call.scope):
            raise _Refused(f"There is no item {item_id}.", FAILED)
        call.say(f"forgotten: {item_id}")


async def _add(call: _Call) -> None:
    fact = await call.memory.facts.write(call.statement, call.scope, lasting=call.given.lasting)
    call.say(f"remembered: {fact.id}  {fact.text}")


async def _correct(call: _Call) -> None:
    fact = await call.memory.facts.edit(call.given.id, call.scope, text=call.statement)
    if fact is None:
        raise _Refused(f"There is no fact {call.given.id}.", FAILED)
    call.say(f"corrected: {fact.id}  {fact.text}")


async def _profile(call: _Call) -> None:
    text = await call.memory.facts.store.profile_text(call.owner_id)
    call.say(text or "The profile is empty.")


async def _context(call: _Call) -> None:
    query = QueryPack(
        queries=(call.text,), scope=call.scope, kinds=RECALLED_KINDS, budget_chars=call.given.budget
    )
    pack = await call.memory.reader.recall(query)
    call.say(pack.text or "Nothing would be put beside this message.")


async def _write(call: _Call) -> None:
    try:
        draft = call.read_episode((await call.read()).encode(), call.owner_id)
    except ValueError as exc:
        raise _Refused(str(exc)) from None
    written = await call.memory.writer.write(draft)
    if written.status == "refused":
        told = f"It was refused: {written.reason}."
        raise _Refused(f"{told} {written.notice}" if written.notice else told, FAILED)
    call.say(f"{written.status}: {written.episode_id}")
    for clipped in written.clipped:
        call.say(f"clipped: {clipped.chars} characters of {clipped.section}")
    if written.redacted:
        call.say(f"masked: {written.redacted}")
    if written.notice:
        call.say(written.notice)


async def _fields(call: _Call) -> None:
    form_of(call.text)  # refuses an unknown key
    for name, kind, seen in await observed_fields(call.memory.chronicle, call.owner_id, call.text):
        call.say(f"{name}  {kind}  {seen}")


async def _outbox(call: _Call) -> None:
    deliveries = await call.memory.outbox.page(call.owner_id, call.given.status, limit=_LIMIT)
    for delivery in deliveries:
        call.say(_told(delivery))
    if not deliveries:
        call.say("There are no such deliveries.")


async def _retry(call: _Call) -> None:
    ids = list(call.given.words)
    if call.given.dead:
        dead = await call.memory.outbox.page(call.owner_id, "dead", limit=_LIMIT)
        ids += [delivery.id for delivery in dead]
    for item_id in ids:
        delivery = await call.memory.retry(item_id, call.owner_id)
        if delivery is None:
            raise _Refused(f"There is no delivery {item_id}.", FAILED)
        call.say(_told(delivery))
    if not ids:
        call.say("Nothing was given up.")


async def _rebuild(call: _Call) -> None:
    count = await rebuild(call.memory.database)
    call.say(f"The words of {count} items were indexed anew.")
    call.say("The server makes the vectors anew at its next start.")


async def _redeliver(call: _Call) -> None:
    name, known = call.given.backend, call.memory.deliver_to
    if name not in known:
        raise _Refused(f"There is no backend {name}; there are {', '.join(known)}.")
    count = await redeliver(call.memory.database, name, call.memory.now)
    told = "1 item is" if count == 1 else f"{count} items are"
    call.say(f"{told} delivered to {name} again by the server.")


async def _export(call: _Call) -> None:
    owner = call.given.owner
    async for line in call.memory.export([owner] if owner is not None else ()):
        call.say(line)


async def _import(call: _Call) -> None:
    lines = (await call.read()).split("\n")  # in JSON, other line ends are part of a text
    counts = await call.memory.restore(lines, call.given.owner)
    stored, there, refused = counts["stored"], counts["there"], counts["refused"]
    read, left_out = stored + there + refused, counts["never_saved"]
    call.say(f"Read {read}: {stored} stored, {there} there already, {refused} refused.")
    if left_out:
        call.say(f"Left out as never saved: {left_out} sentence{'s' if left_out > 1 else ''}.")


_COMMANDS: Mapping[str, Callable[[_Call], Awaitable[None]]] = {
    "list": _list,
    "show": _show,
    "forget": _forget,
    "add": _add,
    "correct": _correct,
    "profile": _profile,
    "search": _search,
    "context": _context,
    "write": _write,
    "fields": _fields,
    "outbox": _outbox,
    "retry": _retry,
    "rebuild": _rebuild,
    "redeliver": _redeliver,
    "export": _export,
    "import": _import,
}


def _parse(args: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="memory", add_help=False)
    parser.add_argument("--owner", type=_owner)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    for name in _COMMANDS:
        one = commands.add_parser(name, add_help=False)
        one.add_argument("--owner", type=_owner, default=argparse.SUPPRESS)
        if name == "correct":
            one.add_argument("id")
        if name in {"search", "context", "show", "forget", "fields", "add", "correct"}:
            one.add_argument("words", nargs="+")
        elif name in {"list", "retry"}:
            one.add_argument("words", nargs="*", type=_number if name == "retry" else str)
    commands.choices["list"].add_argument("--kind", type=_kinds, default=())
    commands.choices["list"].add_argument("--limit", type=_count, default=_LIMIT)
    commands.choices["add"].add_argument("--lasting", action="store_true")
    commands.choices["search"].add_argument("--limit", type=_count, default=10)
    commands.choices["search"].add_argument("--json", action="store_true")
    commands.choices["context"].add_argument("--budget", type=_count, default=DEFAULT_BUDGET_CHARS)
    commands.choices["outbox"].add_argument("--status", choices=get_args(DeliveryStatus))
    commands.choices["redeliver"].add_argument("backend", metavar="BACKEND")
    commands.choices["retry"].add_argument("--dead", action="store_true")
    return parser.parse_args(list(args))


def _owner(text: str) -> str:
    if not is_users_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no user's name")
    return text


def _kinds(text: str) -> list[str]:
    kinds = text.split(",")
    if not set(kinds) <= set(KINDS):
        raise argparse.ArgumentTypeError(f"{text!r} is not some of {', '.join(KINDS)}")
    return kinds


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MAX_COUNT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 to 100000")
    return int(text)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of the numbers that are listed")
    return int(text)


def _told(one: Delivery) -> str:
    error = f"  {one.last_error}" if one.last_error else ""
    goal = f"{one.item_id} → {one.backend}"
    return f"{one.id}  {one.status}  {one.operation} {goal}, tries {one.attempts}{error}"
