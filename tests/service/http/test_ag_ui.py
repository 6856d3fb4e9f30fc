"""AG-UI over HTTP: what a run is told that its thread does not take."""

from pathlib import Path
from typing import Any

from tests.service.http.reading import streaming
from tests.service.http.stage import ASK, HOLD, Json, assert_error, staged


def run(run_id: str, message: str, **more: Any) -> Json:
    messages = [{"id": "m", "role": "user", "content": message}]
    return {"threadId": "one", "runId": run_id, "messages": messages, **more}


async def test_a_run_beside_a_question_is_told_to_send_the_answer(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        asked = await client.post("/ag-ui", json=run("first", ASK))
        assert asked.status_code == 200
        refused = assert_error(
            await client.post("/ag-ui", json=run("second", "and?")), 409, "conversation_busy"
        )
        assert refused["message"] == (
            "A question of this thread waits for an answer. The next run must send `resume`."
        )
        (question,) = (await client.read("/approvals"))["approvals"]
        over = {"interruptId": question["approval_id"], "status": "cancelled"}
        resumed = await client.post("/ag-ui", json=run("third", "", resume=[over]))
        assert "RUN_FINISHED" in resumed.text

        thread = asked.headers["x-candor-conversation"]
        async with streaming(client, HOLD, thread) as working:
            await working.until("text.delta")
            refused = assert_error(
                await client.post("/ag-ui", json=run("fourth", "and?")), 409, "conversation_busy"
            )
            assert refused["message"] == "A run of this thread is not over."
            stage.release()
            await working.rest()
