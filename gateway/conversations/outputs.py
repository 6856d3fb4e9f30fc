"""The whole outputs of tool calls, as files: masked, for this user alone, gone with their
conversation.

Turns hand them over and go on; one task masks and writes them, because that takes a second or two
for a megabyte. What waits when the server is killed is lost, and then the call has its clipped
output alone.
"""

import logging
import re
import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from gateway.atomic import write_atomically_blocking
from gateway.ids import ConversationId, TurnId

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
Clean: TypeAlias = Callable[[str], str]

MAX_TURN_CHARS: Final = 10_000_000
"""Of all outputs of a turn; later ones are not kept."""
_MAX_WAITING_CHARS: Final = 20_000_000
"""Of all turns; what comes while so much waits is not kept."""
_LAST_S: Final = 3.0
"""When the task is stopped, what waits gets so long."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MARK: Final = "\n… {count} characters left out here …"
_UNCOUNTED: Final = "\n… the rest is left out here …"


@dataclass(frozen=True, slots=True)
class CallId:
    """A call, and where it was made."""

    conversation_id: ConversationId
    turn_id: TurnId
    index: int


class OutputFiles:
    """Keeps whole outputs below a directory; `run` must be running."""

    def __init__(self, directory: Path, clean: Clean, *, is_shared: bool = False) -> None:
        """Take the directory and what makes a text safe to store, called in a worker thread.

        `is_shared` if other servers write to the directory.
        """
        self._directory = directory
        self._clean = clean
        self._is_shared = is_shared
        self._thread = anyio.CapacityLimiter(1)
        self._waiting: dict[CallId, tuple[str, Clean]] = {}
        self._waiting_chars = 0
        self._turn_chars: dict[TurnId, int] = defaultdict(int)
        self._work = anyio.Event()
        self._done = anyio.Event()
        self._writing = anyio.Lock(fast_acquire=True)
        """Held from taking an output to its file, so that none comes back to a deleted
        conversation.
        """

    def put(self, call: CallId, text: str, chars: int | None, clean: Clean | None = None) -> None:
        """Keep an output; `chars` is its true length, None if nobody knows it. Never blocks.

        `clean` makes it safe to store, in place of what is usual. An output that is over the bounds
        is not kept.
        """
        if chars is None:
            text += _UNCOUNTED
        elif chars > len(text):
            text += _MARK.format(count=chars - len(text))
        size = self._turn_chars[call.turn_id] + len(text)
        if size > MAX_TURN_CHARS or self._waiting_chars + len(text) > _MAX_WAITING_CHARS:
            _log.warning("output_not_kept", extra={"turn_id": call.turn_id, "index": call.index})
            return
        self._turn_chars[call.turn_id] = size
        self._waiting_chars += len(text)
        self._waiting[call] = text, clean or self._clean
        self._work.set()

    def end_turn(self, turn_id: TurnId) -> None:
        """Note that a turn has ended: nothing more of it comes."""
        self._turn_chars.pop(turn_id, None)

    async def run(self) -> None:
        """Write what was put, in order, until cancelled."""
        try:
            while True:
                await self._work.wait()
                self._work = anyio.Event()
                await self._write_waiting()
        finally:
            with anyio.move_on_after(_LAST_S, shield=True):
                await self._write_waiting()

    async def _write_waiting(self) -> None:
        while self._waiting:
            async with self._writing:
                call = next(iter(self._waiting), None)
                if call is None:
                    continue
                waiting = self._waiting[call]
                try:
                    await self._in_thread(self._write_blocking, call, *waiting)
                except OSError:
                    _log.exception("output_not_kept", extra={"turn_id": call.turn_id})
                finally:
                    self._drop(call)

    def _drop(self, call: CallId) -> None:
        waiting = self._waiting.pop(call, None)
        if waiting is not None:
            self._waiting_chars -= len(waiting[0])
        self._done.set()
        self._done = anyio.Event()

    async def read(self, call: CallId) -> str | None:
        """Return a kept output, once it is written; None if it was not kept."""
        while call in self._waiting:
            await self._done.wait()
        return await self._in_thread(self._read_blocking, call)

    async def forget(self, conversation_id: ConversationId) -> None:
        """Delete all outputs of a conversation; afterwards no more of it are written."""
        async with self._writing:
            for call in [call for call in self._waiting if call.conversation_id == conversation_id]:
                self._drop(call)
            await self._in_thread(self._forget_blocking, conversation_id)

    async def sweep(
        self, missing: Callable[[Sequence[ConversationId]], Awaitable[Sequence[ConversationId]]]
    ) -> None:
        """Delete the outputs of conversations that are gone and, unless other servers may be
        writing them, files that a crash left unfinished; else those go with their conversation.

        `missing` returns which of some conversations are gone.
        """
        try:
            found = await self._in_thread(self._begin_blocking)
        except OSError:
            _log.exception("outputs_not_swept")
            return
        for conversation_id in await missing(found):
            await self.forget(conversation_id)

    async def _in_thread(self, work: Callable[..., _T], *arguments: object) -> _T:
        return await anyio.to_thread.run_sync(work, *arguments, limiter=self._thread)

    def _begin_blocking(self) -> list[ConversationId]:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in () if self._is_shared else self._directory.glob("*/.*.part"):
            part.unlink(missing_ok=True)
        return [ConversationId(path.name) for path in self._directory.iterdir()]

    def _write_blocking(self, call: CallId, text: str, clean: Clean) -> None:
        path = self._path(call)
        if path is not None:
            cleaned = clean(text)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically_blocking(path, cleaned.encode("utf-8", "replace"), mode=0o600)

    def _read_blocking(self, call: CallId) -> str | None:
        path = self._path(call)
        try:
            return None if path is None else path.read_bytes().decode()
        except OSError:
            return None

    def _forget_blocking(self, conversation_id: ConversationId) -> None:
        folder = self._directory / conversation_id
        if folder.parent == self._directory and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)

    def _path(self, call: CallId) -> Path | None:
        """Return the file of a call; None if an id is not one, so it must not become part of a
        path.
        """
        if not _ID.fullmatch(call.conversation_id) or not _ID.fullmatch(call.turn_id):
            return None
        return self._directory / call.conversation_id / f"{call.turn_id}-{call.index}.txt"
