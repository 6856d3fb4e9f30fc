"""Workspaces for the policy tests."""

from pathlib import Path

import pytest

from tests.unit.policies.corpus import build_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return build_workspace(tmp_path)


@pytest.fixture(scope="module")
def shared_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the tests of one file that only ask the policy: it changes nothing."""
    return build_workspace(tmp_path_factory.mktemp("shared"))
