"""Reads the files in which an earlier release kept what work trees there are."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from gateway.worktrees.worktrees import NAME


def read_kept_blocking(folder: Path) -> Mapping[Path, str | None]:
    """Return the files with which an earlier release marked conversations that have a work tree, by
    whose ids they are named, each with its merge that has not ended.
    """
    marks = [path for path in sorted(folder.glob("cnv_*")) if NAME.fullmatch(path.name)]
    journals = [mark.with_suffix(".merge") for mark in marks]
    merging = [journal.read_text("utf-8") if journal.exists() else None for journal in journals]
    return dict(zip(marks, merging, strict=True))


def remove_kept_blocking(marks: Iterable[Path]) -> None:
    """Remove files that `read_kept_blocking` has read."""
    for mark in marks:
        mark.with_suffix(".merge").unlink(missing_ok=True)
        mark.unlink()
