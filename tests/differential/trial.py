"""One generated command from the gate to the shell: judged, and if it is allowed, run and watched."""

from dataclasses import dataclass, field
from pathlib import Path

from policies.calls import ToolCall
from policies.tools import ToolGate
from policies.verdict import Allow
from tests.differential.referee import watch
from tests.differential.yard import Yard


@dataclass(slots=True)
class Trial:
    """A gate and a yard, and which commands have been run."""

    gate: ToolGate
    yard: Yard
    seen: set[tuple[str, str]] = field(default_factory=set)
    """What was run, and where, so that nothing is run twice."""
    rules: set[str] = field(default_factory=set)
    """Which rules allowed something."""

    def judge(self, command: str, cwd: Path) -> str | None:
        """Return what would run; `None`: the command is refused."""
        call = ToolCall(name="Bash", input={"command": command}, cwd=str(cwd))
        verdict = self.gate.judge(call)
        assert getattr(verdict, "rule", "") != "policy_error", command
        if not isinstance(verdict, Allow):
            return None
        assert verdict.updated_input is not None
        self.rules.add(verdict.rule)
        return str(verdict.updated_input["command"])

    def run(self, command: str, folder: str = "") -> bool:
        """Run a command if it is allowed, once; an escape fails. Says whether it is allowed."""
        cwd = self.yard.root.workspace / folder
        runs = self.judge(command, cwd)
        if runs is None or (runs, folder) in self.seen:
            return runs is not None
        escapes = watch(self.yard, runs, cwd)
        assert escapes == [], f"allowed: {command!r}\nruns: {runs}\nin: {folder or '.'}\n{escapes}"
        self.seen.add((runs, folder))
        return True
