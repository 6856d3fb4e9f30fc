"""Requests that one server passes on to another: what the other one is told, and what it is not."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, cast

import anyio
import anyio.lowlevel
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.conversations.leases import Node
from gateway.errors import GatewayError, Overloaded, TooLarge
from gateway.http.forwarding import KEY, SECRET, TO, Forwarder, NodeGuard
from gateway.ids import ConversationId, NodeId
from gateway.turns.ownership import ClosedHere, FullHere, HeldElsewhere, Ownership

THERE = Node(id=NodeId("there"), incarnation="1", url="http://there:1/base", secret="secret")
HELD = ConversationId("cnv_a")
SPOOFED = {"x-candor-node": "guess", "x-candor-client": "10.0.0.1", "x-candor-key": "k"}


@dataclass(slots=True)
class Leases:
    """Says that another server holds a conversation, for so many questions."""

    left: int = 1_000_000
    is_alive: bool = False
    """Whether the other server lives when it holds the conversation no more."""
    expires_s: float = 0.2

    async def elsewhere(self, _: ConversationId) -> Node | None:
        await anyio.lowlevel.checkpoint()
        self.left -= 1
        return THERE if self.left >= 0 else None

    async def lives(self, _: Node) -> bool:
        return self.is_alive

    def holds(self, _: ConversationId) -> bool:
        return False

    async def another(self, asked: Collection[str] = ()) -> Node | None:
        node = await self.elsewhere(HELD)
        return node if node and node.incarnation not in asked else None

    def is_living(self, _: Node) -> bool:
        return True


@dataclass(slots=True)
class Here:
    """The server that gets the request: it has read the body when it finds whose it is."""

    leases: Leases = field(default_factory=Leases)
    served: list[tuple[bytes, str]] = field(default_factory=list)
    """The bodies and keys of the requests that were served here."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        if self.leases.left >= 0:
            raise HeldElsewhere(HELD, THERE)
        self.served.append((body, scope["state"]["forward_key"]))
        await JSONResponse({"served": "here"})(scope, receive, send)


def asking(
    app: ASGIApp,
    leases: Leases,
    answer: Callable[[httpx.Request], Any],
    wait_stopped: Callable[[], Awaitable[None]] = anyio.sleep_forever,
) -> httpx.AsyncClient:
    """Return a client of a server whose requests to the other one `answer` gets."""
    forwarder = Forwarder(
        app,
        ownership=cast(Ownership, leases),
        transport=httpx.MockTransport(answer),
        wait_stopped=wait_stopped,
    )

    async def outermost(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"request_id": "req_1"}
        await NodeGuard(forwarder, node=Node(id=NodeId("here"), incarnation="1", secret="own"))(
            scope, receive, send
        )

    transport = httpx.ASGITransport(outermost, client=("192.0.2.7", 9))
    return httpx.AsyncClient(transport=transport, base_url="http://candor")


async def test_a_request_is_passed_on_whole_and_its_answer_as_it_is() -> None:
    seen: list[tuple[httpx.Request, bytes]] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request, await request.aread()))
        headers = {"x-own": "1", "connection": "close"}
        return httpx.Response(201, headers=headers, stream=httpx.ByteStream("回答".encode()))

    async with asking(Here(), Leases(), answer) as client:
        told = await client.post(
            "/conversations/%E4%BD%A0%2Fa?q=%20x",
            content="消息".encode(),
            headers={"authorization": "Bearer t", "connection": "close", **SPOOFED},
        )
    assert (told.status_code, told.text, told.headers["x-own"]) == (201, "回答", "1")
    assert "connection" not in told.headers
    ((request, body),) = seen
    assert request.method == "POST"
    assert request.extensions["target"] == b"/base/conversations/%E4%BD%A0%2Fa?q=%20x"
    assert body.decode() == "消息"
    headers = request.headers
    assert (headers["host"], headers["authorization"]) == ("candor", "Bearer t")
    assert headers.get_list(SECRET) == ["secret"]
    assert headers.get_list(TO) == ["1"]
    assert headers.get_list("x-candor-client") == ["192.0.2.7"]
    assert headers["x-candor-request"] == "req_1"
    assert headers[KEY] != "k"
    assert headers["content-length"] == "6"


