"""A side model chooses what of memory is shown, asked by a real agent process beside the conversation."""

import json
import re
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from tests.support.fact_service import answer
from tests.support.live_server import running_server
from tests.support.relays import read_request, service

pytestmark = pytest.mark.e2e

_LATE = ["selector_timeout"]
_SIDE = "You choose which remembered items help"
_IDS = re.compile(r"fac_\w+")
_WORD = re.compile(r"leave from, (\w+)\?")


async def choose(stream: SocketStream) -> None:
    """Answer a conversation with words, and the side query as the person's last word says."""
    _, body = await read_request(stream)
    text = json.dumps(json.loads(body)["messages"], ensure_ascii=False)
    chosen = {
        "last": json.dumps(_IDS.findall(text)[-1:]),
        "none": "[]",
        "invented": '["fac_invented"]',
        "chatty": "I like the first one.",
    }
    if _SIDE not in text:
        await answer("Fine.")(stream)
    elif (word := _WORD.findall(text)[0]) in chosen:
        await answer(chosen[word])(stream)
    else:
        await anyio.sleep_forever()


async def test_the_side_model_chooses_or_the_ranking_decides(tmp_path: Path) -> None:
    options = {"model": "large", "side_model": "small", "prewarmed_clients": 0}
    options |= {"recall": "model", "recall_deadline_ms": 10_000}
    shown: dict[str, tuple[int, str, list[str]]] = {}
    async with service(choose) as url:
        environ = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
        async with (
            running_server(tmp_path, command=None, environ=environ, **options) as server,
            server.client(deadline_s=180) as client,
        ):
            for number in range(8):
                fact = f"The ferry number {number} leaves from pier {number}."
                await client.post("/memory/facts", status=201, text=fact)
            for word in ("last", "none", "invented", "chatty", "late"):
                question = f"Which pier does the ferry leave from, {word}?"
                result = await client.ask(question)
                while word != "late" and result["memory"]["degraded"] == _LATE:
                    result = await client.ask(question)  # the machine is busy
                memory = result["memory"]
                why = "".join(item["why"][:19] for item in memory["injected"][:1])
                shown[word] = (len(memory["injected"]), why, memory["degraded"])
    assert shown == {
        "last": (1, "chosen by the model", []),
        "none": (0, "", []),
        "invented": (5, "found by its words ", ["selector_error"]),
        "chatty": (5, "found by its words ", ["selector_error"]),
        "late": (5, "found by its words ", _LATE),
    }
