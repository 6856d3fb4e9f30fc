"""What every store of conversations must do."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.conversations.model import ConversationChange, Unsettable
from gateway.conversations.store import (
    KEY_OUTLIVES,
    IdempotencyKey,
    KeyedTurn,
    UnknownCursor,
)
from gateway.ids import ConversationId
from memory.errors import StoreConflict
from tests.conformance.suites.cancellation import Cut, both_cuts, cut_everywhere
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    BOB,
    TEXTS,
    OpenStores,
    Stores,
    StoresSuite,
    at,
    conversation,
    ended,
    event,
    turn,
)

TITLES = {
    "percent": "50% off",
    "line": "snake_case",
    "bang": "wow!",
    "back": "C:\\dir",
    "quote": "it's",
    "hello": "Say Hello",
    "chinese": "你好世界🙂",
    "umlaut": "Über Ärger",
    "else": "quiet too",
    "nul": "before\0after",
    "deep": "quiet",
}
SEARCHES: list[tuple[str, set[str]]] = [
    ("50%", {"percent"}),
    ("%", {"percent"}),
    ("_", {"line"}),
    ("!", {"bang"}),
    ("\\", {"back"}),
    ("'", {"quote"}),
    ("HELLO", {"hello"}),
    ("世界", {"chinese"}),
    ("🙂", {"chinese"}),
    ("after", {"nul"}),
    ("\0", {"nul"}),
    ("in the message", {"deep"}),
    ("über", {"umlaut"}),
    ("ÄRGER", {"umlaut"}),
    ("привет", {"else"}),
    ("STRASSE", {"else"}),
    ("straße", {"else"}),
    ("taken back", set()),
    ("x" * 60_000, set()),
    ("", {*TITLES}),
]
"""What is asked for, and which titles and messages hold it."""


class ConversationStoreSuite(StoresSuite):
    """The contracts of `ConversationStore`."""

    async def test_those_that_are_gone_are_told_of_a_list(self, stores: Stores) -> None:
        await stores.conversations.create(conversation("a"))
        ids = [ConversationId(f"cnv_{name}") for name in ("b", "a", "'")]
        assert list(await stores.conversations.missing(ids)) == [ids[0], ids[2]]
        assert list(await stores.conversations.missing([])) == []

    async def test_those_are_busy_in_which_a_turn_runs_or_waits(self, stores: Stores) -> None:
        names = ("queued", "running", "over", "idle", "gone")
        for name in names[:-1]:
            await stores.conversations.create(conversation(name))
        one = turn("over", "over")
        for other in (turn("q", "queued"), turn("r", "running", state="running"), one):
            await stores.turns.accept(other)
        await stores.turns.finish([ended(one)], [])
        ids = [conversation(name).id for name in names]
        assert set(await stores.conversations.busy(ids)) == {ids[0], ids[1]}
        assert set(await stores.conversations.busy(ids[1:])) == {ids[1]}
        assert set(await stores.conversations.busy([])) == set()

    async def test_a_conversation_comes_back_as_it_was_written(self, stores: Stores) -> None:
        whole = conversation(
            title="T",
            model="m",
            memory_enabled=False,
            case_memory=True,
            app_code="app",
            environment="prod",
            session_id="s",
            fork_at="f",
            root_id=ConversationId("cnv_root"),
            last_activity_at=at(1),
        )
        await stores.conversations.create(whole)
        assert await stores.conversations.get(whole.id, ANN) == whole
        await stores.conversations.create(conversation("bare"))
        assert await stores.conversations.get(ConversationId("cnv_bare"), ANN) == conversation(
            "bare"
        )
        assert await stores.conversations.count() == 2

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:6])
    async def test_any_text_is_kept_exactly(self, stores: Stores, text: str) -> None:
        await stores.conversations.create(conversation(title=text))
        found = await stores.conversations.get(conversation().id, ANN)
        assert found is not None
        assert found.title == text

    async def test_another_users_conversation_is_not_there(self, stores: Stores) -> None:
        await stores.conversations.create(conversation("b", BOB, title="secret"))
        assert await stores.conversations.get(ConversationId("cnv_b"), ANN) is None
        assert (await stores.conversations.page(ANN, limit=9)).conversations == []
        found = await stores.conversations.page(ANN, limit=9, query="secret")
        assert found.conversations == []
        assert await stores.conversations.get(ConversationId("cnv_none"), ANN) is None

    async def test_an_id_is_given_once(self, stores: Stores) -> None:
        await stores.conversations.create(conversation(title="first"))
        with pytest.raises(StoreConflict):
            await stores.conversations.create(conversation("a", BOB))
        found = await stores.conversations.get(conversation().id, ANN)
        assert found is not None
        assert found.title == "first"

    async def test_pages_are_newest_first_and_meet_without_gap_or_double(
        self, stores: Stores
    ) -> None:
        """Five share one moment: a cursor must tell them apart."""
        for n in range(11):
            moment = at(5 if 3 <= n < 8 else n)
            await stores.conversations.create(conversation(f"{n:02}", last_activity_at=moment))
        await stores.conversations.create(conversation("bob", BOB, last_activity_at=at(4)))
        whole = (await stores.conversations.page(ANN, limit=50)).conversations
        assert len(whole) == 11
        moments = [entry.last_activity_at for entry in whole]
        assert moments == sorted(moments, reverse=True)
        for limit in (1, 2, 3, 10, 11):
            assert await _all_pages(stores, limit) == [entry.id for entry in whole]

    async def test_the_last_page_has_no_cursor(self, stores: Stores) -> None:
        for name in "ab":
            await stores.conversations.create(conversation(name))
        assert (await stores.conversations.page(ANN, limit=2)).next_cursor is None
        assert (await stores.conversations.page(ANN, limit=1)).next_cursor is not None
        assert (await stores.conversations.page(BOB, limit=1)).next_cursor is None

    @pytest.mark.parametrize(
        "cursor",
        ["", "x", "%", "AAAA", "🙂", "\ud800", "fHx8", "enp6enx6eno", "MjAyNnxjbnZfYQ", "a" * 5000],
    )
    async def test_a_garbage_cursor_is_refused(self, stores: Stores, cursor: str) -> None:
        await stores.conversations.create(conversation())
        with pytest.raises(UnknownCursor):
            await stores.conversations.page(ANN, limit=5, cursor=cursor)

    async def test_another_users_cursor_is_refused(self, stores: Stores) -> None:
        for name in "abc":
            await stores.conversations.create(conversation(f"ann{name}", ANN))
            await stores.conversations.create(
                conversation(f"bob{name}", BOB, last_activity_at=at(1))
            )
        cursor = (await stores.conversations.page(BOB, limit=1)).next_cursor
        with pytest.raises(UnknownCursor):
            await stores.conversations.page(ANN, limit=5, cursor=cursor)

    async def test_a_search_finds_the_text_as_it_stands(self, stores: Stores) -> None:
        for name, title in TITLES.items():
            await stores.conversations.create(conversation(name, title=title))
        await stores.turns.accept(turn("d1", "deep", message="said In The Message once"))
        await stores.turns.accept(turn("e1", "else", message="ПРИВЕТ, Straße"))
        gone = await stores.turns.accept(turn("d2", "deep", message="taken back"))
        await stores.turns.finish([replace(gone, state="withdrawn")], [])
        for query, found in SEARCHES:
            page = await stores.conversations.page(ANN, limit=50, query=query)
            told = {entry.id.removeprefix("cnv_") for entry in page.conversations}
            assert told == found, query[:20]

    async def test_a_search_knows_what_is_there_now(self, stores: Stores) -> None:

        async def found(query: str) -> set[str]:
            page = await stores.conversations.page(ANN, limit=9, query=query)
            return {conversation.id.removeprefix("cnv_") for conversation in page.conversations}

        one = await stores.turns.accept(turn(message="部署 failed"), create=conversation(title="t"))
        for state in ("queued", "running"):
            assert await found("部署") == {"a"}, state
            await stores.turns.start(one.id, AT)
        for reply in ("one reply", "another reply"):  # stored again, as after an unclear commit
            await stores.turns.finish([ended(one, result={"reply": reply})], [])
        assert (await found("one reply"), await found("another reply")) == (set(), {"a"})
        assert await found("部署") == await found("署 FAIL") == {"a"}
        await stores.turns.copy_history(one.conversation_id, 1, conversation("f", title="枝"))
        assert (await found("部署"), await found("枝")) == ({"a", "f"}, {"f"})
        for title in ("first name", "second name"):
            await stores.conversations.change(one.conversation_id, ConversationChange(title=title))
        assert (await found("first name"), await found("second")) == (set(), {"a"})
        await stores.conversations.delete(one.conversation_id, AT)
        assert (await found("部署"), await found("second")) == ({"f"}, set())

    async def test_a_search_finds_replies(self, stores: Stores) -> None:
        here = conversation(title="t")
        await stores.conversations.create(here)
        for number, reply in enumerate(("The Answer is 42. 答案", "", "no", "THE ANSWER")):
            one = await stores.turns.accept(turn(str(number), message=f"question {number}"))
            await stores.turns.finish([ended(one, result={"reply": reply})], [])
        await stores.turns.copy_history(here.id, 2, conversation("f"))
        for query in ("the answer", "答案", "swer is 4"):
            page = await stores.conversations.page(ANN, limit=9, query=query)
            assert {entry.id for entry in page.conversations} == {"cnv_f", "cnv_a"}, query
        found = await stores.conversations.find(here.id, "answer", limit=9)
        assert [match.turn_id for match in found] == ["trn_3", "trn_0"]
        assert (found[1].before[-4:], found[1].text, found[1].after[:3]) == (
            "The ",
            "Answer",
            " is",
        )

    async def test_a_search_finds_each_word_in_any_order_in_one_text(self, stores: Stores) -> None:
        here = conversation(title="kiln diary")
        await stores.conversations.create(here)
        for number, (message, reply) in enumerate(
            (
                ("Alpha beta gamma", "The DELTA is 三角洲。"),
                ("beta", "epsilon 部署完成"),
            )
        ):
            one = await stores.turns.accept(turn(str(number), message=message))
            await stores.turns.finish([ended(one, result={"reply": reply})], [])
        await stores.turns.accept(turn("2", message="still queued here"))
        found = {
            "beta alpha": ["trn_0"],
            "GAMMA  beta": ["trn_0"],
            "三角 alpha": ["trn_0"],
            "delta alp ga": ["trn_0"],
            "beta a": ["trn_1", "trn_0"],
            "完成 beta": ["trn_1"],
            "here STILL": ["trn_2"],
            "alpha epsilon": [],
            "kiln alpha": [],
            " ".join("abdeghilmpst"): ["trn_0"],
        }
        for query, turns in found.items():
            matches = await stores.conversations.find(here.id, query, limit=9)
            assert [match.turn_id for match in matches] == turns, query
            page = await stores.conversations.page(ANN, limit=9, query=query)
            assert bool(page.conversations) is bool(turns), query
        titled = await stores.conversations.page(ANN, limit=9, query="diary kiln")
        assert [entry.id for entry in titled.conversations] == [here.id]
        for query, shown in {
            "beta alpha": ("", "Alpha", " beta gamma"),
            "beta GAMMA": ("Alpha ", "beta gamma", ""),
            "角洲 delta": ("The ", "DELTA", " is 三角洲。"),
        }.items():
            (match,) = await stores.conversations.find(here.id, query, limit=9)
            assert (match.before, match.text, match.after) == shown, query

    async def test_a_search_is_paged_too(self, stores: Stores) -> None:
        for n in range(6):
            title = "wanted" if n % 2 else "other"
            await stores.conversations.create(conversation(str(n), title=title))
        assert len(await _all_pages(stores, 1, query="WANT")) == 3

    async def test_a_change_sets_what_it_names_alone(self, stores: Stores) -> None:
        before = conversation(title="old", model="m1", app_code="app", session_id="s")
        await stores.conversations.create(before)
        await stores.conversations.create(conversation("b", title="other"))
        await stores.conversations.change(
            before.id, ConversationChange(title="new", memory_enabled=False)
        )
        assert await stores.conversations.get(before.id, ANN) == replace(
            before, title="new", memory_enabled=False
        )
        other = await stores.conversations.get(ConversationId("cnv_b"), ANN)
        assert other == conversation("b", title="other")
        await stores.conversations.change(ConversationId("cnv_none"), ConversationChange(title="x"))

    async def test_what_is_unset_is_as_if_it_had_never_been_set(self, stores: Stores) -> None:
        labels: dict[Unsettable, Any] = {"model": "m", "app_code": "app", "environment": "prod"}
        for name in labels:
            one = conversation(name, model="m", app_code="app", environment="prod")
            await stores.conversations.create(one)
            await stores.conversations.change(one.id, ConversationChange(unset=[name]))
            found = await stores.conversations.get(one.id, ANN)
            assert found is not None
            assert {each: getattr(found, each) for each in labels} == {**labels, name: None}

    async def test_binding_a_session_ends_the_fork(self, stores: Stores) -> None:
        await stores.conversations.create(conversation(session_id="s", fork_at="m"))
        await stores.conversations.bind_session(conversation().id, "s2")
        found = await stores.conversations.get(conversation().id, ANN)
        assert found == conversation(session_id="s2")
        await stores.conversations.bind_session(conversation().id, None)
        assert await stores.conversations.get(conversation().id, ANN) == conversation()

    async def test_turns_are_counted_but_those_taken_back(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        made = [await stores.turns.accept(turn(str(n))) for n in range(3)]
        for _ in range(2):
            await stores.turns.finish([replace(made[1], state="withdrawn")], [])
        await stores.turns.finish([ended(made[0])], [])
        found = await stores.conversations.get(conversation().id, ANN)
        assert found is not None
        assert found.turns == 2
        page = await stores.conversations.page(ANN, limit=5)
        assert page.conversations == [found]
        await stores.turns.copy_history(conversation().id, 3, conversation("f"))
        fork = await stores.conversations.get(ConversationId("cnv_f"), ANN)
        assert fork is not None
        assert fork.turns == 1

    async def test_a_deletion_takes_turns_and_events_and_nothing_else(self, stores: Stores) -> None:
        key = IdempotencyKey(key="k", request_hash="h")
        for name in "ab":
            await stores.conversations.create(conversation(name))
        gone = await stores.turns.accept(turn("a1", "a"), key=key)
        kept = await stores.turns.accept(turn("b1", "b"), key=replace(key, key="k2"))
        await stores.events.append([event(1, kept, 1), event(2, gone, 1)])
        await stores.conversations.delete(gone.conversation_id, AT)
        assert await stores.conversations.get(gone.conversation_id, ANN) is None
        assert await stores.turns.get(gone.id) is None
        assert await stores.events.after(gone.conversation_id, 0, limit=9) == []
        assert await stores.events.find(gone.id, 1) is None
        assert await stores.turns.get(kept.id) == kept
        assert await stores.turns.find_key(ANN, "k2") is not None
        assert list(await stores.events.after(kept.conversation_id, 0, limit=9)) == [
            event(1, kept, 1)
        ]
        await stores.conversations.delete(gone.conversation_id, AT)

    async def test_a_key_outlives_its_turn_for_a_while(self, stores: Stores) -> None:
        key = IdempotencyKey(key="k", request_hash="h")
        known = KeyedTurn(turn_id=turn("a1").id, request_hash="h")
        for name in "abc":
            await stores.conversations.create(conversation(name))
        gone = await stores.turns.accept(turn("a1", "a"), key=key)
        kept = await stores.turns.accept(turn("c1", "c"), key=replace(key, key="k2"))
        await stores.conversations.delete(gone.conversation_id, AT)
        assert await stores.turns.find_key(ANN, "k") == known
        await stores.conversations.delete(ConversationId("cnv_b"), AT + KEY_OUTLIVES)
        assert await stores.turns.find_key(ANN, "k") == known
        await stores.conversations.delete(
            ConversationId("cnv_b"), AT + KEY_OUTLIVES + timedelta(seconds=1)
        )
        assert await stores.turns.find_key(ANN, "k") is None
        assert await stores.turns.find_key(ANN, "k2") == replace(known, turn_id=kept.id)

    async def test_its_own_are_the_sessions_that_nothing_else_refers_to(
        self, stores: Stores
    ) -> None:
        """A fork shares its turns' sessions; a session is the own one of the last that refers to it."""
        await stores.conversations.create(conversation("a"))
        for n, session in enumerate(["s1", "s2", "s3"], start=1):
            one = await stores.turns.accept(turn(f"a{n}", "a"))
            await stores.turns.finish([ended(one, session_id=session)], [])
        await stores.conversations.bind_session(ConversationId("cnv_a"), "s4")
        fork = conversation("f", session_id="s2", fork_at="m1")
        await stores.turns.copy_history(ConversationId("cnv_a"), 2, fork)
        await stores.conversations.create(conversation("g", session_id="s3"))
        for name, own in {"a": ["s4"], "g": ["s3"], "f": ["s1", "s2"]}.items():
            conversation_id = ConversationId(f"cnv_{name}")
            found = await stores.conversations.own_sessions(conversation_id)
            assert sorted(found) == own
            await stores.conversations.delete(conversation_id, AT)
            assert await stores.conversations.own_sessions(conversation_id) == []

    async def test_everything_is_there_after_a_reopening(self, opens: OpenStores) -> None:
        async with opens() as stores:
            await stores.conversations.create(conversation(title="kept"))
        async with opens() as stores:
            found = await stores.conversations.get(conversation().id, ANN)
            assert found == conversation(title="kept")

    @both_cuts
    async def test_a_write_that_is_cancelled_anywhere_is_whole_or_absent(
        self, stores: Stores, cut: Cut
    ) -> None:
        store = stores.conversations

        async def cut_at(step: int) -> bool:
            one = conversation(str(step), session_id="own")
            was_cut = await cut(store.create(one), step)
            await store.create(conversation(f"{step}-after"))
            assert await store.get(one.id, ANN) in {None, one}
            await cut(store.delete(one.id, AT), step)
            await store.change(one.id, ConversationChange(title="t"))
            assert await store.get(one.id, ANN) in {None, replace(one, title="t")}
            return was_cut

        await cut_everywhere(cut_at)


async def _all_pages(stores: Stores, limit: int, query: str | None = None) -> list[str]:
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await stores.conversations.page(ANN, limit=limit, cursor=cursor, query=query)
        assert len(page.conversations) <= limit
        seen += [conversation.id for conversation in page.conversations]
        assert len(seen) == len(set(seen)), "a page repeats another"
        assert page.conversations or cursor is None, "an empty page was announced"
        cursor = page.next_cursor
        if cursor is None:
            return seen
