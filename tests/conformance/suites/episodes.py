"""What every store of episodes must do.

`EpisodeStoreSuite` holds one test for each contract of `memory.episodes.store`. A subclass supplies
the fixture `opens` and nothing else. Needs pytest and pytest-asyncio; nothing that serves imports
it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from memory.episodes.episode import MAX_VARIANTS, Episode, Sections, Variant
from memory.episodes.episode_merge import fingerprint_of
from memory.episodes.item import to_item
from memory.episodes.store import MERGE_WINDOW, NewEpisode, Put, SqlEpisodeStore
from memory.items.item import Item
from memory.items.scope import Scope
from tests.conformance.suites.cancellation import Cut, both_cuts, cut_everywhere
from tests.conformance.suites.opened import OpenedSuite

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN, BOB = Scope(owner_id="ann"), Scope(owner_id="bob")
BACKENDS = ("vector", "memu")
TEXTS = (
    "plain words",
    "你好，世界：支付失败",
    "🧑‍🚀 e\u0301 \u202e right to left",
    "'; DROP TABLE episodes; --\n\t\\",
    "nul\0inside",
    "长" * 100_000,
)
LONG = (
    "The nightly copy of the orders stopped halfway because the disk of the copying host was full. "
    "We deleted what was old there, began again and looked at the sums, which were the same "
    "on both."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEpisodes:
    """An open store, and how to look at what was stored with an episode."""

    store: SqlEpisodeStore
    item: Callable[[str, Scope], Awaitable[Item | None]]
    deliveries: Callable[[str], Awaitable[Sequence[str]]]
    """The idempotency keys of an item's deliveries, sorted."""
    end_turn: Callable[[str], Awaitable[None]]
    """Put a turn of Ann's into the chronicle that waits to be remembered."""
    unremembered: Callable[[], Awaitable[Sequence[str]]]


Opening = Callable[[], AbstractAsyncContextManager[OpenEpisodes]]


def episode(name: str = "1", text: str | None = None, **fields: Any) -> Episode:
    """Make an episode with the id `epi_<name>` whose words are its own."""
    own = text if text is not None else f"episode {name} tells of thing{name} alone"
    blank = Episode(
        episode_id=f"epi_{name}",
        episode_type="run",
        title=fields.pop("title", f"title {name}"),
        scope=ANN,
        sections=Sections(context=own),
        occurred_at=AT,
        updated_at=AT,
    )
    return replace(blank, **fields)


def new(one: Episode, *, remembers_turn: str | None = None) -> NewEpisode:
    """Make what a writer hands over."""
    return NewEpisode(
        episode=one,
        fingerprint=fingerprint_of(one),
        deliver_to=BACKENDS,
        remembers_turn=remembers_turn,
    )


async def put(opened: OpenEpisodes, one: Episode, *, remembers_turn: str | None = None) -> Put:
    """Put a single episode."""
    return (await opened.store.put([new(one, remembers_turn=remembers_turn)]))[0]


async def put_back(opened: OpenEpisodes, one: Episode) -> Put:
    """Put a single episode that comes back from an export."""
    return (await opened.store.put([replace(new(one), comes_back=True)]))[0]


