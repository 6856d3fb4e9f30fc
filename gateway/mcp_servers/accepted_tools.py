"""The files that keep which definitions of tools were accepted, and which wait for it.

Both lie in the data directory, where no agent and no MCP server can write. Everything here blocks.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gateway.atomic import write_atomically_blocking
from gateway.errors import StartError
from gateway.mcp_servers.definitions import Definitions, ToolDefinition

MCP_FOLDER = "mcp"
"""Below the data directory: these files, and the homes of the servers."""
_ACCEPTED, _WAITING = "accepted-tools.json", "waiting-tools.json"


Share = Callable[[str, Definitions], object]


def value_of(tool: ToolDefinition) -> str:
    """Return a definition as text."""
    return json.dumps([tool.description, tool.input_schema])


def tools_of(values: Mapping[str, str]) -> Definitions:
    """Return definitions that `value_of` has written, by tool."""
    return {name: ToolDefinition(name, *json.loads(value)) for name, value in values.items()}


class AcceptedTools:
    """The accepted and the waiting definitions, by server."""

    def __init__(self, folder: Path, share: Share | None = None) -> None:
        """Initialise; `share` accepts tools where the file of those accepted is a copy, which it
        brings up to date.
        """
        self._folder = folder
        self._share = share

    def stamp_blocking(self) -> int:
        """Return a number that changes with each acceptance."""
        try:
            return (self._folder / _ACCEPTED).stat().st_mtime_ns
        except OSError:
            return 0

    def accepted_blocking(self) -> Mapping[str, Definitions]:
        """Return what was accepted. Raise `StartError` if the file is damaged."""
        return self._read_blocking(_ACCEPTED)

    def waiting_blocking(self) -> Mapping[str, Definitions]:
        """Return what waits. Raise `StartError` if the file is damaged."""
        return self._read_blocking(_WAITING)

    def accept_blocking(self, server: str, tools: Definitions) -> None:
        """Accept exactly these definitions besides those that were."""
        if self._share is not None:
            self._share(server, tools)
            return
        everything = self.accepted_blocking()
        self.replace_blocking({**everything, server: {**everything.get(server, {}), **tools}})

    def replace_blocking(self, everything: Mapping[str, Definitions]) -> None:
        """Accept exactly these definitions, by server."""
        self._write_blocking(_ACCEPTED, everything)

    def keep_waiting_blocking(self, server: str, tools: Definitions) -> None:
        """Keep what waits of a server."""
        if tools != self.waiting_blocking().get(server, {}):
            self._write_blocking(_WAITING, {**self.waiting_blocking(), server: tools})

    def _read_blocking(self, name: str) -> dict[str, Definitions]:
        path = self._folder / name
        try:
            stored: Mapping[str, Mapping[str, Any]] = json.loads(path.read_bytes())
            return {
                server: {tool: ToolDefinition(tool, *told) for tool, told in tools.items()}
                for server, tools in stored.items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as exc:
            raise StartError(
                f"The file {path} is damaged or cannot be read; move it away, and the tools of the "
                "MCP servers are accepted anew."
            ) from exc

    def _write_blocking(self, name: str, everything: Mapping[str, Definitions]) -> None:
        stored = {
            server: {tool.name: [tool.description, tool.input_schema] for tool in tools.values()}
            for server, tools in everything.items()
        }
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(stored, indent=1)
        write_atomically_blocking(self._folder / name, text.encode(), mode=0o600)
