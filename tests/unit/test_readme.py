"""The README says what is true."""

import re
from pathlib import Path

from gateway.settings import settings_table

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_settings_is_the_generated_one() -> None:
    shown = re.search(r"<!-- settings:[^>]*-->\n(.*?)<!-- /settings -->", README, re.DOTALL)

    assert shown is not None
    assert shown[1] == settings_table()


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 250


def test_every_file_that_it_points_to_is_there() -> None:
    targets = [one for one in re.findall(r"\]\(([^)]+)\)", README) if "://" not in one]

    assert targets
    assert [one for one in targets if not (ROOT / one).exists()] == []
