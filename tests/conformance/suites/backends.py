"""The suites for backends: one test for each contract of `Backend` and of `RetrievingBackend`.

A subclass supplies the fixture `open_backend` and nothing else.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio

from memory.errors import DeliveryRefused
from memory.items.item import Item
from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.outbox.backend import Backend, RetrievingBackend
from memory.outbox.delivery import Link, NewDelivery

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WAIT_S = 60
TEXTS = {
    "epi_en": "the billing service restarts after a rotated certificate",
    "epi_zh": "支付网关 升级 之后 需要 重新 加载 证书",
    "epi_hard": "# only a heading\n\n'; DROP TABLE items; -- \u202e e\u0301 🧑‍🚀 %s {0}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBackend:
    """An open backend, and what it holds of an item, as one text; '' where it holds nothing."""

    backend: Backend
    held: Callable[[str], Awaitable[str]]


Opening = Callable[[], AbstractAsyncContextManager[OpenBackend]]


def item(item_id: str = "epi_en", body: str | None = None, **fields: object) -> Item:
    """Make an item of Ann's."""
    made = Item(
        id=item_id,
        kind="episode",
        scope=Scope(owner_id="ann"),
        title=f"About {item_id}",
        summary="one line 一行",
        body=TEXTS[item_id] if body is None else body,
        source="turn trn_1",
        occurred_at=AT,
        updated_at=AT,
    )
    return replace(made, **fields)  # type: ignore[arg-type]  # a test's own names


async def put(opened: OpenBackend, one: Item) -> Sequence[Link]:
    """Deliver an item under the key that the outbox gives it."""
    key = NewDelivery(
        backend=opened.backend.name,
        operation="put",
        item_id=one.id,
        owner_id=one.scope.owner_id,
        revision=one.revision,
    ).idempotency_key
    with anyio.fail_after(WAIT_S):
        return await opened.backend.put(one, key)


async def forget(opened: OpenBackend, item_id: str, links: Sequence[Link] = ()) -> str:
    """Forget an item; return what the backend reports as left over."""
    key = f"{opened.backend.name}:forget:{item_id}:2"
    with anyio.fail_after(WAIT_S):
        try:
            await opened.backend.forget(item_id, links, key)
        except DeliveryRefused as exc:
            return str(exc)
    return ""


