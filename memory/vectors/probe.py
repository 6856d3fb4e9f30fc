"""Opens a vector index in a process of its own: a damaged one can crash the process.

`python -m memory.vectors.probe DIRECTORY MODEL DIMENSION`; the exit code is 0 if it can be used.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

_TIMEOUT_S: Final = 60.0
_ARGUMENTS: Final = 4


def is_sound_blocking(directory: Path, model_id: str, dimension: int) -> bool:
    """Return whether the index can be opened and searched, tried in another process."""
    command = [sys.executable, "-m", "memory.vectors.probe", str(directory), model_id]
    try:
        done = subprocess.run(  # noqa: S603  this very program
            [*command, str(dimension)],
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[2],
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


async def _look(directory: Path, model_id: str, dimension: int) -> None:
    from memory.vectors.chroma import ChromaVectorIndex  # noqa: PLC0415

    index = ChromaVectorIndex(directory, model_id=model_id, dimension=dimension)
    await index.count()
    await index.nearest([1.0] + [0.0] * (dimension - 1), [""], limit=10)
    await index.close()


if __name__ == "__main__":
    import anyio

    assert len(sys.argv) == _ARGUMENTS, "directory, model, dimension"
    anyio.run(_look, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
