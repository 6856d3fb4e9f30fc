"""Paths in Windows' spelling: what is inside, what only looks so."""

from pathlib import Path

from policies.paths.workspace import ExtraDirectory, Place
from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Deny, Verdict
from policies.windows.workspace import WindowsWorkspace, _strip_root, is_rooted, refuse_rooted
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
link_outside: junc ¦ JUNC\keep.txt ¦ junc\..\a.txt ¦ loop
outside_workspace: inner\..\..\outside.txt
path_ambiguous: deep\..\z.zip
allowed: inner\main.py
"""


def test_links_are_resolved_without_regard_to_case(workspace: Path) -> None:
    for name, target in {
        "junc": "../outdir",
        "inner": "src",
        "cfg": ".claude",
        "deep": "archive/2024",
        "loop": "loop",
    }.items():
        (workspace / name).symlink_to(target)
    assert find_misses(LINKED, lambda path: _locate(workspace, path)) == []
    found = _locate(workspace, "CFG\\settings.json")
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


def test_a_root_on_a_drive_is_compared_by_component_and_without_case() -> None:
    assert _strip_root("c:/Desk/WS/src/a.txt", "C:/desk/ws") == "src/a.txt"
    assert _strip_root("C:/desk/ws", "C:/desk/ws") == ""
    for elsewhere in ("C:/desk/ws-evil/a.txt", "C:/desk", "D:/desk/ws/a.txt", "desk/ws/a.txt"):
        assert _strip_root(elsewhere, "C:/desk/ws") is None


def test_what_starts_from_a_drive_or_share_is_known() -> None:
    assert all(map(is_rooted, ("/x", "//s/x", "C:/x", "c:/")))
    assert not any(map(is_rooted, ("C:x", "x", "./x", "env:/x")))
    assert refuse_rooted("C:\\x").denial.rule == "path_drive"


REFUSED_FOR_READ = r"""
path_namespace: \\?\{WS}\a.txt ¦ \\.\PhysicalDrive0 ¦ \??\UNC\server\x
path_share: \\wsl$\x\etc\passwd ¦ //server/share/x
path_drive: C:\Users\x\a.txt ¦ c:/Users/x/a.txt
path_drive_relative: C:a.txt
path_stream: {WS}\a.txt::$DATA
outside_workspace: src\..\..\outside.txt ¦ {WS}\..\outside.txt
path_device: {WS}\src\NUL ¦ LPT9.txt.bak
path_trailing: .git.\config ¦ .claude \settings.json
path_short_name: ENV~1
secret_file: .ENV ¦ src\.Env.local
path_lookalike: 报告／..／x
path_provider: env:PATH
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
    for path in ("src\\main.py", "{WS}\\src\\main.py", ".\\src/main.py", "SRC\\MAIN.PY"):
        verdict = judge(path)
        assert isinstance(verdict, Allow), path
        told = {"file_path": path, **(verdict.updated_input or {})}["file_path"]
        located = str(told).replace("{WS}", root).replace("\\", "/")
        assert located.casefold() == f"{root}/src/main.py".casefold()
