"""Run the gateway below HTTP with one failing file operation, and restart it on what is left.

`LD_PRELOAD=failing_disk.so python disk_faults_program.py DIRECTORY`. Prints the numbers of
operations as two lines of JSON: of a first start, and of one on the data of the first. Then reads
the points as JSON, a list of `[kind, error, nth, period, fresh]`. For each point one process works
on a disk that fails there, and a second one starts on the same files and looks at them; each prints
a line of JSON.
"""
# ruff: noqa: T201, BLE001
# a script talks by printing, and whatever comes out of the gateway is a finding

import ctypes
import errno
import json
import logging
import os
import shutil
import sqlite3
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gateway.assemble import open_services
from gateway.errors import GatewayError, StartError
from gateway.ids import LOCAL_USER, TurnId
from gateway.model_access import ModelAccess
from gateway.serve import prepare_blocking
from memory.episodes.episode import EpisodeDraft, Sections
from memory.errors import StoreUnavailable
from memory.items.item import KINDS
from memory.items.scope import Scope
from tests.support.scripted_engine import ScriptedEngine
from tests.support.services import RunningServices, script, settings_below

KINDS_OF_OPERATION = ("open", "write", "sync", "rename")
SAID_S = 30.0
"""A turn that says nothing for so long hangs."""
LASTING_S = 1.5
"""So long a process works on with a disk that stays broken, before it is killed."""
DRAFT = EpisodeDraft(
    episode_type="howto",
    title="rotate the certificate",
    scope=Scope(owner_id=LOCAL_USER),
    sections=Sections(recipe="Restart the importer after rotating the certificate."),
)
WRITES = script(
    {"tool": "Write", "input": {"file_path": "made.txt", "content": "made"}},
    {"text": "I made it. 完成"},
)
MESSAGES = (WRITES, script({"text": "And again."}), script({"text": "Last."}))


class Disk:
    """The preloaded library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.failing_disk_hit.restype = ctypes.c_char_p
        self._library.failing_disk_seen.restype = ctypes.c_long
        self._library.failing_disk_failed.restype = ctypes.c_long

    def arm(self, root: Path, kind: str, error: str, nth: int, period: int) -> None:
        self._library.failing_disk_arm(
            f"{root}/".encode(),
            KINDS_OF_OPERATION.index(kind),
            ctypes.c_long(nth),
            ctypes.c_long(period),
            getattr(errno, error),
        )

    def failed(self) -> int:
        return int(self._library.failing_disk_failed())

    def hit(self) -> str:
        return str(self._library.failing_disk_hit().decode())

    def seen(self) -> dict[str, int]:
        kinds = enumerate(KINDS_OF_OPERATION)
        return {kind: int(self._library.failing_disk_seen(number)) for number, kind in kinds}


class Notes:
    """What a process has seen, in a file: it may be killed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, what: str, **fields: Any) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, **fields}, ensure_ascii=False) + "\n")

    def read(self, what: str) -> list[dict[str, Any]]:
        if not self._file.exists():
            return []
        rows = map(json.loads, self._file.read_text("utf-8").splitlines())
        return [row for row in rows if row["what"] == what]


@asynccontextmanager
async def serving(root: Path) -> AsyncIterator[RunningServices]:
    """Start as the server does, with the scripted engine in place of the agents."""
    settings = settings_below(root, interrupt_grace_s=0.1)
    await anyio.to_thread.run_sync(prepare_blocking, settings)

    def make(_: TaskGroup, _transcripts: object = None) -> ScriptedEngine:
        return ScriptedEngine(settings.workspace)

    async with open_services(settings, make, ModelAccess(demo=True, model="scripted")) as services:
        yield RunningServices.of(services)


async def work(root: Path, notes: Notes, disk: Disk) -> None:
    """Start, have three turns in a conversation, write an episode, read, and stop."""
    async with serving(root) as services:
        notes.add("serving", seen=disk.seen())
        conversation_id = None
        for message in MESSAGES:
            conversation_id = await turn(services, notes, message, conversation_id)
        if services.memory is not None:
            await tried(notes, "episode", services.memory.writer.write(DRAFT))
        page = services.chat.conversations.page(LOCAL_USER, limit=9, cursor=None, query=None)
        await tried(notes, "page", page)
        notes.add("ready", parts=await parts_of(services), hit=disk.hit())


