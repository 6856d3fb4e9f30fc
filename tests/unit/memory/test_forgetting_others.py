"""Forgetting reaches what is one's own, whatever an episode says of where it is from."""

from datetime import UTC, datetime

from memory.episodes.episode import EpisodeDraft, Sections
from memory.episodes.writer import MemoryWriter
from memory.forgetting import Forgetting
from memory.scope import Scope
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.database import Database
from tests.support.episodes import opened_on, recorder_on, turn_intents

AT = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
BOB = Scope(owner_id="bob")


async def test_naming_somebody_elses_intents_as_sources_does_not_forget_them(
    database: Database,
) -> None:
    intents = turn_intents("trn_1", command="ls")
    await recorder_on(database).record_intents(intents)
    draft = EpisodeDraft(
        episode_type="howto",
        title="mine",
        scope=BOB,
        sections=Sections(recipe="Turn the key to the left, then push the door."),
        source_refs=tuple(one.id for one in intents),
    )
    writer = MemoryWriter(opened_on(database).store, deliver_to=[], now=lambda: AT)
    written = await writer.write(draft)
    forgetting = Forgetting(
        database, backends=[], recording=recorder_on(database).recording, now=lambda: AT
    )
    assert written.episode_id is not None
    assert await forgetting.forget(written.episode_id, BOB)
    page = await SqliteChronicle(database).page("ann", limit=9)
    assert len(page.records) == len(intents)
    assert not any(one.forgotten for one in page.records)
