"""How memory asks a small model: without tools, outside of every conversation."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import anyio

from memory.clock import Now
from memory.remote.breaker import Breaker, BreakerLimits

_LIMITS: Final = BreakerLimits(max_failures=3, open_s=300.0)
_MAX_ANSWER_CHARS: Final = 20_000
T = TypeVar("T")
_FENCED: Final = re.compile(r"\A```(?:json)?\s*\n(?P<inner>.*)\n```\Z", re.DOTALL)


class ModelUnavailable(Exception):
    """The model did not answer; the text is one sentence for people."""


class AskModel(Protocol):
    """Asks a small model one question. The answer is not trusted: check it."""

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        """Return the model's answer. Raise `ModelUnavailable` if there is no answer in time."""


class RestingModel:
    """Asks the model, and leaves it alone for five minutes after three failures in a row."""

    def __init__(self, ask: AskModel, *, now: Now, timeout_s: float = 30.0) -> None:
        self._ask = ask
        self._now = now
        self._timeout_s = timeout_s
        self._breaker = Breaker(_LIMITS)

    @property
    def rests(self) -> bool:
        """True while nobody is asked."""
        return self._breaker.state(self._now()) == "open"

    async def ask(self, *, system: str, prompt: str, read: Callable[[str], T | None]) -> T | None:
        """Return what `read` makes of the answer; never raises but cancellation.

        None, and a failure, if there is no answer in time or `read` returns None for its form.
        """
        if self.rests:
            return None
        try:
            with anyio.fail_after(self._timeout_s):
                text = await self._ask(system=system, prompt=prompt, timeout_s=self._timeout_s)
            found = read(text)
        except Exception:  # noqa: BLE001  whatever is wrong with the model, memory goes on without it
            found = None
        if found is None:
            self._breaker.failed(self._now())
        else:
            self._breaker.succeeded()
        return found


def read_json(text: str) -> dict[str, Any] | None:
    """Return the one JSON object of an answer, which may be fenced; None if it is anything else."""
    text = text.strip()
    if len(text) > _MAX_ANSWER_CHARS:
        return None
    fenced = _FENCED.match(text)
    try:
        value = json.loads(fenced["inner"] if fenced else text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
