"""The agent program's session files: their cost, and their deletion.

Everything here blocks; callers use a worker thread.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_SESSION_ID = re.compile(r"[0-9a-fA-F-]{36}")
_COST_MARK = b'"cost-state"'
_BLOCK_BYTES = 1 << 16


def default_config_dir() -> Path:
    """Return the agent program's default directory."""
    return Path.home() / ".claude"


def spent_usd_blocking(config_dir: Path, session_id: str) -> float:
    """Return the session's cost when its agent last ended in order; 0 if it is not recorded.

    An agent that resumes the session continues from this value.
    """
    for transcript in _transcripts(config_dir, session_id):
        for line in _lines_backwards(transcript):
            if _COST_MARK in line:
                spent = _cost_in(line)
                if spent is not None:
                    return spent
    return 0.0


def forget_blocking(config_dir: Path, session_id: str) -> None:
    """Delete a session's transcript and the folders that belong to it."""
    for transcript in _transcripts(config_dir, session_id):
        transcript.unlink(missing_ok=True)
        shutil.rmtree(transcript.with_suffix(""), ignore_errors=True)
    if _SESSION_ID.fullmatch(session_id):
        for kind in ("file-history", "session-env", "todos", "tasks"):
            shutil.rmtree(config_dir / kind / session_id, ignore_errors=True)


def _transcripts(config_dir: Path, session_id: str) -> list[Path]:
    if not _SESSION_ID.fullmatch(session_id):
        return []
    return list(config_dir.glob(f"projects/*/{session_id}.jsonl"))


def _cost_in(line: bytes) -> float | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or entry.get("type") != "cost-state":
        return None
    spent = entry.get("totalCostUSD")
    return float(spent) if isinstance(spent, int | float) else None


def _lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield a file's lines, last first, reading no more of it than necessary."""
    with path.open("rb") as file:
        position = file.seek(0, 2)
        later: list[bytes] = []  # the rest of a line whose beginning is not read yet, last first
        while position > 0:
            size = min(_BLOCK_BYTES, position)
            position -= size
            file.seek(position)
            first, *others = file.read(size).split(b"\n")
            if others:
                yield b"".join([others[-1], *reversed(later)])
                yield from reversed(others[:-1])
                later.clear()
            later.append(first)
        yield b"".join(reversed(later))
