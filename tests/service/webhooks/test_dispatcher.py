"""Deliveries that fail, are late, are refused or are not wanted any more."""

import socket
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.responses import Response, StreamingResponse

from gateway.conversations.sql.webhooks import WebhookStore
from gateway.ids import UserId
from gateway.web_fetch.exchange import Exchange
from gateway.webhooks.dispatcher import KEPT, LIMITS
from memory.errors import StoreUnavailable
from memory.remote.breaker import BreakerLimits
from tests.service.web_fetch.pages import LOOPBACK, Web
from tests.service.webhooks.open_dispatcher import running
from tests.support.relays import make_certificate, read_request, service
from tests.support.webhook_receivers import answering, receiving

DAY = timedelta(days=1)
BOB = UserId("bob")


async def test_what_is_not_taken_is_sent_again_under_its_id_until_it_is(tmp_path: Path) -> None:
    async with (
        receiving(answering(500, 429, 302, 404, 200)) as receiver,
        running(tmp_path) as world,
    ):
        webhook = await world.add(receiver.url())
        await world.create()
        for count in range(1, 5):
            await world.until(count)
            (waits,) = await world.deliveries(webhook)
            assert (waits.status, waits.attempts) == ("pending", count)
            await world.pass_to_next()
        assert await world.until(5) == [*["failed"] * 4, "delivered"]
        (made,) = await world.deliveries(webhook)
        assert (made.status, made.attempts, made.last_error) == ("delivered", 5, None)
        assert {message.id for message in receiver.came} == {made.id}
        assert {message.path for message in receiver.came} == {"/hook"}, "no redirect is followed"
        stamps = [int(message.headers["webhook-timestamp"]) for message in receiver.came]
        assert stamps == sorted(set(stamps)), "each try is signed anew"


async def test_a_message_that_was_taken_while_nothing_could_be_stored_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivered = WebhookStore.delivered
    failed: list[bool] = []

    async def fail_at_first(*given: Any) -> None:
        if len(failed) < 2:
            failed.append(True)
            raise StoreUnavailable("The database cannot be written.")
        await delivered(*given)

    monkeypatch.setattr(WebhookStore, "delivered", fail_at_first)
    async with receiving() as receiver, running(tmp_path) as world:
        webhook = await world.add(receiver.url())
        await world.create()
        assert await world.until(1) == ["delivered"]
        (made,) = await world.deliveries(webhook)
        assert (made.status, len(receiver.came), len(failed)) == ("delivered", 1, 2)


async def test_tries_are_ever_rarer_for_a_day_and_then_it_is_dead_until_a_person_retries(
    tmp_path: Path,
) -> None:
    async with receiving(answering(503)) as receiver, running(tmp_path) as world:
        webhook = await world.add(receiver.url())
        await world.create()
        waits: list[timedelta] = []
        while (await world.until(len(waits) + 1))[-1] != "dead":
            waits.append(await world.pass_to_next())
        assert waits == sorted(set(waits))
        assert timedelta(hours=20) < sum(waits, timedelta()) < DAY
        assert waits[0] < timedelta(seconds=10) < waits[1]
        (dead,) = await world.deliveries(webhook)
        assert (dead.status, dead.attempts) == ("dead", len(waits) + 1)
        assert dead.last_error == "It answered with the status 503."

        receiver.answer = answering(204)
        again = await world.store.retry(webhook.id, dead.id, world.now)
        assert again is not None
        assert (again.status, again.attempts) == ("pending", 0)
        world.dispatcher.wake()
        assert (await world.until(len(waits) + 2))[-1] == "delivered"
        assert {message.id for message in receiver.came} == {dead.id}


@pytest.mark.parametrize("part", [0.0, 0.999])
def test_the_first_retry_comes_after_about_ten_seconds_whatever_is_drawn(part: float) -> None:
    wait = LIMITS.backoff.wait(1, lambda: part)
    assert wait is not None
    assert timedelta(seconds=8) <= wait <= timedelta(seconds=10)


