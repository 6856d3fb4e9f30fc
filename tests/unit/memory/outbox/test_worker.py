"""What is due is delivered: in order, again after a failure, and what is forgotten is forgotten there too."""

from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel

from memory.outbox.backend import BackendHealth, DeliveryRefused
from tests.unit.memory.outbox.open_outbox import LIMITS, OPEN_S, item, unavailable, world


async def test_what_is_due_is_delivered_oldest_first_and_noted_with_its_links(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        await here.put(*(f"epi_{n}" for n in range(10)))
        assert await here.delivering.drain() == 10
        assert [call[1] for call in here.backend.calls] == [f"epi_{n}" for n in range(10)]
        assert here.results == [(f"epi_{n}", "delivered", None) for n in range(10)]
        assert [entry.remote_id for entry in await here.store.links_of("epi_3")] == ["epi_3"]
        assert await here.delivering.drain() == 0


async def test_an_item_that_is_gone_is_nothing_to_do_and_its_links_stay(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        await here.delivering.drain()
        await here.put("epi_1", revision=2)
        here.items.clear()
        await here.delivering.drain()
        assert len(here.backend.calls) == 1
        assert len(await here.status("delivered")) == 2
        assert await here.store.links_of("epi_1"), "what is there must still be forgotten"


async def test_the_newest_state_of_an_item_is_delivered(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        here.items["epi_1"] = item("epi_1", 5)
        await here.delivering.drain()
        assert here.backend.calls == [("put", "epi_1", 5, "memu:put:epi_1:1")]


async def test_a_failure_waits_longer_each_time_and_keeps_its_key_until_it_is_dead(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.put("epi_1")
        for wait_s in (5, 10):  # half of the bounds 10 and 20
            assert await here.delivering.drain() == 1
            here.pass_s(wait_s - 0.001)
            assert await here.delivering.drain() == 0
            here.pass_s(0.001)
        assert await here.delivering.drain() == 1
        (dead,) = await here.status("dead")
        assert (dead.attempts, dead.last_error) == (3, "It is away.")
        assert [result[1] for result in here.results] == ["failed", "failed", "dead"]
        assert {call[3] for call in here.backend.calls} == {"memu:put:epi_1:1"}


async def test_a_refused_one_is_dead_at_once_and_does_not_count_against_the_backend(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = lambda _: DeliveryRefused("太长了。")
        await here.put(*"abcde")
        assert await here.delivering.drain() == 5
        assert {delivery.last_error for delivery in await here.status("dead")} == {"太长了。"}
        assert here.changes == []


async def test_a_backend_that_breaks_otherwise_is_tried_again_and_its_words_are_not_shown(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = lambda _: KeyError("/secret/path")
        await here.put("epi_1")
        await here.delivering.drain()
        (one,) = await here.status("pending")
        assert one.last_error is not None
        assert "secret" not in one.last_error


async def test_a_backend_that_does_not_answer_is_cut_off(tmp_path: Path) -> None:
    async with world(tmp_path, limits=replace(LIMITS, call_s=0.01)) as here:
        here.backend.meanwhile = anyio.sleep_forever
        await here.put("epi_1")
        await here.delivering.drain()
        assert here.results == [("epi_1", "failed", "It did not answer in time.")]


async def test_an_open_breaker_costs_no_attempt_and_half_open_one_probe_goes(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.put(*"abcdefgh")
        assert await here.delivering.drain() == 3
        assert here.changes == ["open"]
        waiting = await here.status("pending")
        assert sorted(entry.attempts for entry in waiting) == [0] * 5 + [1] * 3
        here.pass_s(OPEN_S - 1)
        assert await here.delivering.drain() == 0
        here.pass_s(1)
        assert await here.delivering.drain() == 1
        assert here.changes == ["open", "half_open", "open"]
        here.backend.answer = lambda _: None
        here.pass_s(OPEN_S)
        assert await here.delivering.drain() == 8
        assert here.changes == ["open", "half_open", "open", "half_open", "closed"]
        assert len(await here.status("delivered")) == 8


async def test_forgetting_hands_over_the_links_and_leaves_none(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        await here.delivering.drain()
        await here.forget("epi_1")
        await here.delivering.drain()
        assert here.backend.calls[-1] == ("forget", "epi_1", 1, "memu:forget:epi_1:2")
        assert await here.store.links_of("epi_1") == []


async def test_what_was_forgotten_while_it_went_out_is_forgotten_there_too(tmp_path: Path) -> None:
    async with world(tmp_path) as here:

        async def forget() -> None:
            here.backend.meanwhile = anyio.lowlevel.checkpoint
            await here.forget("epi_1")

        here.backend.meanwhile = forget
        await here.put("epi_1")
        await here.delivering.drain()
        assert [call[0] for call in here.backend.calls] == ["put", "forget"]
        assert here.backend.calls[1][2] == 1, "with what was made of it"
        assert await here.store.links_of("epi_1") == []


async def test_a_late_forget_does_not_take_what_was_made_again_since(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.forget("memory/ops.md", 2)
        await here.delivering.drain()
        here.backend.answer = lambda _: None
        await here.put("memory/ops.md", revision=3)
        await here.delivering.drain()
        here.pass_s(1000)
        await here.delivering.drain()
        assert [call[0] for call in here.backend.calls] == ["forget", "put", "forget", "put"]
        assert await here.store.links_of("memory/ops.md")
        assert await here.status("pending") == []


async def test_health_tells_of_the_backend_the_breaker_the_last_error_and_the_lag(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        health = await here.delivering.health()
        assert (health.breaker, health.last_error, health.lag_s) == ("closed", None, 0)
        here.backend.answer = unavailable
        here.backend.health = BackendHealth(name="memu", state="failing", detail="away")
        await here.put(*"abc")
        await here.delivering.drain()
        here.pass_s(30)
        health = await here.delivering.health()
        assert health.backend == here.backend.health
        assert (health.breaker, health.last_error, health.lag_s) == ("open", "It is away.", 30)
        here.backend.answer = lambda _: None
        here.pass_s(OPEN_S)
        await here.delivering.drain()
        health = await here.delivering.health()
        assert (health.breaker, health.last_error, health.lag_s) == ("closed", None, 0)
