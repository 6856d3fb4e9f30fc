"""The house's own rules, held by tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = [
    ROOT / "app.py",
    *(p for top in ("gateway", "memory", "policies") for p in (ROOT / top).rglob("*.py")),
]
JUNK_DRAWERS = {"utils", "helpers", "common", "misc", "manager", "base"}
MOST_LINES = 500


def test_no_file_has_grown_beyond_one_concept() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in OURS
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MOST_LINES
    }

    assert too_long == {}


def test_there_is_no_junk_drawer() -> None:
    assert [path.name for path in OURS if path.stem in JUNK_DRAWERS] == []


def test_no_address_of_a_package_index_is_written_down() -> None:
    locked = (ROOT / "constraints.txt").read_text(encoding="utf-8")

    assert "index-url" not in locked
    assert "://" not in locked
    assert locked.count("--hash=sha256:") > locked.count("==")
