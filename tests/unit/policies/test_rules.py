"""The shipped rules, and files of one's own that change them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.inputs import KNOWN_TOOLS
from policies.paths.workspace import ExtraDirectory
from policies.rule_file import MAX_FILE_BYTES
from policies.rules import SHIPPED, AskRule, Rules, RulesError, load_rules, shipped_rules
from policies.shell.commands import GRAMMARS
from tests.support.tables import read_table_text

FIELD = {"cat", "cp", "ls", "mkdir", "mv", "rm"}
FURTHER = {
    *("touch", "rmdir", "pwd", "head", "tail", "wc", "stat", "file", "du", "diff", "grep", "find"),
}

Load = Callable[[str], Rules]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return what loads a text as a file of rules for a workspace beside it."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "data").mkdir()

    def write_and_load(text: str) -> Rules:
        file = tmp_path / "own.toml"
        file.write_text(text, encoding="utf-8")
        return load_rules(file, workspace=tmp_path / "ws", private=(tmp_path / "data",))

    return write_and_load


def fault(load: Load, text: str) -> str:
    """Return what is said about a file with a mistake, without the file's name."""
    with pytest.raises(RulesError) as caught:
        load(text)
    said = str(caught.value)
    assert said.startswith("The policy file ")
    assert "own.toml" in said
    assert said.endswith(".")
    assert "\n" not in said
    return said.partition("own.toml")[2]


def test_the_shipped_rules_allow_the_field_commands_and_no_more() -> None:
    rules = shipped_rules()
    assert rules.commands == FIELD
    assert set(GRAMMARS) == FIELD | FURTHER
    assert load_rules(None) is rules
    assert "Bash" in rules.offered_tools
    assert rules.tools | rules.optional_tools == KNOWN_TOOLS
    assert not rules.offered_tools & rules.tolerated_tools
    assert (rules.directories, rules.ask) == ((), ())


def test_the_shipped_file_names_every_command_that_it_leaves_off() -> None:
    said = SHIPPED.read_text(encoding="utf-8")
    assert all(f" {name}" in said for name in FURTHER)


def test_an_empty_file_changes_nothing(load: Load) -> None:
    assert load("") == shipped_rules()
    assert load("# 什么都不改\n") == shipped_rules()
    assert load("[commands]\nallow = []\n") == shipped_rules()
    assert load("[web]\nhosts = []\n").web_hosts == frozenset()


def test_a_file_adds_and_takes_away(load: Load) -> None:
    rules = load(
        "[commands]\nallow = ['grep', 'find']\nforbid = ['rm']\n"
        "[windows_commands]\nforbid = ['del']\n"
        "[tools]\nallow = ['ToolSearch']\nforbid = ['Bash', 'WebFetch']\n"
        "[own_tools]\nreading = ['mcp__notes__find']\nchanging = ['mcp__notes__add']\n"
        "[web]\nhosts = ['Docs.Example.com', '中文.example']\n"
    )
    assert rules.commands == FIELD - {"rm"} | {"grep", "find"}
    assert "del" not in rules.windows_commands
    assert rules.offered_tools == shipped_rules().offered_tools - {"Bash"} | {"ToolSearch"}
    assert not rules.tools & {"Bash", "WebFetch"}
    assert rules.own_reading_tools == shipped_rules().own_reading_tools | {"mcp__notes__find"}
    assert rules.own_changing_tools == {"mcp__notes__add"}
    assert rules.web_hosts == {"docs.example.com", "xn--fiq228c.example"}


def test_whoever_offers_web_fetch_says_which_hosts(load: Load) -> None:
    said = fault(load, "[tools]\nallow = [\n  'WebFetch',\n]\n")
    assert said.startswith(", line 3: WebFetch is offered but no hosts are listed; add [web]")
    offered = load("[tools]\nallow = ['WebFetch']\n[web]\nhosts = ['*']\n")
    assert "WebFetch" in offered.offered_tools
    assert "WebFetch" not in offered.tolerated_tools


def test_directories_are_read_with_their_right_to_write(load: Load, tmp_path: Path) -> None:
    for name in ("handbook", "共享"):
        (tmp_path / name).mkdir()
    rules = load(
        f"[directories]\nread_only = ['{tmp_path}/handbook']\nread_write = ['{tmp_path}/共享']\n"
    )
    assert rules.directories == (
        ExtraDirectory(path=tmp_path / "handbook", writable=False),
        ExtraDirectory(path=tmp_path / "共享", writable=True),
    )


def test_ask_rules_are_read_in_order(load: Load) -> None:
    rules = load(
        "[own_tools]\nchanging = ['mcp__a__b']\n"
        "[[ask]]\ntools = ['Write', 'mcp__a__b']\npaths = ['contracts/**', '*.lock']\n"
        "[[ask]]\ncommands = ['rm', 'Remove-Item']\n"
    )
    assert rules.ask == (
        AskRule(tools=frozenset({"Write", "mcp__a__b"}), paths=("contracts/**", "*.lock")),
        AskRule(commands=frozenset({"rm", "Remove-Item"})),
    )


MISTAKES = read_table_text("rules-mistakes")
"""The text of a file, ⏎ for a line end, and how the message begins after `, line `."""


