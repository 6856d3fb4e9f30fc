"""Searches the web with a SearXNG server that the operator names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
import httpx

from gateway.jsonsafe import clean_text
from gateway.web_fetch.errors import FetchRefused

MAX_RESULTS: Final = 8
_MAX_BYTES: Final = 1024 * 1024
_LIMIT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Found:
    """One result."""

    title: str
    url: str
    summary: str


class Search:
    """Asks one server, whose address is the operator's and may be private."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/search"

    async def find(self, query: str) -> list[Found]:
        """Return the first results. Raise `FetchRefused`."""
        try:
            with anyio.fail_after(_LIMIT_S):
                body = await self._ask(query)
            results = json.loads(body)["results"]
            return [_read(result) for result in results[:MAX_RESULTS] if isinstance(result, dict)]
        except (TimeoutError, httpx.HTTPError, OSError) as exc:
            raise FetchRefused("The search service cannot be reached.") from exc
        except (ValueError, LookupError, TypeError, RecursionError) as exc:
            raise FetchRefused("The search service gave no answer that can be read.") from exc

    async def _ask(self, query: str) -> bytes:
        async with (
            httpx.AsyncClient(trust_env=False, timeout=_LIMIT_S) as client,
            client.stream(
                "GET",
                self._url,
                params={"q": query, "format": "json"},
                headers={"Accept-Encoding": "identity"},
            ) as response,
        ):
            if response.status_code == httpx.codes.FORBIDDEN:
                raise FetchRefused("The search service does not answer in JSON; allow it there.")
            response.raise_for_status()
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise FetchRefused("The search service answered with too much.")
            return bytes(body)


def _read(result: Mapping[str, Any]) -> Found:
    def field(name: str, most: int) -> str:
        return " ".join(clean_text(str(result.get(name) or "")).split())[:most]

    return Found(field("title", 300), field("url", 2000), field("content", 500))