async def turn(
    services: RunningServices, notes: Notes, message: str, conversation_id: str | None
) -> str | None:
    try:
        accepted = await services.send(message, conversation_id)
        notes.add("accepted", turn_id=accepted.turn_id, conversation_id=accepted.conversation_id)
        with anyio.fail_after(SAID_S):
            result = await services.chat.reader.result(LOCAL_USER, accepted.turn_id)
        notes.add("result", turn_id=accepted.turn_id, result=result)
    except (GatewayError, StoreUnavailable) as exc:
        notes.add("refused", error=str(exc))
        return conversation_id
    return accepted.conversation_id


async def tried(notes: Notes, what: str, doing: Awaitable[object]) -> None:
    try:
        await doing
        notes.add(what)
    except (GatewayError, StoreUnavailable) as exc:
        notes.add("refused", error=str(exc))


async def parts_of(services: RunningServices) -> dict[str, str | None]:
    """Return what `/readyz` finds wrong with each part."""
    found: dict[str, str | None] = {}
    for name, ping in services.pings.items():
        answer = await ping()
        if answer is None or isinstance(answer, str):
            found[name] = answer
        else:
            state = "ok" if name == "workspaces" else answer["state"]  # that part has a mode alone
            found[name] = answer.get("detail") if state != "ok" else None
    return found


async def look(root: Path, notes: Notes, problems: list[str]) -> None:
    """Start on what is left, and compare it with what was said."""
    said = {row["turn_id"]: row["result"] for row in notes.read("result")}
    async with serving(root) as services:
        for row in notes.read("accepted"):
            problems += await look_at_turn(services, row, said.get(row["turn_id"]))
        if services.memory is not None:
            await services.memory.episode_worker.drain()
            items = await services.memory.items.newest(DRAFT.scope, kinds=KINDS, limit=99)
            if notes.read("episode") and not any(item.title == DRAFT.title for item in items):
                problems.append("an episode that was taken is gone")
        accepted = await services.send(script({"text": "Well again."}))
        with anyio.fail_after(SAID_S):
            result = await services.chat.reader.result(LOCAL_USER, accepted.turn_id)
        if result["reply"] != "Well again." or result["notices"]:
            problems.append(f"the next turn is not as always: {result}")
        for part, trouble in (await parts_of(services)).items():
            if trouble is not None:
                problems.append(f"{part} is not ready after the restart: {trouble}")
    for file in (root / "data").glob("*.sqlite3"):
        with closing(sqlite3.connect(file)) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            problems.append(f"{file.name}: {found}")


async def look_at_turn(
    services: RunningServices, row: dict[str, Any], said: dict[str, Any] | None
) -> list[str]:
    """Find what is wrong with a turn that was accepted: it has one result, and that is true."""
    with anyio.fail_after(SAID_S):
        result = await services.chat.reader.result(LOCAL_USER, row["turn_id"])
    events = await services.log._events.after(  # noqa: SLF001
        row["conversation_id"], 0, limit=9999, turn_id=TurnId(row["turn_id"])
    )
    problems = []
    if said is not None and said != result:
        problems.append(f"another result than was told: {said} | {result}")
    if [event.n for event in events] != list(range(1, len(events) + 1)):
        problems.append(f"events with gaps: {[event.n for event in events]}")
    ends = [event for event in events if event.type == "turn.completed"]
    if len(ends) != 1 or events[-1] is not ends[0]:
        problems.append(f"not one end: {[event.type for event in events]}")
    made = services.settings.workspace / "made.txt"
    for tool in result["tools"]:
        is_made = made.exists() and made.read_text("utf-8") == "made"
        if tool["name"] == "Write" and tool["status"] == "ok" and not is_made:
            problems.append("a file that was reported as written is not there")
    codes = {notice["code"] for notice in result["notices"]}
    if not codes & {"journal_lost", "journal_late"}:
        problems += look_at_journal(services.settings.log_dir / result["log_file"])
    return problems


def look_at_journal(file: Path) -> list[str]:
    if not file.exists():
        return [f"no journal, and nobody said so: {file.name}"]
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    if [entry["kind"] for entry in lines].count("response") != 1:
        return [f"a journal without one response: {[entry['kind'] for entry in lines]}"]
    return []


