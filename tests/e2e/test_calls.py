"""Tool calls as no API promises them, through the real agent process: none is claimed that did not happen.

A repeated id, an input that is no object, one nested too deep, a name that is no string: each call
is reported by itself, at its place, with what became of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import LiveClient, LiveServer, bash, script

pytestmark = pytest.mark.e2e

SAME = {"id": "toolu_same"}
DONE = {"text": "Done."}
DEEP = '{"command": ' + "[" * 3000 + "]" * 3000 + "}"


def write(path: str | Path, **more: Any) -> dict[str, Any]:
    return {"name": "Write", "input": {"file_path": str(path), "content": "x"}, **more}


def run(command: str, **more: Any) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command}, **more}


async def told(server: LiveServer, client: LiveClient, result: dict[str, Any]) -> list[str]:
    """Return each call's status, the same in the result, the journal and the events, in order."""
    own = [
        event.data
        for event in await client.replay(result["conversation_id"], result["turn_id"])
        if event.type == "tool.finished"
    ]
    lines = [line for line in server.journal(result) if line["kind"] == "tool"]
    expected = [(tool["index"], tool["tool_use_id"], tool["status"]) for tool in result["tools"]]
    for source in (own, lines):
        found = sorted((item["index"], item["tool_use_id"], item["status"]) for item in source)
        assert found == expected
    assert [index for index, *_ in expected] == list(range(1, len(expected) + 1))
    return [tool["status"] for tool in result["tools"]]


async def test_an_allowed_and_a_denied_write_under_one_id_are_told_apart(
    server: LiveServer, conversation: str, tmp_path: Path
) -> None:
    outside = tmp_path / "out.txt"
    async with server.client() as client:
        for number, inside in enumerate((server.workspace / "in.txt", Path("rel.txt"))):
            calls = [write(inside, **SAME), write(outside, **SAME)]
            message = script({"tools": calls[:: -1 if number else 1]}, DONE)
            result = await client.ask(message, conversation)
            assert result["outcome"] == "answered_with_failures"
            found = await told(server, client, result)
            assert found == (["denied", "ok"] if number else ["ok", "denied"])
            verdicts = {
                (line["index"], line["verdict"])
                for line in server.journal(result)
                if line["kind"] == "permission"
            }
            assert verdicts == (
                {(1, "deny"), (2, "allow")} if number else {(1, "allow"), (2, "deny")}
            )
            assert (server.workspace / inside).exists()
            assert not outside.exists()


async def test_the_same_call_under_one_id_is_a_doom_loop(
    server: LiveServer, conversation: str
) -> None:
    async with server.client() as client:
        for step, most in (
            ({"tools": [run("ls", **SAME)] * 12}, 12),
            ({"repeat": run("ls", **SAME), "times": 12}, 5),
        ):
            result = await client.ask(script(step, DONE), conversation)
            assert (result["outcome"], result["stop_reason"]) == ("stopped", "doom_loop")
            found = await told(server, client, result)
            assert found.count("ok") <= 4
            assert 5 <= len(found) <= most


BROKEN: list[dict[str, Any]] = [
    *({"input": [1, 2]}, {"input": "ls"}),
    *({"raw_input": '{"command": '}, {"raw_input": DEEP}),
    *({"name": ["Bash"]}, {"name": None}, {"name": ""}, {"id": None}),
]


async def test_a_call_that_is_none_fails_and_the_turn_and_its_other_calls_go_on(
    server: LiveServer, conversation: str
) -> None:
    async with server.client() as client:
        for number, broken in enumerate(BROKEN):
            target = server.workspace / f"beside-{number}.txt"
            calls = [run("ls", **broken), write(target)]
            result = await client.ask(script({"tools": calls}, DONE), conversation)
            assert await told(server, client, result) == ["failed", "ok"], broken
            assert (result["outcome"], result["reply"]) == ("answered_with_failures", "Done.")
            assert target.exists()


