"""The writer of episodes, as the server has it: whoever waits for one hears of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.episodes.episode import EpisodeDraft, Written
from memory.episodes.writer import MemoryWriter


@dataclass(slots=True)
class NotifyingWriter:
    """The writer; says what became of a draft, and that there is something to deliver."""

    writer: MemoryWriter
    on_episode: Callable[[Written], None]
    wake: Callable[[], None]

    async def write(self, draft: EpisodeDraft, *, remembers_turn: str | None = None) -> Written:
        """Take an episode; see `MemoryWriter.write`."""
        written = await self.writer.write(draft, remembers_turn=remembers_turn)
        self.on_episode(written)
        self.wake()
        return written

    async def write_all(self, drafts: Sequence[EpisodeDraft]) -> Sequence[Written]:
        """Take some hundred episodes at most; see `MemoryWriter.write_all`."""
        written = await self.writer.write_all(drafts)
        for result in written:
            self.on_episode(result)
        self.wake()
        return written
