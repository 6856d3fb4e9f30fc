"""Deliveries of what belongs to the workspace: everybody who works in it sees and retries them."""

from pathlib import Path

import anyio

from memory.clock import utc_now
from tests.service.http.stage import staged


async def test_a_notes_delivery_that_was_given_up_is_listed_and_retried(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        folder = anyio.Path(stage.settings.workspace) / "memory"
        await folder.mkdir(parents=True, exist_ok=True)
        await (folder / "tea.md").write_text("# Tea\n\ngreen\n", encoding="utf-8")
        await stage.memory.notes.scan()
        now = utc_now()
        (taken,) = await stage.memory.outbox.due("vectors", now, limit=9, until=now)
        await stage.memory.outbox.failed(taken, "It is full.", now, due_at=None)
        for user in ("ada", "bob"):
            client = stage.client(user)
            (dead,) = (await client.get("/memory/outbox?status=dead")).json()["deliveries"]
            assert (dead["item_id"], dead["last_error"]) == (taken.item_id, "It is full.")
            again = await client.post(f"/memory/outbox/{dead['id']}/retry")
            assert (again.status_code, again.json()["status"]) == (200, "pending")
            await stage.memory.outbox.failed(taken, "It is full.", now, due_at=None)