async def test_names_that_are_no_names_fail_their_calls_however_often_they_come(
    server: LiveServer, conversation: str
) -> None:
    """Without the relay the agent program crashes at some of these."""
    same = {"tools": [run("ls", name=7, **SAME), run("ls -a", **SAME)]}
    nameless = [{"tools": [run(f"ls -{n}", name=None)]} for n in "alt"]
    cut = {"drop": True, "after_chars": 4, "text": "I begin."}
    async with server.client() as client:
        for steps, expected in (
            ([same], ["failed", "ok"]),
            (nameless, ["failed"] * 3),
            ([cut, same], ["failed", "ok"]),  # asked again without a stream
        ):
            result = await client.ask(script(*steps, DONE), conversation)
            assert await told(server, client, result) == expected
            assert (result["outcome"], result["reply"]) == ("answered_with_failures", "Done.")
            assert result["tools"][0]["name"] == "unnamed"


async def test_a_call_outside_tells_nothing_of_what_lies_there(
    server: LiveServer, conversation: str, tmp_path: Path
) -> None:
    """The agent program looks at a file before it asks the gate, and its reason would tell what it saw."""
    there, missing = tmp_path / "there.key", tmp_path / "there.txt"
    there.write_text("x")
    edit = {"old_string": "x", "new_string": "y"}
    calls = [
        {"name": name, "input": {"file_path": str(path), **more}}
        for path in (there, missing)
        for name, more in (("Edit", edit), ("Write", {"content": "y"}), ("Read", {}))
    ]
    async with server.client() as client:
        result = await client.ask(
            script(*({"tools": [call]} for call in calls), DONE), conversation
        )
        assert await told(server, client, result) == ["denied"] * 6
    reasons = {call["error"].partition(" is outside ")[2] for call in result["tools"]}
    assert len(reasons) == 1
    judged = [line for line in server.journal(result) if line["kind"] == "permission"]
    # the agent goes on after a refusal of its own while the gate still judges, so lines may change places
    assert sorted((line["index"], line["verdict"]) for line in judged) == [
        (index, "deny") for index in range(1, 7)
    ]


