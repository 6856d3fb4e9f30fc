"""What a broker is started with; apart from it, so that the server need not load the broker."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlan:
    """What a broker is started with."""

    program: str
    is_packaged: bool
    """The program came as a package, so that it may be where its user cannot reach it."""
    system: list[list[str]]
    """Paths of the system in the box, each with where it leads if it is a link."""
    workspace: str
    folders: list[list[str]]
    """Further folders, each `read` or `write` and a path."""
    temporary: str
    """The agents' temporary folder, in which a line names its file for the working directory."""
    memory_mb: int
    hosts: list[str]
    secrets: dict[str, list[str]] = field(default_factory=dict, repr=False)
    """By host: the header that its plain requests get, name and value."""
    key: str = field(repr=False)
    """What each request begins with; with an empty one no request is served. Only agents can read
    it: other programs of the server's user, such as MCP servers, reach the socket, too.
    """
