"""Measures the stages of a search: each retriever, and reading what they found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import anyio


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEvents:
    """Callbacks for what happens in searches; called on the loop."""

    on_stage: Callable[[str, float], None] = lambda *_: None
    """A stage and its seconds, also if it failed or was cut off."""
    on_scanned: Callable[[int], None] = lambda _: None
    """How many items a search looked at."""

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Report how long the block takes, however it ends."""
        began = anyio.current_time()
        try:
            yield
        finally:
            self.on_stage(stage, anyio.current_time() - began)


NO_EVENTS: Final = SearchEvents()
