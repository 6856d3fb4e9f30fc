"""What `doctor` says of the embedder, of which it has a vector made, and of the stored records."""

import io
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from gateway.doctor import examine
from gateway.settings import Settings
from tests.conformance.suites.conversation_values import (
    conversation,
    ended,
    event,
    turn,
)
from tests.support.stores import open_file, stores_on
from tests.unit.memory.backends.memu_services import FakeEmbeddings, served

KEY = "sk-not-to-be-shown"


def lines(directory: Path, **variables: str) -> tuple[int, list[str]]:
    places = {"WORKSPACE": "ws", "DATA_DIR": "data", "LOG_DIR": "logs"}
    environ = {f"CANDOR_{name}": str(directory / place) for name, place in places.items()}
    environ |= {"CANDOR_PORT": "0", "CANDOR_SANDBOX": "off"}
    environ |= {f"CANDOR_{name}": value for name, value in variables.items()}
    out = io.StringIO()
    code = examine(Settings.from_environ(environ), environ, out=out)
    assert KEY not in out.getvalue()
    return code, out.getvalue().splitlines()


def test_a_round_trip_is_proved_and_the_key_is_masked(tmp_path: Path) -> None:
    fake = FakeEmbeddings()
    with served(fake.answer) as address:
        given = {
            "EMBEDDER": "openai",
            "EMBEDDINGS_URL": f"{address}/v1",
            "EMBEDDINGS_MODEL": "bge-m3",
            "EMBEDDINGS_KEY": KEY,
        }
        code, told = lines(tmp_path, **given)
        assert "   ok  The embedder openai:bge-m3 makes vectors of 64 numbers." in told
        assert "CANDOR_EMBEDDINGS_KEY=***   (set)" in told
        assert (code, len(fake.asked)) == (0, 1)
        fake.instead = lambda _: (401, {})
        code, told = lines(tmp_path, **given)
        (note,) = [line for line in told if line.startswith(" note  The embeddings server")]
        assert "searched by words alone" in note
        assert code == 0


@pytest.mark.parametrize(
    "given", [{"EMBEDDER": "openai", "EMBEDDINGS_URL": "http://127.0.0.1:9"}, {"EMBEDDER": "onnx"}]
)
def test_an_embedder_that_lacks_a_setting_is_a_fault(tmp_path: Path, given: Any) -> None:
    code, told = lines(tmp_path, **given)
    (fault,) = [line for line in told if line.startswith("fault")]
    assert f"CANDOR_EMBEDDER={given['EMBEDDER']}: set CANDOR_EMBEDDINGS_" in fault
    assert code == 1


@pytest.mark.parametrize("damaged", [0, 1])
async def test_damaged_records_are_counted(tmp_path: Path, damaged: int) -> None:
    (tmp_path / "data").mkdir()
    async with open_file(tmp_path / "data") as database:
        stores = stores_on(database)
        accepted = await stores.turns.accept(turn(), create=conversation())
        await stores.turns.finish([ended(accepted)], [event(1, accepted, 1)])
        await database.execute("UPDATE events SET data = '{' WHERE ?", (damaged,))
    _, told = await anyio.to_thread.run_sync(partial(lines, tmp_path, EMBEDDER="multilingual"))
    found = [line for line in told if "Damaged records in the database: 1." in line]
    assert len(found) == damaged
