"""Paths in Windows' spelling: what is inside, what only looks so."""

from pathlib import Path

from policies.calls import ToolCall
from policies.paths.workspace import ExtraDirectory, Place
from policies.tools import ToolGate
from policies.verdict import Allow, Deny, Verdict
from policies.windows.workspace import WindowsWorkspace
from tests.support.tables import read_pairs, read_table_text
from tests.unit.policies.judging import denied, find_misses


def _locate(root: Path, path: str, *, cwd: str | None = None) -> Place | Deny:
    workspace = WindowsWorkspace(root, cwd or root)
    return denied(lambda: workspace.locate(path.replace("{WS}", str(root))))


def _parts(root: Path, path: str, *, cwd: str | None = None) -> tuple[str, ...]:
    place = _locate(root, path, cwd=cwd)
    assert isinstance(place, Place), place
    return place.parts


def _rule(root: Path, path: str, *, cwd: str | None = None) -> str:
    place = _locate(root, path, cwd=cwd)
    assert isinstance(place, Deny), place
    return place.rule


PLAIN = read_pairs("windows-paths-plain")


def test_plain_paths_are_found(shared_workspace: Path) -> None:
    assert {path: _parts(shared_workspace, path) for path in PLAIN} == PLAIN


REFUSED = read_table_text("windows-paths-refused")


def test_other_paths_are_refused_by_name(shared_workspace: Path) -> None:
    assert find_misses(REFUSED, lambda path: _locate(shared_workspace, path)) == []
    for long in ("x" * 300, "a\\" * 3000):
        assert _rule(shared_workspace, long) == "path_too_long"


def test_relative_paths_start_from_the_working_directory(shared_workspace: Path) -> None:
    cwd = f"{shared_workspace}\\src"
    assert _parts(shared_workspace, "main.py", cwd=cwd) == ("src", "main.py")
    assert _rule(shared_workspace, "..\\a.txt", cwd=cwd) == "outside_workspace"
    assert _rule(shared_workspace, "a.txt", cwd="C:\\elsewhere") == "cwd_outside"


LINKED = r"""
link_outside: junc ¦ junc\keep.txt ¦ loop
outside_workspace: inner\..\..\outside.txt
path_ambiguous: deep\..\z.zip ¦ junc\..\a.txt
allowed: inner\main.py
"""


def test_links_are_resolved(workspace: Path) -> None:
    for name, target in {
        "junc": "../outdir",
        "inner": "src",
        "cfg": ".claude",
        "deep": "archive/2024",
        "loop": "loop",
    }.items():
        (workspace / name).symlink_to(target)
    assert find_misses(LINKED, lambda path: _locate(workspace, path)) == []
    found = _locate(workspace, "cfg\\settings.json")
    assert isinstance(found, Place)
    assert denied(found.check_write) is not None
    itself = WindowsWorkspace(workspace, workspace).locate("junc", follow=False)
    assert itself.real_parts == ("junc",)


def test_further_directories_count_as_inside(workspace: Path) -> None:
    outside = workspace.parent / "outdir"
    shared = ExtraDirectory(path=outside.resolve(), writable=False)
    found = WindowsWorkspace(workspace, workspace, [shared]).locate(f"{outside}\\keep.txt")
    assert isinstance(found, Place)
    assert not found.in_workspace
    fault = denied(found.check_write)
    assert fault is not None
    assert fault.rule == "read_only_directory"
    assert WindowsWorkspace(workspace, workspace).find(f"{outside}\\keep.txt") is None


def test_the_root_is_recognized_without_regard_to_case(shared_workspace: Path) -> None:
    shouted = str(shared_workspace).upper().replace("/", "\\")
    assert _parts(shared_workspace, f"{shouted}\\a.txt") == ("a.txt",)
    assert _parts(shared_workspace, "a.txt", cwd=shouted) == ("a.txt",)


REFUSED_FOR_READ = r"""
path_foreign: \\?\{WS}\a.txt ¦ \\.\PhysicalDrive0 ¦ \??\UNC\server\x ¦ \\wsl$\x\etc\passwd
    ¦ //server/share/x ¦ C:\Users\x\a.txt ¦ c:/Users/x/a.txt ¦ C:a.txt
path_colon: {WS}\a.txt::$DATA ¦ env:PATH
outside_workspace: src\..\..\outside.txt ¦ {WS}\..\outside.txt
path_device: {WS}\src\NUL ¦ LPT9.txt.bak
path_trailing: .git.\config ¦ .claude \settings.json
path_short_name: ENV~1
secret_file: .ENV ¦ src\.Env.local
path_lookalike: 报告／..／x
path_tilde: ~\x
not_a_file: {WS}\src\
"""


def test_the_file_tools_refuse_and_understand_the_same_spellings(shared_workspace: Path) -> None:
    root = str(shared_workspace)
    gate = ToolGate(shared_workspace, platform="windows")

    def judge(path: str) -> Verdict:
        given = {"file_path": path.replace("{WS}", root)}
        return gate.judge(ToolCall(name="Read", input=given, cwd=root))

    assert find_misses(REFUSED_FOR_READ, judge) == []
    for path in ("src\\main.py", "{WS}\\src\\main.py", ".\\src/main.py", "src/main.py"):
        verdict = judge(path)
        assert isinstance(verdict, Allow), path
        told = {"file_path": path, **(verdict.updated_input or {})}["file_path"]
        located = str(told).replace("{WS}", root).replace("\\", "/")
        assert located.casefold() == f"{root}/src/main.py".casefold()
