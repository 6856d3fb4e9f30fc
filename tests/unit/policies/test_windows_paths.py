"""Paths in Windows' spelling: what is inside, what only looks so."""

from pathlib import Path

import pytest

from policies.paths.workspace import ExtraDirectory, Place
from policies.verdict import Deny
from policies.windows.path_spelling import is_rooted, refuse_rooted
from policies.windows.workspace import WindowsWorkspace, _strip_root


def _locate(root: Path, path: str, *, cwd: str | None = None) -> Place | Deny:
    return WindowsWorkspace(root, cwd or root).locate(path.replace("{WS}", str(root)))


def _parts(root: Path, path: str, *, cwd: str | None = None) -> tuple[str, ...]:
    place = _locate(root, path, cwd=cwd)
    assert isinstance(place, Place), place
    return place.parts


def _rule(root: Path, path: str, *, cwd: str | None = None) -> str:
    place = _locate(root, path, cwd=cwd)
    assert isinstance(place, Deny), place
    return place.rule


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a.txt", ("a.txt",)),
        (".\\src\\main.py", ("src", "main.py")),
        ("src/main.py", ("src", "main.py")),
        ("src\\\\main.py", ("src", "main.py")),
        ("src\\..\\a.txt", ("a.txt",)),
        ("{WS}\\a.txt", ("a.txt",)),
        ("{WS}/src\\main.py", ("src", "main.py")),
        ("{WS}", ()),
        ("{WS}\\", ()),
        (".", ()),
        ("src\\..", ()),
        ("..hidden", ("..hidden",)),
        ("notes.md~", ("notes.md~",)),
        ("console.txt", ("console.txt",)),
        ("com10.txt", ("com10.txt",)),
        ("null", ("null",)),
        ("报告（最终版）.docx", ("报告（最终版）.docx",)),
        ("报告：草稿.md", ("报告：草稿.md",)),
        ("項目 一\\資料.csv", ("項目 一", "資料.csv")),
        ("a;b,c=d & e.txt", ("a;b,c=d & e.txt",)),
    ],
)
def test_plain_paths_are_found(shared_workspace: Path, path: str, parts: tuple[str, ...]) -> None:
    assert _parts(shared_workspace, path) == parts


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", "path_empty"),
        ("..", "outside_workspace"),
        ("..\\x", "outside_workspace"),
        ("src\\..\\..", "outside_workspace"),
        ("{WS}\\..\\ws\\a.txt", "outside_workspace"),
        ("{WS}-evil\\secret.txt", "path_rooted"),
        ("{WS}2", "path_rooted"),
        ("\\x", "path_rooted"),
        ("/etc/passwd", "path_rooted"),
        ("\\\\server\\share", "path_share"),
        ("\\\\server@SSL@443\\DavWWWRoot\\x", "path_share"),
        ("/\\server\\share", "path_share"),
        ("\\\\?\\C:\\x", "path_namespace"),
        ("\\\\.\\pipe\\x", "path_namespace"),
        ("//./C:/x", "path_namespace"),
        ("\\??\\C:\\x", "path_namespace"),
        ("C:\\x", "path_drive"),
        ("Z:/x", "path_drive"),
        ("C:x", "path_drive_relative"),
        ("C:", "path_drive_relative"),
        ("C:..\\x", "path_drive_relative"),
        ("a.txt:s", "path_stream"),
        ("a.txt::$DATA", "path_stream"),
        ("src::$INDEX_ALLOCATION\\x", "path_stream"),
        (".git:x\\config", "path_stream"),
        ("file:///etc/passwd", "path_stream"),
        ("Env:\\PATH", "path_provider"),
        ("HKLM:\\Software", "path_provider"),
        ("Function:x", "path_provider"),
        ("Alias:del", "path_provider"),
        ("Registry::HKLM\\x", "path_provider"),
        ("Microsoft.PowerShell.Core\\FileSystem::C:\\x", "path_provider"),
        ("Microsoft.PowerShell.Core/Registry::HKLM", "path_provider"),
        ("~", "path_tilde"),
        ("~user\\x", "path_tilde"),
        ("NUL", "path_device"),
        ("nul.txt", "path_device"),
        ("src\\Con", "path_device"),
        ("aux.tar.gz", "path_device"),
        ("CON .txt", "path_device"),
        ("prn   ", "path_device"),
        ("COM0", "path_device"),
        ("com¹.log", "path_device"),
        ("LPT³", "path_device"),
        ("CONIN$", "path_device"),
        ("ＣＯＮ", "path_device"),
        ("con\\x.txt", "path_device"),
        ("src.", "path_trailing"),
        ("src \\main.py", "path_trailing"),
        ("a.txt...", "path_trailing"),
        ("...", "path_trailing"),
        (". .", "path_trailing"),
        (".. \\x", "path_trailing"),
        (" .env", "path_trailing"),
        ("GIT~1", "path_short_name"),
        ("CLAUDE~2\\x", "path_short_name"),
        ("x~9.tx", "path_short_name"),
        ("src\uff0f..\uff0fx", "path_lookalike"),
        ("src\uff3cx", "path_lookalike"),
        ("\uff0e\uff0e\\x", "path_lookalike"),
        ("a\u00a5b", "path_lookalike"),
        ("a\uff02b", "path_lookalike"),
        ("a|b", "path_characters"),
        ('a"b', "path_characters"),
        ("a<b>", "path_characters"),
        ("a\u202eb", "path_characters"),
        ("a\0b", "path_characters"),
        ("*.txt", "path_wildcard"),
        ("src\\?", "path_wildcard"),
        ("x" * 300, "path_too_long"),
        ("a\\" * 3000, "path_too_long"),
    ],
)
def test_other_paths_are_refused_by_name(shared_workspace: Path, path: str, rule: str) -> None:
    assert _rule(shared_workspace, path) == rule


