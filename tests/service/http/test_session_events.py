"""Pages of a session's events, as clients of Managed Agents read them."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.chat.intake import Intake
from gateway.chat.parts import ConversationAccess
from gateway.conversations.sql.events import EventStore
from memory.errors import StoreUnavailable
from tests.service.http.client import Client
from tests.service.http.reading import reading, streaming
from tests.service.http.stage import HOLD, Json, staged


async def listed(client: Client, session: str, **params: Any) -> list[Json]:
    """Return what all pages of a list hold."""
    found: list[Json] = []
    while True:
        page = await client.read(f"/anthropic/v1/sessions/{session}/events", **params)
        assert len(page["data"]) <= params["limit"]
        found += page["data"]
        if page["next_page"] is None:
            return found
        params["page"] = page["next_page"]


async def queue(client: Client, session: str, *messages: str) -> list[str]:
    """Send messages behind a turn that runs; return the ids of their events."""
    events: list[Json] = []
    for message in messages:
        content = [{"type": "text", "text": message}]
        body = {"events": [{"type": "user.message", "content": content}]}
        sent = await client.post(f"/anthropic/v1/sessions/{session}/events", json=body)
        events += sent.json()["data"]
    return [event["id"] for event in events]


async def test_pages_of_any_size_hold_what_the_stream_told(tmp_path: Path) -> None:
    """Also around messages that wait for another turn: the session is not idle in between."""
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        session = await client.new_conversation()
        stream = f"/anthropic/v1/sessions/{session}/events/stream"
        async with reading(client, "GET", stream) as events:
            await client.say("hi", session)
            async with streaming(client, HOLD, session) as held:
                await held.until("text.delta")
                waiting = await queue(client, session, "one", "two", "three")
                turn = waiting[1].partition(":")[0]
                await client.delete(f"/conversations/{session}/queue/{turn}")
                whole = await listed(client, session, limit=1000)
                assert [event["id"] for event in whole[-2:]] == [waiting[0], waiting[2]]
                for limit in (1, 4):
                    assert await listed(client, session, limit=limit) == whole
                    newest_first = await listed(client, session, limit=limit, order="desc")
                    assert newest_first == whole[::-1]
                stage.release()
                await held.until("turn.completed")
            told: list[Any] = []
            while sum(event.type == "session.status_idle" for event in told) < 2:
                told += await events.until("session.status_idle")
        whole = await listed(client, session, limit=1000)
        assert whole == [event.data for event in told]
        for limit in (1, 4):
            assert await listed(client, session, limit=limit) == whole
            assert await listed(client, session, limit=limit, order="desc") == whole[::-1]
        for n, event in enumerate(told):
            if event.id is None:  # one of several that the log has as one
                continue
            seen = {"Last-Event-ID": event.id}
            async with reading(client, "GET", stream, headers=seen) as again:
                rest = whole[n + 1 :]
                assert [(await one_of(again)).data for _ in rest] == rest


async def test_a_message_that_redirects_waits_before_what_runs_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients stop reading when a session is idle, and would miss the answer."""
    accept = Intake.accept

    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        session = await client.new_conversation()
        path = f"/anthropic/v1/sessions/{session}/events"

        async def late(intake: Intake, *args: Any, **more: Any) -> Any:
            if (await client.read(f"/conversations/{session}"))["state"] == "stopping":
                await held.until("turn.completed")
            return await accept(intake, *args, **more)

        async with reading(client, "GET", f"{path}/stream") as events:
            async with streaming(client, HOLD, session) as held:
                await held.until("text.delta")
                monkeypatch.setattr(Intake, "accept", late)
                message = {"type": "user.message", "content": [{"type": "text", "text": "hi"}]}
                body = {"events": [{"type": "user.interrupt"}, message]}
                sent = (await client.post(path, json=body)).json()["data"]
            told = [event.data["id"] for event in await events.until("session.status_idle")]
            assert sent[1]["id"] in told


