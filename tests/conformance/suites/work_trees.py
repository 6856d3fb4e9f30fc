"""What every store of work trees must do."""

from dataclasses import replace

from gateway.conversations.work_trees import KeptTree
from gateway.ids import ConversationId, UserId
from tests.conformance.suites.conversation_values import ANN, AT, Stores, StoresSuite, conversation

A, B = ConversationId("cnv_a"), ConversationId("cnv_b")
EVERYBODY = UserId("")
TREE = KeptTree(conversation_id=A, owner=EVERYBODY, made_at=AT)
MERGING = '{"head": "1", "branch": "项目"}'


class WorkTreeStoreSuite(StoresSuite):
    """The contracts of `WorkTreeStore`."""

    async def test_a_tree_is_there_until_it_is_removed(self, stores: Stores) -> None:
        store = stores.work_trees
        assert not await store.has(A)
        await store.add(TREE)
        await store.add(replace(TREE, owner=ANN, merging=MERGING))
        await store.add(replace(TREE, conversation_id=B, owner=ANN))
        assert await store.has(A)
        assert list(await store.of(EVERYBODY)) == [TREE]
        assert list(await store.of(ANN)) == [replace(TREE, conversation_id=B, owner=ANN)]
        for _ in range(2):
            await store.remove(A)
        assert not await store.has(A)
        assert await store.has(B)

    async def test_a_tree_outlives_its_conversation(self, stores: Stores) -> None:
        made = conversation()
        await stores.conversations.create(made)
        await stores.work_trees.add(replace(TREE, conversation_id=made.id))
        await stores.conversations.delete(made.id, AT)
        assert await stores.work_trees.has(made.id)

    async def test_a_merge_is_known_until_it_has_ended(self, stores: Stores) -> None:
        store = stores.work_trees
        await store.add(replace(TREE, conversation_id=B, owner=ANN, merging=MERGING))
        await store.add(TREE)
        assert list(await store.merging()) == [ANN]
        await store.note_merge(A, MERGING)
        assert list(await store.of(EVERYBODY)) == [replace(TREE, merging=MERGING)]
        assert list(await store.merging()) == [EVERYBODY, ANN]
        await store.note_merge(B, None)
        assert list(await store.merging()) == [EVERYBODY]
        assert list(await store.of(ANN)) == [replace(TREE, conversation_id=B, owner=ANN)]

    async def test_what_was_found_is_its_conversations_users(self, stores: Stores) -> None:
        made = conversation()
        await stores.conversations.create(made)
        found = replace(TREE, conversation_id=made.id, merging=MERGING)
        for tree in (found, found, replace(TREE, conversation_id=B)):
            await stores.work_trees.add_found(tree)
        assert list(await stores.work_trees.of(ANN)) == [replace(found, owner=ANN)]
        assert not await stores.work_trees.has(B)
