"""The tools of memory for agents of other programs: as the agents of this server have them.

An agent elsewhere has no conversation here. It passes the person's own words as evidence, and they
are kept with the fact; a fact says which client told it.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.engine.own_tools import OwnAnswer, OwnTool
from gateway.ids import UserId, new_request_id
from gateway.turns.case_tools import CASE_SERVER, CaseCalls
from gateway.turns.memory_tools import (
    MEMORY_SERVER,
    READING_MEMORY_SERVER,
    read_memory,
    write_fact,
)
from memory.cases.case import CaseCaller
from memory.facts.evidence import Message, plain
from memory.facts.told import ToldTurn
from memory.facts.tools import FORGET, REMEMBER, FactTools
from memory.items.scope import Scope
from memory.recall.tools import GET, SEARCH, Lookup, MemoryTools
from memory.service.memory import Memory

READING: Final = frozenset({SEARCH, GET, "memory_case_search", "memory_case_render"})
"""The tools that change nothing."""


class MemoryCalls:
    """Answers the calls of one user's agents elsewhere."""

    def __init__(self, memory: Memory, user_id: UserId) -> None:
        self._memory = memory
        self._scope = Scope(owner_id=user_id)
        self._tools = MemoryTools(memory.search, memory.items)
        self._cases = CaseCalls(memory.cases, self._caller)

    @property
    def tools(self) -> tuple[OwnTool, ...]:
        """What can be called."""
        writes = self._memory.fact_tools is not None
        server = MEMORY_SERVER if writes else READING_MEMORY_SERVER
        return (*server.tools, *CASE_SERVER.tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call; whatever cannot be done is an answer, too."""
        facts = self._memory.fact_tools
        if name in {REMEMBER, FORGET} and facts is not None:
            return await self._write(facts, name, arguments)
        lookup = Lookup(scope=self._scope)
        if name in {SEARCH, GET}:
            return await read_memory(self._tools, name, arguments, lookup)
        return await self._cases(name, arguments)

    async def _write(self, facts: FactTools, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        call_id = new_request_id()
        told = ToldTurn(
            message=str(arguments.get("evidence") or ""),
            scope=self._scope,
            conversation_id=None,
            turn_id=call_id,
            occurred_at=self._memory.now(),
        )

        async def prove(evidence: str) -> Message | None:  # noqa: RUF029  as `Prove` wants
            return Message(call_id, evidence) if plain(evidence) else None

        return await write_fact(facts, name, arguments, told, prove)

    async def _caller(self) -> CaseCaller:
        return CaseCaller(scope=self._scope)