class EpisodeStoreSuite(OpenedSuite):
    """The contracts of `SqlEpisodeStore`."""

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    async def test_an_episode_comes_back_as_it_was_put(self, opens: Opening, text: str) -> None:
        whole = episode(
            text=text,
            episode_type="bugfix",
            scope=Scope(owner_id="ann", project_id="p", environment="prod"),
            tags=("a", "深"),
            source_refs=("int_1", "int_2"),
            conversation_id="cnv_1",
            turn_id="trn_1",
        )
        async with opens() as opened:
            assert await put(opened, whole) == Put(status="stored", episode_id="epi_1")
        async with opens() as opened:
            assert await opened.store.get("epi_1", ANN) == whole
            assert await opened.store.get("epi_2", ANN) is None

    async def test_its_item_and_deliveries_are_stored_with_it(self, opened: OpenEpisodes) -> None:
        await put(opened, episode())
        assert await opened.item("epi_1", ANN) == to_item(episode())
        assert list(await opened.deliveries("epi_1")) == [
            "memu:put:epi_1:1",
            "vector:put:epi_1:1",
        ]

    async def test_only_a_scope_that_covers_it_sees_it(self, opened: OpenEpisodes) -> None:
        mine = episode(scope=Scope(owner_id="ann", project_id="p"))
        await put(opened, mine)
        assert await opened.store.get("epi_1", BOB) is None
        assert await opened.store.get("epi_1", replace(ANN, project_id="q")) is None
        assert await opened.store.get("epi_1", replace(ANN, project_id="p")) == mine
        assert await opened.store.recalled_texts(["epi_1"], BOB) == []
        texts = await opened.store.recalled_texts(["epi_1", "epi_9"], ANN)
        assert texts is not None, "none of them was forgotten"
        assert len(texts) == 1

    async def test_an_id_that_is_stored_is_left_as_it_is(self, opened: OpenEpisodes) -> None:
        await put(opened, episode())
        again = await put(opened, episode(text="something else entirely"))
        assert again == Put(status="stored", episode_id="epi_1")
        assert await opened.store.get("epi_1", ANN) == episode()
        assert len(await opened.deliveries("epi_1")) == 2

    async def test_one_that_comes_back_is_stored_as_it_was_and_merged_with_nothing(
        self, opened: OpenEpisodes
    ) -> None:
        variants = (Variant(occurred_at=AT + timedelta(days=2), text="深: it said more"),)
        whole = episode(
            text=LONG, title="t", variants=variants, repeats=3, revision=2, tags=("pay",)
        )
        like = replace(whole, episode_id="epi_2", sections=Sections(context=f"{LONG} Indeed."))
        near = episode("3", episode_type="bugfix", tags=("pay",))
        beside = episode("4", episode_type="bugfix", tags=("pay",))
        for entry in (whole, like, near, beside):
            put = await put_back(opened, entry)
            assert put == Put(status="stored", episode_id=entry.episode_id)
            assert await opened.store.get(entry.episode_id, ANN) == entry
        assert await opened.item("epi_1", ANN) == to_item(whole)
        assert "memu:put:epi_1:2" in await opened.deliveries("epi_1")

    async def test_one_that_comes_back_and_is_there_changes_nothing(
        self, opened: OpenEpisodes
    ) -> None:
        await put(opened, episode(text=LONG, title="t"))
        other_words = episode(text="something else entirely", repeats=4)
        same_words = episode("2", text=LONG, title="t", repeats=4)
        for entry in (other_words, same_words):
            assert await put_back(opened, entry) == Put(status="there", episode_id="epi_1")
        assert await opened.store.get("epi_1", ANN) == episode(text=LONG, title="t")
        assert await opened.store.get("epi_2", ANN) is None
        assert len(await opened.deliveries("epi_1")) == 2

    async def test_an_id_that_somebody_else_has_is_left_to_them(self, opened: OpenEpisodes) -> None:
        his = episode(scope=BOB)
        await put(opened, episode())
        first = await put_back(opened, his)
        assert first.status == "stored"
        assert await put_back(opened, his) == Put(status="there", episode_id=first.episode_id)
        assert await opened.store.get("epi_1", ANN) == episode()
        assert await opened.store.get("epi_1", BOB) is None
        got = await opened.store.get(first.episode_id, BOB)
        assert got == replace(his, episode_id=first.episode_id)

    async def test_the_span_of_one_that_comes_back_reaches_to_its_last_variant(
        self, opened: OpenEpisodes
    ) -> None:
        fields: dict[str, Any] = {"episode_type": "bugfix", "tags": ("pay",)}
        last = AT + 5 * MERGE_WINDOW
        variants = (Variant(occurred_at=last, text="more"),)
        await put_back(opened, episode(variants=variants, revision=2, **fields))
        soon = episode("2", occurred_at=last + MERGE_WINDOW, **fields)
        assert (await put(opened, soon)).episode_id == "epi_1"

    async def test_the_very_same_again_is_only_counted(self, opened: OpenEpisodes) -> None:
        await put(opened, episode(text=LONG, title="t"))
        for name in ("2", "3"):
            later = AT + timedelta(days=int(name))
            same = episode(name, text=f" {LONG}\n", title="t", occurred_at=later)
            assert await put(opened, same) == Put(status="merged", episode_id="epi_1")
        found = await opened.store.get("epi_1", ANN)
        assert found == episode(text=LONG, title="t", repeats=2)
        assert await opened.store.get("epi_2", ANN) is None
        assert await opened.item("epi_2", ANN) is None
        assert len(await opened.deliveries("epi_1")) == 2

    async def test_what_differs_in_a_word_is_another_episode(self, opened: OpenEpisodes) -> None:
        await put(opened, episode(text=LONG, title="t"))
        other = episode("2", text=f"{LONG} Indeed.", title="t")
        assert (await put(opened, other)).status == "stored"

    async def test_the_same_type_and_tags_close_in_time_are_one(self, opened: OpenEpisodes) -> None:
        fields: dict[str, Any] = {"episode_type": "bugfix", "tags": ("pay", "sql")}
        await put(opened, episode(**fields))
        near = episode("2", occurred_at=AT + MERGE_WINDOW, **fields)
        assert (await put(opened, near)).episode_id == "epi_1"
        far = AT + 3 * MERGE_WINDOW
        assert (await put(opened, episode("3", occurred_at=far, **fields))).status == "stored"
        other: dict[str, Any] = {"episode_type": "howto", "tags": ("pay", "sql")}
        assert (await put(opened, episode("4", **other))).status == "stored"
        fewer: dict[str, Any] = {"episode_type": "bugfix", "tags": ("pay",)}
        assert (await put(opened, episode("5", **fewer))).status == "stored"
        found = await opened.store.get("epi_1", ANN)
        assert found is not None
        assert "thing2 alone" in found.variants[0].text

    @pytest.mark.parametrize(
        "at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], ids=str
    )
    async def test_the_calendar_may_end_within_the_window(
        self, opened: OpenEpisodes, at: datetime
    ) -> None:
        for name, status in (("1", "stored"), ("2", "merged")):
            tagged: dict[str, Any] = {"episode_type": "bugfix", "tags": ("pay", "sql")}
            one = episode(name, occurred_at=at, **tagged)
            assert (await put(opened, one)).status == status

    async def test_a_run_or_what_has_no_tags_merges_by_its_text_alone(
        self, opened: OpenEpisodes
    ) -> None:
        for name in ("1", "2"):
            assert (await put(opened, episode(name, tags=("pay",)))).status == "stored"
        for name in ("3", "4"):
            untagged = episode(name, episode_type="bugfix")
            assert (await put(opened, untagged)).status == "stored"

    @pytest.mark.parametrize(
        "other", [BOB, replace(ANN, project_id="q"), replace(ANN, user_id="x")], ids=range(3)
    )
    async def test_nothing_is_merged_across_owners_or_labels(
        self, opened: OpenEpisodes, other: Scope
    ) -> None:
        fields: dict[str, Any] = {"episode_type": "bugfix", "tags": ("pay",), "title": "t"}
        await put(opened, episode(text=LONG, **fields))
        same = episode("2", text=LONG, scope=other, **fields)
        assert (await put(opened, same)).status == "stored"
        again = episode("3", text=LONG, scope=other, **fields)
        assert (await put(opened, again)).episode_id == "epi_2"

    async def test_variants_are_bounded_and_then_a_new_one_begins(
        self, opened: OpenEpisodes
    ) -> None:
        fields: dict[str, Any] = {"episode_type": "incident", "tags": ("pay",)}
        went = [
            (await put(opened, episode(str(n), **fields))).episode_id
            for n in range(1, MAX_VARIANTS + 3)
        ]
        assert went == ["epi_1"] * (MAX_VARIANTS + 1) + [f"epi_{MAX_VARIANTS + 2}"]
        found = await opened.store.get("epi_1", ANN)
        assert found is not None
        assert len(found.variants) == MAX_VARIANTS

    async def test_equal_ones_at_once_make_one(self, opened: OpenEpisodes) -> None:
        puts: list[Put] = []

        async def put_one(name: str) -> None:
            puts.append(await put(opened, episode(name, text=LONG, title="t")))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for name in "abcdefgh":
                    group.start_soon(put_one, name)
        assert [entry.status for entry in puts].count("stored") == 1
        assert len({entry.episode_id for entry in puts}) == 1
        found = await opened.store.get(puts[0].episode_id, ANN)
        assert found is not None
        assert found.repeats == 7

    async def test_many_are_put_in_their_order_in_one_go(self, opened: OpenEpisodes) -> None:
        batch = [new(episode(str(n), text=LONG, title="t")) for n in range(3)]
        batch.append(new(episode("other")))
        assert list(await opened.store.put(batch)) == [
            Put(status="stored", episode_id="epi_0"),
            Put(status="merged", episode_id="epi_0"),
            Put(status="merged", episode_id="epi_0"),
            Put(status="stored", episode_id="epi_other"),
        ]
        assert list(await opened.store.put([])) == []

    async def test_the_turns_mark_is_stored_with_the_episode(self, opened: OpenEpisodes) -> None:
        for turn_id in ("trn_1", "trn_2", "trn_3", "trn_4"):
            await opened.end_turn(turn_id)
        await put(opened, episode(text=LONG, title="t"), remembers_turn="trn_1")
        assert list(await opened.unremembered()) == ["trn_2", "trn_3", "trn_4"]
        await put(opened, episode("2", text=LONG, title="t"), remembers_turn="trn_2")
        await opened.store.mark_remembered("trn_3")
        await opened.store.mark_remembered("trn_3")
        assert list(await opened.unremembered()) == ["trn_4"]

    @both_cuts
    async def test_a_put_that_is_cancelled_anywhere_is_whole_or_absent(
        self, opened: OpenEpisodes, cut: Cut
    ) -> None:

        async def cut_at(step: int) -> bool:
            turn_id, one = f"trn_{step}", episode(str(step))
            await opened.end_turn(turn_id)
            was_cut = await cut(put(opened, one, remembers_turn=turn_id), step)
            there = {
                await opened.store.get(one.episode_id, ANN) is not None,
                await opened.item(one.episode_id, ANN) is not None,
                len(await opened.deliveries(one.episode_id)) == len(BACKENDS),
                turn_id not in await opened.unremembered(),
            }
            assert len(there) == 1, "half of it was written"
            await opened.store.mark_remembered(turn_id)
            assert (await put(opened, episode(f"{step}x"))).status == "stored"
            return was_cut

        await cut_everywhere(cut_at)

    async def test_what_fails_leaves_nothing_behind(self, opened: OpenEpisodes) -> None:
        """The last of a batch is not writable: the ones before it are not there either."""
        await opened.end_turn("trn_1")
        broken = new(episode("2", text="half a letter \ud800"))
        with pytest.raises(Exception):  # noqa: B017, PT011  whatever a store says to that
            await opened.store.put([new(episode(), remembers_turn="trn_1"), broken])
        assert await opened.store.get("epi_1", ANN) is None
        assert await opened.item("epi_1", ANN) is None
        assert await opened.deliveries("epi_1") == []
        assert list(await opened.unremembered()) == ["trn_1"]
        assert (await put(opened, episode())).status == "stored"
