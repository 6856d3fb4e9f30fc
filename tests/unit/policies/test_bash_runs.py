"""Allowed commands in real bash: they do what was meant, and nothing outside is touched."""

from pathlib import Path

from policies.tools import validate_bash_command
from policies.verdict import Allow
from tests.unit.policies.corpus import Case, build_workspace, fill, read_cases, run_shell

SAMPLES = 24


def _snapshot(folder: Path) -> dict[str, str]:
    """Return every name below a folder with its content or its link's target."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = path.read_text(encoding="utf-8") if path.is_file() else "folder"
    return found


def _sample() -> list[Case]:
    cases = [case for case in read_cases("policy-allow.jsonl") if case.tool == "Bash"]
    changing = [case for case in cases if case.cls in {"rm", "mv", "cp", "mkdir", "near_miss"}]
    return changing[:: max(1, len(changing) // SAMPLES + 1)][:SAMPLES]


def test_an_allowed_command_does_what_was_written_and_touches_nothing_outside(
    tmp_path: Path,
) -> None:
    cases = _sample()
    assert len(cases) > 15
    for case in cases:
        meant = build_workspace(tmp_path / case.id / "meant", case.setup)
        done = build_workspace(tmp_path / case.id / "done", case.setup)
        before = _snapshot(done.parent)
        verdict = validate_bash_command(fill(case.input, done)["command"], root=done, cwd=done)
        assert isinstance(verdict, Allow)
        assert verdict.updated_input is not None
        run_shell(fill(case.input, meant)["command"], meant)
        run_shell(str(verdict.updated_input["command"]), done)
        after = _snapshot(done.parent)
        assert after == _snapshot(meant.parent), case.id
        outside = {k: v for k, v in before.items() if not k.startswith("ws/")}
        assert {k: v for k, v in after.items() if not k.startswith("ws/")} == outside, case.id
