"""Unlisted programs with approvals, through the real agent process."""

from typing import Any

import anyio
import pytest

from gateway.engine.sandbox.protection import WallKind
from tests.support.live_server import LiveServer, bash, script

pytestmark = pytest.mark.e2e

TOUCHES: dict[WallKind, str] = {
    "landlock": "workspace",
    "bubblewrap": "machine",
    "off": "machine",
}


async def lay(server: LiveServer, *names: str) -> None:
    for name in names:
        await anyio.Path(server.workspace / name).write_text("b\na\n")


async def test_a_yes_runs_an_unlisted_program_and_covers_it_with_other_files(
    asking_server: LiveServer,
) -> None:
    await lay(asking_server, "one.txt", "two.txt")
    calls = (bash("sort -r one.txt"), bash("sort -r two.txt"), bash("sort -r /etc/passwd"))
    async with asking_server.client() as client:
        wall: WallKind = (await client.get("/readyz"))["parts"]["sandbox"]["kind"]
        async with client.stream(script(*calls, {"text": "Sorted."})) as events:
            asked = (await events.until("approval.requested")).data
            path = f"/approvals/{asked['approval_id']}"
            await client.post(path, decision="allow", remember="conversation", reach="files")
            result = (await events.until("turn.completed")).data
        output = await client.get(
            f"/conversations/{result['conversation_id']}/turns/{result['turn_id']}/tools/2"
        )
    assert asked["input"]["command"] == "sort -r one.txt"
    assert (asked["unlisted"], asked["touches"]) == (True, TOUCHES[wall])
    assert asked["why"].startswith("The command sort is not allowed.")
    is_confined = asked["touches"] == "workspace"
    reaches = ["exact", "files", *(["rule"] if is_confined else [])]
    assert [permit["reach"] for permit in asked["permits"]] == reaches
    assert asked["permits"][1]["options"] == ["-r"]
    assert [use["status"] for use in result["tools"]] == ["ok", "ok", "denied"]
    by = [use["allowed_by"] for use in result["tools"]]
    assert [one and one["by"] for one in by] == ["person", "rule", None]
    assert by[1]["rule"]["reach"] == "files"
    assert output["output"] == "b\na"
    lines = [line for line in asking_server.journal(result) if line["kind"] == "permission"]
    assert [(line["verdict"], line["allowed_by"]) for line in lines] == [
        ("allow", by[0]),
        ("allow", by[1]),
        ("deny", None),
    ]
    assert len([event for event in events.seen if event.type == "approval.requested"]) == 1


async def test_a_no_with_a_word_reaches_the_agent_and_the_program_does_not_run(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    await lay(asking_server, "kept.txt")
    message = script(bash("shred kept.txt"), {"echo": "messages"})
    async with (
        asking_server.client() as client,
        client.stream(message, asking_conversation) as events,
    ):
        asked = (await events.until("approval.requested")).data
        path = f"/approvals/{asked['approval_id']}"
        await client.post(path, decision="deny", message="Keep that file.")
        result: dict[str, Any] = (await events.until("turn.completed")).data
    assert [use["status"] for use in result["tools"]] == ["denied"]
    assert "Keep that file." in result["reply"]
    assert await anyio.Path(asking_server.workspace / "kept.txt").read_text() == "b\na\n"


async def test_a_server_without_approvals_denies_what_is_unknown(
    server: LiveServer, conversation: str
) -> None:
    await lay(server, "one.txt")
    async with server.client() as client:
        result = await client.ask(script(bash("sort one.txt"), {"text": "Done."}), conversation)
    assert [use["status"] for use in result["tools"]] == ["denied"]


async def test_the_agent_is_told_that_a_person_may_be_asked(
    server: LiveServer, conversation: str, asking_server: LiveServer, asking_conversation: str
) -> None:
    for one, own, is_told in (
        (server, conversation, False),
        (asking_server, asking_conversation, True),
    ):
        async with one.client() as client:
            told = await client.ask(script({"echo": "system"}), own)
        assert ("the person is asked first" in told["reply"]) is is_told
