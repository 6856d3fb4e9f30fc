"""The one version, and the command's name where people read it."""

import re
import runpy
import shutil
from pathlib import Path

from gateway import version


def test_the_command_is_named_as_a_person_types_it(tmp_path: Path) -> None:
    """A checkout has `app.py`; an installed package does not."""
    package = tmp_path / "gateway"
    package.mkdir()
    installed = runpy.run_path(str(shutil.copy(version.__file__, package)))

    assert (version.COMMAND, installed["COMMAND"]) == ("python app.py", "candor")


def test_the_version_is_a_release_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", version.VERSION)
