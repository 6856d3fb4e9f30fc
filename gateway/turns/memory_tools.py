"""The agent's tools of memory, bound to the conversation and the turn by the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.conversations.model import Conversation, Turn
from gateway.conversations.sql.turns import TurnStore
from gateway.engine.own_tools import OwnAnswer, OwnServer, OwnTool, OwnToolCaller
from gateway.turns.conversation_memory import ConversationTools, scope_of
from gateway.turns.turn_memory import IsOn, told_turn
from memory.errors import StoreUnavailable
from memory.facts import tools as fact_tools
from memory.facts.evidence import Message, Prove, said_in
from memory.facts.gate import FactRefused
from memory.facts.told import ToldTurn
from memory.facts.tools import FORGET, REMEMBER, FactTools
from memory.intents.chronicle import Guard
from memory.recall.argument_names import unknown_argument
from memory.recall.tools import (
    DESCRIPTIONS,
    GET,
    SCHEMAS,
    SEARCH,
    SERVER,
    Lookup,
    MemoryTools,
    are_valid,
)

_READING: Final = tuple(OwnTool(name, DESCRIPTIONS[name], SCHEMAS[name]) for name in (SEARCH, GET))
_WRITING: Final = tuple(
    OwnTool(name, fact_tools.DESCRIPTIONS[name], fact_tools.SCHEMAS[name])
    for name in (REMEMBER, FORGET)
)
MEMORY_SERVER: Final = OwnServer(SERVER, (*_READING, *_WRITING))
READING_MEMORY_SERVER: Final = OwnServer(SERVER, _READING)
"""Where nothing is to become a fact."""
_PAGE: Final = 50
_SWITCHED_OFF: Final = "{} is switched off for this conversation now."
_UNREADABLE: Final = "Memory cannot be used at present: nothing was changed. Tell the person."


@dataclass(frozen=True, slots=True)
class ConversationMessages:
    """What the person wrote in a conversation, the newest message first."""

    turns: TurnStore
    turn: Turn

    async def __call__(self, evidence: str) -> Message | None:
        """Return the newest message with this evidence; see `memory.facts.evidence.Prove`."""
        found = await said_in(evidence, messages=_said([self.turn]))
        before = None
        while found is None:
            page = await self.turns.history(
                self.turn.conversation_id, limit=_PAGE, before_seq=before
            )
            found = await said_in(evidence, messages=_said(page))
            if len(page) < _PAGE:
                break
            before = page[0].seq
        return found


def _said(turns: Sequence[Turn]) -> list[Message]:
    """Return what the person wrote in these turns, the newest first; an answer to an approval is no
    message.
    """
    return [Message(turn.id, turn.message) for turn in reversed(turns) if turn.approval_id is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCalls:
    """Answers the tools of memory in one turn."""

    memory: MemoryTools
    facts: FactTools | None
    conversation: Conversation
    turn: Turn
    tools: ConversationTools
    messages: ConversationMessages
    guard: Guard
    """Of what is written."""

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call."""
        match name.rpartition("__")[2]:
            case (fact_tools.REMEMBER | fact_tools.FORGET) as tool if self.facts is not None:
                told = told_turn(self.turn, self.conversation, self.guard)
                return await write_fact(self.facts, tool, arguments, told, self.messages)
            case tool if tool in SCHEMAS:
                active = await self.tools.of(self.conversation.id)
                lookup = Lookup(scope=scope_of(self.conversation), active_tools=active)
                return await read_memory(self.memory, tool, arguments, lookup)
            case _:
                return OwnAnswer("This conversation does not have this tool.", is_error=True)


async def read_memory(
    memory: MemoryTools, tool: str, arguments: Mapping[str, Any], lookup: Lookup
) -> OwnAnswer:
    """Answer a call of a tool that reads memory."""
    if tool == SEARCH:
        found = await memory.search(lookup, arguments)
        return OwnAnswer(found, is_error=not are_valid(arguments))
    unknown = unknown_argument(arguments, SCHEMAS[GET])
    if unknown is not None:
        return OwnAnswer(unknown, is_error=True)
    text = await memory.get(lookup, arguments)
    return OwnAnswer(text or "There is no such item in memory.", is_error=text is None)


async def write_fact(
    facts: FactTools, tool: str, arguments: Mapping[str, Any], told: ToldTurn, prove: Prove
) -> OwnAnswer:
    """Answer a call of a tool that keeps or forgets facts."""
    do = facts.remember if tool == REMEMBER else facts.forget
    try:
        return OwnAnswer(await do(arguments, told, prove))
    except FactRefused as exc:
        return OwnAnswer(str(exc), is_error=True)
    except StoreUnavailable:
        sentence = "Memory cannot be written at present: nothing was changed. Tell the person."
        return OwnAnswer(sentence, is_error=True)


@dataclass(frozen=True, slots=True)
class SwitchedCalls:
    """Passes calls on as long as the person has memory, or cases, switched on."""

    caller: OwnToolCaller
    is_on: IsOn
    what: str = "Memory"

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call; refuse it if it is switched off by now, or that cannot be read."""
        try:
            is_on = await self.is_on()
        except StoreUnavailable:
            return OwnAnswer(_UNREADABLE, is_error=True)
        if not is_on:
            return OwnAnswer(_SWITCHED_OFF.format(self.what), is_error=True)
        return await self.caller(name, arguments)


@dataclass(frozen=True, slots=True)
class OwnCalls:
    """Passes each call to the caller of its server."""

    callers: Mapping[str, OwnToolCaller]
    """By the server's name."""

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call of a tool that this conversation has."""
        caller = self.callers.get(name.split("__")[1])
        if caller is None:
            return OwnAnswer("This conversation does not have this tool.", is_error=True)
        return await caller(name, arguments)