@pytest.mark.parametrize("query", [b"x=#frag", b"x=" + b"y" * 70_000])
async def test_an_address_that_servers_take_is_passed_on_as_it_came(query: bytes) -> None:
    targets: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        targets.append(request.extensions["target"])
        return httpx.Response(200, stream=httpx.ByteStream(b""))

    async def receive() -> Message:  # noqa: RUF029  what apps await
        return {"type": "http.request", "body": b""}

    async def send(_: Message) -> None:
        pass

    forwarder = Forwarder(
        Here(),
        ownership=cast(Ownership, Leases()),
        transport=httpx.MockTransport(answer),
        wait_stopped=anyio.sleep_forever,
    )
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/chat",
        "query_string": query,
        "headers": [(b"host", b"candor")],
        "state": {"request_id": "req_1"},
    }
    await forwarder(scope, receive, send)
    assert targets == [b"/base/chat?" + query]


async def test_a_stream_that_breaks_off_ends_and_anything_else_is_cut() -> None:
    async def broken() -> AsyncIterator[bytes]:  # noqa: RUF029  a stream
        yield b"data: 1\n\n"
        raise httpx.ReadError("gone")

    def answer(request: httpx.Request) -> httpx.Response:
        kind = (
            "text/event-stream"
            if request.extensions["target"].endswith(b"/events")
            else "text/plain"
        )
        return httpx.Response(200, headers={"content-type": kind}, content=broken())

    async with asking(Here(), Leases(), answer) as client:
        assert (await client.get("/events")).text == "data: 1\n\n"
        with pytest.raises(AssertionError):  # of the transport: the answer has no end
            await client.get("/file")


async def test_a_body_that_is_refused_while_it_is_passed_on_is_refused_by_its_error() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: RUF029  an app
        raise HeldElsewhere(HELD, THERE)

    async def refused() -> Message:  # noqa: RUF029  what apps await
        raise TooLarge("The body is too large.")

    forwarder = Forwarder(
        app,
        ownership=cast(Ownership, Leases()),
        transport=httpx.MockTransport(lambda _: httpx.Response(200)),
        wait_stopped=anyio.sleep_forever,
    )
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/chat",
        "query_string": b"",
        "headers": [(b"transfer-encoding", b"chunked")],
        "state": {"request_id": "req_1"},
    }
    with pytest.raises(TooLarge):
        await forwarder(scope, refused, cast(Send, None))


@pytest.mark.parametrize("failure", [httpx.ConnectError, httpx.ReadError])
async def test_what_a_dead_server_does_not_answer_is_served_here_under_the_same_key(
    failure: type[httpx.TransportError],
) -> None:
    keys = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers[KEY])
        raise failure("gone")

    here = Here(Leases(left=2))
    async with asking(here, here.leases, answer) as client:
        assert (await client.post("/chat", content=b"hello")).json() == {"served": "here"}
    assert here.served == [(b"hello", keys[0])]


async def test_a_server_that_is_silent_is_waited_for_as_long_as_it_holds_the_conversation() -> None:
    async def answer(_: httpx.Request) -> httpx.Response:
        await anyio.sleep_forever()
        raise AssertionError

    here = Here(Leases(left=2))
    async with asking(here, here.leases, answer) as client:
        assert (await client.post("/chat", content=b"hello")).json() == {"served": "here"}


async def test_a_server_that_deletes_the_conversation_is_waited_for() -> None:
    """The lease goes with the conversation, before the answer is sent."""

    async def answer(_: httpx.Request) -> httpx.Response:
        await anyio.sleep(0.7)  # longer than the next look at the lease
        return httpx.Response(204, stream=httpx.ByteStream(b""))

    here = Here(Leases(left=0, is_alive=True))
    async with asking(here, here.leases, answer) as client:
        assert (await client.delete("/conversations/cnv_a")).status_code == 204
    assert here.served == []


