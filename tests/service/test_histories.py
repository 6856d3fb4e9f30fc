"""What memory shows after short histories is current, and what was forgotten is in no file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.http.tokens import make_token
from tests.service.http.stage import running
from tests.support.histories import Player, histories
from tests.support.onnx_model import write_model

_KINDS = ["fact", "correction", "contradiction", "project", "forgotten", "silent"]
_LIMIT_S = 20.0
"""For the index to be emptied of forgotten words, which happens in the background."""


def test_each_history_of_the_file_is_played() -> None:
    assert {name.partition("-")[0] for name in histories()} == set(_KINDS)


@pytest.mark.parametrize("kind", _KINDS)
async def test_what_is_shown_is_current_and_was_said(tmp_path: Path, kind: str) -> None:
    names = [name for name in histories() if name.startswith(f"{kind}-")]
    tokens = {name: make_token(name) for name in names}
    file, model = anyio.Path(tmp_path / "tokens"), tmp_path / "model"
    await file.touch(mode=0o600)
    await file.write_text("\n".join(line for _, line in tokens.values()))
    given: dict[str, Any] = {"tokens_file": Path(file)}
    if kind == "forgotten":  # there are vectors to forget, too
        await anyio.to_thread.run_sync(write_model, model, ["safe", "party"])
        given |= {"embedder": "onnx", "embeddings_path": model}
    misses: dict[str, list[str]] = {}
    async with running(tmp_path, **given) as (services, client):
        for name in names:
            client.headers["Authorization"] = f"Bearer {tokens[name][0]}"
            player = Player(services, client, histories()[name])
            await player.play()
            misses[name] = player.misses
            if "gone" in player.history:
                await player.delete_conversations()
        gone = {name: histories()[name].get("gone", []) for name in names}
        data_dir = services.settings.data_dir
        with anyio.move_on_after(_LIMIT_S):
            while await anyio.to_thread.run_sync(_left, data_dir, gone):  # noqa: ASYNC110
                await anyio.sleep(0.1)
        for name, left in _left(data_dir, gone).items():
            misses[name] += left
    listed = [f"{name}: {miss}" for name in names for miss in misses[name]]
    assert not listed, "\n".join(listed)


def _left(data_dir: Path, gone: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return which forgotten words of each history are in which files."""
    files = {path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file()}
    found = {
        name: [
            f"{path.relative_to(data_dir)} has {word!r}"
            for word in words
            for path, data in files.items()
            if word.encode() in data or word.lower().encode() in data
        ]
        for name, words in gone.items()
    }
    return {name: left for name, left in found.items() if left}