async def test_a_redirect_whose_answer_fails_stops_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same request again finds the message stored, and would not stop it."""
    accept, find = Intake.accept, ConversationAccess.find
    is_down = False

    async def accepted(intake: Intake, *args: Any) -> Any:
        nonlocal is_down
        taken = await accept(intake, *args)
        is_down = True
        return taken

    async def found(access: ConversationAccess, *args: Any) -> Any:
        if is_down:
            raise StoreUnavailable
        return await find(access, *args)

    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        session = await client.new_conversation()
        path = f"/anthropic/v1/sessions/{session}/events"
        async with streaming(client, HOLD, session) as held:
            await held.until("text.delta")
            monkeypatch.setattr(Intake, "accept", accepted)
            monkeypatch.setattr(ConversationAccess, "find", found)
            message = {"type": "user.message", "content": [{"type": "text", "text": "hi"}]}
            body = {"events": [{"type": "user.interrupt"}, message]}
            await client.post(path, json=body)
            is_down = False
            again = {"x-stainless-retry-count": "1"}
            assert (await client.post(path, json=body, headers=again)).status_code == 200
            stage.release()  # without effect on a turn that is stopped
            ended = (await held.until("turn.completed"))[-1]
            assert ended.data["outcome"] == "interrupted"


async def test_a_message_that_would_begin_another_conversation_is_refused(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        session = await client.new_conversation()
        told = {}
        for text in ("/clear", "／clear", "/clear the table", "/cleared"):
            content = [{"type": "text", "text": text}]
            body = {"events": [{"type": "user.message", "content": content}]}
            sent = await client.post(f"/anthropic/v1/sessions/{session}/events", json=body)
            told[text] = sent.status_code
        assert told == {"/clear": 400, "／clear": 400, "/clear the table": 200, "/cleared": 200}


async def one_of(stream: Any) -> Any:
    event = await stream.next()
    assert event is not None
    return event


async def test_a_page_reads_its_own_turns_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    after = EventStore.after

    async def counted(store: EventStore, *place: Any, **more: Any) -> Any:
        nonlocal read
        found = await after(store, *place, **more)
        read += len(found)
        return found

    monkeypatch.setattr(EventStore, "after", counted)
    async with staged(tmp_path) as stage:
        client = stage.client()
        session = await client.new_conversation()
        for number in range(40):
            await client.say(f"word {number}", session)
        path = f"/anthropic/v1/sessions/{session}/events"
        with anyio.fail_after(30):
            for order in ("asc", "desc"):
                page: Json = {}
                for _ in range(10):
                    read = 0
                    more = {"page": page["next_page"]} if page else {}
                    page = await client.read(path, limit=4, order=order, **more)
                    assert len(page["data"]) == 4
                    assert 0 < read <= 48, "of 120"
            newest = await client.read(path, limit=12, order="desc")
            since = newest["data"][-1]["processed_at"]
            for order in ("asc", "desc"):
                read = 0
                more = {"created_at[gte]": since, "order": order}
                page = await client.read(path, limit=100, **more)
                assert sorted(event["id"] for event in page["data"]) == sorted(
                    event["id"] for event in newest["data"]
                )
                assert 0 < read <= 96, "of 120"


async def test_a_time_that_lies_before_a_fork_finds_its_own_events(tmp_path: Path) -> None:
    """The turns that it has from before the fork are copies without events."""
    async with staged(tmp_path) as stage:
        client = stage.client()
        first = await client.say("one")
        path = f"/conversations/{first['conversation_id']}/fork"
        forked = (await client.post(path, json={"turn_id": first["turn_id"]})).json()
        fork = forked["conversation_id"]
        await client.say("two", fork)
        for order in ("asc", "desc"):
            whole = await listed(client, fork, limit=100, order=order)
            assert len(whole) == 4
            early = {"created_at[gt]": "2020-01-01T00:00:00Z", "order": order}
            assert await listed(client, fork, limit=100, **early) == whole