async def test_a_server_that_holds_it_and_cannot_be_reached_is_told_to_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.http.forwarding._LONGER_S", 0.0)

    def answer(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no way")

    async with asking(Here(), Leases(), answer) as client:
        with pytest.raises(Overloaded) as told:
            await client.post("/chat", content=b"hello")
    assert "does not answer" in told.value.message


async def test_only_another_server_is_believed_what_it_says_of_a_request() -> None:
    states: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        states.append(scope)
        await JSONResponse({})(scope, receive, send)

    guard = NodeGuard(app, node=THERE)
    transport = httpx.ASGITransport(guard, client=("192.0.2.7", 9))
    async with httpx.AsyncClient(transport=transport, base_url="http://candor") as client:
        for secret in ("guess", "", "secret"):
            await client.get("/", headers={**SPOOFED, "x-candor-node": secret})
        await client.get("/", headers={"x-candor-client": "10.0.0.1"})
    assert [scope["client"][0] for scope in states] == [
        "192.0.2.7",
        "192.0.2.7",
        "10.0.0.1",
        "192.0.2.7",
    ]
    for scope in states:
        assert not [name for name, _ in scope["headers"] if name.startswith(b"x-candor")]
    assert [scope.get("state", {}).get("is_forwarded", False) for scope in states] == [
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("refusal", [FullHere, ClosedHere])
async def test_a_message_that_is_not_taken_here_is_passed_on_to_any_server_that_answers(
    refusal: type[GatewayError],
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: RUF029  an app
        raise refusal("Not here.")

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(b"taken"))

    def fail(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no way")

    async with asking(app, Leases(), answer) as client:
        assert (await client.post("/chat", content=b"hello")).text == "taken"
    async with asking(app, Leases(), fail) as client:
        with pytest.raises(refusal):
            await client.post("/chat", content=b"hello")
    async with asking(app, Leases(left=0), answer) as client:
        with pytest.raises(refusal):
            await client.post("/chat", content=b"hello")


@pytest.mark.parametrize("refusal", [FullHere, ClosedHere])
async def test_a_message_whose_taker_broke_off_is_taken_by_the_next_under_the_same_key(
    refusal: type[GatewayError],
) -> None:
    asked: list[tuple[str, str]] = []
    nodes = [THERE, replace(THERE, incarnation="2", url="http://third:1")]

    class Others(Leases):
        async def another(self, asked: Collection[str] = ()) -> Node | None:
            return next((node for node in nodes if node.incarnation not in asked), None)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: RUF029  an app
        raise refusal("Not here.")

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.host, request.headers[KEY]))
        if request.url.host == "there":
            raise httpx.ReadError("gone")
        return httpx.Response(200, stream=httpx.ByteStream(b"taken"))

    async with asking(app, Others(), answer) as client:
        assert (await client.post("/chat", content=b"hello")).text == "taken"
    assert [host for host, _ in asked] == ["there", "third"]
    assert len({key for _, key in asked}) == 1


@pytest.mark.parametrize("refusal", [FullHere, ClosedHere, HeldElsewhere])
async def test_a_message_that_no_server_answers_for_is_served_here_once_more_in_doubt(
    monkeypatch: pytest.MonkeyPatch, refusal: type[GatewayError]
) -> None:
    monkeypatch.setattr("gateway.http.forwarding._LONGER_S", 0.0)
    keys: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["state"].get("is_in_doubt"):
            raise HeldElsewhere(HELD, THERE) if refusal is HeldElsewhere else refusal("Not here.")
        body = await Request(scope, receive).body()
        assert scope["state"]["forward_key"] == keys[0]
        await JSONResponse({"found": body.decode()})(scope, receive, send)

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers[KEY])
        raise httpx.ReadError("gone")

    async with asking(app, Leases(), answer) as client:
        assert (await client.post("/chat", content=b"hello")).json() == {"found": "hello"}
    assert len(keys) == 1


async def test_a_server_whose_url_leads_here_by_mistake_is_not_asked_again() -> None:
    here = Here()
    async with asking(here, Leases(), lambda _: httpx.Response(200)) as client:
        with pytest.raises(HeldElsewhere):
            await client.get("/", headers={SECRET: "of a third server", TO: "its start"})


async def test_a_cookie_of_one_answer_is_in_no_other_request() -> None:
    cookies: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        cookies.append(request.headers.get("cookie"))
        headers = {"set-cookie": "of=balancer"}
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(b""))

    async with asking(Here(), Leases(), answer) as client:
        assert (await client.get("/")).headers["set-cookie"] == "of=balancer"
        client.cookies.clear()
        await client.get("/")
    assert cookies == [None, None]


async def test_a_server_that_has_ended_its_turns_waits_for_no_other_one() -> None:
    """It would be cut off before the lease ends, and answer nothing."""
    passed_on = anyio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["state"].get("is_in_doubt"):
            raise HeldElsewhere(HELD, THERE)
        await JSONResponse({"found": "here"})(scope, receive, send)

    async def answer(_: httpx.Request) -> httpx.Response:
        passed_on.set()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(20):
        async with asking(app, Leases(expires_s=3600), answer, passed_on.wait) as client:
            assert (await client.post("/chat", content=b"hi")).json() == {"found": "here"}


async def test_a_request_that_was_passed_on_is_not_passed_on_again() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"request_id": "req_1", "is_forwarded": True}
        await Forwarder(
            Here(),
            ownership=cast(Ownership, Leases()),
            transport=httpx.MockTransport(lambda _: httpx.Response(200)),
            wait_stopped=anyio.sleep_forever,
        )(scope, receive, send)

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://candor") as client:
        with pytest.raises(HeldElsewhere):
            await client.get("/")