class BackendSuite:
    """One test a contract."""

    async def test_what_is_put_is_held_and_its_links_are_the_items(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            for name in TEXTS:
                links = await put(opened, item(name))
                assert await opened.held(name)
                assert links
                for link in links:
                    assert (link.item_id, link.backend) == (name, opened.backend.name)
                    assert link.remote_kind
                    assert link.remote_id

    async def test_the_same_twice_changes_nothing(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            once = await opened.held("epi_en")
            await put(opened, item())
            assert await opened.held("epi_en") == once

    async def test_the_same_again_after_a_restart_changes_nothing(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            once = await opened.held("epi_en")
        async with open_backend() as opened:
            await put(opened, item())
            assert await opened.held("epi_en") == once

    async def test_a_newer_revision_takes_the_place_of_the_old(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            await put(opened, item("epi_zh"))
            old, other = await opened.held("epi_en"), await opened.held("epi_zh")
            newer = item(body="对账 任务 每天 两次", summary="newer 新的", revision=2)
            await put(opened, newer)
            replaced = await opened.held("epi_en")
            assert replaced
            assert replaced != old
            assert await opened.held("epi_zh") == other
            await forget(opened, "epi_en")
            await put(opened, newer)
            assert await opened.held("epi_en") == replaced, "as if the old had never been"

    async def test_forgetting_leaves_nothing_of_it_and_all_of_the_others(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            links = await put(opened, item())
            await put(opened, item("epi_zh"))
            other = await opened.held("epi_zh")
            await forget(opened, "epi_en", links)
            assert not await opened.held("epi_en")
            assert await opened.held("epi_zh") == other

    async def test_what_was_made_and_never_noted_can_be_forgotten(
        self, open_backend: Opening
    ) -> None:
        """The process may have been killed before the links were written down."""
        async with open_backend() as opened:
            await put(opened, item())
        async with open_backend() as opened:
            await forget(opened, "epi_en")
            assert not await opened.held("epi_en")

    async def test_forgetting_what_is_not_there_is_fine_and_twice_too(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            first = await forget(opened, "epi_never")
            links = await put(opened, item())
            assert await forget(opened, "epi_en", links) == first
            assert await forget(opened, "epi_en", links) == first

    async def test_what_was_forgotten_can_be_put_again(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            once = await opened.held("epi_en")
            await forget(opened, "epi_en")
            await put(opened, item(revision=3))
            assert await opened.held("epi_en") == once

    async def test_it_says_that_it_is_well_under_its_own_name(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            health = await opened.backend.check()
            assert (health.name, health.state) == (opened.backend.name, "ok")

    async def test_closing_twice_is_fine(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            await opened.backend.close()
            await opened.backend.close()


ANN = Scope(owner_id="ann")
BOB = Scope(owner_id="bob")


async def near(
    opened: OpenBackend, query: str, scope: Scope = ANN, limit: int = 5
) -> Sequence[str]:
    """Ask for what is near."""
    backend = opened.backend
    assert isinstance(backend, RetrievingBackend)
    with anyio.fail_after(WAIT_S):
        return list(await backend.retrieve(query, scope, limit=limit))


class RetrievingSuite:
    """One test a contract."""

    async def test_the_nearest_comes_first_in_english_and_chinese(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            for name in TEXTS:
                await put(opened, item(name))
            assert (await near(opened, "rotated certificate billing"))[0] == "epi_en"
            assert (await near(opened, "支付网关 证书"))[0] == "epi_zh"

    async def test_each_is_named_once_and_no_more_than_are_asked_for(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            for number in range(8):
                await put(opened, item(f"epi_{number}", "billing one\nbilling two"))
            found = await near(opened, "billing")
            assert 0 < len(found) == len(set(found)) <= 5
            assert await near(opened, "billing", limit=1) == found[:1]

    async def test_what_is_another_owners_is_not_named(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            await put(opened, item("epi_bob", TEXTS["epi_en"], scope=BOB))
            assert await near(opened, "billing service") == ["epi_en"]
            assert await near(opened, "billing service", BOB) == ["epi_bob"]
            assert await near(opened, "billing service", Scope(owner_id="eve")) == []

    async def test_what_is_the_workspaces_is_named_to_everybody(
        self, open_backend: Opening
    ) -> None:
        ours = Scope(owner_id=WORKSPACE_OWNER)
        async with open_backend() as opened:
            await put(opened, item("not_ours", "billing 账单", scope=ours))
            for scope in (ANN, BOB):
                assert await near(opened, "billing 账单", scope) == ["not_ours"]

    async def test_what_was_forgotten_is_not_named(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            links = await put(opened, item())
            await put(opened, item("epi_zh"))
            assert "epi_en" in await near(opened, "billing service")
            await forget(opened, "epi_en", links)
            assert "epi_en" not in await near(opened, "billing service")
            assert (await near(opened, "支付网关 证书"))[0] == "epi_zh"

    async def test_what_came_or_changed_since_the_last_question_is_named(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            assert await near(opened, "对账 任务") == []
            await put(opened, item())
            await put(opened, item("epi_zh"))
            await near(opened, "对账 任务")
            await put(opened, item(body="对账 任务 每天 两次", revision=2))
            assert (await near(opened, "对账 任务 每天 两次"))[0] == "epi_en"

    async def test_a_question_without_words_names_nothing(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            assert await near(opened, " \n") == []

    async def test_strange_text_is_a_question_like_any(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            await put(opened, item())
            for query in (TEXTS["epi_hard"], "'\"%_*()", "billing\x00service", "长" * 4_000):
                assert set(await near(opened, query)) <= {"epi_en"}

    async def test_several_questions_at_once_are_all_answered(self, open_backend: Opening) -> None:
        async with open_backend() as opened:
            for name in ("epi_en", "epi_zh"):
                await put(opened, item(name))
            found: dict[str, str] = {}

            async def ask(query: str) -> None:
                found[query] = (await near(opened, query))[0]

            async with anyio.create_task_group() as tasks:
                for query in ("rotated certificate", "支付网关 升级", "billing service"):
                    tasks.start_soon(ask, query)
            assert found == {
                "rotated certificate": "epi_en",
                "支付网关 升级": "epi_zh",
                "billing service": "epi_en",
            }

    async def test_it_finds_after_a_restart_what_it_was_given_before(
        self, open_backend: Opening
    ) -> None:
        async with open_backend() as opened:
            await put(opened, item())
        async with open_backend() as opened:
            assert await near(opened, "billing service") == ["epi_en"]
