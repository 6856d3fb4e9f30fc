"""The referee sees every sort of escape, and nothing in what honest commands do; the gate is not asked."""

from collections.abc import Iterator

import pytest

from tests.differential.referee import Kind, watch
from tests.differential.throwaway import Walls, find_walls, throwaway_root
from tests.differential.yard import Yard, look
from tests.unit.policies.corpus import fill

PROGRAMS = (
    "cat",
    "cp",
    "file",
    "head",
    "ls",
    "ln",
    "wc",
    "mkdir",
    "mkfifo",
    "mv",
    "rm",
    "touch",
    "sleep",
)

ESCAPES: tuple[tuple[str, Kind], ...] = (
    ("cat ../outside.txt", "outside_read"),
    ("cat out/keep.txt", "outside_read"),
    ("cat src/upup/outside.txt", "outside_read"),
    ("cat 链接/keep.txt", "outside_read"),
    ("head -c 11 outfile", "outside_read"),
    ("cat -v out/keep.txt", "outside_read"),
    ("wc -c outfile", "outside_read"),
    ("wc -l < outfile", "outside_read"),
    ("ls -lL outfile", "outside_read"),
    ("file -L outfile", "outside_read"),
    ("head -c 1 .env", "secret_read"),
    ("cat -v .env", "secret_read"),
    ("cat ../ro/manual.txt", "outside_read"),
    ("cp to-rw/draft.txt mine", "outside_copied"),
    ("ls ..", "outside_listed"),
    ("ls -R out/", "outside_listed"),
    ("touch ../new", "outside_changed"),
    ("cp a.txt out/", "outside_changed"),
    ("echo x > dangle", "outside_changed"),
    ("rm ../outside.txt", "outside_changed"),
    ("rm -r out/deep", "outside_changed"),
    ("mv a.txt ..", "outside_changed"),
    ("echo x > ../outside.txt", "outside_changed"),
    ("touch ../outside.txt", "outside_changed"),
    ("cp ../outside.txt mine", "outside_copied"),
    ("cat .env", "secret_read"),
    ("cat src/deep/server.pem", "secret_read"),
    ("cat envlink", "secret_read"),
    ("cp src/.env mine", "secret_copied"),
    ("cp -r big other", "protected_made"),
    ("mv src/.env src/plain", "protected_changed"),
    ("rm -r .git", "protected_changed"),
    ("cp a.txt CLAUDE.md", "protected_changed"),
    ("touch docs/CLAUDE.md", "protected_changed"),
    ("rm -r src", "protected_changed"),
    ("echo x >> .claude/settings.json", "protected_changed"),
    ("mkdir tests/.git", "protected_made"),
    ("cp a.txt src/Claude.md", "protected_made"),
    ("touch logs/x", "protected_made"),
    ("cp docs/CLAUDE.md src/CLAUDE.md", "rules_copied"),
    ("ln -s ../outside.txt mine", "link_made"),
    ("ln a.txt mine", "link_made"),
    ("cp -P out mine", "link_made"),
    ("mkfifo mine", "link_made"),
    ("mv src/up mine", "link_turned"),
    ("id", "executed"),
    ("$(id)", "executed"),
    ("ls; id", "executed"),
    ("nosuchprogram", "executed"),
    ("rm -rf ./*", "root_emptied"),
    ("mv {WS} {WS}-moved", "root_gone"),
    ("cd ..", "left"),
)
HONEST = (
    *("ls -laR", "cat a.txt CLAUDE.md", "rm -rf build", "mv a.txt docs/x", "cp -r img more"),
    *(
        "mkdir -p a/b/c",
        "cp -a archive old",
        "rm out",
        "mv out elsewhere",
        "mv abs tests",
        "cat nosuch",
        "rm -rf deps",
    ),
    *(
        "mv 项目 新",
        "cp inlink copy",
        "touch new",
        "rm -r node_modules",
        "ls -l out outfile",
        "cd src",
    ),
)


@pytest.fixture(scope="module", params=["walled", "bare"])
def yard(request: pytest.FixtureRequest) -> Iterator[Yard]:
    walls: Walls = find_walls() if request.param == "walled" else "none"
    with throwaway_root(PROGRAMS, walls) as root:
        yield Yard(root, root.yard.parent / "pristine")


def kinds(yard: Yard, command: str) -> set[Kind]:
    return {one.kind for one in watch(yard, fill(command, yard.root.workspace))}


@pytest.mark.parametrize(("command", "kind"), ESCAPES, ids=str)
def test_an_escape_is_seen_and_undone(yard: Yard, command: str, kind: Kind) -> None:
    before = {name: one.mode for name, one in yard.tree.items()}
    assert kind in kinds(yard, command)
    assert {name: one.mode for name, one in look(yard.path).items()} == before
    assert kinds(yard, "ls -la") == set()


@pytest.mark.parametrize("command", HONEST)
def test_what_is_honest_is_let_be(yard: Yard, command: str) -> None:
    assert kinds(yard, command) == set()


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


@pytest.mark.parametrize(("command", "expected"), OPENED, ids=[one for one, _ in OPENED])
def test_directories_that_rules_open_are_told_apart(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, command: str, expected: set[Kind]
) -> None:
    monkeypatch.setattr(yard, "open_to", {"ro": False, "rw": True})
    assert kinds(yard, command) == expected
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
