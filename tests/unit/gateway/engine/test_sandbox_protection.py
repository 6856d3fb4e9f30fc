"""Which wall is chosen, by what came of trying it; the outcomes are given here."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.engine.protocol import EngineUnavailable
from gateway.engine.sandbox import protection
from gateway.engine.sandbox.places import AgentPlaces
from gateway.engine.sandbox.protection import Protection, WallMode, protect_blocking
from gateway.engine.sandbox.trial import Outcome
from gateway.errors import SettingsError

landlock = pytest.importorskip(
    "gateway.engine.sandbox.landlock", reason="Landlock is Linux's", exc_type=ImportError
)

HOLDS = Outcome(
    ran=True, writes_outside=False, reads_outside=False, changes_outside=False, works_inside=True
)
PLACES = AgentPlaces(
    program=Path("/agent"),
    workspace=Path("/ws"),
    own=(Path("/data/tmp"),),
    private=(Path("/data"),),
)
SCRATCH = Path("/data")


class Kernel:
    """Returns the outcome of the trials, and records what was tried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.version = 7
        self.mounted = HOLDS
        self.plain = HOLDS
        self.bubblewrap: str | None = None
        self.tried: list[Sequence[str]] = []
        monkeypatch.setattr(protection, "attempt_blocking", self._attempt)
        monkeypatch.setattr(landlock, "landlock_version", lambda: self.version)
        monkeypatch.setattr(
            protection, "find_bubblewrap_fault_blocking", lambda *_: self.bubblewrap
        )

    def _attempt(self, before: Sequence[str], scratch: Path, inside: Sequence[Path]) -> Outcome:
        assert scratch == SCRATCH
        assert list(inside)[1:2] == [Path("/data/tmp")]
        self.tried.append(before)
        return self.mounted if any(item.startswith("writable:") for item in before) else self.plain


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setattr(sys, "platform", "linux")
    return Kernel(monkeypatch)


def protect(mode: WallMode = "auto", places: AgentPlaces = PLACES) -> Protection:
    return protect_blocking(mode, places, SCRATCH)


def refusal(places: AgentPlaces = PLACES, error: type[Exception] = SettingsError) -> str:
    """Return why a server that requires the wall cannot start."""
    with pytest.raises(error) as refused:
        protect("require", places)
    return str(refused.value)


def test_the_whole_process_is_confined_where_that_holds(kernel: Kernel) -> None:
    modes: list[WallMode] = ["auto", "require"]
    for mode in modes:
        kernel.tried.clear()
        found = protect(mode)
        assert found.kind == "landlock"
        assert "whole agent process" in found.sentence
        assert "dates" not in found.sentence
        assert found.words == kernel.tried[0][-len(found.words) - 1 : -1]
        assert found.words[:2] == ["writable:/ws", "writable:/data/tmp"]
        assert len(kernel.tried) == 1


def test_without_mounts_of_ones_own_it_is_told_what_they_would_keep(kernel: Kernel) -> None:
    kernel.plain = replace(HOLDS, changes_outside=True)
    for mounted in (replace(HOLDS, ran=False), kernel.plain):
        kernel.mounted = mounted
        found = protect("require")
        assert found.kind == "landlock"
        assert "dates of this user's other files" in found.sentence
        assert not [word for word in found.words if word.startswith("writable:")]


LEAKS = [
    *(replace(HOLDS, ran=False), replace(HOLDS, works_inside=False)),
    *(replace(HOLDS, writes_outside=True), replace(HOLDS, reads_outside=True)),
]


def test_a_wall_that_does_not_hold_is_none_whatever_its_version(kernel: Kernel) -> None:
    for leak in LEAKS:
        kernel.mounted = kernel.plain = leak
        found = protect()
        assert (found.kind, list(found.words)) == ("bubblewrap", [])
        assert "Landlock does not keep a program in" in refusal(error=EngineUnavailable)


def test_without_landlock_bash_is_confined_by_bubblewrap_or_the_policy_alone_watches(
    kernel: Kernel,
) -> None:
    """`require` is not content with bubblewrap: it leaves the tools out that write by themselves."""
    kernel.version = 0
    found = protect()
    assert found.kind == "bubblewrap"
    assert "this kernel offers no Landlock" in found.sentence
    assert "the other tools, the policy alone watches" in found.sentence
    told = refusal()
    assert told.startswith("CANDOR_SANDBOX=require asks for the kernel's wall, and this kernel")
    assert "Linux 5.13" in told
    assert "CANDOR_SANDBOX=auto" in told
    kernel.bubblewrap = "bubblewrap and socat are not installed"
    found = protect()
    assert found.kind == "off"
    assert found.sentence == (
        "The kernel's wall is not raised, because this kernel offers no Landlock, and "
        "bubblewrap and "
        "socat are not installed; the policy alone watches."
    )
    assert kernel.tried == []


def test_off_and_elsewhere_nothing_is_tried_and_that_is_said(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = protect("off")
    assert (found.kind, list(found.words)) == ("off", [])
    assert "switched off by CANDOR_SANDBOX=off" in found.sentence
    for platform in ("darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        found = protect()
        assert found.kind == "off"
        assert "offered on Linux alone" in found.sentence
        assert "offered on Linux alone" in refusal()
    assert kernel.tried == []


def test_data_where_the_agent_may_write_are_named_as_the_reason(kernel: Kernel) -> None:
    """What is read there is no longer outside, so no wall holds: the kernel is not to blame."""
    kernel.mounted = kernel.plain = replace(HOLDS, reads_outside=True)
    lies = "CANDOR_DATA_DIR lies where the agent may write"
    for change in ({"workspace": Path("/")}, {"writable": (Path("/data"),)}):
        places = replace(PLACES, **change)
        assert f"because {lies}" in protect(places=places).sentence
        assert lies in refusal(places)


@pytest.mark.usefixtures("kernel")
def test_a_server_that_lies_in_the_workspace_is_not_covered() -> None:
    places = replace(PLACES, private=(Path("/ws/d"),))
    found = protect(places=places)
    assert found.kind == "landlock"
    assert found.sentence.endswith(
        "But /ws/d lies where the agent may write; move it out of the workspace."
    )
    assert "cannot be kept: /ws/d lies where" in refusal(places)
