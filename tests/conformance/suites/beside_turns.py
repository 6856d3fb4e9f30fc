"""What the stores must do that hold what belongs to conversations and turns."""

from dataclasses import replace
from typing import Any

from gateway.conversations.model import (
    ClientObject,
    ClientTurn,
    Conversation,
    ConversationChange,
    Spending,
    Turn,
)
from gateway.conversations.webhooks import (
    MAX_REPLY_CHARS,
    SECRET_CHARS,
    Webhook,
    WebhookMessage,
)
from gateway.ids import ConversationId, TurnId
from memory.clock import rfc3339
from memory.record.turn_item import RecordedTurn
from tests.conformance.suites.approvals import approval
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    BOB,
    Stores,
    StoresSuite,
    at,
    conversation,
    ended,
    event,
    turn,
)

RESULT: dict[str, Any] = {
    "reply": "Fine.",
    "outcome": "answered",
    "memory": {"injected": [{"id": "not_1"}]},
    "notices": [],
}


async def said(stores: Stores, name: str, of: str = "a", **fields: Any) -> Turn:
    """Complete a turn with a message."""
    accepted = await stores.turns.accept(turn(name, of))
    done = ended(accepted, **{"result": RESULT, **fields})
    await stores.turns.finish([done], [])
    return done


async def taken(stores: Stores) -> dict[str, RecordedTurn | None]:
    """Return and drop all changes for the record, by turn."""
    changes = await stores.record.newest(limit=99)
    await stores.record.done(changes)
    return {queued.change.turn_id: queued.change.turn for queued in changes}


async def add_webhook(stores: Stores, name: str = "w", **fields: Any) -> Webhook:
    """Add a webhook of Ann with the id `whk_<name>` for all events."""
    blank = Webhook(
        id=f"whk_{name}",
        user_id=ANN,
        url="https://a.example/",
        events=("turn.completed", "approval.requested", "conversation.created"),
        state="on",
        created_at=AT,
    )
    webhook = replace(blank, **fields)
    assert await stores.webhooks.add(webhook, f"secret of {name}", most=3)
    return webhook


