"""Uploads that cannot be stored whole while the server goes on."""

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.files.upload_journal import store_whole_blocking, undo_cut_uploads_blocking


class Content(io.BytesIO):
    """Does something when it is read."""

    def __init__(self, on_read: Callable[[], object]) -> None:
        super().__init__(b"content")
        self._on_read = on_read

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as `BytesIO` does."""
        self._on_read()
        return super().read(size)


def names(workspace: Path) -> list[str]:
    return sorted(path.name for path in (workspace / "uploads").iterdir())


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / "journals"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    (workspace / "uploads").mkdir(parents=True)
    return workspace


def test_files_that_fit_only_partly_leave_nothing(
    journals: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, linked = os.link, []

    def full(source: str, name: str, **options: Any) -> None:
        linked.append(name)
        if len(linked) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        link(source, name, **options)

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space"):
        store_whole_blocking(
            journals, workspace, "uploads", [("a", io.BytesIO()), ("b", io.BytesIO())]
        )
    assert (names(workspace), list(journals.iterdir())) == ([], [])


def test_a_staged_file_that_becomes_a_link_is_not_followed(
    journals: Path, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")

    def swap() -> None:
        (staged,) = (workspace / "uploads").glob(".*/0")
        staged.unlink(missing_ok=True)
        staged.symlink_to(outside)

    with pytest.raises(OSError, match="error"):
        store_whole_blocking(
            journals, workspace, "uploads", [("a", io.BytesIO(b"x")), ("b", Content(swap))]
        )
    assert (names(workspace), list(journals.iterdir())) == ([], [])
    assert outside.read_bytes() == b"secret"


def test_a_damaged_journal_is_reported_and_left(
    journals: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journals.mkdir()
    (journals / "1.json").write_bytes(b"{")
    undo_cut_uploads_blocking(journals)
    assert [record.message for record in caplog.records] == ["upload_journal_unreadable"]
