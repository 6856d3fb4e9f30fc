"""Short histories with the real agent process and the default embedder; see `tests/service/test_histories.py`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.service.http.client import Client
from tests.support.histories import Player, Result, Step, left_in
from tests.support.live_server import running_server

pytestmark = pytest.mark.e2e

_NAMES = ["forgotten-02", "forgotten-08", "correction-08"]
_LIMIT_S = 60.0


async def test_what_is_shown_is_current_and_what_was_forgotten_is_in_no_file(
    tmp_path: Path,
) -> None:
    misses: list[str] = []
    async with running_server(tmp_path, recall_deadline_ms=10_000, embedder="auto") as server:

        async def journal(result: Result) -> Sequence[Mapping[str, Any]]:  # noqa: RUF029  as `Player` asks
            return server.journal(result)

        async with Client(base_url=server.url, timeout=_LIMIT_S, trust_env=False) as client:

            async def say(words: str, chat: str, steps: Sequence[Step]) -> Result:
                message = f"{words}\n```candor-script\n{_escaped(steps)}\n```"
                player.said.append(message)
                return await client.say(message, chat)

            for name in _NAMES:
                player = Player(name, client, say, journal)
                await player.play()
                await player.delete_conversations()
                misses += player.misses
        misses += await left_in(server.data_dir, _NAMES)
        assert list((server.data_dir / "vectors").rglob("*.sqlite3")), "Chroma was searched, too"
    assert not misses, "\n".join(misses)


def _escaped(value: Any) -> str:
    """Return a value as JSON in which no text can be read: the steps are no words of the person."""
    if isinstance(value, Mapping):
        pairs = [f"{json.dumps(name)}: {_escaped(held)}" for name, held in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\u{ord(letter):04x}" for letter in value) + '"'
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_escaped, value)) + "]"
    return json.dumps(value)
