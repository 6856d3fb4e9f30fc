"""What a database of PostgreSQL makes of statements, texts and patterns."""

from pathlib import Path

import pytest

from memory.errors import StoreUnavailable
from memory.stores.postgres.translation import translated
from tests.support.postgres import (
    open_schema,
)
from tests.support.stores import open_file
from tests.unit.memory.database.words_schema import STEPS


async def test_texts_come_back_as_they_were_written(schema: str) -> None:
    texts = ["", "a\0b\0", "\U0010ffff", "\U0010ffff\0\U0010fffe", "'; --\\", "長🙂"]
    async with open_schema(schema, STEPS) as database:
        await database.execute_many(
            "INSERT INTO words (word) VALUES (?)", [(text,) for text in texts]
        )
        rows = await database.rows("SELECT word FROM words")
        assert sorted(row["word"] for row in rows) == sorted(texts)
        for text in texts:
            assert (
                await database.scalar("SELECT word FROM words WHERE word = :w", {"w": text}) == text
            )
        assert await database.rows("SELECT 1 FROM words WHERE word = ?", ("\ud800",)) == []
        with pytest.raises(UnicodeEncodeError):
            await database.execute("INSERT INTO words VALUES (?)", ("\ud800",))


def test_statements_are_translated_outside_of_texts_alone() -> None:
    said = (
        "SELECT 'a?:b%' || x::text FROM t INDEXED BY i WHERE a = ? AND +b = :name AND c % 2 = 0 + d"
    )
    expected = "SELECT 'a?:b%%' || x::text FROM t WHERE a = %s AND b = %(name)s AND c %% 2 = 0 + d"
    assert translated(said) == expected


async def test_json_is_taken_apart_also_with_a_nul_in_it(schema: str) -> None:
    result = r'{"reply":"\\u0000 \u0000","usage":{"input_tokens":7}}'
    async with open_schema(schema, STEPS) as database:
        asked = (
            "SELECT json_extract(?, '$.usage.input_tokens') AS n, json_extract(?, '$.reply') AS r"
        )
        row = await database.row(asked, (result, result))
        assert dict(row) == {"n": "7", "r": "\\u0000 \ufffd"}
        assert await database.scalar("SELECT json_extract(?, '$.a')", ("no json",)) is None


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("a.*.c", "a.b.c", True),
        ("a.*.c", "a.b.d", False),
        ("a?c", "abc", True),
        ("a[*]", "a*", True),
        ("a[*]", "ab", False),
        ("a[?][[]", "a?[", True),
        ("a%_\\\\", "a%_\\\\", True),
        ("a_%", "abc", False),
        ("A", "a", False),
    ],
)
async def test_both_engines_match_patterns_alike(
    schema: str, tmp_path: Path, pattern: str, value: str, *, matches: bool
) -> None:
    async with open_schema(schema, STEPS) as database, open_file(tmp_path) as file:
        for engine in (database, file):
            found = await engine.scalar("SELECT glob(?, ?)", (pattern, value))
            assert bool(found) is matches


async def test_reading_connections_write_nothing(schema: str) -> None:
    async with open_schema(schema, STEPS) as database:
        for statement in ("INSERT INTO words VALUES ('a')", "DELETE FROM words"):
            with pytest.raises(StoreUnavailable, match="read-only"):
                await database.rows(statement)