async def test_what_waited_while_the_server_was_away_is_tried_once_at_least(
    tmp_path: Path,
) -> None:
    async with receiving(answering(500)) as receiver, running(tmp_path) as world:
        webhook = await world.add(receiver.url())
        conversation = await world.create()
        await world.until(1)
        await world.conversations.delete(conversation, world.now)
        await world.create()
        await world.until(2)
        world.now += 2 * DAY
        world.dispatcher.wake()
        assert (await world.until(3))[2] == "dead", "a day after it was enqueued"
        assert len(receiver.came) == 3
        (dead,) = await world.deliveries(webhook)
        assert dead.attempts == 2


async def test_a_receiver_that_is_gone_is_switched_off_and_gets_nothing_more(
    tmp_path: Path,
) -> None:
    let_go = anyio.Event()

    async def answer(_: str) -> Response:
        await let_go.wait()
        return Response(status_code=410)

    async with receiving(answer) as receiver, running(tmp_path) as world:
        webhook = await world.add(receiver.url())
        await world.create()
        await receiver.wait(1)
        await world.create()  # waits behind the first
        let_go.set()
        await world.until(1)
        gone = await world.store.get(webhook.id, webhook.user_id)
        assert gone is not None
        assert gone.state == "gone"
        second, first = await world.deliveries(webhook)
        assert {first.status, second.status} == {"dead"}
        assert first.last_error == "It answered with the status 410: the webhook is switched off."
        assert second.last_error == "The webhook was switched off."
        await world.create()
        assert len(await world.deliveries(webhook)) == 2
        assert len(receiver.came) == 1


async def test_a_receiver_that_does_not_answer_holds_up_no_other(tmp_path: Path) -> None:
    async def answer(path: str) -> Response:
        if path == "/slow":
            await anyio.sleep_forever()
        return Response()

    async with receiving(answer) as receiver, running(tmp_path, call_s=10**6) as world:
        slow = await world.add(receiver.url("/slow"))
        quick = await world.add(receiver.url("/quick"))
        for count in range(1, 4):
            await world.create()
            await receiver.wait(count, "/quick")
            await world.until(count)
        assert [one.status for one in await world.deliveries(quick)] == ["delivered"] * 3
        assert [one.status for one in await world.deliveries(slow)] == ["pending"] * 3
        assert len(receiver.at("/slow")) == 1, "one after another"


async def test_a_receiver_has_so_long_to_answer_and_no_longer(tmp_path: Path) -> None:
    async def answer(_: str) -> Response:
        await anyio.sleep_forever()
        raise AssertionError

    async with receiving(answer) as receiver, running(tmp_path, call_s=0.2) as world:
        webhook = await world.add(receiver.url())
        await world.create()
        await world.until(1)
        (late,) = await world.deliveries(webhook)
        assert late.last_error == "It did not answer within 0.2 s."


async def test_the_body_of_an_answer_is_not_read(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            await anyio.lowlevel.checkpoint()
            yield b"x" * 65_536

    async def answer(_: str) -> Response:  # noqa: RUF029
        return StreamingResponse(endless())

    async with receiving(answer) as receiver, running(tmp_path) as world:
        await world.add(receiver.url())
        await world.create()
        assert await world.until(1) == ["delivered"]


async def test_a_receiver_that_fails_again_and_again_is_left_alone_for_a_while(
    tmp_path: Path,
) -> None:
    rests = BreakerLimits(max_failures=3, open_s=60)
    async with receiving(answering(500)) as receiver, running(tmp_path, breaker=rests) as world:
        webhook = await world.add(receiver.url())
        world.dispatcher.wake = lambda: None  # type: ignore[method-assign]  # all at once
        for _ in range(6):
            await world.create()
        del world.dispatcher.wake
        world.dispatcher.wake()
        await world.until(3)
        tries = Counter(one.attempts for one in await world.deliveries(webhook))
        assert tries == {1: 3, 0: 3}, "what was not tried counts no attempt"
        looks = 0
        look = world.store.receivers_due

        async def counted(now: datetime) -> Sequence[str]:
            nonlocal looks
            looks += 1
            return await look(now)

        world.store.receivers_due = counted  # type: ignore[method-assign]
        await world.create()
        for _ in range(30):
            await world.deliveries(webhook)
        assert looks < 5, "it does not look again and again meanwhile"
        world.now += timedelta(seconds=61)
        world.dispatcher.wake()
        await world.until(4)
        await receiver.wait(4)
        assert len(world.results) == 4, "one tries whether it is back"


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.1.2.3"], ["169.254.169.254"], ["fe80::1%eth0"], ["93.184.216.34", "::1"]],
)
async def test_a_public_name_that_leads_to_a_private_address_is_not_connected_to(
    tmp_path: Path, addresses: list[str]
) -> None:
    web = Web(1, {"hooks.example.org": [addresses]})
    async with running(tmp_path, public=Exchange(resolve=web.resolve)) as world:
        webhook = await world.add("https://hooks.example.org/hook")
        await world.create()
        assert await world.until(1) == ["failed"]
        (refused,) = await world.deliveries(webhook)
        sent = "The host hooks.example.org leads to an address that is not public."
        assert refused.last_error == sent


