"""The question about a shell command that is only unknown: what a person may be asked instead of a
denial.
"""

from collections.abc import Collection, Mapping
from typing import Any

from policies.ask_rules import locate_touched, parts_inside, parts_of
from policies.paths.workspace import Workspace
from policies.permits import Effect
from policies.shell.commands import GRAMMARS
from policies.shell.judge import judge_command, refuse_command
from policies.shell.unknown import UNKNOWN_RULES, judge_unknown
from policies.shell.words import split_words
from policies.verdict import Ask, Deny, Refused

__all__ = ["UNKNOWN_RULES", "ask_about"]


def ask_about(
    verdict: Deny, given: Mapping[str, Any], workspace: Workspace, forbidden: Collection[str]
) -> Ask:
    """Return the question about a call of Bash that `verdict`, of `UNKNOWN_RULES`, denies.

    A command that the policy knows but does not list runs in its canonical form, with its own
    checks; any other as its words are. Raise `Refused` if the command is forbidden, or one of
    `forbidden`.
    """
    command = given["command"]
    if split_words(command)[0].text.casefold() in forbidden:
        raise refuse_command(command, ())
    kept = {key: given[key] for key in ("description", "timeout") if key in given}
    try:
        approval = judge_command(command, workspace, GRAMMARS)
    except Refused as refused:
        if refused.denial.rule not in UNKNOWN_RULES:
            raise
        return _ask_about_program(verdict, command, kept, workspace)
    paths = parts_inside(approval.paths, locate_touched(approval.paths, workspace))
    effect = Effect(
        tool="Bash",
        command=approval.command,
        options=None if paths is None else approval.options,
        what=f"{workspace.cwd}\n{approval.line}",
        paths=paths,
        shown=approval.line,
        is_unknown=True,
        rule=verdict.rule,
    )
    return Ask(
        rule=verdict.rule,
        reason=verdict.reason,
        updated_input={"command": approval.line, **kept},
        changes=approval.changes,
        effect=effect,
        paths=tuple(map(workspace.join, approval.paths)),
    )


def _ask_about_program(
    verdict: Deny, command: str, kept: Mapping[str, Any], workspace: Workspace
) -> Ask:
    unknown = judge_unknown(command, workspace)
    effect = Effect(
        tool="Bash",
        command=unknown.command,
        options=None,
        what=f"{workspace.cwd}\n{unknown.line}",
        paths=parts_of(map(workspace.locate, unknown.files)),
        shown=unknown.line,
        is_unknown=True,
        rule=verdict.rule,
        fixed=unknown.fixed if unknown.may_be_remembered else None,
        is_ordinary=unknown.is_ordinary,
    )
    return Ask(
        rule=verdict.rule,
        reason=verdict.reason,
        updated_input={"command": unknown.line, **kept},
        effect=effect,
        paths=None,
    )
