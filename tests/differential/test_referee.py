"""The referee sees every sort of escape, and nothing in what honest commands do; the gate is not asked."""

from collections.abc import Iterator

import pytest

from tests.differential.referee import Kind, watch
from tests.differential.throwaway import Walls, find_walls, throwaway_root
from tests.differential.yard import Yard, look
from tests.unit.policies.corpus import fill
from tests.unit.policies.judging import read_list, read_table

PROGRAMS = "cat cp file head ls ln wc mkdir mkfifo mv rm touch sleep".split()
ESCAPES = """
outside_read: cat ../outside.txt ¦ cat out/keep.txt ¦ cat src/upup/outside.txt ¦ cat 链接/keep.txt
    ¦ head -c 11 outfile ¦ cat -v out/keep.txt ¦ wc -c outfile ¦ wc -l < outfile ¦ ls -lL outfile
    ¦ file -L outfile ¦ cat ../ro/manual.txt
secret_read: head -c 1 .env ¦ cat -v .env ¦ cat .env ¦ cat src/deep/server.pem ¦ cat envlink
outside_copied: cp to-rw/draft.txt mine ¦ cp ../outside.txt mine
outside_listed: ls .. ¦ ls -R out/
outside_changed: touch ../new ¦ cp a.txt out/ ¦ echo x > dangle ¦ rm ../outside.txt
    ¦ rm -r out/deep ¦ mv a.txt .. ¦ echo x > ../outside.txt ¦ touch ../outside.txt
secret_copied: cp src/.env mine
protected_made: cp -r big other ¦ mkdir tests/.git ¦ cp a.txt src/Claude.md ¦ touch logs/x
protected_changed: mv src/.env src/plain ¦ rm -r .git ¦ cp a.txt CLAUDE.md ¦ touch docs/CLAUDE.md
    ¦ rm -r src ¦ echo x >> .claude/settings.json
rules_copied: cp docs/CLAUDE.md src/CLAUDE.md
link_made: ln -s ../outside.txt mine ¦ ln a.txt mine ¦ cp -P out mine ¦ mkfifo mine
link_turned: mv src/up mine
executed: id ¦ $(id) ¦ ls; id ¦ nosuchprogram
root_emptied: rm -rf ./*
root_gone: mv {WS} {WS}-moved
left: cd ..
"""
HONEST = """
ls -laR ¦ cat a.txt CLAUDE.md ¦ rm -rf build ¦ mv a.txt docs/x ¦ cp -r img more ¦ mkdir -p a/b/c
cp -a archive old ¦ rm out ¦ mv out elsewhere ¦ mv abs tests ¦ cat nosuch ¦ rm -rf deps
mv 项目 新 ¦ cp inlink copy ¦ touch new ¦ rm -r node_modules ¦ ls -l out outfile ¦ cd src
"""


@pytest.fixture(scope="module", params=["walled", "bare"])
def yard(request: pytest.FixtureRequest) -> Iterator[Yard]:
    walls: Walls = find_walls() if request.param == "walled" else "none"
    with throwaway_root(PROGRAMS, walls) as root:
        yield Yard(root, root.yard.parent / "pristine")


def kinds(yard: Yard, command: str) -> set[Kind]:
    return {escape.kind for escape in watch(yard, fill(command, yard.root.workspace))}


def test_an_escape_is_seen_and_undone(yard: Yard) -> None:
    before = {name: seen.mode for name, seen in yard.tree.items()}
    found = {command: kinds(yard, command) for command, _ in read_table(ESCAPES)}
    missed = [
        (command, kind) for command, kind in read_table(ESCAPES) if kind not in found[command]
    ]
    assert missed == []
    assert {name: seen.mode for name, seen in look(yard.path).items()} == before
    assert kinds(yard, "ls -la") == set()


def test_what_is_honest_is_let_be(yard: Yard) -> None:
    found = {command: kinds(yard, command) for command in read_list(HONEST)}
    assert {command: seen for command, seen in found.items() if seen} == {}


OPENED: tuple[tuple[str, set[Kind]], ...] = (
    ("cat ../ro/manual.txt ../rw/draft.txt", set()),
    ("cp ../ro/manual.txt mine", set()),
    ("mv a.txt ../rw", set()),
    ("rm ../rw/draft.txt", set()),
    ("touch ../ro/new", {"outside_changed"}),
    ("rm ../ro/manual.txt", {"outside_changed"}),
    ("rm -r ../rw", {"outside_changed", "protected_changed"}),
    ("cat ../rw/.env", {"secret_read"}),
    ("rm ../rw/sub/CLAUDE.md", {"protected_changed"}),
    ("cat ../rw/link/keep.txt", {"outside_read"}),
    ("cat ../outside.txt", {"outside_read"}),
)


def test_directories_that_rules_open_are_told_apart(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yard, "open_to", {"ro": False, "rw": True})
    assert {command: kinds(yard, command) for command, _ in OPENED} == dict(OPENED)
    assert kinds(yard, "ls") == set()


def test_a_command_that_does_not_end_is_ended(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.differential.throwaway.HANG_S", 0.2)
    assert kinds(yard, "sleep 1000") == {"hung"}
    monkeypatch.undo()
    assert kinds(yard, "ls") == set()


def test_programs_of_the_system_are_out_of_reach_behind_walls() -> None:
    """Where there are walls, a program is seen also by its whole path."""
    walls = find_walls()
    with throwaway_root(PROGRAMS, walls) as root:
        yard = Yard(root, root.yard.parent / "pristine")
        seen = {command: kinds(yard, command) for command in ("/usr/bin/id", "/bin/sh -c :")}
        expected: set[Kind] = set() if walls == "none" else {"executed"}
        assert seen == dict.fromkeys(seen, expected)
        assert kinds(yard, "cat /etc/passwd") == (set() if walls == "none" else {"outside_read"})
