"""Events as they happen: `POST /chat/stream` and `GET /conversations/{id}/events`."""

import sqlite3
from pathlib import Path

import anyio

from gateway.http.context import HttpLimits
from tests.service.http.reading import Event, EventReader, following, reading, streaming
from tests.service.http.stage import HOLD, LIMIT_S, LONG, Json, Stage, one_client, staged


def numbers(events: list[Event]) -> list[int]:
    return [int(str(event.id).rpartition(":")[2]) for event in events]


async def until_left(stage: Stage, conversation_id: str) -> None:
    with anyio.fail_after(LIMIT_S):
        while stage.readers_of(conversation_id):
            await anyio.lowlevel.checkpoint()


async def test_a_turn_is_streamed_without_gaps_to_its_result(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        async with streaming(stage.client(), "hi") as stream:
            events = await stream.rest()
            assert stream.response.headers["cache-control"] == "no-store"
            assert stream.response.headers["x-accel-buffering"] == "no"
        assert [event.type for event in events] == ["turn.started", "text.delta", "turn.completed"]
        assert numbers(events) == [1, 2, 3]
        assert events[-1].data["reply"] == "You said: hi"
        assert {event.data["turn_id"] for event in events} == {events[-1].data["turn_id"]}
        await until_left(stage, events[-1].data["conversation_id"])


async def test_a_waiting_message_is_told_its_place_and_its_stream_goes_on(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        chat = await client.new_conversation()
        async with streaming(client, HOLD, chat) as first, anyio.create_task_group() as tasks:
            await first.until("text.delta")
            async with streaming(client, "next", chat) as second:
                queued = await second.until("turn.queued")
                assert queued[-1].data["position"] == 1
                tasks.start_soon(first.rest)
                stage.release()
                rest = await second.rest()
                assert [event.type for event in rest] == [
                    "turn.started",
                    "text.delta",
                    "turn.completed",
                ]


async def test_a_client_that_leaves_leaves_its_subscription_and_not_the_turn(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        chat = await client.new_conversation()
        async with streaming(client, HOLD, chat) as stream:
            seen = await stream.until("text.delta")
            assert stage.readers_of(chat) == 1
            assert b"candor_sse_readers 1.0" in stage.metrics.render()[0]
        await until_left(stage, chat)
        with anyio.fail_after(LIMIT_S):
            while b"candor_sse_readers 0.0" not in stage.metrics.render()[0]:
                await anyio.lowlevel.checkpoint()
        stage.release()
        async with following(client, chat, seen[-1].id) as again:
            rest = await again.until("turn.completed")
        assert numbers(seen + rest) == list(range(1, len(seen + rest) + 1))
        assert rest[-1].data["outcome"] == "answered"


async def test_a_client_that_leaves_while_it_is_sent_to_leaves_its_subscription(
    tmp_path: Path,
) -> None:
    """The server's buffers are full then, so it waits to send and not for an event."""
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        chat = await client.new_conversation()
        done = [await client.say(LONG, chat) for _ in range(5)]
        async with following(client, chat, f"{done[0]['turn_id']}:0") as stream:
            await stream.next()
        await until_left(stage, chat)


async def test_what_was_missed_comes_first_then_what_happens(tmp_path: Path) -> None:
    async with one_client(tmp_path, on_port=True) as client:
        first = await client.say("a")
        chat = first["conversation_id"]
        path = f"/conversations/{chat}/events"
        async with reading(client, "GET", path, params={"after": f"{first['turn_id']}:1"}) as one:
            caught_up = await one.until("turn.completed")
            assert numbers(caught_up) == [2, 3]
            second = await client.say("a", chat)
            live = await one.until("turn.completed")
            assert numbers(live) == [1, 2, 3]
            assert live[-1].data == second


async def test_an_event_that_never_was_is_not_found(tmp_path: Path) -> None:
    async with one_client(tmp_path, on_port=True) as client:
        done = await client.say("a")
        path, turn = f"/conversations/{done['conversation_id']}/events", done["turn_id"]
        for after in ("trn_no:1", "nonsense", f"{turn}:99", f"{turn}:x", ":"):
            response = await client.get(path, headers={"Last-Event-ID": after})
            assert response.status_code == 404
            assert response.json()["error"]["code"] == "unknown_event"
        last = {"Last-Event-ID": f"{turn}:2"}  # the header goes before the parameter
        async with reading(client, "GET", f"{path}?after={turn}:1", headers=last) as stream:
            assert numbers(await stream.until("turn.completed")) == [3]


async def test_silence_is_filled_with_comments(tmp_path: Path) -> None:
    quick = HttpLimits(keep_alive_s=0.01)
    async with one_client(tmp_path, on_port=True, limits=quick) as client:
        chat = await client.new_conversation()
        async with following(client, chat) as stream:
            events = [await stream.next() for _ in range(3)]
            assert [event and event.comment for event in events] == ["keep-alive"] * 3


async def _ended_with(stream: EventReader, code: str) -> Json:
    events = [event for event in await stream.rest() if event.comment is None]
    assert events[-1].type == "error"
    assert events[-1].id is None
    error: Json = events[-1].data["error"]
    assert set(error) == {"code", "message", "retryable", "request_id", "details"}
    assert error["code"] == code
    assert error["request_id"] == stream.response.headers["x-request-id"]
    return error


async def test_a_deleted_conversation_ends_its_streams_with_an_error(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        chat = await client.new_conversation()
        async with following(client, chat) as stream:
            with anyio.fail_after(LIMIT_S):
                while not stage.readers_of(chat):
                    await anyio.lowlevel.checkpoint()
            assert (await client.delete(f"/conversations/{chat}")).status_code == 204
            error = await _ended_with(stream, "conversation_deleted")
            assert error["retryable"] is False
        await until_left(stage, chat)


async def test_deleting_under_a_running_turn_ends_its_stream_with_the_result(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path, on_port=True) as client:
        chat = await client.new_conversation()
        async with streaming(client, HOLD, chat) as stream:
            await stream.until("text.delta")
            await client.delete(f"/conversations/{chat}")
            rest = await stream.rest()
            assert [event.type for event in rest] == ["turn.completed"]
            assert rest[0].data["outcome"] == "interrupted"


async def test_a_server_that_goes_down_tells_how_turns_ended_and_then_that_it_goes(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        chat = await client.new_conversation()
        async with streaming(client, HOLD, chat) as running, following(client, chat) as follower:
            await running.until("text.delta")
            async with streaming(client, "b", chat) as waiting:
                await waiting.until("turn.queued")
                await stage.chat.intake.shut_down(grace_s=0)
                assert (await running.rest())[-1].type == "turn.completed"
                assert "turn.completed" in [item.type for item in await follower.until("error")]
                error = await _ended_with(waiting, "shutting_down")
                assert error["retryable"] is True
                assert error["details"]["retry_after_s"] > 0


async def test_a_stream_that_begins_while_the_server_goes_down_ends_too(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        chat = await client.new_conversation()
        await stage.chat.intake.shut_down(grace_s=0)
        async with following(client, chat) as stream:
            await _ended_with(stream, "shutting_down")


async def test_a_store_that_breaks_ends_a_stream_with_an_error(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        body = {"message": "a", "idempotency_key": "once"}
        await client.post("/chat", json=body)

        def drop(writer: sqlite3.Connection) -> None:
            writer.execute("DROP TABLE events")

        await stage.database.write(drop)
        async with reading(client, "POST", "/chat/stream", json=body) as stream:
            error = await _ended_with(stream, "storage_unavailable")
            assert "events" not in error["message"]
