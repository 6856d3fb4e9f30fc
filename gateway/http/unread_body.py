"""Read what a refused client still sends, so that it gets its answer.

A connection that is closed while data arrives is reset, and a client that writes its whole body
before it reads loses the answer.
"""

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class UnreadBody:
    """Discards the rest of a body that no route read, between the answer and the end of its
    connection.

    Reads at most `max_bytes` for at most `deadline_s`. A connection that stays open is left to the
    server, which discards the rest of the body before the next request.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, deadline_s: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._deadline_s = deadline_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_unread = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        is_last = scope["http_version"] == "1.0" or _closes(headers)

        async def watched() -> Message:
            nonlocal is_unread
            message = await receive()
            is_unread = is_unread and message.get("more_body", False)
            return message

        async def discard() -> None:
            left = self._max_bytes
            with anyio.move_on_after(self._deadline_s):
                while is_unread and left > 0:
                    left -= len((await watched()).get("body", b""))

        async def answer(message: Message) -> None:
            nonlocal is_last
            if message["type"] == "http.response.start":
                is_last = is_last or _closes(Headers(raw=message["headers"]))
            elif is_last and is_unread and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await discard()
                message = {"type": "http.response.body"}
            await send(message)

        await self._app(scope, watched, answer)


def _closes(headers: Headers) -> bool:
    return "close" in headers.get("connection", "").lower()
