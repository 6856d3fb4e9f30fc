"""Passes what commands write while they run to the clients that started them."""

from collections.abc import Callable


class CommandOutputs:
    """The clients of a server whose commands run in boxes, by their ids."""

    def __init__(self) -> None:
        self._readers: dict[str, Callable[[str], None]] = {}

    def admit(self, client_id: str, reader: Callable[[str], None]) -> None:
        """Pass on what the commands of a client write until it is revoked."""
        self._readers[client_id] = reader

    def revoke(self, client_id: str) -> None:
        """Pass on nothing more. Idempotent."""
        self._readers.pop(client_id, None)

    def pass_on(self, mark: str, text: str) -> None:
        """Pass on a piece from a process with this mark; see `gateway.engine.processes`."""
        reader = self._readers.get(mark.partition(":")[2])
        if reader is not None:
            reader(text)
