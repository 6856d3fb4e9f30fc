"""Pictures that a message names reach the model as content, through the real agent process."""

from base64 import b64encode
from collections.abc import Iterator

import pytest

from gateway.turns.pictures import MAX_PICTURE_BYTES, MAX_PICTURES
from tests.support.live_server import LiveServer, script, started_server
from tests.support.pictures import png

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
    assert [code for code, _ in told] == ["picture_large", "picture_other", "picture_many"]
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
