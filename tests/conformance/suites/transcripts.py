"""What every store of the agent program's transcripts must do."""

import json
from collections.abc import Sequence
from itertools import count
from typing import Any, cast

from claude_agent_sdk import SessionStore
from claude_agent_sdk.testing import run_session_store_conformance

from gateway.engine.session_files import entry_of
from gateway.transcripts import MAIN, Entry, TranscriptEnd
from tests.conformance.suites.conversation_values import (
    OpenStores,
    Stores,
    StoresSuite,
    conversation,
)
from tests.conformance.suites.leases import HERE, LONG_MS, OVER_MS, THERE, A
from tests.conformance.suites.rivals import at_once

S = "candor/11111111-1111-4111-8111-111111111111"
SUB = "subagents/agent-1"
UNTAKEN = (A, 0)
LINES = [
    b'{"a":"\\u0000 \\ud800"}',
    "\u4f60\u597d \U0001f9d1\u200d\U0001f680".encode(),
    b"\xff\x00'",
]


def entries(*names: str | None) -> list[Entry]:
    return [Entry(f'{{"uuid":"{name}"}}'.encode(), name) for name in names]


class InACorner:
    """The SDK's `SessionStore` on the store, for each of the SDK's contracts under names of their
    own.
    """

    def __init__(self, stores: Stores, number: int) -> None:
        self._store = stores.transcripts
        self._corner = number

    def _name_of(self, key: Any) -> str:
        return f"{self._corner}-{key['project_key']}/{key['session_id']}"

    async def append(self, key: Any, entries: Sequence[Any]) -> None:
        kept = [entry_of(entry) for entry in entries]
        await self._store.append(self._name_of(key), key.get("subpath", MAIN), kept, UNTAKEN)

    async def load(self, key: Any) -> list[Any] | None:
        lines = await self._store.load(self._name_of(key), key.get("subpath", MAIN))
        return None if lines is None else [json.loads(line) for line in lines]

    async def delete(self, key: Any) -> None:
        await self._store.delete(self._name_of(key), key.get("subpath", MAIN))

    async def list_subkeys(self, key: Any) -> list[str]:
        ends = await self._store.ends(self._name_of(key))
        return [subpath for subpath in ends if subpath != MAIN]


class TranscriptStoreSuite(StoresSuite):
    """The contracts of `TranscriptStore`."""

    async def test_the_contracts_of_the_sdk_hold(self, stores: Stores) -> None:
        numbers = count()

        def make() -> SessionStore:  # the SDK asks for what there is of it
            return cast("SessionStore", InACorner(stores, next(numbers)))

        await run_session_store_conformance(make)

    async def test_lines_come_back_byte_by_byte(self, stores: Stores) -> None:
        store = stores.transcripts
        assert await store.append(S, MAIN, [Entry(line) for line in LINES], UNTAKEN) == len(LINES)
        assert await store.load(S) == LINES

    async def test_an_entry_is_stored_once_and_the_end_is_known(self, stores: Stores) -> None:
        store = stores.transcripts
        assert await store.append(S, MAIN, entries("u1", None, "u1", "u2"), UNTAKEN) == 3
        assert await store.append(S, MAIN, entries("u2", "u3", None), UNTAKEN) == 5
        assert await store.append(S, MAIN, entries("u1", "u3"), UNTAKEN) == 5
        assert await store.append(S, SUB, entries("u1"), UNTAKEN) == 1
        assert await store.ends(S) == {
            MAIN: TranscriptEnd(entries=5, uuids=3, last_uuid="u3"),
            SUB: TranscriptEnd(entries=1, uuids=1, last_uuid="u1"),
        }
        expected = [entry.data for entry in entries("u1", None, "u2", "u3", None)]
        assert await store.load(S) == expected

    async def test_many_entries_are_compared_with_all_that_are_known(self, stores: Stores) -> None:
        many = entries(*(f"u{n}" for n in range(1201)))
        assert await stores.transcripts.append(S, MAIN, many, UNTAKEN) == 1201
        assert await stores.transcripts.append(S, MAIN, many[:-1], UNTAKEN) == 1201

    async def test_a_replacement_leaves_nothing_of_before(self, stores: Stores) -> None:
        store = stores.transcripts
        await store.append(S, MAIN, entries("u1", "u2"), UNTAKEN)
        await store.append(S, SUB, entries("u1"), UNTAKEN)
        given = {MAIN: entries("u2", None, "u2"), "subagents/agent-2": entries("u9")}
        assert await store.replace(S, given, UNTAKEN) == 2
        assert await store.load(S) == [entry.data for entry in entries("u2", None)]
        assert set(await store.ends(S)) == {MAIN, "subagents/agent-2"}
        assert await store.load(S, SUB) is None

    async def test_what_was_deleted_is_known(self, stores: Stores) -> None:
        store, other = stores.transcripts, "candor/other"
        for session in (S, other):
            await store.append(session, MAIN, entries("u1"), UNTAKEN)
            await store.append(session, SUB, entries("u1"), UNTAKEN)
        for _ in range(2):
            await store.delete(S)
        await store.delete(other, SUB)
        assert await store.deleted([S, other, "candor/never"]) == {S}
        assert set(await store.ends(other)) == {MAIN}

    async def test_only_the_owner_of_the_conversation_writes(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await here.conversations.create(conversation())
            for node, stores in ((HERE, here), (THERE, there)):
                await stores.leases.join(node, ttl_ms=LONG_MS)
            await here.leases.take(HERE, A)
            assert await here.transcripts.append(S, MAIN, entries("u1"), (A, 1)) == 1
            await here.leases.beat(HERE, ttl_ms=OVER_MS)
            await there.leases.take(THERE, A)
            assert await here.transcripts.append(S, MAIN, entries("u2"), (A, 1)) is None
            assert await here.transcripts.replace(S, {MAIN: entries("u3")}, (A, 1)) is None
            assert await there.transcripts.append(S, MAIN, entries("u4"), (A, 2)) == 2
            assert await here.transcripts.load(S) == [entry.data for entry in entries("u1", "u4")]

    async def test_who_writes_at_once_leaves_each_entry_once(self, opens: OpenStores) -> None:
        async with opens() as one, opens() as other:

            async def append(stores: Stores, name: str) -> None:
                given = entries(f"own-{name}", None, "shared")
                await stores.transcripts.append(S, MAIN, given, UNTAKEN)

            await at_once([one, other], append)
            (end,) = (await one.transcripts.ends(S)).values()
            lines = await other.transcripts.load(S)
            assert lines is not None
            assert (len(lines), end.entries, end.uuids) == (17, 17, 9)
            assert lines.count(entries("shared")[0].data) == 1

    async def test_whoever_replaces_at_once_leaves_one_whole(self, opens: OpenStores) -> None:
        async with opens() as one, opens() as other:

            async def replace(stores: Stores, name: str) -> None:
                given = {MAIN: entries(f"{name}-1", f"{name}-2"), SUB: entries(name)}
                await stores.transcripts.replace(S, given, UNTAKEN)

            await at_once([one, other], replace)
            lines, sub = await one.transcripts.load(S), await one.transcripts.load(S, SUB)
            assert sub is not None
            (name,) = [str(n) for n in range(8) if sub == [entries(str(n))[0].data]]
            assert lines == [entry.data for entry in entries(f"{name}-1", f"{name}-2")]