class BesideTurnsSuite(StoresSuite):
    """The contracts of `WebhookStore`, `ClientObjectStore`, `ClientTurnStore`, `FileChangeStore` and
    `RecordQueue`, and of what a conversation counts.
    """

    async def test_each_event_is_delivered_once_to_those_who_want_it(self, stores: Stores) -> None:
        everything = await add_webhook(stores)
        await add_webhook(stores, "created", events=("conversation.created",))
        await add_webhook(stores, "off", state="off")
        await add_webhook(stores, "bob", user_id=BOB)
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn())
        await stores.approvals.add(approval("x", one))
        for _ in range(2):
            await stores.turns.finish([ended(one)], [event(1, one, 1)])
        listed = await stores.webhooks.deliveries(everything.id, limit=9)
        assert [(each.type, each.turn_id, each.approval_id) for each in listed] == [
            ("turn.completed", one.id, None),
            ("approval.requested", one.id, "apr_x"),
            ("conversation.created", None, None),
        ]
        for name, count in {"created": 1, "off": 0, "bob": 0}.items():
            assert len(await stores.webhooks.deliveries(f"whk_{name}", limit=9)) == count
        assert list(await stores.webhooks.deliveries(everything.id, limit=1)) == listed[:1]
        await stores.conversations.delete(one.conversation_id, AT)
        assert await stores.webhooks.deliveries(everything.id, limit=9) == []

    async def test_what_is_sent_is_what_the_turn_is_now(self, stores: Stores) -> None:
        webhook = await add_webhook(stores)
        await stores.conversations.create(conversation())
        await said(stores, "1", result=RESULT | {"reply": "長" * 9999})
        (delivery, _) = await stores.webhooks.deliveries(webhook.id, limit=9)
        sent = WebhookMessage(
            url=webhook.url,
            secret="secret of w",
            outcome="answered",
            reply="長" * (MAX_REPLY_CHARS + 1),
            name=None,
            summary=None,
        )
        assert await stores.webhooks.message(delivery) == sent
        await stores.webhooks.switch(webhook.id, "gone")
        assert await stores.webhooks.message(delivery) is None
        assert await stores.webhooks.get(webhook.id, ANN) == replace(webhook, state="gone")

    async def test_a_user_has_webhooks_up_to_a_number(self, stores: Stores) -> None:
        made = [await add_webhook(stores, str(n), created_at=at(9 - n)) for n in range(3)]
        assert not await stores.webhooks.add(replace(made[0], id="whk_more"), "s", most=3)
        assert list(await stores.webhooks.listed(ANN)) == made[::-1]
        assert await stores.webhooks.get(made[0].id, BOB) is None
        await stores.webhooks.delete(made[0].id)
        assert await stores.webhooks.secret_of(made[0].id) is None
        assert await stores.webhooks.secret_of(made[1].id) == "secret of 1"

    async def test_due_deliveries_are_leased_in_order(self, stores: Stores) -> None:
        webhook, store = await add_webhook(stores), stores.webhooks
        for n in range(3):
            await stores.conversations.create(conversation(str(n), created_at=at(n)))
        assert await store.receivers_due(at(9)) == [webhook.id]
        first, second = await store.due(webhook.id, at(9), limit=2, until=at(20))
        assert (first.conversation_id, second.conversation_id) == ("cnv_0", "cnv_1")
        (third,) = await store.due(webhook.id, at(9), limit=2, until=at(20))
        assert await store.receivers_due(at(9)) == []
        assert await store.next_due_at(at(9)) == at(20)
        await store.delivered(first, at(10))
        await store.failed(second, "It broke.", at(10), due_at=at(15))
        await store.failed(third, "It is gone.", at(10), due_at=None)
        found = {one.seq: one for one in await store.deliveries(webhook.id, limit=9)}
        assert [found[one.seq].status for one in (first, second, third)] == [
            "delivered",
            "pending",
            "dead",
        ]
        assert found[second.seq].due_at == at(15)
        assert found[third.seq].last_error == "It is gone."
        again = await store.retry(webhook.id, third.id, at(11))
        assert again is not None
        assert (again.status, again.attempts, again.due_at) == ("pending", 0, at(11))
        await store.postpone(again, due_at=at(30))
        assert await store.next_due_at(at(16)) == at(30)
        await store.prune(at(5))
        left = await store.deliveries(webhook.id, limit=9)
        assert [one.conversation_id for one in left] == ["cnv_2", "cnv_1"]

    async def test_a_new_secret_stands_before_the_one_in_use(self, stores: Stores) -> None:
        webhook, other = await add_webhook(stores), await add_webhook(stores, "other")
        first, second, third = (f"{n}" * SECRET_CHARS for n in range(1, 4))
        await stores.webhooks.rotate(webhook.id, first, at(1))
        await stores.webhooks.rotate(webhook.id, second, at(2))
        kept = f"{second} {first} {rfc3339(at(2))}"
        assert await stores.webhooks.secret_of(webhook.id) == kept
        await stores.webhooks.rotate(webhook.id, third, at(3))
        kept = f"{third} {second} {rfc3339(at(3))}"
        assert await stores.webhooks.secret_of(webhook.id) == kept
        assert await stores.webhooks.secret_of(other.id) == "secret of other"
        await stores.webhooks.rotate("whk_gone", first, at(1))

    async def test_without_webhooks_no_deliveries_are_added(self, stores: Stores) -> None:
        webhook = await add_webhook(stores)
        for n, is_on in enumerate((False, True)):
            await stores.webhooks.serve(AT, is_on=is_on)
            await stores.conversations.create(conversation(str(n)))
        listed = await stores.webhooks.deliveries(webhook.id, limit=9)
        assert [one.conversation_id for one in listed] == ["cnv_1"]

    async def test_client_objects_are_their_users_and_go_with_the_conversation(
        self, stores: Stores
    ) -> None:
        store = stores.client_objects
        await stores.conversations.create(conversation())
        made = [
            ClientObject(
                id=f"agt_{n}",
                user_id=ANN,
                kind="agent",
                data={"n": n},
                created_at=AT,
                updated_at=AT,
            )
            for n in range(3)
        ]
        session = replace(made[0], id="ses", kind="session", conversation_id=conversation().id)
        for thing in (*made, session, replace(session, id="lost", conversation_id=GONE)):
            await store.put(thing)
        changed = replace(made[1], data={"長": "\0"}, updated_at=at(1), archived_at=at(2))
        await store.put(changed)
        await store.put(replace(made[2], user_id=BOB, data={"stolen": True}))
        assert await store.get(ANN, "agent", "agt_1") == changed
        assert await store.get(BOB, "agent", "agt_1") is None
        assert await store.get(ANN, "session", "lost") is None
        assert list(await store.listed(ANN, "agent", limit=9)) == [made[2], changed, made[0]]
        assert list(await store.listed(ANN, "agent", limit=1, after="agt_2")) == [changed]
        assert await store.get(ANN, "session", "ses") == session
        await stores.conversations.delete(conversation().id, AT)
        assert await store.get(ANN, "session", "ses") is None

    async def test_a_client_object_is_changed_only_as_it_is_known(self, stores: Stores) -> None:
        store = stores.client_objects
        await stores.conversations.create(conversation())
        known = ClientObject(
            id="cnv_1",
            user_id=ANN,
            kind="session",
            data={},
            created_at=AT,
            updated_at=AT,
            conversation_id=conversation().id,
        )
        first, second = (replace(known, data={"n": n}, updated_at=at(n)) for n in (1, 2))
        assert await store.change(known, first), "there was none yet"
        assert not await store.change(known, second)
        assert await store.get(ANN, "session", "cnv_1") == first
        assert await store.change(first, second)
        assert not await store.change(second, replace(second, user_id=BOB, updated_at=at(3)))
        assert await store.get(ANN, "session", "cnv_1") == second
        gone = replace(known, id="lost", conversation_id=GONE)
        assert not await store.change(gone, replace(gone, updated_at=at(1)))

    async def test_the_turns_of_clients_are_found_newest_first(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        made = [
            ClientTurn(
                user_id=ANN,
                thread="t",
                history="h" if n % 2 else "g",
                turn_id=TurnId(f"trn_{n}"),
                conversation_id=conversation().id,
            )
            for n in range(4)
        ]
        for one in (*made, replace(made[0], conversation_id=GONE)):
            await stores.client_turns.add(one)
        find = stores.client_turns.find
        assert list(await find(ANN, "t", "h", limit=9)) == [made[3], made[1]]
        assert list(await find(ANN, "t", None, limit=3)) == made[:0:-1]
        assert list(await find(BOB, "t", None, limit=3)) == []
        await stores.conversations.delete(conversation().id, AT)
        assert list(await find(ANN, "t", None, limit=3)) == []

    async def test_changes_of_files_go_with_their_turn_and_into_forks(self, stores: Stores) -> None:
        store = stores.file_changes
        await stores.conversations.create(conversation())
        one = await said(stores, "1")
        for files in ([], ["長\0"]):
            await store.put(one.id, {"files": files})
        assert await store.get(one.id) == {"files": ["長\0"]}
        await store.put(TurnId("trn_none"), {"files": []})
        assert await store.get(TurnId("trn_none")) is None
        await stores.turns.copy_history(conversation().id, 9, conversation("f"))
        (copy,) = await stores.turns.history(ConversationId("cnv_f"), limit=9)
        assert await store.get(copy.id) == {"files": ["長\0"]}
        await stores.conversations.delete(conversation().id, AT)
        assert await store.get(one.id) is None

    async def test_a_turn_is_noted_when_it_ends_changes_or_goes(self, stores: Stores) -> None:
        await stores.conversations.create(conversation(title="T", project_id="p"))
        await stores.turns.accept(turn("waiting"))
        assert await stores.record.last_seq() == 0
        first = await said(stores, "a1")
        recorded = RecordedTurn(
            turn_id=first.id,
            conversation_id=first.conversation_id,
            owner_id=ANN,
            position=2,
            occurred_at=AT,
            message="message of a1",
            reply="Fine.",
            recalled_ids=["not_1"],
            labels={"project_id": "p"},
        )
        assert await taken(stores) == {first.id: recorded}
        changes = stores.conversations.change
        await changes(first.conversation_id, ConversationChange(title="T"))
        assert await taken(stores) == {}
        await changes(first.conversation_id, ConversationChange(title="U"))
        assert await taken(stores) == {first.id: recorded}
        seq = await stores.record.last_seq()
        await stores.turns.copy_history(conversation().id, 9, conversation("f", title="F"))
        await stores.conversations.delete(first.conversation_id, AT)
        (copy,) = await stores.turns.history(ConversationId("cnv_f"), limit=9)
        (gone,) = await stores.record.newest(only_deleted=True, limit=9)
        assert (gone.change.turn_id, gone.change.turn) == (first.id, None)
        assert [one.change.turn_id for one in await stores.record.newest(after=seq, limit=1)] == [
            copy.id
        ]
        after = await taken(stores)
        assert set(after) == {first.id, copy.id}  # the copy takes its place
        assert after[copy.id] == replace(
            recorded, turn_id=copy.id, conversation_id="cnv_f", labels={}, copy_of=first.id
        )
        await stores.record.add_all()
        assert set(await taken(stores)) == {copy.id}

    async def test_a_turn_without_memory_is_kept_out_for_good(self, stores: Stores) -> None:
        await stores.conversations.create(conversation(memory_enabled=False))
        one = await said(stores, "1")
        await stores.conversations.change(
            one.conversation_id, ConversationChange(memory_enabled=True)
        )
        two = await said(stores, "2")
        assert {name for name, found in (await taken(stores)).items() if found} == {two.id}

    async def test_what_a_conversation_spent_is_added_up(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        usage = {"input_tokens": 3_000_000_000, "output_tokens": 5, "cache_read_input_tokens": 7}
        for n, cost in enumerate((0.25, None)):
            await said(stores, str(n), result={"reply": "\0", "usage": usage, "cost_usd": cost})
        await said(stores, "bare", result={"reply": "a"})
        await stores.turns.copy_history(conversation().id, 9, conversation("f"))
        spent = Spending(
            turns=3,
            input_tokens=6_000_000_000,
            cached_tokens=14,
            output_tokens=10,
            cost_usd=0.25,
        )
        assert await stores.turns.spending(conversation().id) == spent
        nothing = Spending(turns=0, input_tokens=0, cached_tokens=0, output_tokens=0, cost_usd=0.0)
        assert await stores.turns.spending(ConversationId("cnv_f")) == nothing

    async def test_branches_part_where_their_turns_do(self, stores: Stores) -> None:
        root = conversation()
        await stores.conversations.create(root)
        first, second = await said(stores, "1"), await said(stores, "2")
        fork = conversation("f", root_id=root.id, created_at=at(1))
        await stores.turns.copy_history(root.id, first.seq, fork)
        other = await said(stores, "other", "f")
        (branch,) = await stores.conversations.branches(root)
        assert (branch.after_turn_id, branch.turn_id, branch.message) == (
            first.id,
            other.id,
            other.message,
        )
        (back,) = await stores.conversations.branches(fork)
        assert (back.conversation_id, back.turn_id) == (root.id, second.id)
        await stores.conversations.change(fork.id, ConversationChange(pinned=True))
        pinned: list[Conversation] = list(await stores.conversations.pinned(ANN))
        assert {one.id for one in pinned} == {root.id, fork.id}
        await stores.conversations.change(root.id, ConversationChange(pinned=False))
        assert await stores.conversations.pinned(ANN) == []


GONE = ConversationId("cnv_none")
