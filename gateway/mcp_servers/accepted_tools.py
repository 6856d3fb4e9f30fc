"""The files that keep which definitions of tools were accepted, and which wait for it.

Both lie in the data directory, where no agent and no MCP server can write. Everything here blocks.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.atomic import write_atomically_blocking
from gateway.errors import StartError
from gateway.mcp_servers.definitions import Definitions, ToolDefinition

MCP_FOLDER = "mcp"
"""Below the data directory: these files, and the homes of the servers."""
_ACCEPTED, _WAITING = "accepted-tools.json", "waiting-tools.json"


class AcceptedTools:
    """The accepted and the waiting definitions, by server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

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
        self._write_blocking(
            _ACCEPTED, server, {**self.accepted_blocking().get(server, {}), **tools}
        )

    def keep_waiting_blocking(self, server: str, tools: Definitions) -> None:
        """Keep what waits of a server."""
        if tools != self.waiting_blocking().get(server, {}):
            self._write_blocking(_WAITING, server, tools)

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

    def _write_blocking(self, name: str, server: str, tools: Definitions) -> None:
        everything = {**self._read_blocking(name), server: tools}
        stored = {
            server: {tool.name: [tool.description, tool.input_schema] for tool in tools.values()}
            for server, tools in everything.items()
        }
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(stored, indent=1)
        write_atomically_blocking(self._folder / name, text.encode(), mode=0o600)
