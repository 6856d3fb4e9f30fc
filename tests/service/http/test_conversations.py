"""Conversations over HTTP: listed, shown, changed, left, forked, deleted, stopped."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.service.http.reading import streaming
from tests.service.http.stage import DEAF, HOLD, Json, assert_error, one_client, staged


async def test_a_conversation_is_shown_with_everything_that_a_page_needs(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        done = await client.say("What is\nin here?")
        shown = await client.read(f"/conversations/{done['conversation_id']}")
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
            "project_id": None,
            "root_id": None,
            "pinned": False,
            "queue": [],
        }


async def test_conversations_are_listed_newest_first_page_by_page(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        made = [(await client.say(f"number {n}"))["conversation_id"] for n in range(5)]
        found = await client.pages("/conversations", "conversations", limit=2)
        assert [conversation["id"] for conversation in found] == made[::-1]
        assert "queue" not in found[0]
        some = await client.read("/conversations", q="NUMBER 3")
        assert [conversation["id"] for conversation in some["conversations"]] == [made[3]]


async def test_a_new_conversation_needs_no_body(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        answer = await client.post("/new-conversation")
        assert answer.status_code == 201
        assert set(answer.json()) == {"conversation_id"}
        titled = await client.post("/new-conversation", json={"title": "Plans"})
        shown = await client.get(f"/conversations/{titled.json()['conversation_id']}")
        assert shown.json()["title"] == "Plans"


async def test_a_conversation_is_changed_as_far_as_the_change_goes(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        one = f"/conversations/{(await client.say('a'))['conversation_id']}"
        memory = {"enabled": False, "case_memory": True}
        body = {"title": "T", "model": "m", "memory": memory}
        body |= {"app_code": "shop", "environment": "prod"}
        first = await client.patch(one, json=body)
        assert first.status_code == 200
        assert {key: first.json()[key] for key in body} == body
        second = (await client.patch(one, json={"memory": {"enabled": True}})).json()
        assert second["memory"] == {"enabled": True, "case_memory": True}
        assert second["title"] == "T"
        assert await client.read(one) == second
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
    async with one_client(tmp_path) as client:
        one = f"/conversations/{(await client.say('a'))['conversation_id']}"
        before = await client.read(one)
        for body, field in UNFIT:
            error = assert_error(await client.patch(one, json=body), 422, "invalid_request")
            assert error["details"] == {"field": field}
        assert await client.read(one) == before


async def test_messages_are_read_backwards_and_shown_forwards(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        conversation_id = (await client.say("0"))["conversation_id"]
        for n in range(1, 4):
            await client.say(str(n), conversation_id)
        path = f"/conversations/{conversation_id}/messages"
        whole = await client.read(path)
        assert [message["role"] for message in whole["messages"]] == ["user", "assistant"] * 4
        assert [message["text"] for message in whole["messages"][::2]] == ["0", "1", "2", "3"]
        assert whole["messages"][1]["result"]["reply"] == "You said: 0"
        assert whole["messages"][1]["state"] == "completed"
        assert whole["next_before"] is None
        for limit in (1, 2, 3, 5, 7, 8, 200):
            assert await client.messages(conversation_id, limit) == whole["messages"]


async def test_the_queue_is_shown_and_a_message_can_be_taken_back(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        conversation_id = await client.new_conversation()
        one = f"/conversations/{conversation_id}"
        async with streaming(client, HOLD, conversation_id) as running:
            began = await running.until("text.delta")
            async with streaming(client, "later", conversation_id) as waiting:
                await waiting.until("turn.queued")
                shown = await client.read(one)
                assert (shown["state"], shown["turns"]) == ("running", 2)
                queued = shown["queue"][0]
                assert (queued["message"], queued["position"]) == ("later", 1)
                messages = (await client.read(f"{one}/messages"))["messages"]
                states = [message.get("state") for message in messages]
                assert states == [None, "running", None, "queued"]
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
        assert (await client.read(one))["turns"] == 1


async def test_interrupting_can_wait_for_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        conversation_id = await client.new_conversation()
        one = f"/conversations/{conversation_id}"
        assert_error(await client.post(f"{one}/interrupt"), 409, "nothing_running")
        answers: list[httpx.Response] = []

        interrupted = anyio.Event()
        interrupt_turn = stage.chat.intake.interrupt

        async def recorded(*of: Any, **more: Any) -> Any:
            turn_id = await interrupt_turn(*of, **more)
            interrupted.set()
            return turn_id

        async def interrupt() -> None:
            answers.append(await client.post(f"{one}/interrupt?wait=1"))

        async with streaming(client, DEAF, conversation_id) as stream:
            await stream.until("text.delta")
            assert_error(await client.post(f"{one}/interrupt?wait=2"), 422, "invalid_request")
            response = await client.post(f"{one}/interrupt")
            assert (response.status_code, response.json()) == (202, {"state": "stopping"})
            monkeypatch.setattr(stage.chat.intake, "interrupt", recorded)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(interrupt)
                await interrupted.wait()
                assert (await client.read(one))["state"] == "stopping"
                assert not answers
                stage.release()
            assert (answers[0].status_code, answers[0].json()["outcome"]) == (200, "answered")
            assert (await stream.rest())[-1].data == answers[0].json()


async def test_a_turn_that_does_not_run_is_not_interrupted_in_place_of_the_one_that_does(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        ended = await client.say("first")
        path = f"/conversations/{ended['conversation_id']}/interrupt"
        named = f"{path}?turn_id={ended['turn_id']}"
        nothing = "Nothing is running in this conversation."
        assert assert_error(await client.post(named), 409, "nothing_running")["message"] == nothing
        async with streaming(client, HOLD, ended["conversation_id"]) as stream:
            await stream.until("text.delta")
            error = assert_error(await client.post(named), 409, "nothing_running")
            assert error["message"] == "The turn in `turn_id` is not the one that is running."
            stage.release()
            assert (await stream.rest())[-1].data["outcome"] == "answered"


async def test_a_fork_has_the_messages_up_to_its_turn(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        first = await client.say("a")
        await client.say("b", first["conversation_id"])
        one = f"/conversations/{first['conversation_id']}"
        answer = await client.post(f"{one}/fork", json={"turn_id": first["turn_id"]})
        assert answer.status_code == 201
        fork = answer.json()["conversation_id"]
        messages = (await client.read(f"/conversations/{fork}/messages"))["messages"]
        assert [message["text"] for message in messages[::2]] == ["a"]
        error = assert_error(await client.post(f"{one}/fork", json={}), 422, "invalid_request")
        assert error["details"] == {"field": "turn_id"}


async def test_every_branch_of_a_line_leads_to_the_others_from_where_they_part(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path) as client:

        async def fork(turn: Json, message: str | None) -> Json:
            path = f"/conversations/{turn['conversation_id']}/fork"
            answer = await client.post(path, json={"turn_id": turn["turn_id"], "before": True})
            branch = {"conversation_id": answer.json()["conversation_id"]}
            return branch if message is None else await client.say(message, **branch)

        async def ways_from(conversation: Json) -> list[tuple[str | None, str | None, str]]:
            path = f"/conversations/{conversation['conversation_id']}"
            branches = (await client.read(f"{path}/branches"))["branches"]
            messages = (await client.read(f"{path}/messages"))["messages"]
            texts = {message["turn_id"]: message["text"] for message in messages[::2]}
            return [
                (texts.get(branch["after_turn_id"]), branch["message"], branch["conversation_id"])
                for branch in branches
            ]

        a = await client.say("a")
        b = await client.say("b", a["conversation_id"])
        edited = await fork(b, "b2")
        again = await fork(edited, "b3")
        first = await fork(a, "a2")
        bare = await fork(b, None)
        deeper = await client.say("c", again["conversation_id"])
        here = [one["conversation_id"] for one in (a, edited, again, first, bare)]
        assert await ways_from(a) == [
            ("a", "b2", here[1]),
            ("a", "b3", here[2]),
            (None, "a2", here[3]),
            ("a", None, here[4]),
        ]
        assert await ways_from(deeper) == [
            ("a", "b", here[0]),
            ("a", "b2", here[1]),
            (None, "a2", here[3]),
            ("a", None, here[4]),
        ]
        assert await ways_from(first) == [(None, "a", here[2])]
        shown = [(await client.read(f"/conversations/{one}"))["root_id"] for one in here]
        assert shown == [None, *[here[0]] * 4]
        await client.delete(f"/conversations/{here[0]}")
        assert [way[2] for way in await ways_from(edited)] == here[2:]


async def test_a_pin_holds_for_all_branches_and_pinned_conversations_are_listed_alone(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path) as client:
        kept = await client.say("kept")
        other = await client.say("other")
        path = f"/conversations/{kept['conversation_id']}"
        body = {"turn_id": kept["turn_id"]}
        fork = (await client.post(f"{path}/fork", json=body)).json()["conversation_id"]

        async def pinned() -> set[str]:
            answer = await client.read("/conversations", pinned="1")
            assert answer["next_cursor"] is None
            return {one["id"] for one in answer["conversations"]}

        assert await pinned() == set()
        assert (await client.patch(path, json={"pinned": True})).json()["pinned"] is True
        assert await pinned() == {kept["conversation_id"], fork}
        assert other["conversation_id"] not in await pinned()
        await client.patch(f"/conversations/{fork}", json={"pinned": False})
        assert await pinned() == set()


async def test_a_found_conversation_shows_what_stands_around_the_text(tmp_path: Path) -> None:
    """A letter may become two where case is ignored; the parts are cut out of the text as it is."""
    async with one_client(tmp_path) as client:
        one = await client.say("the pool was exhausted at noon")
        long = f"{'ß' * 100} the POOL {'ß' * 100}"
        later = await client.say(long, one["conversation_id"])
        await client.patch(f"/conversations/{one['conversation_id']}", json={"title": "Pools"})

        async def found(query: str) -> Json | None:
            answer = await client.read("/conversations", q=query)
            match: Json | None = answer["conversations"][0].get("match")
            return match

        assert await found("Pool") == {
            "turn_id": later["turn_id"],
            "before": f"…{'ß' * 55} the ",
            "text": "POOL",
            "after": f" {'ß' * 59}…",
        }
        noon = {"before": "the pool was exhausted at ", "text": "noon", "after": ""}
        assert await found("noon") == {"turn_id": one["turn_id"], **noon}
        assert await found("pools") is None
        assert "match" not in (await client.read("/conversations"))["conversations"][0]


async def test_a_conversation_is_exported_whole_to_read_and_to_process(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        one = await client.say("# first")
        for n in range(60):
            await client.say(f"message {n}", one["conversation_id"])
        path = f"/conversations/{one['conversation_id']}"
        await client.patch(path, json={"title": "A\n`title`"})
        answer = await client.get(f"{path}/export", params={"format": "jsonl"})
        head, *messages = map(json.loads, answer.text.splitlines())
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert (head["type"], head["title"]) == ("conversation", "A\n`title`")
        listed = (await client.read(f"{path}/messages", limit=200))["messages"]
        assert messages == [{"type": "message", **message} for message in listed]

        answer = await client.get(f"{path}/export", params={"format": "markdown"})
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        name = f'attachment; filename="{one["conversation_id"]}.md"'
        assert answer.headers["content-disposition"] == name
        assert answer.text.startswith(f"# A `title`\n\n`{one['conversation_id']}` · 61 turns · ")
        lines = answer.text.splitlines()
        texts = [line for line in lines if line.startswith(("# first", "message ", "You said"))]
        assert texts[:4] == ["# first", "You said: # first", "message 0", "You said: message 0"]
        assert len(texts) == 122
        assert lines[-1] == (
            "*answered · no tool was called; no file was changed · staged · 0 tokens in, 0 out*"
        )


async def test_an_export_of_one_turn_counts_one_turn(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        one = await client.say("hello")
        path = f"/conversations/{one['conversation_id']}/export"
        answer = await client.get(path, params={"format": "markdown"})
        assert f"`{one['conversation_id']}` · 1 turn · " in answer.text


async def test_a_deleted_conversation_is_gone(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        one = f"/conversations/{(await client.say('a'))['conversation_id']}"
        answer = await client.delete(one)
        assert (answer.status_code, answer.content) == (204, b"")
        for path in (one, f"{one}/messages", f"{one}/events"):
            assert_error(await client.get(path), 404, "not_found")
        assert_error(await client.delete(one), 404, "not_found")


async def test_the_usage_of_a_conversation_is_that_of_its_own_turns(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        one = await client.say("a")
        await client.say("b", one["conversation_id"])
        path = f"/conversations/{one['conversation_id']}"
        fork = (await client.post(f"{path}/fork", json={"turn_id": one["turn_id"]})).json()
        usage = {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 40}
        spent = json.dumps({"usage": usage, "cost_usd": 0.25})
        await stage.database.write(lambda db: db.execute("UPDATE turns SET result = ?", (spent,)))

        answer = await client.get(f"{path}/usage")
        own = await client.read(f"/conversations/{fork['conversation_id']}/usage")

        tokens = {"input_tokens": 6, "cached_tokens": 80, "output_tokens": 4}
        assert answer.json() == {"turns": 2, **tokens, "cost_usd": 0.5}
        assert (own["turns"], own["cost_usd"]) == (0, 0.0)
