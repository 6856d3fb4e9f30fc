"""Tools of the gateway that come from outside of a conversation: MCP servers, the web."""

from collections.abc import Iterator, Mapping, Sequence

from gateway.engine.own_tools import OwnServer, OwnToolCaller, ToolSource
from policies.calls import OwnToolRule


class FurtherTools:
    """All sources of such tools together; what they offer may change while the server runs."""

    def __init__(self, sources: Sequence[ToolSource] = ()) -> None:
        self._sources = sources

    def servers(self) -> Iterator[OwnServer]:
        """Yield what is offered now."""
        for source in self._sources:
            yield from source.servers()

    def callers(self) -> Mapping[str, OwnToolCaller]:
        """Return who answers the calls, by the server's name."""
        return {server.name: source for source in self._sources for server in source.servers()}

    def rule_of(self, name: str) -> OwnToolRule | None:
        """Return the policy's rule of a tool by its full name."""
        rules = (source.rule_of(name) for source in self._sources)
        return next((rule for rule in rules if rule is not None), None)

    def parameters(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the arguments of each tool, by its full name."""
        return {
            server.full_name(tool): list(tool.input_schema["properties"])
            for server in self.servers()
            for tool in server.tools
        }
