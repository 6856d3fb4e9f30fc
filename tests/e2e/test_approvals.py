"""A person's yes through the real agent process: what is shown, what it leaves behind, and when it comes late."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.live_server import LiveServer, bash, running_server, script, started_server

pytestmark = pytest.mark.e2e

KNOWN = "vault-4711-known-value"
HIDING = "-----BEGIN PRIVATE KEY-----\nrm -rf ~\n-----END PRIVATE KEY-----\npassword=curl evil\n"


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose runs wait for a person half a second."""
    directory = tmp_path_factory.mktemp("hurried")
    with started_server(directory, approvals="on", approval_timeout_s=1) as server:
        yield server


async def test_a_standing_yes_leaves_its_trace_in_every_place(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    for name in ("one", "two"):
        await anyio.Path(asking_server.workspace / f"{name}.txt").write_text("x")
    message = script(bash("rm one.txt"), bash("rm two.txt"), {"text": "Gone."})
    async with (
        asking_server.client() as client,
        client.stream(message, asking_conversation) as events,
    ):
        asked = (await events.until("approval.requested")).data
        path = f"/approvals/{asked['approval_id']}"
        await client.post(path, decision="allow", remember="conversation", reach="folder")
        result = (await events.until("turn.completed")).data
        rules = await client.get(f"/conversations/{asking_conversation}/permissions")
        await client.http.delete(
            f"/conversations/{asking_conversation}/permissions/{asked['approval_id']}"
        )
    person, rule = (use["allowed_by"] for use in result["tools"])
    assert (person["by"], person["rule"]) == ("person", None)
    assert (rule["by"], rule["approval_id"], rule["at"]) == (
        "rule",
        asked["approval_id"],
        person["at"],
    )
    assert {"approval_id": asked["approval_id"], **rule["rule"]} == rules["permissions"][0]
    resolved = [event.data for event in events.seen if event.type == "approval.resolved"]
    assert [(data["index"], data["allowed_by"]) for data in resolved] == [(1, person), (2, rule)]
    finished = [event.data for event in events.seen if event.type == "tool.finished"]
    assert [data["allowed_by"] for data in finished] == [person, rule]
    lines = [line for line in asking_server.journal(result) if line["kind"] == "permission"]
    assert [line["allowed_by"] for line in lines] == [person, rule]


async def test_the_person_sees_all_that_would_run_before_it_has_run(tmp_path: Path) -> None:
    middle = "".join(f"line {n} of the middle\n" for n in range(1500))
    content = f"{HIDING}{middle}key {KNOWN} end\n"
    write = {"tool": "Write", "input": {"file_path": "long.txt", "content": content}}
    environ = {"MY_VAULT_TOKEN": KNOWN}
    async with (
        running_server(tmp_path, approvals="on", environ=environ) as server,
        server.client() as client,
        client.stream(script(write, {"text": "Ok."})) as events,
    ):
        asked = (await events.until("approval.requested")).data
        (listed,) = (await client.get("/approvals"))["approvals"]
        call = f"/conversations/{asked['conversation_id']}/turns/{asked['turn_id']}/tools/1"
        shown: dict[str, Any] = await client.get(call)
        file = await client.http.get(f"/approvals/{asked['approval_id']}/input")
        await client.post(f"/approvals/{asked['approval_id']}", decision="deny")
        await events.rest()
    expected = content.replace(KNOWN, f"[{len(KNOWN)} characters hidden]")
    assert listed["input"]["content"] == expected
    assert listed["hidden"] == [{"path": "content", "chars": len(KNOWN)}]
    assert (listed["truncated"], listed["input_chars"] > len(middle)) == (False, True)
    assert (shown["input"], shown["hidden"]) == (listed["input"], listed["hidden"])
    assert file.headers["content-type"] == "text/plain; charset=utf-8"
    assert file.headers["content-disposition"].startswith("attachment")
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.json() == listed["input"]
    assert asked["truncated"] is True, "events are masked by the look of a text as well"
    assert "curl evil" not in str(asked["input"])


async def test_a_turn_that_waited_too_long_is_no_denial_and_a_late_yes_runs_the_call(
    hurried: LiveServer,
) -> None:
    late = anyio.Path(hurried.workspace / "late.txt")
    await late.write_text("x")
    async with hurried.client() as client:
        told = await client.ask(script(bash("rm late.txt"), {"text": "Gone."}))
        assert (told["outcome"], told["cause"]) == ("interrupted", "waiting")
        assert [use["status"] for use in told["tools"]] == ["interrupted"]
        (listed,) = (await client.get("/approvals"))["approvals"]
        assert (listed["state"], await late.exists()) == ("waiting", True)
        path = f"/approvals/{listed['approval_id']}"
        answer = await client.post(path, decision="allow")
        await client.post(path, status=409, decision="deny")
        run = (await client.replay(told["conversation_id"], answer["turn_id"]))[-1].data
        assert (run["outcome"], await late.exists()) == ("answered", False)
        await client.post("/approvals/apr_unknown", status=404, decision="allow")
