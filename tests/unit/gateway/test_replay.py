"""`python app.py replay`."""

import io
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.replay import run_replay


def test_a_turn_without_a_log_is_told_from_one_without_a_reply(tmp_path: Path) -> None:
    (tmp_path / "2026-11-20").mkdir()
    (tmp_path / "2026-11-20" / "trn_mute.jsonl").touch()
    told = []
    for turn_id in ("trn_gone", "trn_mute"):
        with pytest.raises(StartError) as refused:
            run_replay(turn_id, tmp_path, io.StringIO())
        told.append(str(refused.value))
    assert told == [
        "There is no log of turn trn_gone.",
        "The log of turn trn_mute holds no reply of a model.",
    ]
