"""What memory shows after short histories is current, and what was forgotten is in no file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.http.tokens import make_token
from tests.service.http.stage import running
from tests.support.histories import Player, Result, Step, histories, left_in
from tests.support.onnx_model import write_model

_KINDS = ["fact", "correction", "contradiction", "project", "forgotten", "silent"]


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
    misses: list[str] = []
    players: list[Player] = []
    async with running(tmp_path, **given) as (services, client):

        async def say(words: str, chat: str, steps: Sequence[Step]) -> Result:
            services.scripted.answers[words] = {"steps": steps}
            return await client.say(words, chat)

        for name in names:
            client.headers["Authorization"] = f"Bearer {tokens[name][0]}"
            player = Player(name, client, say, services.journal_of)
            await player.play()
            misses += player.misses
            players.append(player)
        data_dir = services.settings.data_dir
        misses += await left_in(data_dir, names, "memory.sqlite3*")
        for player in players:
            client.headers["Authorization"] = f"Bearer {tokens[player.name][0]}"
            await player.delete_conversations()
        misses += await left_in(data_dir, names)
    assert not misses, "\n".join(misses)
