"""The judgement of tool calls that come as lines of JSON: one line in, one line out, in order.

A call is `{"id", "tool", "input"}`, optionally with `"workspace"`, `"hook_cwd"` (where relative
paths start), `"platform"` (`posix`, `windows`, or `any` for this system) and `"config"` (changes to
the rules for this call alone). Other keys are ignored. A verdict is
`{"id", "verdict", "rule", "reason", "runs", "kind"}`, where `runs` is the command that would run in
place of the one that was judged, and `kind` tells a denial of what is only `unknown` from one of
what is `forbidden`.

A line that is not a call is denied under the rule `bad_call`; no input ends the program.
"""

import functools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, get_args

from policies.calls import ToolCall
from policies.rules import KNOWN_COMMANDS, Rules
from policies.tools import HERE, Platform, ToolGate
from policies.verdict import Allow, Ask, Deny, Verdict
from policies.visible_text import show
from policies.web import ANY_HOST, read_listed_host

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_GATES = 256
"""The number of gates kept for the workspaces and settings of earlier lines."""

SHELL_TOOLS = ("Bash", "PowerShell")


class BadCall(Exception):
    """Input that is not a call; the text says why in one sentence."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call and its settings."""

    call: ToolCall
    workspace: str
    platform: Platform
    config: str
    """As JSON, so that equal settings share a gate."""


class Checker:
    """Judges calls for any workspace under one set of rules."""

    def __init__(self, rules: Rules, workspace: Path, *, sandboxed_shell: bool = False) -> None:
        self.workspace = workspace
        self._sandboxed_shell = sandboxed_shell
        self._rules = rules
        self._gate = functools.lru_cache(MAX_GATES)(self._make_gate)

    def check_line(self, line: bytes) -> str:
        """Return the answer to one line, in ASCII and without a line end."""
        request_id: object = None
        runs: object = None
        try:
            told = _read_object(line)
            request_id = told.get("id")
            request = self.read(told)
            verdict = self.judge(request)
            runs = read_runs(request.call, verdict)
        except BadCall as fault:
            verdict = Deny("bad_call", str(fault))
        answer = {
            "id": request_id,
            "verdict": name_verdict(verdict),
            "rule": verdict.rule,
            "reason": verdict.message if isinstance(verdict, Deny) else verdict.reason,
            "runs": runs,
            "kind": verdict.kind if isinstance(verdict, Deny) else None,
        }
        return json.dumps(answer)

    def read(self, told: Mapping[str, Any]) -> Request:
        """Return the call of a JSON object. Raise `BadCall` if a key is missing or has a wrong
        value.
        """
        tool = _take_text(told, "tool", None)
        if "input" not in told:
            raise BadCall('The key "input" is missing.')
        workspace = _take_text(told, "workspace", str(self.workspace))
        config = {} if told.get("config") is None else told["config"]
        if not isinstance(config, dict):
            raise BadCall('"config" must be an object.')
        platform = _read_platform(told)
        if platform == HERE:
            workspace = os.path.abspath(workspace)  # noqa: PTH100  pathlib raises on some texts
        return Request(
            ToolCall(name=tool, input=told["input"], cwd=_take_text(told, "hook_cwd", workspace)),
            workspace,
            platform,
            json.dumps(config, sort_keys=True),
        )

    def judge(self, request: Request) -> Verdict:
        """Judge one call. Raise `BadCall` if its settings cannot be used."""
        gate = self._gate(request.workspace, request.platform, request.config)
        return gate.judge(request.call)

    def _make_gate(self, workspace: str, platform: Platform, config: str) -> ToolGate:
        rules, can_ask_user = _apply_config(self._rules, json.loads(config))
        return ToolGate(
            Path(workspace),
            rules=rules,
            can_ask_user=can_ask_user,
            platform=platform,
            sandboxed_shell=self._sandboxed_shell,
        )


def name_verdict(verdict: Verdict) -> str:
    """Return `allow`, `ask` or `deny`."""
    return type(verdict).__name__.lower()


def read_runs(call: ToolCall, verdict: Verdict) -> object:
    """Return the command that would run; `None` if it is denied or the tool takes no command."""
    if not isinstance(verdict, Allow | Ask) or call.name not in SHELL_TOOLS:
        return None
    return (verdict.updated_input or call.input).get("command")


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that are not blank, as they arrive; lines that are too long are cut."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        rest = line
        while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_LINE_BYTES + 1)  # the end of a line that is refused anyway
        if line.strip():
            yield line


def read_json(text: str | bytes) -> Any:
    """Read JSON strictly. Raise `BadCall` if it is not JSON, or is nested too deeply."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise BadCall("It is nested too deeply.") from None
    except ValueError:  # also a UnicodeDecodeError, and a number with too many digits
        raise BadCall("It is no JSON.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise BadCall(f"{name} is no JSON.")


def _read_object(line: bytes) -> Mapping[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise BadCall(f"The line is longer than {MAX_LINE_BYTES} bytes.")
    try:
        told = read_json(line)
    except BadCall as fault:
        raise BadCall(f"The line cannot be read. {fault}") from None
    if not isinstance(told, dict):
        raise BadCall("The line is no JSON object.")
    return told


def _take_text(told: Mapping[str, Any], key: str, default: str | None) -> str:
    value = told.get(key)
    if value is None and default is not None:
        return default
    if key not in told:
        raise BadCall(f'The key "{key}" is missing.')
    if not isinstance(value, str) or (not value and default is not None):
        raise BadCall(f'"{key}" must be a text.')
    return value


def _read_platform(told: Mapping[str, Any]) -> Platform:
    value = told.get("platform")
    if value is None or value == "any":
        return HERE
    for known in get_args(Platform):
        if value == known:
            return known  # type: ignore[no-any-return]  # one of the literals, as get_args gives them
    raise BadCall('"platform" must be posix, windows or any.')


def _apply_config(rules: Rules, config: Mapping[str, object]) -> tuple[Rules, bool]:
    """Return the rules as changed by a call's settings, and whether a person
    can answer questions.
    """
    can_ask_user = False
    for key, value in config.items():
        match key:
            case "webfetch_allow":
                hosts = frozenset(map(_read_host, _read_texts(key, value)))
                rules = replace(rules, web_hosts=hosts)
            case "mcp_allow":
                own = rules.own_changing_tools | _read_texts(key, value)
                rules = replace(rules, own_changing_tools=own)
            case "commands_allow":
                more = _read_texts(key, value)
                if not more <= KNOWN_COMMANDS:
                    raise BadCall(f"{show(min(more - KNOWN_COMMANDS))} is not a known command.")
                rules = replace(rules, commands=rules.commands | more)
            case "can_ask_user":
                if not isinstance(value, bool):
                    raise BadCall('"can_ask_user" must be true or false.')
                can_ask_user = value
            case _:
                known = "can_ask_user, commands_allow, mcp_allow, webfetch_allow"
                raise BadCall(f'"config" does not know {show(key)}; it knows {known}.')
    return rules, can_ask_user


def _read_texts(key: str, value: object) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadCall(f'"{key}" must be a list of texts.')
    return frozenset(value)


def _read_host(text: str) -> str:
    host = text if text == ANY_HOST else read_listed_host(text)
    if host is None:
        raise BadCall(f"{show(text)} is not a public host name.")
    return host
