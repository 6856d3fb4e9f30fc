"""A database that is not the gateway's is refused before anything is written into it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.lost_data import DATABASE, refuse_lost_database_blocking
from tests.support.services import settings_below


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    settings.data_dir.mkdir()
    file = settings.data_dir / DATABASE
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE items (id TEXT)")
    before = file.read_bytes()
    with pytest.raises(StartError, match="without conversations"):
        refuse_lost_database_blocking(settings)
    assert file.read_bytes() == before
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("ALTER TABLE items RENAME TO conversations")
    refuse_lost_database_blocking(settings)
