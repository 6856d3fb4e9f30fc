"""The writer on the real database: what becomes memory, once, with all that goes with it."""

import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.episodes.episode import EpisodeDraft, Sections
from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.preparation import prepare
from memory.episodes.turn import read_turn
from memory.episodes.writer import MemoryWriter
from memory.intents.builders import (
    ToolOutcome,
    intent_from_llm_response,
    intent_from_turn_received,
)
from memory.intents.chronicle import SqlChronicle
from memory.items.ids import opaque_id
from memory.items.scope import Scope
from memory.stores.sqlite.database import Database
from tests.support.episodes import open_memory, opened_on, recorder_on
from tests.support.intents import HAPPENING, completed, tool_result

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN = Scope(owner_id="ann")
TOKEN = "ghp_" + "aB3" * 12


def writer_on(database: Database) -> MemoryWriter:
    return MemoryWriter(
        opened_on(database).store,
        deliver_to=["vector", "memu"],
        known_secrets=["hunter2-prod"],
        now=lambda: AT,
    )


def draft(**fields: Any) -> EpisodeDraft:
    return EpisodeDraft(
        **{
            "episode_type": "bugfix",
            "title": "支付超时",
            "scope": ANN,
            "sections": Sections(context="连接池耗尽", decisions="Pool raised to 40."),
            **fields,
        }
    )


async def test_a_draft_is_stored_with_its_item_and_deliveries(database: Database) -> None:
    opened = opened_on(database)
    sections = Sections(actions=f"used {TOKEN} on 10.0.0.1 and hunter2-prod\n" + "\x1b[1m" * 20)
    written = await writer_on(database).write(draft(sections=sections, source_refs=("int_1",)))
    assert (written.status, written.redacted, written.reason) == ("stored", 3, None)
    assert [clipped.section for clipped in written.clipped] == ["actions"]
    assert written.episode_id is not None
    item = await opened.item(written.episode_id, ANN)
    assert item is not None
    assert item.occurred_at == AT
    assert "aB3" not in repr(item)
    assert len(await opened.deliveries(written.episode_id)) == 2


async def test_a_refused_draft_leaves_only_the_turns_mark(database: Database) -> None:
    opened = opened_on(database)
    await opened.end_turn("trn_1")
    hello = draft(sections=Sections(context="你好！"))
    written = await writer_on(database).write(hello, remembers_turn="trn_1")
    assert (written.status, written.reason, written.episode_id) == ("refused", "greeting", None)
    assert list(await opened.unremembered()) == []
    rows = await database.rows("SELECT count(*) FROM episodes")
    assert rows[0][0] == 0


async def test_a_decision_that_memory_had_shown_is_not_stored_again(database: Database) -> None:
    fact = "We run the nightly export on host blue at 3 a.m., because of the lock."
    writer = writer_on(database)
    stored = await writer.write(draft(sections=Sections(decisions=fact)))
    assert stored.episode_id is not None
    later = draft(
        title="When?",
        sections=Sections(actions="- Bash `crontab -l`: ok", decisions=f"- {fact}"),
        recalled_ids=(stored.episode_id,),
    )
    again = await writer.write(later)
    assert again.episode_id is not None
    kept = await opened_on(database).store.get(again.episode_id, ANN)
    assert kept is not None
    assert kept.sections == Sections(actions="- Bash `crontab -l`: ok")


async def test_a_turn_out_of_the_chronicle_becomes_one_episode(database: Database) -> None:
    check = {"command": "pytest -q"}
    called: list[tuple[str, ToolOutcome, dict[str, str], str]] = [
        ("Bash", "error", check, f"E  ValueError: 金额为负 {TOKEN}\n1 failed in 0.2s"),
        ("Edit", "ok", {"file_path": "app/pay.py"}, "updated"),
        ("Bash", "blocked", {"command": "rm -rf /srv"}, "outside the workspace"),
        ("Bash", "ok", check, "3 passed in 0.3s"),
    ]
    opened = opened_on(database)
    calls = [
        tool_result(tool_name=name, status=status, tool_use_id=str(n), args=args, result=result)
        for n, (name, status, args, result) in enumerate(called)
    ]
    message = intent_from_turn_received(
        HAPPENING, message="修复支付", labels={"project_id": "shop"}
    )
    reply = intent_from_llm_response(HAPPENING, text="最终决定向上取整。", model="m")
    await recorder_on(database).record_intents([message, *calls, reply, completed()])
    chronicle = SqlChronicle(database)
    remembering = EpisodeWorker(
        chronicle.unremembered,
        partial(read_turn, chronicle),
        writer_on(database).write,
        opened.store.mark_remembered,
    )
    assert [await remembering.drain() for _ in range(2)] == [1, 0]
    (row,) = await database.rows("SELECT episode_id FROM episodes")
    found = await opened.store.get(row["episode_id"], Scope(owner_id="ann", project_id="shop"))
    assert found is not None
    assert (found.episode_type, found.title, found.turn_id) == ("bugfix", "修复支付", "trn_1")
    assert found.tags == ("pay.py",)
    assert found.sections.decisions == ""
    assert "rm -rf /srv` was denied: outside the workspace" in found.sections.pitfalls
    assert found.sections.verification == "- `pytest -q`: ok"
    assert "aB3" not in found.sections.text
    assert len(found.source_refs) == 7


async def test_ids_are_drawn_on_the_loop_and_texts_prepared_off_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing randomness in a worker thread, once for each draft, starves the loop for the whole batch."""
    drew, prepared = set[int](), set[int]()

    def new_id() -> str:
        drew.add(threading.get_ident())
        return opaque_id("epi")

    def watched(*args: Any, **kwargs: Any) -> Any:
        prepared.add(threading.get_ident())
        return prepare(*args, **kwargs)

    monkeypatch.setattr("memory.episodes.writer.prepare", watched)
    async with open_memory(tmp_path) as database:
        store = opened_on(database).store
        writer = MemoryWriter(store, deliver_to=[], now=lambda: AT, new_id=new_id)
        await writer.write_all([draft(), draft()])
        await writer.write(draft())
    assert drew == {threading.get_ident()}
    assert prepared
    assert threading.get_ident() not in prepared
