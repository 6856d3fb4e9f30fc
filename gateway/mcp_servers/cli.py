"""The command `mcp`: which tools of MCP servers were accepted, and which wait for it."""

import argparse
import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from gateway.mcp_servers.accepted_tools import AcceptedTools, Share
from gateway.mcp_servers.definitions import ToolDefinition
from policies.explain import printable


def run_mcp_command(
    arguments: Sequence[str],
    folder: Path,
    program: str,
    out: TextIO,
    share: Share | None = None,
) -> int:
    """Run the command and return the exit code: 1 if what it names does not wait.

    `folder` is where accepted tools are kept; `share` is for `AcceptedTools`. Raise `StartError`
    if they cannot be read.
    """
    parser = argparse.ArgumentParser(prog=f"{program} mcp", description=__doc__)
    commands = parser.add_subparsers(dest="does")
    commands.add_parser("list", help="list the tools, and what changed in those that wait")
    accept = commands.add_parser("accept", help="accept tools as their server describes them now")
    accept.add_argument("server")
    accept.add_argument("tools", nargs="*", help="default: all that wait")
    try:
        options = parser.parse_args(arguments)
    except SystemExit as exc:  # help or a usage error was printed
        return int(exc.code or 0)
    tools = AcceptedTools(folder, share)
    if options.does == "accept":
        return _accept(tools, options.server, options.tools, out)
    lines = list(_list(tools)) or ["No MCP server was seen yet; set CANDOR_MCP_FILE and start."]
    out.writelines(f"{printable(line)}\n" for line in lines)
    return 0


def _list(tools: AcceptedTools) -> Iterator[str]:
    accepted, waiting = tools.accepted_blocking(), tools.waiting_blocking()
    for server in sorted({*accepted, *waiting}):
        known, new = accepted.get(server, {}), waiting.get(server, {})
        for name in sorted({*known, *new}):
            state = "accepted" if name not in new else "changed" if name in known else "new"
            yield f"{server} {name}: {state}"
            if name in new:
                yield from _changes(known.get(name), new[name])


def _changes(before: ToolDefinition | None, after: ToolDefinition) -> Iterator[str]:
    old, new = (_lines(tool) if tool else [] for tool in (before, after))
    for line in difflib.unified_diff(old, new, n=1, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            yield f"  {line}"


def _lines(tool: ToolDefinition) -> list[str]:
    schema = json.dumps(tool.input_schema, indent=1, sort_keys=True)
    return [*tool.description.splitlines(), *schema.splitlines()]


def _accept(tools: AcceptedTools, server: str, names: Sequence[str], out: TextIO) -> int:
    waiting = tools.waiting_blocking().get(server, {})
    wanted = {name: waiting[name] for name in names or waiting if name in waiting}
    if not wanted or len(wanted) < len(set(names)):
        out.write(printable(f"Not all of this waits: {server} {' '.join(names)}".rstrip()) + ".\n")
        return 1
    tools.accept_blocking(server, wanted)
    out.write(printable(f"Accepted of {server}: {', '.join(sorted(wanted))}.") + "\n")
    out.write("A running server takes it over within seconds.\n")
    return 0
