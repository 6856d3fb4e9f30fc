"""The command `policy`: try the policy on calls, and list the rules in force."""

import argparse
import os
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Protocol, TextIO

from policies.check import BadCall, Checker, read_json, read_lines
from policies.explain import explain, list_rules, printable
from policies.paths.workspace import ExtraDirectory
from policies.rules import RulesError, load_rules

BAD_ARGUMENTS = 2

_HELP = Path(__file__).with_name("cli_help.txt")


class _Parser(argparse.ArgumentParser):
    """Raises an error instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        raise BadCall(f"{message.removesuffix('.')}; `policy --help` says more.")


class UserPlace(Protocol):
    """Where a user's agents work."""

    @property
    def root(self) -> Path:
        """The workspace."""

    @property
    def projects(self) -> tuple[ExtraDirectory, ...]:
        """The shared projects, with the user's rights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCommand:
    """The command, with what it needs from the server."""

    workspace: Path
    policy_file: Path | None
    private: Collection[Path]
    """The server's own directories, which rules may not open."""
    program: str = "candor"
    """The command line's name in the help, such as `candor`."""
    sandboxed_shell: bool = False
    """Bash runs in a box, so its command lines are not read."""
    each_user: bool = False
    """Each user has a workspace, so a call is judged in none but a named one."""
    place_of: Callable[[str], UserPlace]
    trust: Callable[[bool, str | None], int]
    """Runs `policy trust` and returns the exit code; the flag answers its question with yes, and
    the text names the user whose workspace it is."""

    def run(
        self, args: Sequence[str], *, source: BinaryIO, out: TextIO, err: TextIO | None = None
    ) -> int:
        """Run one command and return the exit code: 0, or 2 for bad arguments or rules. Blocks.

        Raise `OSError` if the output cannot be written; `BrokenPipeError` if its reader has gone.
        """
        try:
            given = _parse(args)
            if given is None:
                out.write(_HELP.read_text(encoding="utf-8").replace("PROGRAM", self.program))
                return 0
            return self._run(given, source, out)
        except (RulesError, BadCall) as fault:
            (err or sys.stderr).write(f"candor: {printable(str(fault))}\n")
            return BAD_ARGUMENTS

    def _run(self, given: argparse.Namespace, source: BinaryIO, out: TextIO) -> int:
        if given.command == "trust":
            return self.trust(given.yes, given.user)
        rules = load_rules(self.policy_file, workspace=self.workspace, private=self.private)
        root = self.workspace
        if given.user is not None:
            place = self.place_of(given.user)
            root = place.root
            rules = replace(rules, directories=(*rules.directories, *place.projects))
        if given.command == "rules":
            out.writelines(f"{line}\n" for line in list_rules(rules, self.policy_file) if line)
            return 0
        if self.each_user and not (given.user or given.workspace):
            raise BadCall("Each user has a workspace: name one with --user or --workspace.")
        workspace = (given.workspace or root).absolute()
        checker = Checker(rules, workspace, sandboxed_shell=self.sandboxed_shell)
        if given.command == "explain":
            return _explain(given, checker, out)
        for line in read_lines(source):
            out.write(f"{checker.check_line(line)}\n")
            out.flush()
        return 0


def _explain(given: argparse.Namespace, checker: Checker, out: TextIO) -> int:
    if given.text is not None and given.input is not None:
        raise BadCall("Give a command, or --tool with --input, not both.")
    if given.tool is not None and given.input is None:
        raise BadCall("--tool needs --input, the tool's input as JSON.")
    if given.text is None and given.input is None:
        raise BadCall('Give a command, as in: policy explain "rm -rf build".')
    told: dict[str, Any] = {"tool": given.tool or "Bash", "platform": given.platform}
    told["input"] = {"command": given.text} if given.input is None else _read_input(given.input)
    if given.cwd is not None:
        told["hook_cwd"] = os.path.normpath(checker.workspace / given.cwd)
    request = checker.read(told)
    out.writelines(f"{line}\n" for line in explain(request, checker.judge(request)))
    return 0


def _read_input(text: str) -> Any:
    try:
        return read_json(text)
    except BadCall as fault:
        raise BadCall(f"--input cannot be read. {fault}") from None


def _parse(args: Sequence[str]) -> argparse.Namespace | None:
    """Return the arguments; `None` if there are none or they ask for help."""
    before_dashes = args[: args.index("--")] if "--" in args else args
    if not args or {"-h", "--help"} & set(before_dashes):
        return None
    parser = _Parser(prog="policy", add_help=False)
    commands = parser.add_subparsers(
        dest="command", metavar="check | explain | rules | trust", required=True
    )
    check = commands.add_parser("check", add_help=False)
    check.add_argument("--workspace", type=Path, metavar="DIR")
    words = commands.add_parser("explain", add_help=False)
    words.add_argument("text", nargs="?", metavar="COMMAND")
    words.add_argument("--tool", metavar="NAME")
    words.add_argument("--input", metavar="JSON")
    words.add_argument("--cwd", type=Path, metavar="DIR")
    words.add_argument("--workspace", type=Path, metavar="DIR")
    words.add_argument("--platform", choices=["posix", "windows", "any"], default="any")
    rules = commands.add_parser("rules", add_help=False)
    trust = commands.add_parser("trust", add_help=False)
    trust.add_argument("--yes", action="store_true")
    for command in (check, words, rules, trust):
        command.add_argument("--user", metavar="NAME")
    return parser.parse_args(list(args))
