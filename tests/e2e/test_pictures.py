"""Pictures that a message names reach the model as content, through the real agent process."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.turns.pictures import MAX_PICTURE_BYTES, MAX_PICTURES
from tests.support.live_server import LiveServer, running_server, script, started_server
from tests.support.pictures import picture, png

pytestmark = pytest.mark.e2e

SCRIPT = script({"echo": "messages"})


async def test_a_named_picture_reaches_the_model_and_the_record(
    server: LiveServer, conversation: str
) -> None:
    (server.workspace / "one pixel.png").write_bytes(png())
    (server.workspace / "two.JPG").write_bytes(png(200))  # its content decides
    async with server.client() as client:
        message = f"Look at `one pixel.png` and `two.JPG`, not at `none.png`.\n{SCRIPT}"
        result = await client.ask(message, conversation)
    for shade in (0, 200):
        assert b64encode(png(shade)).decode() in result["reply"]
    assert result["reply"].count('"type": "image"') == 2
    assert result["notices"] == []
    (request,) = (line for line in server.journal(result) if line["kind"] == "request")
    assert request["pictures"] == [
        {"path": path, "media_type": "image/png", "bytes": len(png())}
        for path in ("one pixel.png", "two.JPG")
    ]


async def test_what_cannot_be_shown_is_told(server: LiveServer, conversation: str) -> None:
    for number in range(MAX_PICTURES + 1):
        (server.workspace / f"{number}.png").write_bytes(png(number))
    (server.workspace / "large.png").write_bytes(png() + bytes(MAX_PICTURE_BYTES))
    (server.workspace / "text.gif").write_text("not a picture", encoding="utf-8")
    (server.workspace / ".env.png").write_bytes(png())
    (server.workspace / "away.png").symlink_to("/etc/hostname")
    named = ["large.png", "text.gif", ".env.png", "away.png", "../up.png", "/etc/x.png"]
    named += [f"{number}.png" for number in range(MAX_PICTURES + 1)]
    async with server.client() as client:
        result = await client.ask(" ".join(f"`{path}`" for path in named) + f"\n{SCRIPT}")
    assert result["reply"].count('"type": "image"') == MAX_PICTURES
    told = [(notice["code"], notice["message"]) for notice in result["notices"]]
    assert [code for code, _ in told] == ["picture_left_out"] * 3
    for path, (_, sentence) in zip(("large.png", "text.gif", "5.png"), told, strict=True):
        assert path in sentence


@pytest.fixture(scope="module")
def blind_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("blind")
    with started_server(folder, demo_cadence_ms=0, pictures="off") as server:
        yield server


async def test_pictures_can_be_switched_off(blind_server: LiveServer) -> None:
    (blind_server.workspace / "a.png").write_bytes(png())
    async with blind_server.client() as client:
        result = await client.ask(f"`a.png`\n{SCRIPT}")
    assert '"type": "image"' not in result["reply"]


REFUSED = {"status": 400, "while_picture": True, "message": "Could not process image"}


def told_of(result: dict[str, Any]) -> tuple[str, list[str]]:
    return result["outcome"], [notice["code"] for notice in result["notices"]]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose memory holds no turn of another test."""
    with started_server(tmp_path_factory.mktemp("own"), demo_cadence_ms=0) as server:
        yield server


@pytest.mark.parametrize("way", ["named", "read"])
async def test_a_picture_that_the_service_refuses_costs_no_answer(
    own_server: LiveServer, way: str
) -> None:
    """The agent program asks again without it; later turns and forks have no word of it."""
    server = own_server
    (server.workspace / "odd.png").write_bytes(png())
    read = {"tool": "Read", "input": {"file_path": "odd.png"}}
    first = script(REFUSED, {"text": "I see."}, say="Look at `odd.png`.")
    if way == "read":
        first = script(read, REFUSED, {"text": "I see."})
    async with server.client() as client:
        result = await client.ask(first)
        conversation = result["conversation_id"]
        later = await client.ask(script({"echo": "memory"}), conversation)
        fork = await client.post(
            f"/conversations/{conversation}/fork", status=201, turn_id=later["turn_id"]
        )
        forked = await client.ask(script({"text": "Still."}), fork["conversation_id"])
    assert (result["reply"], result["stop_reason"]) == ("I see.", "end_turn")
    assert told_of(result) == ("answered", ["picture_left_out"])
    assert told_of(later) == ("answered", [])
    assert "cut off" not in later["reply"]
    assert told_of(forked) == ("answered", [])


async def test_a_picture_that_cannot_be_shown_is_not_sent(server: LiveServer) -> None:
    """A broken or animated one, whether a message names it or the agent reads it."""
    (server.workspace / "broken.png").write_bytes(png()[:29])
    (server.workspace / "moving.gif").write_bytes(picture("GIF", frames=2))
    reads = [
        {"tool": "Read", "input": {"file_path": str(path)}}
        for path in ("broken.png", server.workspace / "moving.gif")
    ]
    async with server.client() as client:
        named = await client.ask(f"`broken.png` and `moving.gif`\n{SCRIPT}")
        read = await client.ask(script(*reads, {"echo": "messages"}))
    for result in (named, read):
        assert '"type": "image"' not in result["reply"]
        assert [code for code in told_of(result)[1] if code != "tools_failed"] == [
            "picture_left_out"
        ] * 2
    assert [tool["status"] for tool in read["tools"]] == ["denied", "denied"]


async def test_a_refused_picture_is_not_sent_again_after_a_restart(tmp_path: Path) -> None:
    async with running_server(tmp_path, demo_cadence_ms=0) as server, server.client() as client:
        (server.workspace / "odd.png").write_bytes(png())
        first = await client.ask(script(REFUSED, {"text": "I see."}, say="Look at `odd.png`."))
    async with running_server(tmp_path, demo_cadence_ms=0) as server, server.client() as client:
        later = await client.ask(SCRIPT, first["conversation_id"])
    assert told_of(first) == ("answered", ["picture_left_out"])
    assert told_of(later) == ("answered", [])
    assert "I see." in later["reply"]
    assert '"type": "image"' not in later["reply"]