async def test_each_try_goes_to_the_address_that_was_checked_for_it(tmp_path: Path) -> None:
    """The name leads elsewhere after its check, and to a private address at the next try."""
    certificate, tls = await make_certificate(tmp_path, "hooks.example.org")
    trusted = ssl.create_default_context(cafile=str(certificate))
    heads: list[str] = []

    async def handle(stream: anyio.abc.SocketStream) -> None:
        head, _ = await read_request(stream)
        heads.append(head)
        await stream.send(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")

    async with service(handle, tls) as address:
        web = Web(int(address.rpartition(":")[2]))
        web.names["hooks.example.org"] = [[LOOPBACK], ["10.1.2.3"]]
        exchange = Exchange(
            resolve=web.resolve, is_allowed=lambda one: one == LOOPBACK, trusted=lambda: trusted
        )
        async with running(tmp_path, public=exchange) as world:
            webhook = await world.add("https://hooks.example.org/hook")
            await world.create()
            await world.until(1)
            assert web.asked == [("hooks.example.org", 443)], "looked up once"
            assert "host: hooks.example.org\r\n" in heads[0]
            await world.pass_to_next()
            await world.until(2)
            (refused,) = await world.deliveries(webhook)
            assert len(web.asked) == 2
            assert "not public" in str(refused.last_error)
            assert len(heads) == 1


async def test_a_host_that_is_listed_no_more_gets_nothing(tmp_path: Path) -> None:
    async with receiving() as receiver, running(tmp_path, hosts=("elsewhere",)) as world:
        webhook = await world.add(receiver.url())
        await world.create()
        assert await world.until(1) == ["failed"]
        (refused,) = await world.deliveries(webhook)
        assert "CANDOR_WEBHOOK_HOSTS" in str(refused.last_error)
        assert receiver.came == []


async def test_each_user_gets_their_own_events_alone(tmp_path: Path) -> None:
    async with receiving() as receiver, running(tmp_path) as world:
        await world.add(receiver.url("/ann"))
        his = await world.add(receiver.url("/bob"), user_id=BOB)
        hers = [await world.create() for _ in range(2)]
        (message,) = [await world.create(BOB)]
        await receiver.wait(3)
        sent = {
            path: [one.read(secret)["data"]["conversation_id"] for one in receiver.at(path)]
            for path, secret in (("/ann", world.secrets["whk_0"]), ("/bob", world.secrets[his.id]))
        }
        assert sent == {"/ann": hers, "/bob": [message]}


async def test_deliveries_go_with_their_conversation_and_their_webhook(tmp_path: Path) -> None:
    async with running(tmp_path, hosts=()) as world:
        first, second = [await world.add("https://hooks.example.org/") for _ in range(2)]
        conversation = await world.create()
        await world.create()
        await world.conversations.delete(conversation, world.now)
        assert len(await world.deliveries(first)) == 1
        await world.store.delete(first.id)
        rows = await world.database.rows("SELECT webhook_id FROM webhook_deliveries")
        assert [row["webhook_id"] for row in rows] == [second.id]


async def test_nothing_is_kept_for_a_webhook_that_is_off_or_not_served(tmp_path: Path) -> None:
    async with running(tmp_path, hosts=()) as world:
        webhook = await world.add("https://hooks.example.org/")
        await world.store.switch(webhook.id, "off")
        await world.create()
        await world.store.switch(webhook.id, "on")
        await world.store.serve(world.now, is_on=False)
        await world.create()
        assert await world.deliveries(webhook) == []
        await world.store.serve(world.now, is_on=True)
        await world.create()
        assert len(await world.deliveries(webhook)) == 1


async def test_a_damaged_webhook_keeps_no_event_from_being_stored(tmp_path: Path) -> None:
    async with running(tmp_path, hosts=()) as world:
        damaged = await world.add("https://hooks.example.org/")
        whole = await world.add("https://hooks.example.org/")
        sql = "UPDATE webhooks SET events = '[\"conv' WHERE id = ?"
        await world.database.execute(sql, (damaged.id,))
        await world.create()
        assert [one.id for one in await world.store.listed(damaged.user_id)] == [whole.id]
        assert len(await world.deliveries(whole)) == 1


async def test_names_whose_servers_are_silent_hold_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    look_up = socket.getaddrinfo

    def answer(host: str, *args: Any, **more: Any) -> Any:
        if host != LOOPBACK:
            let_go.wait()
        return look_up(LOOPBACK, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    try:
        async with receiving() as receiver, running(tmp_path, call_s=10**6) as world:
            for number in range(40):
                user_id = UserId(f"user-{number}")
                await world.add("https://silent.example.org/", user_id=user_id)
                await world.create(user_id)
            await world.add(receiver.url())
            await world.create()
            assert await world.until(1) == ["delivered"]
    finally:
        let_go.set()


async def test_when_a_clock_that_was_ahead_is_set_back_deliveries_are_tried_again(
    tmp_path: Path,
) -> None:
    opens = BreakerLimits(max_failures=1)
    async with (
        receiving(answering(500, 204)) as receiver,
        running(tmp_path, breaker=opens) as world,
    ):
        world.now += 365 * DAY
        webhook = await world.add(receiver.url())
        await world.create()
        assert await world.until(1) == ["failed"]
        await world.create()
        world.now -= 365 * DAY
        world.dispatcher.wake()
        assert await world.until(3) == ["failed", "delivered", "delivered"]
        assert [made.attempts for made in await world.deliveries(webhook)] == [1, 2]


async def test_a_start_ends_waits_of_a_clock_that_was_ahead_and_leaves_those_of_the_right_one(
    tmp_path: Path,
) -> None:
    async with receiving(answering(500, 204, 500, 204)) as receiver:
        async with running(tmp_path) as world:
            present = world.now
            world.now += 365 * DAY
            webhook = await world.add(receiver.url())
            await world.create()
            assert await world.until(1) == ["failed"]
        async with running(tmp_path, now=present) as world:
            assert await world.until(1) == ["delivered"]
            await world.create()
            assert await world.until(2) == ["delivered", "failed"]
            (waits, _) = await world.deliveries(webhook)
        async with running(tmp_path, now=present) as world:
            await world.create()
            assert await world.until(1) == ["delivered"]
            assert waits in await world.deliveries(webhook)


async def test_what_has_ended_is_listed_for_some_time(tmp_path: Path) -> None:
    async with receiving() as receiver, running(tmp_path) as world:
        webhook = await world.add(receiver.url())
        await world.create()
        await world.until(1)
        world.now += KEPT - timedelta(minutes=1)
        await world.store.prune(world.now - KEPT)
        assert len(await world.deliveries(webhook)) == 1
        world.now += timedelta(hours=2)
        world.dispatcher.wake()
        with anyio.fail_after(20):
            while await world.deliveries(webhook):  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_what_has_ended_is_removed_although_the_clock_was_ahead(tmp_path: Path) -> None:
    async with receiving() as receiver, running(tmp_path) as world:
        webhook = await world.add(receiver.url())
        world.now += 365 * DAY
        await world.create()
        await world.until(1)
        world.now -= 365 * DAY
        await world.create()
        await world.until(2)
        world.now += KEPT + timedelta(hours=2)
        world.dispatcher.wake()
        with anyio.fail_after(20):
            while len(await world.deliveries(webhook)) > 1:  # noqa: ASYNC110
                await anyio.sleep(0.01)


def test_the_waits_end_within_a_day() -> None:
    waits = [LIMITS.backoff.wait(n, lambda: 1.0) for n in range(1, LIMITS.backoff.max_attempts)]
    assert sum((wait for wait in waits if wait is not None), timedelta()) < DAY
