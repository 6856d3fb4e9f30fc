"""What a yes to one call covers, on a real workspace and through the real gate."""

from dataclasses import replace
from pathlib import Path

import pytest

from policies.permits import Effect, Permit, Reach, permits_for
from policies.rules import shipped_rules
from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow

OWN = "mcp__notes__add"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("src/deep", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("a.txt", "b.txt", "src/c.txt", "src/d.txt", "src/deep/e.txt", "docs/f.txt"):
        (tmp_path / file).write_text("x", encoding="utf-8")
    (tmp_path / "src" / "link").symlink_to(tmp_path / "docs")
    return tmp_path


def effect(root: Path, call: str, cwd: str = "") -> Effect:
    """Return the effect of a call: a command, or a tool and its file."""
    tool, _, rest = call.partition(":")
    name, given = ("Bash", {"command": call})
    if rest:
        keys = {"Write": {"content": "x"}, "Edit": {"old_string": "x", "new_string": rest}}
        name = tool
        given = {"file_path": rest, **keys[tool]} if tool in keys else {"text": rest}
    rules = replace(shipped_rules(), own_changing_tools=frozenset({OWN}))
    verdict = ToolGate(root, rules=rules).judge(
        ToolCall(name=name, input=given, cwd=str(root / cwd))
    )
    assert isinstance(verdict, Allow), verdict
    assert verdict.effect is not None
    return verdict.effect


CASES = """
rm src/c.txt | exact | rm src/c.txt ¦ rm   'src/c.txt' | rm src/d.txt ¦ rm -f src/c.txt ¦ rm src/c.txt src/d.txt ¦ Write:src/c.txt
rm src/c.txt | folder | rm src/d.txt ¦ rm src/c.txt src/deep/e.txt | rm a.txt ¦ rm -r src/deep ¦ rm src/c.txt a.txt ¦ rm src/link/f.txt ¦ mkdir src/new
rm src/c.txt | any | rm a.txt ¦ rm -r docs | mv a.txt c.txt ¦ Write:src/c.txt
rm -r src/deep | folder | rm -r src/deep/e.txt | rm -r src ¦ rm -r docs ¦ rm src/c.txt
rm a.txt | folder | rm b.txt ¦ rm src/deep/e.txt | rm -r src
mv src/c.txt docs/c.txt | folder | mv a.txt b2.txt ¦ mv src/d.txt src/d2.txt | cp a.txt b2.txt
Write:src/new.txt | exact | Write:src/new.txt | Edit:src/c.txt ¦ Write:src/c.txt
Write:src/new.txt | folder | Write:src/deep/other.txt | Write:a.txt ¦ Write:src/link/f.txt ¦ mkdir src/new
Write:src/new.txt | any | Write:a.txt | Edit:a.txt
mcp__notes__add:hello | exact | mcp__notes__add:hello | mcp__notes__add:other
mcp__notes__add:hello | any | mcp__notes__add:other | Write:a.txt
"""


def test_each_rule_covers_what_it_says_and_nothing_beside_it(root: Path) -> None:
    misses = []
    for line in CASES.strip().splitlines():
        asked, reach, *columns = (part.strip() for part in line.split(" | "))
        permit = next(one for one in permits_for(effect(root, asked)) if one.reach == reach)
        misses += [
            f"{reach} of {asked!r} on {call!r}: not {expected}"
            for calls, expected in zip(columns, (True, False), strict=True)
            for call in calls.split(" ¦ ")
            if permit.covers(effect(root, call)) is not expected
        ]
    assert misses == []


def reaches(permits: tuple[Permit, ...]) -> list[Reach]:
    return [permit.reach for permit in permits]


def test_a_folder_is_offered_only_where_all_paths_are_known_to_be_below_it(root: Path) -> None:
    assert reaches(permits_for(effect(root, "rm src/c.txt"))) == ["exact", "folder", "any"]
    assert reaches(permits_for(effect(root, f"{OWN}:x"))) == ["exact", "any"]
    (root / "out").symlink_to("/nowhere/else")
    assert reaches(permits_for(effect(root, "rm out"))) == ["exact", "any"]


def test_the_same_words_elsewhere_are_another_call(root: Path) -> None:
    here = permits_for(effect(root, "rm deep/../c.txt", cwd="src"))[0]
    (root / "deep").mkdir()
    (root / "c.txt").write_text("x", encoding="utf-8")
    assert not here.covers(effect(root, "rm deep/../c.txt"))
    linked = permits_for(effect(root, "rm src/link/f.txt"))[0]
    (root / "src" / "link").unlink()
    (root / "src" / "link").symlink_to(root / "src" / "deep")
    assert not linked.covers(effect(root, "rm src/link/f.txt"))


def test_clients_see_the_rule_in_words_that_were_made_safe(root: Path) -> None:
    fields = [rule.fields(str.upper) for rule in permits_for(effect(root, "rm -f src/c.txt"))]
    bash = {"tool": "Bash", "command": "rm"}
    assert fields == [
        {"reach": "exact", **bash, "call": "RM -F -- SRC/C.TXT"},
        {"reach": "folder", **bash, "options": ["-F"], "folder": "SRC"},
        {"reach": "any", **bash},
    ]
