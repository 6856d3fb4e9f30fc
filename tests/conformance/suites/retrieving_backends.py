"""What every place of delivery must do that can be asked for what is near.

`RetrievingSuite` holds one test for each contract of `memory.outbox.backend.RetrievingBackend`. A subclass
supplies the fixture `open_backend` and nothing else. Needs pytest and pytest-asyncio; nothing that serves
imports it.
"""
# a test's name is its sentence

from collections.abc import Sequence

import anyio

from memory.outbox.backend import RetrievingBackend
from memory.scope import WORKSPACE_OWNER, Scope
from tests.conformance.suites.backends import TEXTS, WAIT_S, OpenBackend, Opening, forget, item, put

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
