"""JSON over HTTP to a service that the operator names, bounded in time and size.

Proxies and credentials of the process's environment are not used: what is remembered goes only to
the configured address.
"""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import anyio
import anyio.to_thread
import httpx

from memory.errors import BackendUnavailable, DeliveryRefused

_REFUSED: Final = frozenset({400, 413, 415, 422})
"""The request itself is wrong; any other failure may be temporary."""
_OK: Final = range(200, 300)
_MAX_DIGITS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, and the body as JSON; None if it is not JSON."""

    status: int
    body: Any
    retry_after_s: float | None = None
    """How long the service asks to wait, if it does."""

    @property
    def is_ok(self) -> bool:
        """True for a status of success."""
        return self.status in _OK


class JsonService:
    """One service at one address. Close it."""

    def __init__(
        self, base_url: str, *, name: str, timeout_s: float, max_bytes: int, api_key: str = ""
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._name = name
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None
        self._opening = anyio.Lock()

    async def call(self, method: Literal["GET", "POST"], path: str, body: Any = None) -> Answer:
        """Send one request; any status is an answer.

        Raise `BackendUnavailable` if it cannot be reached, or answers too slowly or too much.
        """
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._ask(method, path, body)
        except (TimeoutError, httpx.TimeoutException) as exc:
            raise BackendUnavailable(f"{self._name} did not answer in time.") from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise BackendUnavailable(f"{self._name} cannot be reached.") from exc

    async def ask(self, method: Literal["GET", "POST"], path: str, body: Any = None) -> Any:
        """Send one request and return the JSON of a successful answer.

        Raise `BackendUnavailable` if it cannot be reached, or did not do it; `DeliveryRefused` if
        the service refuses the request.
        """
        answer = await self.call(method, path, body)
        if answer.status in _REFUSED:
            raise DeliveryRefused(f"{self._name} refused it (HTTP {answer.status}).")
        if not answer.is_ok:
            raise BackendUnavailable(f"{self._name} failed (HTTP {answer.status}).")
        if answer.body is None:
            raise BackendUnavailable(f"{self._name} answered something that is not JSON.")
        return answer.body

    async def close(self) -> None:
        """Close its connections; idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(self, method: str, path: str, body: Any) -> Answer:
        client = await self._open()
        async with client.stream(method, f"{self._base_url}{path}", json=body) as response:
            text = bytearray()
            async for chunk in response.aiter_bytes():
                text += chunk
                if len(text) > self._max_bytes:
                    raise BackendUnavailable(f"{self._name} answered too much.")
            return Answer(
                status=response.status_code,
                body=_json_of(bytes(text)),
                retry_after_s=_seconds(response.headers.get("Retry-After", "")),
            )

    async def _open(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:  # in a thread: it reads the system's certificates
                self._client = await anyio.to_thread.run_sync(
                    partial(
                        httpx.AsyncClient,
                        headers=self._headers,
                        timeout=self._timeout_s,
                        trust_env=False,
                        follow_redirects=False,
                        # without TLS there is no certificate to verify, and reading all takes 20 ms
                        verify=not self._base_url.lower().startswith("http:"),
                    )
                )
            return self._client


def _seconds(text: str) -> float | None:
    """Return a number of seconds; the other form of the header, a date, counts as none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return float(text) if is_number else None


def _json_of(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
