"""An agent's calls of the service, and what of them is reported to the server."""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from gateway.relay.answers import AnswerReader
from gateway.relay.reports import Kind, ModelCall, ServiceReport, meant_wait, report_line

_MESSAGES = re.compile(rb"/v1/messages(?:\?.*)?")
"""The calls whose failures are reported: a service need not count tokens."""

_MODEL = re.compile(rb'\s*{\s*"model"\s*:\s*"([\w.:@/+-]{1,100})"', re.ASCII)


def write_line(line: bytes) -> None:
    """Write a line to the server; a server that does not read loses lines and delays nothing."""
    with contextlib.suppress(BlockingIOError):
        os.write(1, line)  # whole or not at all: it is short


def now() -> float:
    """Return the time of the loop's clock, in seconds."""
    return asyncio.get_running_loop().time()


@dataclass(slots=True, eq=False)
class Client:
    """An admitted agent."""

    id: str
    reports_calls: bool = False
    """Each call is reported when it has ended."""
    mark: bytes | None = None
    """In the warm-up prompt that is answered here."""
    has_tools: bool = True
    """The model may call tools."""
    free: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared while its requests must wait."""
    open_calls: int = 0
    heard_at: float = 0.0
    """When the service last sent content, or was asked."""
    blocked: int = 0
    """Calls that wait for the agent to read."""
    is_silent: bool = False
    """The server knows of a silence."""

    def report(self, kind: Kind, **fields: Any) -> None:
        """Report to the server."""
        self.send(ServiceReport(kind=kind, **fields))

    def send(self, report: ServiceReport) -> None:
        """Send the server a report."""
        write_line(report_line(self.id, report))


class Call:
    """A request to the service, while the block runs."""

    def __init__(self, client: Client, target: bytes) -> None:
        self._client = client
        self._fault: Kind | None = None
        self._began = 0.0
        self._first_s: float | None = None
        self.status: int | None = None
        """The HTTP status of the answer, once it has begun."""
        self.asked_model = ""
        """The model that the request names, as far as that is known."""
        self.reader: AnswerReader | None = None
        """What reads the answer, if anything does."""
        self.is_message = _MESSAGES.fullmatch(target) is not None
        """The request is for an answer of the model."""
        self.is_told = self.is_message and client.reports_calls
        """The call's end is reported."""

    def __enter__(self) -> None:
        self._client.open_calls += self.is_message
        self._began = self._client.heard_at = now()

    def __exit__(self, *_: object) -> None:
        self._client.open_calls -= self.is_message
        self.end(is_whole=False)

    def hear(self) -> None:
        """Note that the service sent content."""
        self._client.heard_at = now()
        if self._first_s is None:
            self._first_s = self._client.heard_at - self._began

    def end(self, *, is_whole: bool) -> None:
        """Report that the call has ended, once, if that is wanted."""
        if not self.is_told:
            return
        self.is_told = False
        reader = self.reader
        call = ModelCall(
            status=self.status,
            fault=self._fault,
            is_whole=is_whole,
            seconds=now() - self._began,
            first_s=self._first_s,
            asked_model=self.asked_model,
            model=reader.model if reader else "",
            tokens=reader.tokens if reader else {},
        )
        self._client.send(call)

    @contextlib.contextmanager
    def blocked(self) -> Iterator[None]:
        """Count the time of the block as the agent's, which does not read."""
        began, client = now(), self._client
        client.blocked += 1
        try:
            yield
        finally:
            client.blocked -= 1
            client.heard_at += now() - began

    def report(self, kind: Kind, **fields: Any) -> None:
        """Report a failure of the service; only the first one of a call."""
        if self.is_message and self._fault is None:
            self._fault = kind
            self._client.report(kind, **fields)

    def report_answer(self) -> None:
        """Report what is wrong with the answer, once it is known, and its end."""
        reader = self.reader
        if reader is not None and reader.fault is not None:
            self.report(reader.fault, status=reader.status)
        if reader is not None and reader.is_whole:
            self.end(is_whole=True)


def model_of(request: bytes) -> str:
    """Return the model that a request names, if it does so first, as the agent program does."""
    found = _MODEL.match(request)
    return found[1].decode() if found else ""


def origin(location: str) -> str:
    """Return where a redirection leads, without path and password; empty if to the same server."""
    try:
        split = urlsplit(location)
        port = f":{split.port}" if split.port else ""
    except ValueError:
        return ""
    return f"{split.scheme}://{split.hostname}{port}" if split.scheme and split.hostname else ""


def seconds_to_wait(retry_after: str) -> float | None:
    """Return the seconds of a `Retry-After`, which may be a date; None if it is neither, or not to
    be meant.
    """
    with contextlib.suppress(ValueError):
        return meant_wait(float(retry_after))
    with contextlib.suppress(ValueError, OverflowError):  # the latter of a year beyond the calendar
        return meant_wait(parsedate_to_datetime(retry_after).timestamp() - time.time())
    return None
