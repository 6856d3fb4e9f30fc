"""A database that this user may read and not write."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

SCRIPT = Path(__file__).with_name("read_only.py")
pytestmark = pytest.mark.fault


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A directory that a user without rights can reach, for root may write everything."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


async def test_a_read_only_database_is_refused_and_a_lost_right_is_told(everybodys: Path) -> None:
    with anyio.fail_after(60):
        done = await anyio.run_process([sys.executable, str(SCRIPT), str(everybodys)], stderr=None)
    found = json.loads(done.stdout)
    assert found["opened"].startswith("The database cannot be opened: ")
    assert str(everybodys) not in done.stdout.decode()
    assert found["kept"] == 1
