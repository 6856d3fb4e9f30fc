"""What memory learns about conversations, and which tools each conversation uses."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from gateway.conversations.model import Conversation
from gateway.conversations.sql.turns import TurnStore
from gateway.ids import ConversationId
from gateway.turns.evidence import ToolStatus
from memory.cases import tools as case_tools
from memory.errors import StoreUnavailable
from memory.facts import tools as fact_tools
from memory.intents.builders import ConversationChange, Happening, intent_from_conversation
from memory.intents.registry import MemoryIntent
from memory.items.scope import Scope, SearchScope
from memory.items.seen import Seen
from memory.recall import tools as memory_tools
from policies.content.parameters import MAX_PARAMETERS, signature
from policies.inputs import PARAMETERS

_log = logging.getLogger(__name__)

MAX_TOOLS: Final = 20
MAX_CONVERSATIONS: Final = 1000
_TURNS: Final = 20
CAME_BACK: Final[frozenset[ToolStatus | None]] = frozenset({"ok", "failed"})
"""Statuses of the calls that count as use of a tool."""
OWN_TOOLS: Final[Mapping[str, Iterable[str]]] = {
    f"mcp__{server}__{name}": schema["properties"]
    for server, schemas in (
        (memory_tools.SERVER, memory_tools.SCHEMAS),
        (case_tools.SERVER, {form.name: form.input_schema for form in case_tools.TOOLS}),
    )
    for name, schema in schemas.items()
} | {f"mcp__{memory_tools.SERVER}__{name}": () for name in fact_tools.SCHEMAS}
"""The parameters of the gateway's own tools, by full name; `text` and `evidence` are words of every
day.
"""
_KNOWN: Final[Mapping[str, Iterable[str]]] = {**PARAMETERS, **OWN_TOOLS}


class ConversationTools:
    """The tools in use by conversation, and the names of their parameters.

    Those `offered` to every agent are in use from the start, and so are `further` ones, which come
    and go with their parameters; others are from their first returned call on. At most 20 called
    ones a conversation are kept, the latest one last; conversations used least recently are
    dropped. After a restart tools are read from the stored results.
    """

    def __init__(
        self,
        turns: TurnStore | None = None,
        offered: Iterable[str] = (),
        further: Callable[[], Mapping[str, Sequence[str]]] = dict,
    ) -> None:
        self._turns = turns
        self._further = further
        self._offered = {tool: [*_KNOWN.get(tool, ())] for tool in sorted(offered)}
        self._used: OrderedDict[str, dict[str, list[str]]] = OrderedDict()

    def note(self, conversation_id: str, tool: str, parameters: Iterable[str] = ()) -> None:
        """Note that a call returned, and the names of what it was given."""
        tools = self._of(conversation_id)
        known = (*_KNOWN.get(tool, ()), *self._further().get(tool, ()))
        names = dict.fromkeys([*parameters, *tools.pop(tool, ()), *known])
        tools[tool] = list(names)[:MAX_PARAMETERS]
        if len(tools) > MAX_TOOLS:
            del tools[next(iter(tools))]

    def forget(self, conversation_id: str) -> None:
        """Forget a conversation that was left or deleted."""
        self._used.pop(conversation_id, None)

    async def of(self, conversation_id: str) -> tuple[str, ...]:
        """Return the signatures of a conversation's tools, sorted, then those used, the last one at
        the end.

        Raise `StoreUnavailable` if its history cannot be read.
        """
        if self._turns is not None and conversation_id not in self._used:
            history = await self._turns.history(ConversationId(conversation_id), limit=_TURNS)
            if conversation_id not in self._used:
                self._of(conversation_id)
                for tool in (
                    tool for turn in history for tool in (turn.result or {}).get("tools", ())
                ):
                    if tool["status"] in CAME_BACK:
                        self.note(conversation_id, tool["name"], tool.get("parameters", ()))
        used = self._used.get(conversation_id, {})
        offered = {**self._offered, **self._further()}
        unused = (tool for tool in offered.items() if tool[0] not in used)
        return tuple(signature(*tool) for tool in (*unused, *used.items()))

    def _of(self, conversation_id: str) -> dict[str, list[str]]:
        tools = self._used.setdefault(conversation_id, {})
        self._used.move_to_end(conversation_id)
        if len(self._used) > MAX_CONVERSATIONS:
            self._used.popitem(last=False)
        return tools


async def seen_in(turns: TurnStore, conversation: Conversation) -> Seen:
    """Return what the conversation's agent has in its session: turns, and what memory showed in
    them.

    Raise `StoreUnavailable` if its history cannot be read.
    """
    held = await turns.in_session(conversation)
    shown: dict[str, int] = {}
    for turn in held:
        for item_id, revision in turn.shown.items():
            shown[item_id] = max(revision, shown.get(item_id, 0))
    ids = frozenset(turn_id for turn in held for turn_id in (turn.turn_id, turn.copy_id) if turn_id)
    return Seen(turns=ids, shown=shown)


def scope_of(conversation: Conversation) -> Scope:
    """Return what is recalled in a conversation: its project's items, and those of no project."""
    return SearchScope(
        owner_id=conversation.user_id,
        project_id=conversation.project_id,
        or_without=("project_id",),
    )


async def do_nothing(*_: object) -> None:
    """Stand in where there is no memory."""


class ConversationMemory:
    """Reports conversations to memory: started, left, forked, deleted."""

    def __init__(
        self,
        tools: ConversationTools,
        *,
        take: Callable[[MemoryIntent], None] = lambda _: None,
        drop_pending: Callable[[str], Awaitable[None]] = do_nothing,
        catch_up: Callable[[], Awaitable[None]] = do_nothing,
    ) -> None:
        self._tools = tools
        self._take = take
        self._drop_pending = drop_pending
        self._catch_up = catch_up

    def started(self, conversation: Conversation, left: Conversation | None, at: datetime) -> None:
        """Report a new conversation, and which one was left for it, if any."""
        if left is None:
            self._report(conversation, "started", None, at)
        else:
            self._tools.forget(left.id)
            self._report(conversation, "reset", left.id, at)

    def forked(self, fork: Conversation, source: Conversation, at: datetime) -> None:
        """Report a conversation that was forked from another."""
        self._report(fork, "forked", source.id, at)

    async def deleted(self, conversation_id: str) -> None:
        """Drop what a deleted conversation's next prompt would have contained.

        Raise `StoreUnavailable` if memory cannot be written.
        """
        self._tools.forget(conversation_id)
        await self._drop_pending(conversation_id)

    async def changed(self) -> None:
        """Bring the record up to date with conversations that were changed or deleted just now.

        If memory cannot be written it cannot be searched either; the change waits, and is not lost.
        """
        try:
            await self._catch_up()
        except StoreUnavailable:
            _log.exception("record_not_up_to_date")

    async def tools_of(self, conversation_id: str) -> tuple[str, ...]:
        """Return the tools in use in a conversation."""
        return await self._tools.of(conversation_id)

    def _report(
        self,
        conversation: Conversation,
        change: ConversationChange,
        from_conversation_id: str | None,
        at: datetime,
    ) -> None:
        if conversation.memory_enabled:
            where = Happening(
                owner_id=conversation.user_id, occurred_at=at, conversation_id=conversation.id
            )
            self._take(
                intent_from_conversation(
                    where, change=change, from_conversation_id=from_conversation_id
                )
            )
