"""How memory asks a small model: without tools, outside of every conversation."""

import json
import re
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import anyio

from memory.clock import Now

_FAILURES_BEFORE_REST: Final = 3
_REST: Final = timedelta(minutes=5)
_MAX_ANSWER_CHARS: Final = 20_000
_FENCED: Final = re.compile(r"\A```(?:json)?\s*\n(?P<inner>.*)\n```\Z", re.DOTALL)


class ModelUnavailable(Exception):
    """The model did not answer; the text is one sentence for people."""


class AskModel(Protocol):
    """Asks a small model one question. The answer is not trusted: check it."""

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        """Return the model's answer.

        Raises:
            ModelUnavailable: there is no answer in time.
        """


class RestingModel:
    """Asks the model, and leaves it alone for five minutes after three failures in a row."""

    def __init__(self, ask: AskModel, *, now: Now, timeout_s: float = 30.0) -> None:
        self._ask = ask
        self._now = now
        self._timeout_s = timeout_s
        self._failures = 0
        self._rests_until: datetime | None = None

    @property
    def rests(self) -> bool:
        """True while nobody is asked."""
        return self._rests_until is not None and self._now() < self._rests_until

    async def answer(self, *, system: str, prompt: str) -> str | None:
        """Return the answer, or None if there is none in time; never raises but cancellation.

        Call `count` with whether the answer was of use.
        """
        if self.rests:
            return None
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._ask(system=system, prompt=prompt, timeout_s=self._timeout_s)
        except (ModelUnavailable, TimeoutError):
            return None
        except Exception:  # noqa: BLE001  whatever is wrong with the model, memory goes on without it
            return None

    def count(self, *, was_of_use: bool) -> None:
        """Count an answer of the model, which may be missing or of another form than was asked for."""
        if was_of_use:
            self._failures, self._rests_until = 0, None
            return
        self._failures += 1
        if self._failures >= _FAILURES_BEFORE_REST:
            self._rests_until = self._now() + _REST


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
