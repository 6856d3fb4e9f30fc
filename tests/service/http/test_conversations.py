"""Conversations over HTTP: listed, shown, changed, left, forked, deleted, stopped."""

from pathlib import Path

import anyio
import httpx

from tests.service.http.reading import reading
from tests.service.http.stage import DEAF, HOLD, Json, assert_error, staged


async def say(client: httpx.AsyncClient, message: str, conversation_id: str | None = None) -> Json:
    body: Json = {"message": message, "conversation_id": conversation_id}
    answer: Json = (await client.post("/chat", json=body)).json()
    return answer


async def test_a_conversation_is_shown_with_everything_that_a_page_needs(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        done = await say(client, "What is\nin here?")
        shown = (await client.get(f"/conversations/{done['conversation_id']}")).json()
        at = {key: shown.pop(key) for key in ("created_at", "last_activity_at")}
        assert all(value.endswith("Z") for value in at.values())
        assert shown == {
            "id": done["conversation_id"],
            "title": "What is in here?",
            "state": "idle",
            "hot": False,
            "turns": 1,
            "model": None,
            "memory": {"enabled": True, "case_memory": False},
            "app_code": None,
            "environment": None,
            "queue": [],
        }


async def test_conversations_are_listed_newest_first_page_by_page(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        made = [(await say(client, f"number {n}"))["conversation_id"] for n in range(5)]
        found, cursor = [], ""
        while True:
            answer = await client.get("/conversations", params={"limit": 2, "cursor": cursor})
            page = answer.json()
            found += [conversation["id"] for conversation in page["conversations"]]
            assert "queue" not in page["conversations"][0]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert found == made[::-1]
        some = (await client.get("/conversations", params={"q": "NUMBER 3"})).json()
        assert [conversation["id"] for conversation in some["conversations"]] == [made[3]]


async def test_a_new_conversation_needs_no_body(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        answer = await client.post("/new-conversation")
        assert answer.status_code == 201
        assert set(answer.json()) == {"conversation_id"}
        titled = await client.post("/new-conversation", json={"title": "Plans"})
        shown = await client.get(f"/conversations/{titled.json()['conversation_id']}")
        assert shown.json()["title"] == "Plans"


async def test_a_conversation_is_changed_as_far_as_the_change_goes(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        one = f"/conversations/{(await say(client, 'a'))['conversation_id']}"
        body = {
            "title": "T",
            "model": "m",
            "memory": {"enabled": False, "case_memory": True},
            "app_code": "shop",
            "environment": "prod",
        }
        first = await client.patch(one, json=body)
        assert first.status_code == 200
        assert {key: first.json()[key] for key in body} == body
        second = (await client.patch(one, json={"memory": {"enabled": True}})).json()
        assert second["memory"] == {"enabled": True, "case_memory": True}
        assert second["title"] == "T"
        assert (await client.get(one)).json() == second
        assert (await client.patch(one, json={"model": None})).json()["model"] is None
        trimmed = (await client.patch(one, json={"app_code": " 商店 "})).json()
        assert (trimmed["app_code"], trimmed["environment"]) == ("商店", "prod")
        bare = (await client.patch(one, json={"app_code": "", "environment": None})).json()
        assert (bare["app_code"], bare["environment"], bare["title"]) == (None, None, "T")


UNFIT: list[tuple[Json, str]] = [
    ({"title": None}, "title"),
    ({"title": " "}, "title"),
    ({"title": "x" * 201}, "title"),
    ({"model": 7}, "model"),
    ({"model": "--dangerously-skip-permissions"}, "model"),
    ({"model": "opus\nsonnet"}, "model"),
    ({"memory": True}, "memory"),
    ({"memory": {"enabled": None}}, "memory.enabled"),
    ({"memory": {"enabled": "yes"}}, "memory.enabled"),
    ({"memory": {"cases": True}}, "memory.cases"),
    ({"state": "idle"}, "state"),
    ({"app_code": "two\nlines"}, "app_code"),
    ({"environment": "password=hunter2-hunter2"}, "environment"),
]


async def test_a_change_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        one = f"/conversations/{(await say(client, 'a'))['conversation_id']}"
        before = (await client.get(one)).json()
        for body, field in UNFIT:
            error = assert_error(await client.patch(one, json=body), 422, "invalid_request")
            assert error["details"] == {"field": field}
        assert (await client.get(one)).json() == before


async def test_messages_are_read_backwards_and_shown_forwards(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        conversation_id = (await say(client, "0"))["conversation_id"]
        for n in range(1, 4):
            await say(client, str(n), conversation_id)
        path = f"/conversations/{conversation_id}/messages"
        whole = (await client.get(path)).json()
        assert [message["role"] for message in whole["messages"]] == ["user", "assistant"] * 4
        assert [message["text"] for message in whole["messages"][::2]] == ["0", "1", "2", "3"]
        assert whole["messages"][1]["result"]["reply"] == "You said: 0"
        assert whole["messages"][1]["state"] == "completed"
        assert whole["next_before"] is None
        for limit in (1, 2, 3, 5, 7, 8, 200):
            found: list[Json] = []
            before = ""
            while True:
                answer = await client.get(path, params={"limit": limit, "before": before})
                page = answer.json()
                assert 0 < len(page["messages"]) <= limit
                found = page["messages"] + found
                before = page["next_before"]
                if before is None:
                    break
            assert found == whole["messages"]


async def test_the_queue_is_shown_and_a_message_can_be_taken_back(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        conversation_id = (await client.post("/new-conversation")).json()["conversation_id"]
        body = {"message": HOLD, "conversation_id": conversation_id}
        one = f"/conversations/{conversation_id}"
        async with reading(client, "POST", "/chat/stream", json=body) as running:
            began = await running.until("text.delta")
            async with reading(
                client, "POST", "/chat/stream", json={**body, "message": "later"}
            ) as waiting:
                await waiting.until("turn.queued")
                shown = (await client.get(one)).json()
                assert (shown["state"], shown["turns"]) == ("running", 2)
                queued = shown["queue"][0]
                assert (queued["message"], queued["position"]) == ("later", 1)
                messages = (await client.get(f"{one}/messages")).json()["messages"]
                assert [message.get("state") for message in messages] == [
                    None,
                    "running",
                    None,
                    "queued",
                ]
                path = f"{one}/queue/{queued['turn_id']}"
                assert (await client.delete(path)).status_code == 204
                assert_error(await client.delete(path), 404, "not_found")
                told = await waiting.rest()
                assert told[-1].data["outcome"] == "interrupted"
            running_id = began[0].data["turn_id"]
            refused = await client.delete(f"{one}/queue/{running_id}")
            assert_error(refused, 404, "not_found")
            stage.release()
            await running.rest()
        assert (await client.get(one)).json()["turns"] == 1


async def test_interrupting_can_wait_for_the_result(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        conversation_id = (await client.post("/new-conversation")).json()["conversation_id"]
        one = f"/conversations/{conversation_id}"
        assert_error(await client.post(f"{one}/interrupt"), 409, "nothing_running")
        body = {"message": DEAF, "conversation_id": conversation_id}
        answers: list[httpx.Response] = []

        async def interrupt() -> None:
            answers.append(await client.post(f"{one}/interrupt?wait=1"))

        async with reading(client, "POST", "/chat/stream", json=body) as stream:
            await stream.until("text.delta")
            assert_error(await client.post(f"{one}/interrupt?wait=2"), 422, "invalid_request")
            response = await client.post(f"{one}/interrupt")
            assert (response.status_code, response.json()) == (202, {"state": "stopping"})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(interrupt)
                assert (await client.get(one)).json()["state"] == "stopping"
                assert not answers
                stage.release()
            assert (answers[0].status_code, answers[0].json()["outcome"]) == (200, "answered")
            assert (await stream.rest())[-1].data == answers[0].json()


async def test_a_fork_has_the_messages_up_to_its_turn(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        first = await say(client, "a")
        await say(client, "b", first["conversation_id"])
        one = f"/conversations/{first['conversation_id']}"
        answer = await client.post(f"{one}/fork", json={"turn_id": first["turn_id"]})
        assert answer.status_code == 201
        fork = answer.json()["conversation_id"]
        messages = (await client.get(f"/conversations/{fork}/messages")).json()["messages"]
        assert [message["text"] for message in messages[::2]] == ["a"]
        error = assert_error(await client.post(f"{one}/fork", json={}), 422, "invalid_request")
        assert error["details"] == {"field": "turn_id"}


async def test_a_search_does_not_mind_letter_case_in_any_script(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        wanted = (await say(client, "Über Ärger"))["conversation_id"]
        await say(client, "something else")
        for query in ("über", "ÜBER ä", "Ärger"):
            answer = await client.get("/conversations", params={"q": query})
            assert [conversation["id"] for conversation in answer.json()["conversations"]] == [
                wanted
            ]


async def test_a_deleted_conversation_is_gone(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        one = f"/conversations/{(await say(client, 'a'))['conversation_id']}"
        answer = await client.delete(one)
        assert (answer.status_code, answer.content) == (204, b"")
        for path in (one, f"{one}/messages", f"{one}/events"):
            assert_error(await client.get(path), 404, "not_found")
        assert_error(await client.delete(one), 404, "not_found")
