"""What comes out of an allowed command line."""

from dataclasses import dataclass

from policies.verdict import Allow


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsApproval:
    """A command line that may run, as `line`."""

    command: str
    """Its name, as `del` or `Remove-Item`."""
    line: str
    """The command quoted anew, which is what has to run."""
    paths: tuple[str, ...]
    """What it touches, absolute; a folder stands for all that is below it."""
    changes: bool

    def describe(self) -> Allow:
        """Give the verdict, with the line as the input to run instead."""
        return Allow(
            f"windows_{self.command.lower().replace('-', '_')}",
            "A listed command with every path inside the workspace.",
            {"command": self.line},
            changes=self.changes,
        )
