"""The server's log: structlog on standard error, with one formatter for all loggers.

Records of the standard library (ours, uvicorn's, the agent SDK's) and of structlog look alike. They
have what `structlog.contextvars` holds, and their secrets are masked as the last step.
"""

import io
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.jsonsafe import clean_text, json_safe, json_text
from gateway.observability.masking import Mask, clip, mask_leaves, spell_out
from gateway.rate_limit import RateLimit
from policies.secrets import mask_secrets

_BURST: Final = 20
_EVERY_S: Final = 2.0
_MAX_KINDS: Final = 500

_Kind = tuple[str, int, str]


class RepeatLimit(logging.Filter):
    """Drops records whose kind repeats too often; the next one that passes has their count.

    A kind is a logger, a level and a message without its arguments. No record is dropped of a kind
    that occurs less often than every `_EVERY_S` seconds. Thread-safe.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._limit: RateLimit[_Kind] = RateLimit(
            burst=_BURST, every_s=_EVERY_S, max_keys=_MAX_KINDS, clock=clock
        )
        self._left_out: Counter[_Kind] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record passes; its `left_out` is the number of dropped
        ones before it.
        """
        kind = (record.name, record.levelno, _message_of(record))
        with self._lock:
            if not self._limit.take(kind):
                self._left_out[kind] += 1
                return False
            left_out = self._left_out.pop(kind, 0)
        if left_out:
            fields = record.msg if isinstance(record.msg, dict) else record.__dict__
            fields["left_out"] = left_out
        return True


def _message_of(record: logging.LogRecord) -> str:
    message: object = record.msg
    return str(message.get("event") if isinstance(message, dict) else message)


_TAKEN_OVER = ("uvicorn", "uvicorn.error", "uvicorn.access", "claude_agent_sdk")
"""Loggers whose own handlers are replaced by ours."""
_TALKATIVE = ("aiosqlite", "asyncio", "chromadb", "httpcore", "httpx", "mcp", "opentelemetry")
"""Logged from `WARNING` on."""


_MANY_ROWS = frozenset({"exception", "stack"})
_MAX_VALUE_CHARS = 4_000
"""Lines are masked on the event loop, and hostile text takes long: longer values lose their
middle."""
_READ_CHARS = 5_000


class _OurHandler(logging.StreamHandler[TextIO]):
    """Recognized by its class when logging is configured again."""


def configure_logging(
    *, json: bool, mask: Mask = mask_secrets, stream: TextIO | None = None
) -> None:
    """Send all logs from `INFO` on to `stream` (standard error), as JSON lines or as columns for a
    person.

    The last call counts. Other handlers of the root logger stay.
    """
    target = sys.stderr if stream is None else stream
    if isinstance(target, io.TextIOWrapper):
        target.reconfigure(errors="backslashreplace")
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = _OurHandler(target)
    handler.addFilter(RepeatLimit())
    handler.setFormatter(_formatter(shared, mask, json=json, colours=target.isatty()))
    _install(handler)


def _formatter(
    shared: list[Processor], mask: Mask, *, json: bool, colours: bool
) -> structlog.stdlib.ProcessorFormatter:
    columns = structlog.dev.ConsoleRenderer(
        colors=colours, timestamp_key="ts", exception_formatter=structlog.dev.plain_traceback
    )
    render: list[Processor] = [_render_json] if json else [_spell_out, columns]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(), _drop_duplicates],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _masking(mask),
            *render,
        ],
    )


def _install(handler: logging.Handler) -> None:
    root = logging.getLogger()
    for old in root.handlers[:]:
        if isinstance(old, _OurHandler):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for name in _TAKEN_OVER:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def _masking(mask: Mask) -> Processor:
    def clip_masked(text: str) -> str:
        # masks more than is kept, so that a secret at the cut is masked whole
        return clip(mask(clip(text, _READ_CHARS)), _MAX_VALUE_CHARS)

    def process(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        masked: EventDict = mask_leaves(json_safe(event), clip_masked)
        return masked

    return process


def _drop_duplicates(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Drop copies of the message, such as uvicorn's coloured one."""
    for name in ("color_message", "message", "asctime"):
        event.pop(name, None)
    return event


def _spell_out(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters, which could act on the terminal or forge a row."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = spell_out(value, keep="\n" if key in _MANY_ROWS else "")
    return event


def _render_json(_logger: WrappedLogger, _method: str, event: MutableMapping[str, Any]) -> str:
    first = {key: event.pop(key) for key in ("ts", "level", "logger", "event") if key in event}
    return clean_text(json_text({**first, **event}))
