"""The table of denials holds what the code asks for, and nothing else."""

import ast
import string
import tomllib
from collections.abc import Iterator
from pathlib import Path

import policies

_FOLDER = Path(policies.__file__).parent
_TABLES = {"signs", "commands", "instead"}


def _table() -> dict[str, list[str]]:
    told = tomllib.loads((_FOLDER / "denials.toml").read_text(encoding="utf-8"))
    keys = {key for key in told["commands"].values() for key in key}
    assert keys <= told.keys()
    return {key: texts for key, texts in told.items() if key not in _TABLES}


def _calls() -> Iterator[tuple[str, int]]:
    """Yield the key of each `denied(…)`, and how many values it shows."""
    for file in _FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("denied"), args=[ast.Constant(str(key)), *shown]):
                    yield key, len(shown)
                case _:
                    pass


def _shown(texts: list[str]) -> int:
    fields = [field for text in texts for _, field, _, _ in string.Formatter().parse(text)]
    return max((int(field) + 1 for field in fields if field is not None), default=0)


def test_each_denial_that_the_code_names_is_in_the_table_and_gets_its_values() -> None:
    table = _table()
    wrong = [(key, n) for key, n in _calls() if key not in table or _shown(table[key]) != n]
    assert wrong == []


def test_each_denial_of_the_table_is_named_in_the_code() -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in _FOLDER.rglob("*.py"))
    commands = tomllib.loads((_FOLDER / "denials.toml").read_text(encoding="utf-8"))["commands"]
    named = {key for shell in commands.values() for key in shell}
    assert [key for key in _table() if f'"{key}"' not in code and key not in named] == []
