"""Sends one message to a webhook. Redirects are not followed and the answer's body is not read."""

from collections.abc import Collection
from http import HTTPStatus
from typing import Final

import anyio
import httpx

from gateway.errors import UnprocessableEntity
from gateway.web_fetch.errors import FetchRefused
from gateway.web_fetch.exchange import Exchange
from gateway.webhooks.address import Address, check_address
from gateway.webhooks.message import signed_headers
from memory.clock import Now
from memory.errors import BackendUnavailable

CALL_S: Final = 15.0
"""From the look-up of the name to the answer's status."""


class ReceiverGone(Exception):
    """The receiver answered that it wants no more."""


class ReceiverRefused(BackendUnavailable):
    """The receiver answered with a status that is no success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"It answered with the status {status}.")
        self.status = status


class WebhookSender:
    """Sends messages to public addresses, and to any address of the listed hosts."""

    def __init__(
        self,
        hosts: Collection[str],
        now: Now,
        *,
        public: Exchange | None = None,
        call_s: float = CALL_S,
    ) -> None:
        self._hosts = hosts
        self._now = now
        self._public = public or Exchange()
        self._any = Exchange(is_allowed=lambda _: True)
        self._call_s = call_s

    def check(self, url: str) -> Address:
        """Return where an address leads.

        Raise `UnprocessableEntity` if it must not be delivered to.
        """
        return check_address(url, self._hosts)

    async def send(self, url: str, secret: str, message_id: str, body: bytes) -> int:
        """Send a body; return the status of the answer, from 200 to 299.

        Raises:
            BackendUnavailable: it was not taken; the text says why. `ReceiverRefused` if an answer
                came.
            ReceiverGone: the receiver answered 410.
        """
        try:
            address = self.check(url)  # what is listed may have changed
        except UnprocessableEntity as exc:
            raise BackendUnavailable(exc.message) from exc
        exchange = self._any if address.is_listed else self._public
        headers = signed_headers(secret, message_id, self._now(), body)
        try:
            with anyio.fail_after(self._call_s):
                status = await exchange.post(url, address.host, body, headers)
        except TimeoutError as exc:
            raise BackendUnavailable(f"It did not answer within {self._call_s:g} s.") from exc
        except FetchRefused as exc:
            raise BackendUnavailable(str(exc)) from exc
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            reason = "The connection failed, or the answer is not of HTTP."
            raise BackendUnavailable(reason) from exc
        if status == HTTPStatus.GONE:
            raise ReceiverGone
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise ReceiverRefused(status)
        return status
