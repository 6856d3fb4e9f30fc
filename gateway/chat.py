"""What a front end can do: the one object that the HTTP routes call.

Every call names the user; what belongs to another user is not there (`NotFound`).
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from gateway.conversations.event_log import EventLog, Subscription
from gateway.conversations.fresh import forked_conversation, fresh_conversation
from gateway.conversations.model import Conversation, ConversationChange, Turn
from gateway.conversations.store import (
    ConversationStore,
    EventStore,
    IdempotencyKey,
    TurnStore,
)
from gateway.engine.pool import ClientPool
from gateway.engine.protocol import Engine
from gateway.errors import Busy, Conflict, NotFound, Overloaded, ShuttingDown
from gateway.ids import ConversationId, TurnId, UserId, new_turn_id
from gateway.turns.approvals import ApprovalDesk, Decision, Question, Remember
from gateway.turns.control import TurnControl
from gateway.turns.conversation_memory import ConversationMemory
from gateway.turns.finished import RETRY_AFTER_S, finished_result
from gateway.turns.lanes import Lanes, Ticket
from gateway.turns.requests import Accepted, ChatRequest, ConversationView, State, WhenBusy
from gateway.turns.turn_recovery import Withdrawal, close_withdrawn
from gateway.turns.typed_commands import starts_afresh
from gateway.waiting import until_any
from memory.clock import Now

_log = logging.getLogger(__name__)

_ACCEPTING_S = 5.0
"""How long a shutdown waits for a message that is being stored."""

StartFields = Callable[[Turn, Conversation], dict[str, Any]]


class Chat:
    """Conversations and turns for users. Made by `gateway.assemble`."""

    def __init__(  # noqa: PLR0913  built in one place
        self,
        *,
        conversations: ConversationStore,
        turns: TurnStore,
        events: EventStore,
        log: EventLog,
        lanes: Lanes,
        pool: ClientPool,
        engine: Engine,
        approvals: ApprovalDesk,
        memory: ConversationMemory,
        max_turns: int,
        now: Now,
        start_fields: StartFields | None = None,
    ) -> None:
        """Put it together.

        `start_fields` returns what `turn.started` says of a turn that is accepted into a free lane,
        so that acceptance and start are one write; None: each turn is queued first.
        """
        self._conversations = conversations
        self._turns = turns
        self._events = events
        self._log = log
        self._lanes = lanes
        self._pool = pool
        self._memory = memory
        self._engine = engine
        self._approvals = approvals
        self._max_turns = max_turns
        self._now = now
        self._start_fields = start_fields
        self._live: dict[TurnId, TurnControl] = {}
        self._deleting: set[ConversationId] = set()
        self._accepting = anyio.Lock()
        """Held while a message is looked at and written down, so that two of them cannot both find
        a lane free, a key new, or the last place empty."""
        self._closed = False
        self._shutting_down = anyio.Event()

    @property
    def live_count(self) -> int:
        """Turns that are accepted and not finished."""
        return len(self._live)

    @property
    def is_closed(self) -> bool:
        """Whether new turns are refused because the server goes down."""
        return self._closed

    async def wait_shut_down(self) -> None:
        """Wait until all turns have ended because the server goes down; streams end then."""
        await self._shutting_down.wait()

    async def accept(self, user_id: UserId, request: ChatRequest) -> Accepted:
        """Write a message down and put it into its conversation's lane.

        When this returns, the message survives a crash. A repeated idempotency key with the same
        body gives the first turn again.

        Raises:
            NotFound: no such conversation.
            Busy: a turn runs there and the request asked not to wait.
            Conflict: the idempotency key was used with another body.
            Overloaded, ShuttingDown: nothing was written.
        """
        self._refuse_when_closed()
        async with self._accepting:
            accepted, left = await self._accept(user_id, request)
        if left is not None:
            await self._leave(left)
        return accepted

    async def _accept(
        self, user_id: UserId, request: ChatRequest
    ) -> tuple[Accepted, Conversation | None]:
        """Accept a message; gives the conversation that is left with it, too."""
        replayed = await self._replayed(user_id, request)
        if replayed is not None:
            return replayed, None
        named = None
        if request.conversation_id is not None:
            named = await self._conversation(user_id, request.conversation_id)
        leaves = request.new_conversation or starts_afresh(request.message)
        left = named if leaves else None
        target = named if left is None else None
        self._refuse_when_closed()
        self._refuse_when_full()
        if target is not None:
            self._mind_the_running_turn(target.id, request.when_busy)
            return await self._write_down(user_id, request, target, None), None
        fresh = fresh_conversation(user_id, self._now(), like=left)
        accepted = await self._write_down(user_id, request, fresh, fresh)
        self._tell_begun(fresh, left)
        return accepted, left

    def _tell_begun(self, fresh: Conversation, left: Conversation | None) -> None:
        if left is None:
            self._memory.started(fresh, self._now())
        else:
            self._memory.left(left, fresh, self._now())

    async def _write_down(
        self,
        user_id: UserId,
        request: ChatRequest,
        target: Conversation,
        fresh: Conversation | None,
    ) -> Accepted:
        key = None
        if request.idempotency_key is not None:
            key = IdempotencyKey(key=request.idempotency_key, request_hash=request.fingerprint)
        turn = Turn(
            id=new_turn_id(),
            conversation_id=target.id,
            user_id=user_id,
            seq=0,
            state="queued",
            message=request.message,
            created_at=self._now(),
        )
        with anyio.CancelScope(shield=True):  # what is stored must be in its lane
            ticket = await self._store_turn(
                turn, target, partial(self._turns.accept, create=fresh, key=key)
            )
            self._enqueue(ticket.turn, ticket)
        return Accepted(conversation_id=target.id, turn_id=turn.id)

    async def _store_turn(
        self, turn: Turn, conversation: Conversation, accept: Callable[..., Awaitable[Turn]]
    ) -> Ticket:
        """Store a message: with the start of its turn if the lane is free, else queued."""
        if self._start_fields is None or self._lanes.is_busy(conversation.id):
            turn = await accept(turn)
            return Ticket(turn=turn, events=self._log.open_new_turn(turn), control=TurnControl())
        turn = replace(turn, state="running", started_at=turn.created_at)
        turn, events = await self._log.begin_turn(
            turn,
            "turn.started",
            self._start_fields(turn, conversation),
            lambda first: accept(turn, events=first),
        )
        return Ticket(turn=turn, events=events, control=TurnControl(), conversation=conversation)

    def _enqueue(self, turn: Turn, ticket: Ticket) -> None:
        self._live[turn.id] = ticket.control
        position = self._lanes.join(ticket)
        if position > 0:
            ticket.events.emit("turn.queued", position=position)

    async def readmit(self, turn: Turn) -> None:
        """Put a turn back into its lane that was still queued when the server went down."""
        events = await self._log.open_turn(turn)
        self._enqueue(turn, Ticket(turn=turn, events=events, control=TurnControl()))

    def forget_control(self, turn_id: TurnId) -> None:
        """Let go of a turn that is finished; the lane calls this."""
        control = self._live.pop(turn_id, None)
        if control is not None:
            control.finished.set()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise ShuttingDown("The server is shutting down.", retry_after_s=RETRY_AFTER_S)

    def _refuse_when_full(self) -> None:
        if len(self._live) >= self._max_turns:
            raise Overloaded(
                "Too many turns are waiting; try again in a moment.", retry_after_s=RETRY_AFTER_S
            )

    async def _replayed(self, user_id: UserId, request: ChatRequest) -> Accepted | None:
        """Give the turn that this key stands for already, or None."""
        if request.idempotency_key is None:
            return None
        known = await self._turns.find_key(user_id, request.idempotency_key)
        if known is None:
            return None
        if known.request_hash != request.fingerprint:
            raise Conflict(
                "This idempotency_key was used with another body.", code="idempotency_key_reused"
            )
        turn = await self._turns.get(known.turn_id)
        if turn is None:
            raise NotFound("The turn of this idempotency_key was deleted.")
        return Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)

    def _mind_the_running_turn(self, conversation_id: ConversationId, when_busy: WhenBusy) -> None:
        if when_busy == "reject" and self._lanes.is_busy(conversation_id):
            raise Busy("A turn is running in this conversation.")
        current = self._lanes.current(conversation_id)
        if when_busy == "interrupt" and current is not None:
            current.control.stop("user_interrupt")

    async def result(self, user_id: UserId, turn_id: TurnId) -> dict[str, Any]:
        """Wait for a turn's result.

        Raises:
            NotFound: no such turn, or it was deleted meanwhile.
            ShuttingDown, NotStored: see `finished_result`.
        """
        control = self._live.get(turn_id)
        if control is not None:
            await until_any(control.finished.wait, self._shutting_down.wait, self._log.until_stuck)
        turn = await self._turns.get(turn_id)
        if turn is None or turn.user_id != user_id:
            raise NotFound("There is no such turn.")
        return finished_result(turn, is_shutting_down=self._shutting_down.is_set())

    def follow_turn(self, accepted: Accepted) -> Subscription:
        """Read a turn's events from its first one; `async with` it."""
        return self._log.subscribe(accepted.conversation_id, 0, turn_id=accepted.turn_id)

    async def follow(
        self, user_id: UserId, conversation_id: str, after: str | None = None
    ) -> Subscription:
        """Read a conversation's events after the one with the id `after`; without one, live from now.

        `<turn_id>:0` stands for the moment before a turn's first event.

        Raises:
            NotFound: no such conversation, or `after` is no event of it.
        """
        conversation = await self._conversation(user_id, conversation_id)
        seq = self._log.stored_seq if after is None else await self._place(conversation, after)
        return self._log.subscribe(conversation.id, seq)

    async def _place(self, conversation: Conversation, after: str) -> int:
        """Find the place in the order of all events that an event's id names."""
        turn_id, _, n = after.rpartition(":")
        turn = await self._turns.get(TurnId(turn_id))
        if turn is not None and turn.conversation_id == conversation.id and n.isdecimal():
            if int(n[:18]) == 0:
                first = await self._events.find(turn.id, 1)
                return self._log.stored_seq if first is None else first - 1
            found = await self._events.find(turn.id, int(n[:18]))
            if found is not None:
                return found
        raise NotFound("There is no such event in this conversation.", code="unknown_event")

    async def new_conversation(
        self, user_id: UserId, *, leaving: str | None = None, title: str = ""
    ) -> ConversationId:
        """Start a conversation; the one being left, if any, becomes stale at once.

        Raises:
            NotFound: no such conversation to leave.
        """
        left = None if leaving is None else await self._conversation(user_id, leaving)
        if left is not None:
            await self._leave(left)
        fresh = fresh_conversation(user_id, self._now(), like=left, title=title)
        await self._conversations.create(fresh)
        self._tell_begun(fresh, left)
        return fresh.id

    async def _leave(self, conversation: Conversation) -> None:
        """Stop what runs and waits there and make its process stale: it finishes nothing more."""
        waiting = self._lanes.take_all_back(conversation.id)
        running = self._lanes.running(conversation.id)
        if running is not None:
            running.control.stop("user_interrupt", "left")
        self._pool.leave(conversation.id)
        await self._withdraw(waiting, "withdrawn_left")

    async def _withdraw(self, tickets: Sequence[Ticket], why: Withdrawal) -> None:
        """End turns that were taken out of their lane; each gets its result, come what may."""
        with anyio.CancelScope(shield=True):
            for ticket in tickets:
                await close_withdrawn(ticket.turn, ticket.events, why, self._now())
                self.forget_control(ticket.turn.id)

    async def page(
        self, user_id: UserId, *, limit: int, cursor: str | None, query: str | None
    ) -> tuple[list[ConversationView], str | None]:
        """List a user's conversations, newest first, and where the next ones begin."""
        page = await self._conversations.page(user_id, limit=limit, cursor=cursor, query=query)
        return [self._view(one) for one in page.conversations], page.next_cursor

    async def get(self, user_id: UserId, conversation_id: str) -> ConversationView:
        """Show one conversation with its queue.

        Raises:
            NotFound: no such conversation.
        """
        return self._view(await self._conversation(user_id, conversation_id))

    async def change(
        self, user_id: UserId, conversation_id: str, change: ConversationChange
    ) -> ConversationView:
        """Set what the change names; a model takes effect with the next turn.

        Raises:
            NotFound: no such conversation.
        """
        conversation = await self._conversation(user_id, conversation_id)
        await self._conversations.change(conversation.id, change)
        return await self.get(user_id, conversation_id)

    async def delete(self, user_id: UserId, conversation_id: str) -> None:
        """End its process, delete its messages, events and the agent's session.

        The conversation goes last: where something of it cannot be deleted it is still there, and
        deleting it again goes on from there.

        Raises:
            NotFound: no such conversation.
        """
        conversation = await self._conversation(user_id, conversation_id)
        self._deleting.add(conversation.id)
        try:
            await self._delete(conversation.id)
        finally:
            self._deleting.discard(conversation.id)

    async def _delete(self, conversation_id: ConversationId) -> None:
        """Empty the lane, then delete; meanwhile nobody finds the conversation."""
        async with self._accepting:  # a message that was being written down is in the lane after it
            waiting = self._lanes.take_all_back(conversation_id)
        running = self._lanes.running(conversation_id)
        if running is not None:
            running.control.stop("user_interrupt", "left")
        await self._withdraw(waiting, "withdrawn")
        if running is not None:
            await running.control.finished.wait()
        await self._pool.drop(conversation_id)
        self._approvals.forget(conversation_id)
        for session_id in await self._conversations.own_sessions(conversation_id):
            await self._engine.forget_session(session_id)
        await self._memory.deleted(conversation_id)
        await self._conversations.delete(conversation_id, self._now())
        self._log.end_conversation(conversation_id)

    async def messages(
        self, user_id: UserId, conversation_id: str, *, limit: int, before_seq: int | None
    ) -> Sequence[Turn]:
        """List a conversation's last turns, oldest first.

        Raises:
            NotFound: no such conversation.
        """
        conversation = await self._conversation(user_id, conversation_id)
        return await self._turns.history(conversation.id, limit=limit, before_seq=before_seq)

    async def interrupt(self, user_id: UserId, conversation_id: str) -> TurnId:
        """Tell the running turn to stop; `result` tells when it really has.

        Raises:
            NotFound: no such conversation.
            Conflict: nothing runs there.
        """
        conversation = await self._conversation(user_id, conversation_id)
        current = self._lanes.current(conversation.id)
        if current is None:
            raise Conflict("Nothing is running in this conversation.", code="nothing_running")
        current.control.stop("user_interrupt")
        return current.turn.id

    async def fork(self, user_id: UserId, conversation_id: str, turn_id: str) -> ConversationId:
        """Make a conversation that remembers this one up to a turn that is completed.

        Raises:
            NotFound: no such conversation or turn.
            Conflict: the turn is not finished, or its agent session cannot be branched off.
        """
        conversation = await self._conversation(user_id, conversation_id)
        turn = await self._turns.get(TurnId(turn_id))
        if turn is None or turn.conversation_id != conversation.id or turn.state == "withdrawn":
            raise NotFound("There is no such turn in this conversation.")
        if turn.state != "completed":
            raise Conflict("This turn is not finished yet.", code="turn_not_finished")
        point = await self._turns.fork_point(conversation.id, turn.seq)
        fork = forked_conversation(conversation, point, self._now())
        async with self._accepting:  # a deletion waits, or has begun and there is nothing to copy
            await self._conversation(user_id, conversation_id)
            await self._turns.copy_history(conversation.id, turn.seq, fork)
        self._memory.forked(fork, conversation, self._now())
        return fork.id

    async def recent_tools(self, user_id: UserId, conversation_id: str) -> tuple[str, ...]:
        """Give the tools in use in a conversation, the one that was used last at the end.

        Raises:
            NotFound: no such conversation.
        """
        conversation = await self._conversation(user_id, conversation_id)
        return await self._memory.tools_of(conversation.id)

    async def take_back(self, user_id: UserId, conversation_id: str, turn_id: str) -> None:
        """Take a queued message back; its turn is over without having run.

        Raises:
            NotFound: no such conversation, or no such message waits there.
        """
        conversation = await self._conversation(user_id, conversation_id)
        taken = self._lanes.take_back(conversation.id, TurnId(turn_id))
        if taken is None:
            raise NotFound("No such message is waiting in this conversation.")
        await self._withdraw([taken], "withdrawn")

    def approvals(self, user_id: UserId, conversation_id: str | None) -> Sequence[Question]:
        """List the user's open approvals, oldest first."""
        return self._approvals.pending(user_id, conversation_id)

    def answer_approval(
        self,
        user_id: UserId,
        approval_id: str,
        decision: Decision,
        *,
        message: str = "",
        remember: Remember = "once",
    ) -> Question:
        """Take a person's answer; see `ApprovalDesk.answer`."""
        return self._approvals.answer(
            user_id, approval_id, decision, message=message, remember=remember
        )

    async def owns_turn(self, user_id: UserId, turn_id: str) -> bool:
        """Whether a turn is the user's; its log is theirs then."""
        turn = await self._turns.get(TurnId(turn_id))
        return turn is not None and turn.user_id == user_id

    async def shut_down(self, *, grace_s: float) -> None:
        """Take nothing more; let running turns finish for a while, then end them honestly."""
        self._closed = True
        with anyio.move_on_after(_ACCEPTING_S):  # a turn that is stored as running must run
            async with self._accepting:
                pass
        await self._lanes.close(grace_s=grace_s)
        self._shutting_down.set()

    def _view(self, conversation: Conversation) -> ConversationView:
        current = self._lanes.current(conversation.id)
        state: State = "idle"
        if current is not None:
            state = "stopping" if current.control.is_stopping else "running"
        elif self._lanes.is_busy(conversation.id):
            state = "running"
        return ConversationView(
            conversation=conversation,
            state=state,
            hot=self._pool.is_hot(conversation.id),
            queue=[one.turn for one in self._lanes.waiting(conversation.id)],
        )

    async def _conversation(self, user_id: UserId, conversation_id: str) -> Conversation:
        found = await self._conversations.get(ConversationId(conversation_id), user_id)
        if found is None or found.id in self._deleting:
            raise NotFound("There is no such conversation.")
        return found
