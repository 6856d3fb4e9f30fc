"""What is left of a turn's steps when it is read again."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.errors import NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from tests.support.services import (
    events_of,
    of_kind,
    result_of,
    running_services,
    script,
    send,
)

STORED = "SELECT sum(length(data)) FROM events WHERE type = 'turn.completed'"
STEPS = (
    {"thinking": "Look first.", "text": "I look."},
    {"tool": "Bash", "input": {"command": "cat   a.txt"}},
    {"text": "Now I write."},
    {"tool": "Write", "input": {"file_path": "b.txt", "content": "known-secret-4711"}},
    {"text": "Done."},
)


async def test_the_calls_of_a_finished_turn_open_to_their_input_and_output(tmp_path: Path) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        reader, conversations = services.chat.reader, services.chat.conversations
        accepted = await send(services, script(*STEPS))
        events = await events_of(services, accepted, until="approval.requested")
        question = of_kind(events, "approval.requested")[0]
        place = (accepted.conversation_id, accepted.turn_id)
        assert (await reader.tool_call(ME, *place, 2))["status"] is None
        services.chat.approvals.answer(ME, question["approval_id"], "allow")
        result = await result_of(services, accepted)
        assert [step.get("text") or step.get("index") for step in result["steps"]] == [
            *("Look first.", "I look.", 1, "Now I write.", 2, 2, "Done.")
        ]
        assert result["steps"][5] == {
            "type": "approval",
            "approval_id": question["approval_id"],
            "index": 2,
            "decision": "allow",
            "by": "user",
        }
        read, write = [await reader.tool_call(ME, *place, index) for index in (1, 2)]
        assert (read["input"], read["output"]) == ({"command": "cat   a.txt"}, "alpha")
        assert read["ran"] == {"command": "cat -- a.txt"}
        assert {key: read[key] for key in result["tools"][0]} == result["tools"][0]
        assert "4711" not in str(write)
        for user, index in ((UserId("bob"), 1), (ME, 3), (ME, 0)):
            with pytest.raises(NotFound):
                await reader.tool_call(user, *place, index)
        ended = of_kind(await events_of(services, accepted), "turn.completed")
        assert ended == [result], (
            "it is stored once, and read with the turn and with its last event"
        )
        with closing(sqlite3.connect(services.settings.data_dir / "candor.sqlite3")) as database:
            assert database.execute(STORED).fetchone() == (0,)
        fork = await conversations.fork(ME, *place)
        (copy,) = await conversations.messages(ME, fork, limit=9, before_seq=None)
        assert (await reader.tool_call(ME, fork, copy.id, 1))["output"] == "alpha"
        await conversations.delete(ME, accepted.conversation_id)
        with pytest.raises(NotFound) as gone:
            await reader.tool_call(ME, fork, copy.id, 1)
        assert gone.value.specific_code == "call_deleted"
