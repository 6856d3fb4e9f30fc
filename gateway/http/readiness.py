"""Whether turns can run: what each part answers, and one word of it that anybody may ask for."""

import logging
import math
from collections.abc import Mapping
from typing import Final

import anyio

from gateway.model_access import Ping
from gateway.services import Services

_AGAIN_S: Final = 1.0
_log = logging.getLogger(__name__)

Answer = str | Mapping[str, str] | None
"""Of a part: a sentence if it fails, else its state or nothing."""


async def ask_parts(services: Services, deadline_s: float) -> dict[str, Answer]:
    """Ask all parts at once; one that does not answer in time, or raises, gets a sentence."""
    answers: dict[str, Answer] = dict.fromkeys(services.pings)

    async def ask(name: str, ping: Ping) -> None:
        answers[name] = await _ask(name, ping, deadline_s)

    async with anyio.create_task_group() as tasks:
        for name, ping in services.pings.items():
            tasks.start_soon(ask, name, ping)
    return answers


async def _ask(name: str, ping: Ping, deadline_s: float) -> Answer:
    try:
        with anyio.fail_after(deadline_s):
            return await ping()
    except TimeoutError:
        return "It did not answer in time."
    except Exception:  # noqa: BLE001  a broken part must not hide the others
        _log.exception("ping_failed", extra={"part": name})
        return "It could not be asked; the server's log says why."


def can_run(services: Services, answers: Mapping[str, Answer]) -> bool:
    """Return whether new turns are taken, run, and are logged."""
    failed = any(isinstance(answer, str) for answer in answers.values())
    return not services.chat.intake.is_closed and not failed


class Readiness:
    """The same without the parts, which are asked once a second at most, whoever asks."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._asked_s = -math.inf
        self._answers: Mapping[str, Answer] = {}

    async def is_ready(self, services: Services, deadline_s: float) -> bool:
        """Return whether turns can run, as of a second ago at most; a drain shows at once."""
        async with self._lock:
            if anyio.current_time() - self._asked_s >= _AGAIN_S:
                self._answers = await ask_parts(services, deadline_s)
                self._asked_s = anyio.current_time()
        return can_run(services, self._answers)