def test_relative_paths_start_from_the_working_directory(shared_workspace: Path) -> None:
    cwd = f"{shared_workspace}\\src"
    assert _parts(shared_workspace, "main.py", cwd=cwd) == ("src", "main.py")
    assert _rule(shared_workspace, "..\\a.txt", cwd=cwd) == "outside_workspace"
    assert _rule(shared_workspace, "a.txt", cwd="C:\\elsewhere") == "cwd_outside"


@pytest.mark.parametrize("cwd", ["", "src", "\\", "C:\\", "{WS}\\..", "{WS}-evil", "\\\\s\\s"])
def test_a_working_directory_elsewhere_refuses_everything(shared_workspace: Path, cwd: str) -> None:
    filled = cwd.replace("{WS}", str(shared_workspace))
    assert WindowsWorkspace(shared_workspace, filled).find_cwd_fault() is not None


def test_links_are_resolved_without_regard_to_case(workspace: Path) -> None:
    (workspace / "junc").symlink_to("../outdir")
    (workspace / "inner").symlink_to("src")
    (workspace / "cfg").symlink_to(".claude")
    assert _rule(workspace, "junc") == "link_outside"
    assert _rule(workspace, "JUNC\\keep.txt") == "link_outside"
    assert _rule(workspace, "junc\\..\\a.txt") == "link_outside"
    assert _rule(workspace, "inner\\..\\..\\outside.txt") == "outside_workspace"
    assert _parts(workspace, "inner\\main.py") == ("inner", "main.py")
    found = _locate(workspace, "CFG\\settings.json")
    assert isinstance(found, Place)
    assert found.find_write_fault() is not None


def test_a_way_through_a_link_and_back_must_be_unambiguous(workspace: Path) -> None:
    (workspace / "deep").symlink_to("archive/2024")
    assert _rule(workspace, "deep\\..\\z.zip") == "path_ambiguous"


def test_a_looping_link_is_refused(workspace: Path) -> None:
    (workspace / "loop").symlink_to("loop")
    assert _rule(workspace, "loop") == "link_outside"


def test_a_link_can_be_found_for_itself(workspace: Path) -> None:
    (workspace / "junc").symlink_to("../outdir")
    found = WindowsWorkspace(workspace, workspace).locate("junc", follow=False)
    assert isinstance(found, Place)
    assert found.real_parts == ("junc",)


def test_further_directories_count_as_inside(workspace: Path) -> None:
    outside = workspace.parent / "outdir"
    shared = ExtraDirectory(path=outside.resolve(), writable=False)
    found = WindowsWorkspace(workspace, workspace, [shared]).locate(f"{outside}\\keep.txt")
    assert isinstance(found, Place)
    assert not found.in_workspace
    fault = found.find_write_fault()
    assert fault is not None
    assert fault.rule == "read_only_directory"
    assert isinstance(WindowsWorkspace(workspace, workspace).locate(f"{outside}\\keep.txt"), Deny)


def test_a_root_on_a_drive_is_compared_by_component_and_without_case() -> None:
    assert _strip_root("c:/Desk/WS/src/a.txt", "C:/desk/ws") == "src/a.txt"
    assert _strip_root("C:/desk/ws", "C:/desk/ws") == ""
    for elsewhere in ("C:/desk/ws-evil/a.txt", "C:/desk", "D:/desk/ws/a.txt", "desk/ws/a.txt"):
        assert _strip_root(elsewhere, "C:/desk/ws") is None


def test_what_starts_from_a_drive_or_share_is_known() -> None:
    assert all(map(is_rooted, ("/x", "//s/x", "C:/x", "c:/")))
    assert not any(map(is_rooted, ("C:x", "x", "./x", "env:/x")))
    assert refuse_rooted("C:\\x").rule == "path_drive"
