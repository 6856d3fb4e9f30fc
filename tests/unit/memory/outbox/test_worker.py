"""What is due is delivered: in order, again after a failure, and what is forgotten is forgotten there too."""

from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memory.errors import DeliveryRefused
from tests.support.quick_databases import be_as_shipped, levels_of_writes
from tests.unit.memory.outbox.open_outbox import LIMITS, OPEN_S, item, unavailable, world


async def test_what_is_due_is_delivered_oldest_first_and_noted_with_its_links(
    tmp_path: Path,
) -> None:
    ids = [f"epi_{n}" for n in range(10)]
    async with world(tmp_path, *ids) as here:
        here.items["epi_3"] = item("epi_3", 5)
        assert await here.delivering.drain() == 10
        assert [call[1] for call in here.backend.calls] == ids
        assert here.backend.calls[3] == ("put", "epi_3", 5, "memu:put:epi_3:1"), "the newest state"
        assert here.results == [(item_id, "delivered", None) for item_id in ids]
        assert [entry.remote_id for entry in await here.store.links_of("epi_3")] == ["epi_3"]
        assert await here.delivering.drain() == 0


async def test_only_what_was_delivered_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases and failures are repeated by the next start."""
    be_as_shipped(monkeypatch)
    async with world(tmp_path, "epi_1", "epi_2") as here:
        here.backend.answer = {"epi_1": None, "epi_2": unavailable("epi_2")}.get
        levels = await levels_of_writes(here.database)
        await here.delivering.drain()
        assert here.results == [("epi_1", "delivered", None), ("epi_2", "failed", "It is away.")]
        assert levels == ["NORMAL", "FULL", "NORMAL", "NORMAL"]


async def test_an_item_that_is_gone_is_nothing_to_do_and_its_links_stay(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_1") as here:
        await here.delivering.drain()
        await here.put("epi_1", revision=2)
        here.items.clear()
        await here.delivering.drain()
        assert len(here.backend.calls) == 1
        assert len(await here.status("delivered")) == 2
        assert await here.store.links_of("epi_1"), "what is there must still be forgotten"


async def test_a_failure_waits_longer_each_time_and_keeps_its_key_until_it_is_dead(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, "epi_1") as here:
        here.backend.answer = unavailable
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
    async with world(tmp_path, *"abcde") as here:
        here.backend.answer = lambda _: DeliveryRefused("太长了。")
        assert await here.delivering.drain() == 5
        assert {delivery.last_error for delivery in await here.status("dead")} == {"太长了。"}
        assert here.changes == []


async def test_a_backend_that_breaks_or_hangs_is_tried_again_and_its_words_are_not_shown(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, "epi_1", limits=replace(LIMITS, call_s=0.01)) as here:
        here.backend.answer = lambda _: KeyError("/secret/path")
        await here.delivering.drain()
        here.backend.meanwhile = anyio.sleep_forever
        here.pass_s(1000)
        await here.delivering.drain()
        assert here.results == [
            ("epi_1", "failed", "The backend broke; the server's log says how."),
            ("epi_1", "failed", "It did not answer in time."),
        ]
        assert len(await here.status("pending")) == 1


async def test_an_open_breaker_costs_no_attempt_half_open_one_probe_goes_and_health_says_so(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, *"abcdefgh") as here:

        async def health() -> tuple[str, str | None, float]:
            found = await here.delivering.health()
            assert found.backend is here.backend.health
            return found.breaker, found.last_error, found.lag_s

        assert await health() == ("closed", None, 0)
        here.backend.answer = unavailable
        assert await here.delivering.drain() == 3
        assert here.changes == ["open"]
        waiting = await here.status("pending")
        assert sorted(entry.attempts for entry in waiting) == [0] * 5 + [1] * 3
        here.pass_s(OPEN_S - 1)
        assert await here.delivering.drain() == 0
        assert await health() == ("open", "It is away.", OPEN_S - 1)
        here.pass_s(1)
        assert await here.delivering.drain() == 1
        assert here.changes == ["open", "half_open", "open"]
        here.backend.answer = lambda _: None
        here.pass_s(OPEN_S)
        assert await here.delivering.drain() == 8
        assert here.changes == ["open", "half_open", "open", "half_open", "closed"]
        assert len(await here.status("delivered")) == 8
        assert await health() == ("closed", None, 0)


@pytest.mark.parametrize("is_meanwhile", [False, True], ids=["after it", "while it goes out"])
async def test_forgetting_hands_over_the_links_and_leaves_none(
    tmp_path: Path, *, is_meanwhile: bool
) -> None:
    async with world(tmp_path, "epi_1") as here:

        async def forget() -> None:
            here.backend.meanwhile = anyio.lowlevel.checkpoint
            await here.forget("epi_1")

        if is_meanwhile:
            here.backend.meanwhile = forget
        await here.delivering.drain()
        if not is_meanwhile:
            await forget()
            await here.delivering.drain()
        assert [call[0] for call in here.backend.calls] == ["put", "forget"]
        assert here.backend.calls[-1] == ("forget", "epi_1", 1, "memu:forget:epi_1:2")
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
