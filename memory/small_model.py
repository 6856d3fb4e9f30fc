"""How memory asks a model: a side query, without tools, apart from every conversation."""

from typing import Protocol


class ModelUnavailable(Exception):
    """The model did not answer in time or at all; the text is one sentence for people."""


class AskModel(Protocol):
    """One question to a small model. What it answers is never trusted: check it."""

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        """Give the model's answer as text.

        Raises:
            ModelUnavailable: there is none within the time.
        """
        ...
