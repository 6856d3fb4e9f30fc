"""The query by which `deploy/kubernetes/keda.yaml` chooses the number of nodes."""

from pathlib import Path

import psycopg
import pytest
import yaml  # type: ignore[import-untyped]

from tests.support.live_server import bash, let_go, running_server, script
from tests.support.postgres import new_database_blocking
from tests.support.program import ROOT

pytestmark = pytest.mark.e2e


def counted(url: str) -> int:
    manifests = yaml.safe_load_all((ROOT / "deploy/kubernetes/keda.yaml").read_text("utf-8"))
    (query,) = (
        trigger["metadata"]["query"]
        for manifest in manifests
        for trigger in manifest["spec"].get("triggers", ())
    )
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        count: int = row[0]
        return count


async def test_conversations_are_counted_while_their_turns_run_or_wait(tmp_path: Path) -> None:
    with new_database_blocking("secret") as url:
        async with running_server(tmp_path, database_url=url) as server, server.client() as client:
            pipe = server.make_pipe("pipe")
            async with client.stream(script(bash("cat pipe"))) as events:
                await events.until("tool.started")
                where = events.seen[0].data["conversation_id"]
                async with client.stream("And then?", where) as waiting:
                    await waiting.until("turn.queued")
                    assert counted(url) == 1
                    await let_go(pipe)
                    await waiting.until("turn.completed")
            assert counted(url) == 0
