"""Single files of a repository that agents can write."""

import errno
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Never

import pytest

from gateway.worktrees import repository_files
from gateway.worktrees.repository_files import RepositoryFiles

REPOSITORY = Path(__file__).parents[4]
DEPTH = 1_500
_AS_NOBODY = """
import os, sys
from pathlib import Path
from gateway.worktrees.repository_files import RepositoryFiles
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
root = Path(sys.argv[1])
for mode in (0o555, 0o300, 0):
    folder = root / "tree" / f"{mode:o}"
    (folder / "in").mkdir(parents=True)
    (folder / "in/file").touch()
    (folder / "link").symlink_to(root / "kept")
    for path in (folder / "in", folder):
        path.chmod(mode)
(root / "tree").chmod(0o555)
RepositoryFiles(root).remove(["tree"])
"""


@pytest.fixture
def files(tmp_path: Path) -> RepositoryFiles:
    return RepositoryFiles(tmp_path)


USES: dict[str, tuple[Callable[[RepositoryFiles], object], object]] = {
    "has_file": (lambda files: files.has_file(["a"]), False),
    "has_folder": (lambda files: files.has_folder(["a"]), False),
    "names": (lambda files: files.names(["a"]), []),
    "read": (lambda files: files.read(["a"]), None),
}


@pytest.mark.parametrize("fault", [errno.EMFILE, errno.EIO, errno.ESTALE, errno.EACCES])
@pytest.mark.parametrize("use", USES)
def test_what_cannot_be_opened_now_does_not_pass_for_missing(
    files: RepositoryFiles, monkeypatch: pytest.MonkeyPatch, use: str, fault: int
) -> None:
    def failing(*_: object, **__: object) -> Never:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(repository_files, "open_file", failing)
    monkeypatch.setattr(repository_files, "opened_folder", failing)
    with pytest.raises(OSError, match=os.strerror(fault)):
        USES[use][0](files)


@pytest.mark.parametrize("kind", ["none", "link", "pipe", "socket"])
@pytest.mark.parametrize("use", USES)
def test_what_is_missing_or_of_another_kind_is_not_there(
    tmp_path: Path, files: RepositoryFiles, monkeypatch: pytest.MonkeyPatch, use: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "link":
        (tmp_path / "a").symlink_to("a")
    elif kind == "pipe":
        os.mkfifo(tmp_path / "a")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("a")
    act, expected = USES[use]
    assert act(files) == expected


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_folder_deeper_than_the_stack_is_removed_and_no_link_is_followed(
    tmp_path: Path, files: RepositoryFiles, *, is_replaced: bool
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    (tmp_path / "deep").mkdir()
    opened = os.open(tmp_path / "deep", os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=opened)
        os.symlink(tmp_path / "kept", "link", dir_fd=opened)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=opened))
        below = os.open("d", os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = below
    os.close(opened)
    if is_replaced:
        files.write(["deep"], b"new")
        assert (tmp_path / "deep").read_bytes() == b"new"
    else:
        files.remove(["deep"])
        assert not (tmp_path / "deep").exists()
    assert (tmp_path / "kept/file").exists()


def test_folders_that_a_command_has_closed_are_removed() -> None:
    """As those of a cache of modules are. To root no folder is closed."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "kept").mkdir()
        (root / "kept").chmod(0o555)
        if os.geteuid() == 0:
            for path in (root, root / "kept"):
                os.chown(path, 65534, 65534)
        subprocess.run(
            [sys.executable, "-c", _AS_NOBODY, name], cwd=REPOSITORY, check=True, timeout=60
        )
        assert [path.name for path in root.iterdir()] == ["kept"]
        assert (root / "kept").stat().st_mode & 0o777 == 0o555
