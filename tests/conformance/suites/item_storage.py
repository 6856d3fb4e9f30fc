"""What every store of items must do with an item: keep it, change it, forget it, show it to its owner."""

from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from memory.errors import StoreConflict
from memory.items.item import KINDS
from memory.items.scope import WORKSPACE_OWNER, Scope, SearchScope
from tests.conformance.suites.item_values import (
    ANN,
    AT,
    BOB,
    TEXTS,
    Opening,
    OpenItems,
    found,
    item,
)
from tests.conformance.suites.opened import OpenedSuite


class ItemKeepingSuite(OpenedSuite):
    """What is put is there: by id, by age, in the order of writing."""

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    async def test_an_item_comes_back_as_it_was_put(self, opened: OpenItems, text: str) -> None:
        whole = item(
            body=text,
            title="T",
            kind="case",
            scope=replace(ANN, project_id="p", environment="生产"),
            tags=("b", "a", "标签"),
            conversation_id="cnv_1",
            turn_id="trn_1",
            thread="cnv_1/D1",
            position=3,
            occurred_at=AT - timedelta(milliseconds=1),
            revision=4,
        )
        await opened.put([whole])
        assert await opened.store.get(whole.id, ANN) == whole

    async def test_only_a_scope_that_covers_it_sees_it(self, opened: OpenItems) -> None:
        labelled = item("a", "payroll", scope=replace(ANN, project_id="p"))
        shared = item("s", "payroll", scope=Scope(owner_id=WORKSPACE_OWNER))
        await opened.put([labelled, shared])
        seen = {
            "ann": (ANN, ["a", "s"]),
            "ann in p": (replace(ANN, project_id="p"), ["a"]),
            "ann in q": (replace(ANN, project_id="q"), []),
            "ann as u": (replace(ANN, user_id="p"), []),
            "bob": (BOB, ["s"]),
            "bob in p": (replace(BOB, project_id="p"), []),
        }
        for name, (scope, expected) in seen.items():
            assert sorted(await found(opened, "payroll", scope)) == expected, name
            ids = [f"epi_{entry}" for entry in expected]
            newest = await opened.store.newest(scope, limit=9)
            assert sorted(entry.id for entry in newest) == ids, name
            many = await opened.store.get_many(["epi_a", "epi_s"], scope)
            assert [entry.id for entry in many] == ids, name
            assert (await opened.store.get("epi_a", scope) is not None) == ("a" in expected)

    async def test_a_scope_that_wants_a_label_or_none_sees_cases_without_it(
        self, opened: OpenItems
    ) -> None:
        shop, bank = replace(ANN, app_code="shop"), replace(ANN, app_code="bank")
        scopes = {"any": ANN, "shop": shop, "bank": bank, "prod": replace(shop, environment="prod")}
        wanted = SearchScope(owner_id="ann", app_code="shop", or_without=("app_code",))
        seen = {
            wanted: ["any", "prod", "shop"],
            replace(wanted, or_without=()): ["prod", "shop"],
            replace(wanted, environment="prod"): ["prod"],
            replace(wanted, environment="test"): [],
            replace(wanted, environment="prod", or_without=("environment",)): ["prod", "shop"],
            replace(wanted, app_code=None): ["any", "bank", "prod", "shop"],
            replace(wanted, owner_id="bob"): [],
        }
        await opened.put(
            [item(name, "payroll", kind="case", scope=entry) for name, entry in scopes.items()]
        )
        await opened.put([item("note", "payroll", kind="note")])
        for scope, expected in seen.items():
            options = {"kinds": ["case"], "limit": 9}
            assert sorted(await found(opened, "payroll", scope, **options)) == expected, scope
            newest = await opened.store.newest(scope, kinds=["case"], limit=9)
            assert sorted(entry.id for entry in newest) == [f"epi_{entry}" for entry in expected]
            many = await opened.store.get_many([f"epi_{entry}" for entry in sorted(scopes)], scope)
            assert [entry.id for entry in many] == [f"epi_{entry}" for entry in expected]

    async def test_an_item_without_a_project_is_seen_in_every_project(
        self, opened: OpenItems
    ) -> None:
        scopes = {name: replace(ANN, project_id=name) for name in ("shop", "bank")} | {"any": ANN}
        shop = SearchScope(owner_id="ann", project_id="shop", or_without=("project_id",))
        for kind in KINDS:
            items = [
                item(f"{name}{kind}", "payroll", kind=kind, scope=scope)
                for name, scope in scopes.items()
            ]
            await opened.put(items)
            expected = [f"any{kind}", f"shop{kind}"]
            names = await found(opened, "payroll", shop, kinds=[kind])
            newest = await opened.store.newest(shop, kinds=[kind], limit=9)
            assert sorted(names) == expected
            assert sorted(entry.id for entry in newest) == [f"epi_{one}" for one in expected]

    async def test_a_case_that_gets_or_loses_a_label_is_found_by_what_it_is_now(
        self, opened: OpenItems
    ) -> None:
        wanted = SearchScope(owner_id="ann", app_code="shop", or_without=("app_code",))
        for app_code, expected in [(None, ["1"]), ("bank", []), ("shop", ["1"]), (None, ["1"])]:
            scope = replace(ANN, app_code=app_code)
            await opened.put([item(body="payroll", kind="case", scope=scope)])
            assert await found(opened, "payroll", wanted) == expected, app_code

    async def test_no_text_makes_an_owner_of_another(self, opened: OpenItems) -> None:
        await opened.put([item("b", "payroll ann", scope=replace(BOB, project_id="ann"))])
        for owner in ("ann", "", "bo", "bob ", "BOB", "*", "ann OR bob"):
            assert await found(opened, "payroll", Scope(owner_id=owner)) == [], owner

    async def test_an_id_stays_its_owners(self, opened: OpenItems) -> None:
        await opened.put([item(body="first")])
        with pytest.raises(StoreConflict):
            await opened.put([item(body="second", scope=BOB)])
        assert await found(opened, "first") == ["1"]
        assert await found(opened, "second", BOB) == []

    async def test_what_fails_leaves_nothing_of_its_transaction(self, opened: OpenItems) -> None:
        await opened.put([item(body="first")])
        with pytest.raises(StoreConflict):
            await opened.put([item("2", "payroll"), item(body="x", scope=BOB)])
        assert await opened.store.get("epi_2", ANN) is None
        assert await found(opened, "payroll") == []

    async def test_putting_the_same_again_changes_nothing(self, opened: OpenItems) -> None:
        await opened.put([item(body="payroll"), item("2", "payroll")])
        before = await opened.store.search("payroll", ANN, limit=9)
        seqs = [entry.seq for entry in await opened.store.after(0, 9)]
        await opened.put([item(body="payroll")])
        assert await opened.store.search("payroll", ANN, limit=9) == before
        assert [entry.seq for entry in await opened.store.after(0, 9)] == seqs
        assert len(seqs) == 2

    async def test_what_was_changed_is_found_by_its_new_words_alone(
        self, opened: OpenItems
    ) -> None:
        old = item(
            body="payroll 工资", title="ledger", tags=("audit",), scope=replace(ANN, user_id="u")
        )
        new = replace(
            old, body="vacation 休假", title="calendar", tags=("leave",), scope=ANN, revision=2
        )
        await opened.put([old])
        await opened.put([new])
        for word in ("vacation", "休假", "calendar", "leave"):
            assert await found(opened, word) == ["1"], word
        for word in ("payroll", "工资", "资", "ledger", "audit"):
            assert await found(opened, word) == [], word
        assert await found(opened, "vacation", replace(ANN, user_id="u")) == []
        assert await opened.store.get("epi_1", ANN) == new

    async def test_what_was_deleted_is_nowhere(self, opened: OpenItems) -> None:
        await opened.put([item("2", f"payroll {'of many others ' * 9}"), item(body="payroll 工资")])
        assert await found(opened, "payroll", limit=1) == ["1"]
        assert await opened.delete("epi_1")
        assert await found(opened, "payroll", limit=1) == ["2"]
        assert await found(opened, "工资") == []
        assert await opened.store.get("epi_1", ANN) is None
        assert [entry.id for entry in await opened.store.newest(ANN, limit=9)] == ["epi_2"]
        assert [entry.item.id for entry in await opened.store.after(0, 9)] == ["epi_2"]
        assert not await opened.delete("epi_1")

    async def test_an_id_can_be_used_again_after_its_item_was_deleted(
        self, opened: OpenItems
    ) -> None:
        await opened.put([item(body="payroll")])
        await opened.delete("epi_1")
        await opened.put([item(body="vacation", scope=BOB)])
        assert await found(opened, "payroll", BOB) == []
        assert await found(opened, "vacation", BOB) == ["1"]

    async def test_many_come_in_the_order_of_their_ids(self, opened: OpenItems) -> None:
        await opened.put([item(f"{n}") for n in range(1200)])
        wanted = [f"epi_{n}" for n in (700, 1199, 3)]
        asked = [wanted[0], "epi_none", "\ud800", *wanted[1:], wanted[0]]
        assert [entry.id for entry in await opened.store.get_many(asked, ANN)] == wanted
        everything = [f"epi_{n}" for n in range(1200)]
        assert len(await opened.store.get_many(everything, ANN)) == 1200
        assert await opened.store.get_many([], ANN) == []

    async def test_the_newest_happened_last(self, opened: OpenItems) -> None:
        moments = {"a": 5, "b": 9, "c": 1, "d": 7}
        await opened.put(
            [item(name, occurred_at=AT + timedelta(days=n)) for name, n in moments.items()]
        )
        await opened.put([item("e", kind="note", scope=Scope(owner_id=WORKSPACE_OWNER))])
        newest = await opened.store.newest(ANN, limit=9)
        assert [entry.id for entry in newest] == ["epi_b", "epi_d", "epi_a", "epi_c", "epi_e"]
        assert [entry.id for entry in await opened.store.newest(ANN, limit=2)] == [
            "epi_b",
            "epi_d",
        ]
        notes = await opened.store.newest(ANN, kinds=["note"], limit=9)
        assert [note.id for note in notes] == ["epi_e"]
        assert await opened.store.newest(ANN, kinds=[], limit=9) == []
        assert await opened.store.newest(replace(ANN, user_id="\ud800"), limit=9) == []

    async def test_all_owners_items_come_in_the_order_of_writing(self, opened: OpenItems) -> None:
        await opened.put([item("b"), item("a", scope=BOB), item("c")])
        await opened.put([item("b", "changed")])
        first = await opened.store.after(0, 2)
        assert [entry.item.id for entry in first] == ["epi_b", "epi_a"]
        assert first[0].item.body == "changed"
        rest = await opened.store.after(first[-1].seq, 2)
        assert [entry.item.id for entry in rest] == ["epi_c"]
        assert await opened.store.after(rest[-1].seq, 2) == []
        own = await opened.store.after(0, 9, owner_ids=["ann"])
        assert [entry.item.id for entry in own] == ["epi_b", "epi_c"]

    async def test_it_is_all_there_after_it_was_closed_and_opened(self, opens: Opening) -> None:
        async with opens() as opened:
            await opened.put([item(body="payroll 工资")])
            assert await found(opened, "工资") == ["1"]
        async with opens() as opened:
            assert await found(opened, "工资") == ["1"]
            assert await opened.store.get("epi_1", ANN) is not None

    async def test_writers_at_once_lose_nothing(self, opened: OpenItems) -> None:

        async def write(writer: int) -> None:
            for n in range(5):
                await opened.put([item(f"{writer}_{n}", f"payroll run{n}")])
                assert f"{writer}_{n}" in await found(opened, f"payroll run{n}")

        async with anyio.create_task_group() as tasks:
            for writer in range(6):
                tasks.start_soon(write, writer)
        assert len(await found(opened, "payroll")) == 30
