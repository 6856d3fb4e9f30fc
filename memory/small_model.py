"""How memory asks a small model: without tools, outside of every conversation."""

from typing import Protocol


class ModelUnavailable(Exception):
    """The model did not answer; the text is one sentence for people."""


class AskModel(Protocol):
    """Asks a small model one question. The answer is not trusted: check it."""

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        """Return the model's answer.

        Raises:
            ModelUnavailable: there is no answer in time.
        """
        ...