async def test_an_answer_of_a_person_binds_to_the_call_that_was_asked_about(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    server = asking_server
    important = server.workspace / "important.txt"
    important.write_text("keep")
    calls = [run("mkdir allowed", **SAME), run("rm important.txt", **SAME)]
    async with server.client() as client:
        async with client.stream(script({"tools": calls}, DONE), asking_conversation) as events:
            for index, decision in ((1, "allow"), (2, "deny")):
                asked = await events.until("approval.requested")
                assert asked.data["index"] == index
                path = f"/approvals/{asked.data['approval_id']}"
                answer = await client.http.post(path, json={"decision": decision})
                assert answer.status_code == 200
                resolved = await events.until("approval.resolved")
                assert (resolved.data["index"], resolved.data["decision"]) == (index, decision)
            result = (await events.until("turn.completed")).data
        assert await told(server, client, result) == ["ok", "denied"]
        assert result["outcome"] == "answered_with_failures"
        assert (server.workspace / "allowed").is_dir()
        assert important.exists()


@pytest.mark.parametrize(
    ("stop_reason", "said"),
    [
        ("max_tokens", "the model's answer was too long for one call"),
        ("tool_use", "the model's call was not valid JSON"),
    ],
)
async def test_a_call_that_was_cut_is_told_in_words(
    server: LiveServer, conversation: str, stop_reason: str, said: str
) -> None:
    raw = '{"command": "echo abc'
    cut = {"tool": "Bash", "raw_input": raw, "stop_reason": stop_reason}
    message = script(cut, {"text": "Too long."})
    async with server.client() as client, client.stream(message, conversation) as events:
        told = await events.rest()
    result = told[-1].data
    (tool,) = result["tools"]
    assert tool["status"] == "failed"
    assert tool["error"].startswith(said)
    (started,) = (event.data for event in told if event.type == "tool.started")
    assert started["input"] == {"input": raw}
    assert "__unparsedToolInput" not in json.dumps([event.data for event in told])


@pytest.mark.parametrize("blank", ["\n", "  \n\n "])
async def test_blank_text_around_a_block_is_neither_shown_nor_told(
    server: LiveServer, conversation: str, blank: str
) -> None:
    """The agent program drops a blank block; that is no answer that was given up."""
    steps = [
        {"text": blank, **bash("ls")},
        {"text": f"{blank}One.{blank}", **bash("ls .")},
        {"text": f"{blank}Two, {blank}three.{blank}"},
    ]
    async with server.client() as client, client.stream(script(*steps), conversation) as events:
        told = await events.rest()
    result = told[-1].data
    assert result["notices"] == []
    assert result["reply"] == f"One.\n\nTwo, {blank}three."
    shown = "".join(event.data["text"] for event in told if event.type == "text.delta")
    assert shown == result["reply"]


def kept_files(server: LiveServer) -> dict[str, int]:
    """Return the names of the whole outputs on the disk, with their modes."""
    places = (server.data_dir, server.log_dir)  # the second one is that of servers that share
    files = [path for place in places for path in (place / "outputs").rglob("*.txt")]
    return {path.name: path.stat().st_mode & 0o777 for path in files}


async def test_a_long_output_says_how_long_it_was_and_is_kept_whole(
    server: LiveServer,
) -> None:
    """Of a command's output the agent program hands over 30,000 characters, of a failed one 10,000."""
    lines = "".join(f"{n:06} otter 水獭\n" for n in range(60_000))
    (server.workspace / "long.txt").write_text(lines, encoding="utf-8")
    grep = {"pattern": "otter", "path": "long.txt", "output_mode": "content", "head_limit": 0}
    steps = [run("cat long.txt"), {"name": "Grep", "input": grep}, run("cat missing.txt long.txt")]
    conversation_id = server.new_conversation()
    async with server.client() as client:
        result = await client.ask(script({"tools": steps}, DONE), conversation_id)
        path = f"/conversations/{conversation_id}/turns/{result['turn_id']}/tools"
        calls = [await client.get(f"{path}/{index}") for index in (1, 2, 3)]
        wholes = [await client.get(f"{path}/{index}?whole=1") for index in (1, 2, 3)]
        assert [call["output_chars"] for call in calls[:2]] == [
            len(lines),
            sum(len(f"{n}:") for n in range(1, 60_001)) + len(lines) - 1,
        ]
        assert f"… {len(lines) - 18_000} characters left out here" in calls[0]["output"]
        assert wholes[0]["output"] == lines
        for call, whole in zip(calls, wholes, strict=True):
            assert len(call["output"]) < 9_000 < call["output_kept_chars"]
            assert call["output_kept_chars"] == len(whole["output"])
        assert wholes[1]["output"].count("otter") == 60_000
        assert (calls[2]["status"], calls[2]["output_chars"]) == ("failed", None)
        assert "… at least " in wholes[2]["output"]
        assert "characters truncated" not in wholes[2]["error"]
        kept = {f"{result['turn_id']}-{index}.txt" for index in (1, 2, 3)}
        found = kept_files(server)
        assert {name: found.get(name) for name in kept} == dict.fromkeys(kept, 0o600)
        assert not list((server.data_dir / "sessions").rglob("tool-results/*.txt")), "raw"
        fork = await client.post(
            f"/conversations/{conversation_id}/fork", status=201, turn_id=result["turn_id"]
        )
        copied = (await client.get(f"/conversations/{fork['conversation_id']}/messages"))[
            "messages"
        ]
        again = (
            f"/conversations/{fork['conversation_id']}/turns/{copied[0]['turn_id']}/tools/1?whole=1"
        )
        assert (await client.get(again))["output"] == lines
        answer = await client.http.delete(f"/conversations/{conversation_id}")
        assert answer.status_code == 204
        assert not kept & set(kept_files(server))