def in_child(doing: Callable[[], Awaitable[None]], *, killed_by: Disk | None = None) -> str:
    """Run it in a process of its own; return how that ended, in words that are empty when it went well."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, _run(doing, killed_by).encode()[-6000:])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        text = told.read().decode(errors="replace")
    os.waitpid(child, 0)
    return text


def _run(doing: Callable[[], Awaitable[None]], killed_by: Disk | None) -> str:
    async def bounded() -> None:
        async with anyio.create_task_group() as tasks:
            if killed_by is not None:
                tasks.start_soon(_kill, killed_by)
            await doing()
            tasks.cancel_scope.cancel()

    try:
        anyio.run(bounded)
    except BaseException as exc:
        return "" if _is_refusal(exc) else traceback.format_exc()
    return ""


async def _kill(disk: Disk) -> None:
    while not disk.failed():  # noqa: ASYNC110  nothing tells
        await anyio.sleep(0.05)
    await anyio.sleep(LASTING_S)
    os._exit(0)


def _is_refusal(exc: BaseException) -> bool:
    """Return whether a start was refused in a sentence for the person at the terminal."""
    if isinstance(exc, BaseExceptionGroup):
        return all(map(_is_refusal, exc.exceptions))
    return isinstance(exc, StartError | StoreUnavailable)


def run_point(root: Path, before: Path, disk: Disk, point: Sequence[Any]) -> dict[str, Any]:
    kind, error, nth, period, fresh = point
    root.mkdir(parents=True)
    if not fresh:
        shutil.copytree(before, root, dirs_exist_ok=True)
    notes, problems = Notes(root.with_suffix(".notes")), list[str]()

    async def failing() -> None:
        disk.arm(root, kind, error, nth, period)
        try:
            await work(root, notes, disk)
        finally:
            notes.add("end", seen=disk.seen(), hit=disk.hit(), failed=disk.failed())

    broke = in_child(failing, killed_by=disk if period == 1 else None)
    if broke:
        problems.append(f"the server broke: {broke}")
    if period != 1:
        problems += problems_of_service(notes)
    found = root.with_suffix(".found")
    broke = in_child(partial(_look_and_tell, root, notes, found))
    if broke or not found.exists():
        problems.append(f"the restart broke: {broke or 'it was refused'}")
    else:
        problems += json.loads(found.read_text("utf-8"))
    served, ended = notes.read("serving"), notes.read("end")
    return {
        "point": list(point),
        "hit": ended[0]["hit"].removeprefix(str(root)) if ended else None,
        "failed": ended[0]["failed"] if ended else None,
        "seen": ended[0]["seen"] if ended else None,
        "served": served[0]["seen"] if served else None,
        "refused": [row["error"] for row in notes.read("refused")],
        "problems": problems,
    }


async def _look_and_tell(root: Path, notes: Notes, found: Path) -> None:
    problems: list[str] = []
    await look(root, notes, problems)
    found.write_text(json.dumps(problems), "utf-8")


def problems_of_service(notes: Notes) -> list[str]:
    """Find where a server neither served nor said why not, although the disk works again at once."""
    if not notes.read("serving"):
        return []
    refused = [row["error"] for row in notes.read("refused")]
    failed = sum(row["failed"] for row in notes.read("end"))
    if len(refused) > failed:
        return [f"{failed} failures, and more refusals: {refused}"]
    outcomes = [row["result"]["outcome"] for row in notes.read("result")]
    if any(outcome not in {"answered", "answered_with_failures"} for outcome in outcomes):
        return [f"a turn did not go well: {outcomes}"]
    return []


def main(directory: Path) -> None:
    logging.disable(logging.CRITICAL)
    disk = Disk()
    before = directory / "before"

    def run(root: Path, point: Sequence[Any]) -> None:
        found = run_point(root, before, disk, point)
        print(json.dumps(found, ensure_ascii=False), flush=True)

    run(before, ["open", "EIO", 0, 0, True])
    run(directory / "later", ["open", "EIO", 0, 0, False])
    for number, point in enumerate(json.load(sys.stdin)):
        root = directory / str(number)
        run(root, point)
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
