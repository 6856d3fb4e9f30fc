"""What every store of items must do.

`ItemStoreSuite` holds one test for each contract of `memory.items.store`: here of search, in `item_storage` of what is
kept. A subclass supplies the fixture `opens` and nothing else. Needs pytest and pytest-asyncio; nothing that serves
imports it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest

from memory.errors import StoreUnavailable
from memory.items.item import Item, ItemKind
from memory.items.seen import Seen
from memory.items.timespan import TimeSpan
from tests.conformance.suites.item_storage import ItemKeepingSuite
from tests.conformance.suites.item_values import ANN, BOB, Opening, OpenItems, dialogue, found, item

QUESTIONS = (
    "",
    " \n",
    '"',
    "'",
    '""""',
    "a\0b",
    "NEAR",
    "NEAR(a b, 3)",
    "AND OR NOT",
    "title : x",
    "{title body} : x",
    "^start*",
    "* - + ( ) ~",
    "x NOT",
    "\ud800",
    "\ud800部署\udfff",
    "的",
    "the of and",
    "🧑‍🚀",
    "%_",
    "x " * 5000,
    "长" * 5000,
)


class ItemStoreSuite(ItemKeepingSuite):
    """The contracts of `ItemStore`."""

    @pytest.mark.parametrize(
        ("body", "questions"),
        [
            (
                "周五部署了支付服务，回滚过一次。",
                ["部署", "支付", "回滚", "支付服务的部署", "周五支付"],
            ),
            ("会计科目表里有税", ["税", "科目"]),
            ("ITGC控制测试在Q3完成", ["itgc", "ITGC", "控制", "q3", "itgc控制"]),
            ("request failed with ERR_CONN_RESET", ["ERR_CONN_RESET", "err_conn_reset", "reset"]),
            ("pinned to v2.3.1 again", ["v2.3.1", "V2.3.1"]),
            ("see gateway/turns/runner.py", ["gateway/turns/runner.py", "runner.py", "runner"]),
            ("calls getUserName twice", ["getUserName", "getusername", "user name"]),
            ("the deployments were running late", ["deployment", "deploy run", "runs"]),
            ("Ｆｕｌｌｗｉｄｔｈ １２３ ｶﾀｶﾅ", ["fullwidth", "123", "カタカナ"]),
            ("東京タワーに行きました", ["東京", "タワー", "東京タワー"]),
            ("결제 서비스를 배포했습니다", ["결제", "서비스", "배포"]),
            ("café Straße naïve", ["cafe", "strasse", "CAFÉ", "naive"]),
            ("𠮷野家で昼食", ["𠮷野家", "昼食"]),
        ],
        ids=range(13),
    )
    async def test_it_is_found_by_any_of_its_words(
        self, opened: OpenItems, body: str, questions: Sequence[str]
    ) -> None:
        await opened.put([item(body=body), item("other", "nothing of the kind 完全无关")])
        for question in questions:
            assert (await found(opened, question))[:1] == ["1"], question

    @pytest.mark.parametrize("question", ["invoice", "发票", "票", "的", "what is the", "是什么"])
    async def test_what_has_none_of_the_words_is_not_found(
        self, opened: OpenItems, question: str
    ) -> None:
        await opened.put([item(body="我们的部署是什么 of what the service is done")])
        assert await found(opened, question) == []

    async def test_a_character_of_another_word_does_not_make_it_about_the_same(
        self, opened: OpenItems
    ) -> None:
        await opened.put([item(body="部署完成"), item("2", "属于财务")])
        assert all(entry.is_weak for entry in await opened.store.search("部属", ANN, limit=9))

    async def test_no_question_is_an_error(self, opened: OpenItems) -> None:
        await opened.put([item(body="部署 x start near title")])
        for question in QUESTIONS:
            try:
                hits = await opened.store.search(question, ANN, limit=5)
            except StoreUnavailable:
                pytest.fail(question)
            wrong = [hit for hit in hits if not (hit.score > 0 and 0 <= hit.coverage <= 1)]
            assert wrong == [], question

    async def test_what_has_more_of_the_question_comes_first(self, opened: OpenItems) -> None:
        await opened.put([item(f"x{n}", f"deploy something{n}") for n in range(20)])
        await opened.put(
            [
                item("one", "the deploy of the week"),
                item("all", "the deploy of the payment gateway"),
                item("two", "the payment deploy"),
            ]
        )
        assert (await found(opened, "deploy payment gateway"))[:2] == ["all", "two"]
        assert await found(opened, "deploy payment gateway", limit=1) == ["all"]
        hits = await opened.store.search("deploy payment gateway", ANN, limit=50)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert hits[0].coverage > hits[1].coverage > hits[-1].coverage

    async def test_of_what_fits_equally_well_the_newest_comes_first(
        self, opened: OpenItems
    ) -> None:
        await opened.put([item(f"{n}", f"deploy run{n}") for n in range(100)])
        assert await found(opened, "the last deploy", limit=3) == ["99", "98", "97"]

    async def test_a_rare_word_counts_more_than_a_common_one(self, opened: OpenItems) -> None:
        await opened.put([item("rare", "熔断 检查 done")])
        await opened.put([item(f"{n}", "服务 检查 done") for n in range(30)])
        hits = await opened.store.search("服务 熔断", ANN, limit=50)
        assert hits[0].item_id == "epi_rare"
        assert hits[0].coverage > 1.5 * hits[1].coverage > 0

    async def test_a_word_that_is_asked_twice_counts_more(self, opened: OpenItems) -> None:
        await opened.put([item("lag", "lag 延迟"), item("kafka", "kafka 延误")])
        assert await found(opened, "kafka lag. kafka!") == ["kafka", "lag"]
        assert await found(opened, "lag kafka. lag!") == ["lag", "kafka"]

    async def test_a_title_counts_more_than_the_text(self, opened: OpenItems) -> None:
        await opened.put(
            [
                item("title", "month end is near", title="the ledger"),
                item("text", "the ledger is closed", title="month end"),
            ]
        )
        assert await found(opened, "ledger") == ["title", "text"]

    async def test_something_common_alone_is_not_about_the_question(
        self, opened: OpenItems
    ) -> None:
        await opened.put([item(f"{n}", f"service check{n}") for n in range(30)])
        await opened.put([item("it", "kafka consumer lag in service orders")])
        about = await opened.store.search("kafka consumer lag service", ANN, limit=50)
        assert about[0].item_id == "epi_it"
        assert not about[0].is_weak
        far = "zeppelin harbour umbrella giraffe lantern tundra walnut pepper cactus oboe glacier service"
        assert all(entry.is_weak for entry in await opened.store.search(far, ANN, limit=50))

    async def test_what_was_seen_takes_no_place_of_others(self, opened: OpenItems) -> None:
        """A changed item was not seen as it is now; a turn was, whatever its title has become."""
        seen = Seen(turns=frozenset({"trn_1"}), shown={"epi_shown": 1, "epi_changed": 1})
        said = {"turn_id": "trn_1", "conversation_id": "cnv_1"}
        await opened.put(
            [
                item("edited", "payroll and more words", kind="note", revision=2, **said),
                item("changed", "payroll and more words", revision=2),
                item("new", "payroll and more words", turn_id="trn_2"),
                *(item(f"{n}", f"payroll {n}", kind="turn", **said) for n in range(3)),
                item("renamed", "payroll", kind="turn", revision=2, **said),
                item("made", "payroll", revision=2, **said),
                item("noted", "payroll", kind="note", **said),
                item("shown", "payroll"),
            ]
        )
        names = await found(opened, "payroll", limit=3, seen=seen)
        assert sorted(names) == ["changed", "edited", "new"]
        assert len(await found(opened, "payroll")) == 10

    async def test_only_the_span_is_searched_however_many_fit_better(
        self, opened: OpenItems
    ) -> None:
        at = datetime(2026, 3, 5, 12, tzinfo=UTC)
        await opened.put([item("it", "the payroll of a long and busy month", occurred_at=at)])
        await opened.put(
            [item(f"x{n}", "payroll payroll", occurred_at=at - timedelta(days=3)) for n in range(9)]
        )
        for span in (TimeSpan.of("2026-03-05", None), TimeSpan.of("2026-03-05", "2026-03-05")):
            assert await found(opened, "payroll", limit=1, span=span) == ["it"]
            newest = await opened.store.newest(ANN, limit=9, span=span)
            assert [entry.id for entry in newest] == ["epi_it"]
        before = TimeSpan.of(None, "2026-03-04")
        assert "it" not in await found(opened, "payroll", limit=50, span=before)

    async def test_a_turn_with_none_of_the_words_is_not_found_by_its_neighbours(
        self, opened: OpenItems
    ) -> None:
        lines = dialogue(["which instrument now", "the cello since march"])
        await opened.put([replace(line, kind="turn") for line in lines])
        assert await found(opened, "instrument") == ["0"]

    async def test_kinds_and_the_limit_are_kept(self, opened: OpenItems) -> None:
        kinds: Sequence[ItemKind] = ("note", "episode", "case")
        await opened.put([item(kind, "payroll", kind=kind) for kind in kinds])
        for kind in kinds:
            assert await found(opened, "payroll", kinds=[kind]) == [kind]
        both = await found(opened, "payroll", kinds=["note", "case"])
        assert sorted(both) == ["case", "note"]
        assert await found(opened, "payroll", kinds=[]) == []
        assert len(await found(opened, "payroll", limit=2)) == 2

    async def test_others_items_take_no_place(self, opened: OpenItems) -> None:
        await opened.put([item("a", "the payroll of a long and busy month of the year")])
        await opened.put([item(f"b{n}", "payroll payroll", scope=BOB) for n in range(40)])
        assert await found(opened, "payroll", limit=1) == ["a"]

    async def test_a_long_text_is_found_by_its_beginning_and_its_end(
        self, opened: OpenItems
    ) -> None:
        await opened.put([item(body=f"kafka 起因 {'filler ' * 20_000} zookeeper 结论")])
        for word in ("kafka", "起因", "zookeeper", "结论"):
            assert await found(opened, word) == ["1"], word

    async def test_the_end_of_a_long_question_counts(self, opened: OpenItems) -> None:
        await opened.put([item("end", "cello lesson"), item("begin", "lighthouse ferry")])
        asked = f"lighthouse ferry. {'talk about this and that ' * 2000} cello lesson?"
        assert (await found(opened, asked))[0] == "end"

    async def test_what_was_said_before_and_after_finds_a_line(self, opened: OpenItems) -> None:
        lines = ["which instrument now", "the cello since march", "我很喜欢它的声音"]
        await opened.put(dialogue(lines))
        assert await found(opened, "instrument") == ["0", "1"]
        assert await found(opened, "声音") == ["2", "1"]
        assert await found(opened, "cello") == ["1", "2", "0"]

    async def test_a_neighbour_counts_whenever_it_comes_changes_or_goes(
        self, opened: OpenItems
    ) -> None:
        first, middle, last = dialogue(["lighthouse", "ferry", "harbour"])
        await opened.put([last])
        await opened.put([first])
        assert await found(opened, "harbour") == ["2"]
        await opened.put([middle])
        assert await found(opened, "harbour") == ["2", "1"]
        assert await found(opened, "ferry") == ["1", "2", "0"]
        await opened.put([replace(middle, body="tunnel")])
        assert await found(opened, "ferry") == []
        assert await found(opened, "tunnel") == ["1", "2", "0"]
        await opened.delete(middle.id)
        assert await found(opened, "tunnel") == []
        assert await found(opened, "lighthouse") == ["0"]

    async def test_a_line_that_moves_leaves_its_old_neighbours(self, opened: OpenItems) -> None:
        first, middle, _ = dialogue(["lighthouse", "ferry", "harbour"])
        await opened.put([first, middle])
        await opened.put([replace(middle, thread="elsewhere")])
        assert await found(opened, "ferry") == ["1"]
        assert await found(opened, "lighthouse") == ["0"]

    async def test_only_the_same_owners_same_thread_makes_neighbours(
        self, opened: OpenItems
    ) -> None:
        first, middle, last = dialogue(["lighthouse", "ferry", "harbour"])
        await opened.put([first, replace(middle, scope=BOB), replace(last, thread="other")])
        await opened.put([item("alone", "harbour")])
        assert await found(opened, "ferry") == []
        assert await found(opened, "lighthouse") == ["0"]
        assert await found(opened, "ferry", BOB) == ["1"]
        assert sorted(await found(opened, "harbour")) == ["2", "alone"]

    async def test_lines_that_two_programs_write_at_once_are_neighbours(
        self, opens: Opening
    ) -> None:
        words = "lighthouse ferry harbour tunnel bridge canal island airport station market".split()

        async def put(opened: OpenItems, line: Item) -> None:
            await opened.put([line])

        async with opens() as one, opens() as other, anyio.create_task_group() as tasks:
            for place, line in enumerate(dialogue(words)):
                tasks.start_soon(put, (one, other)[place % 2], line)
        async with opens() as opened:
            for place, word in enumerate(words):
                beside = {str(place + n) for n in (-1, 0, 1) if 0 <= place + n < len(words)}
                assert set(await found(opened, word)) == beside, word

    async def test_a_search_that_is_given_up_leaves_the_store_usable(
        self, opened: OpenItems
    ) -> None:
        await opened.put([item(f"{n}", f"payroll run{n} 工资") for n in range(300)])
        for _ in range(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(found, opened, "payroll 工资")
                await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        assert len(await found(opened, "payroll")) == 50