def test_a_mistake_is_told_with_its_line_and_what_to_do(load: Load) -> None:
    misses = []
    for mistake in MISTAKES.strip().splitlines():
        text, _, said = mistake.partition(" => ")
        told = fault(load, text.replace("⏎", "\n"))
        if not told.startswith(f", line {said}"):
            misses.append((mistake, told))
    assert misses == []


DIRECTORIES: dict[str, str] = {
    "shared": "is no plain absolute path; write it from / on.",
    "~/shared": "is no plain absolute path;",
    "{T}/shared/": "is not the directory's real path; write {T}/shared.",
    "{T}/link": "is not the directory's real path; write {T}/shared.",
    "{T}/ws/../shared": "is not the directory's real path;",
    "{T}/missing": "is not a directory; make it, or remove it from the list.",
    "{T}/file": "is not a directory;",
    "/": "is the system's own; name an ordinary directory.",
    "/proc": "is the system's own;",
    "/dev": "is the system's own;",
    "{T}/.ssh": "is protected because of .ssh; name another directory.",
    "{T}/.git/hooks": "is protected because of .git;",
    "{T}/ws": "overlaps with the workspace {T}/ws; name a directory apart from it.",
    "{T}/ws/inside": "overlaps with the workspace {T}/ws;",
    "{T}": "overlaps with ",
    "{T}/data": "overlaps with the server's own {T}/data;",
    "{T}/data/inside": "overlaps with the server's own {T}/data;",
}


@pytest.mark.parametrize("key", ["read_only", "read_write"])
def test_a_directory_lies_apart_and_is_what_it_is_called(
    load: Load, tmp_path: Path, key: str
) -> None:
    for name in ("shared", ".ssh", ".git/hooks", "ws/inside", "data/inside"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to("shared")
    (tmp_path / "file").touch()
    for given, said in DIRECTORIES.items():
        path = given.replace("{T}", str(tmp_path))
        told = fault(load, f"# one\n[directories]\n{key} = [\n  '{path}',\n]\n")
        assert told.startswith(", line 4: "), given
        assert said.replace("{T}", str(tmp_path))[:60] in told, given


def test_directories_do_not_overlap_with_each_other(load: Load, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    text = f"[directories]\nread_only = ['{tmp_path}/a']\nread_write = ['{tmp_path}/a/b']\n"
    assert ", line 3: " in fault(load, text)
    text = f"[directories]\nread_only = ['{tmp_path}/a', '{tmp_path}/a']\n"
    assert "overlaps with the listed directory" in fault(load, text)


def test_the_system_may_be_read_and_never_written(load: Load) -> None:
    for given in (os.path.realpath("/etc"), os.path.realpath("/usr/share")):
        assert load(f"[directories]\nread_only = ['{given}']\n").directories
        said = fault(load, f"[directories]\nread_write = ['{given}']\n")
        assert said.startswith(
            f", line 2: {given} is the system's own; name an ordinary directory."
        )


def test_the_program_itself_is_never_written(load: Load) -> None:
    for own in (SHIPPED.parent.resolve(), Path(os.path.realpath(sys.prefix)) / "lib"):
        said = fault(load, f"[directories]\nread_write = ['{own}']\n")
        assert "overlaps with the server's own program" in said
        assert load(f"[directories]\nread_only = ['{own}']\n").directories


def test_the_agent_cannot_reach_the_file_that_rules_it(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "shared").mkdir()
    inside = tmp_path / "ws" / "own.toml"
    inside.write_text("", encoding="utf-8")
    outside = tmp_path / "own.toml"
    outside.symlink_to(inside)
    shared = tmp_path / "shared" / "own.toml"
    shared.write_text(f"[directories]\nread_write = ['{tmp_path}/shared']\n", encoding="utf-8")
    for path in (inside, outside, shared):
        with pytest.raises(RulesError, match="where the agent could change it; move it"):
            load_rules(path, workspace=tmp_path / "ws")
    shared.write_text(f"[directories]\nread_only = ['{tmp_path}/shared']\n", encoding="utf-8")
    assert load_rules(shared, workspace=tmp_path / "ws").directories


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    os.mkfifo(tmp_path / "pipe.toml")
    missing = "there is no such file; set CANDOR_POLICY_FILE to one"
    for path in (file, tmp_path, tmp_path / "pipe.toml"):
        with pytest.raises(RulesError, match=missing):
            load_rules(path)
    for content, said in (
        (b"# ok\n# \xff\n", r"own\.toml, line 2: it is not UTF-8 text; save it as UTF-8"),
        (b"#" * (MAX_FILE_BYTES + 1), "it is larger than"),
        (b"a = " + b"[" * 50_000, r"nested too deeply|not TOML"),
    ):
        file.write_bytes(content)
        with pytest.raises(RulesError, match=said):
            load_rules(file)


def test_line_ends_and_marks_of_other_systems_are_read(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_bytes("\ufeff[commands]\r\nallow = ['wc']\r\n".encode())
    assert "wc" in load_rules(file).commands


def test_what_is_said_stays_short_and_visible(load: Load) -> None:
    said = fault(load, f"[commands]\nallow = ['{'x' * 5000}\\u202e']\n".replace("'", '"'))
    assert len(said) < 400
    assert "\u202e" not in said
