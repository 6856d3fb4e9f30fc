"""Take messages: store each one and put it into its conversation's lane, or withdraw it again."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from gateway.chat.parts import ChatParts, ConversationAccess, StartFields
from gateway.chat.quotas import quota_used, reached_limit
from gateway.conversations.leases import LeaseLost
from gateway.conversations.model import (
    Approval,
    ApprovalAnswer,
    Conversation,
    Turn,
    fresh_conversation,
    starts_afresh,
)
from gateway.conversations.store import IdempotencyKey, QuotaReached
from gateway.errors import Busy, Conflict, GatewayError, NotFound, Overloaded
from gateway.ids import LOCAL_USER, ConversationId, TurnId, UserId, new_turn_id
from gateway.turns.approval_request import message_of
from gateway.turns.approvals import answered_already
from gateway.turns.lanes import Ticket
from gateway.turns.ownership import ClosedHere, FullHere, HeldElsewhere
from gateway.turns.requests import RETRY_AFTER_S, Accepted, ChatRequest, WhenBusy
from gateway.turns.turn_recovery import Withdrawal, close_withdrawn
from gateway.turns.turn_trace import TurnTrace
from memory.errors import CommitUnknown, StoreConflict, StoreUnavailable

_ACCEPTING_S = 5.0
"""How long a shutdown waits for a message that is being stored."""
_IN_DOUBT_S = 10.0
"""How long a message waits whose storing may have succeeded, until the database can be read."""
_LOOK_S = 0.1


_NOT_TAKEN = (
    "The server that runs this conversation does not answer. The message was not taken; try again"
    " in a moment."
)


class Intake:
    """Takes messages and ends turns."""

    def __init__(self, parts: ChatParts, access: ConversationAccess) -> None:
        self._parts = parts
        self._access = access
        self.accepting = anyio.Lock()
        """Held while a message is checked and stored, so that two of them cannot both find a lane
        free, a key new, or the last place empty."""
        self._shutting_down = anyio.Event()
        self.is_closed = False
        """True if new turns are refused because the server shuts down."""

    async def accept(self, user_id: UserId, request: ChatRequest) -> Accepted:
        """Store a message and put it into its conversation's lane.

        When this returns, the message survives a crash. A repeated idempotency key with the same
        body returns the first turn again.

        Raises:
            NotFound: no such conversation.
            Busy: a turn runs there and the request asked not to wait.
            Conflict: the idempotency key was used with another body.
            Overloaded, QuotaUsed, ShuttingDown: nothing was stored, here or by another server.
        """
        try:
            async with self.accepting_in(request.conversation_id):
                accepted, left = await self._accept(user_id, request)
        except StoreConflict:  # another server may have stored the same message meanwhile
            repeated = await self._repeated(user_id, request)
            if repeated is None:
                raise
            return repeated
        except GatewayError as exc:
            stored = await self._stored_elsewhere(user_id, request)
            if stored is None and request.is_in_doubt and isinstance(exc, HeldElsewhere):
                raise Overloaded(_NOT_TAKEN, retry_after_s=RETRY_AFTER_S) from exc
            if stored is None:
                raise
            return stored
        if left is not None:
            await self.leave(left)
        return accepted

    @asynccontextmanager
    async def accepting_in(self, conversation_id: str | None) -> AsyncIterator[None]:
        """Hold `accepting` while nothing occupies a conversation."""
        while True:
            async with self.accepting:
                occupation = self._access.occupation(conversation_id)
                if occupation is None:
                    yield
                    return
            await occupation.wait()

    async def _accept(
        self, user_id: UserId, request: ChatRequest
    ) -> tuple[Accepted, Conversation | None]:
        """Accept a message; return the turn, and the conversation that is left for it, if any."""
        repeated = await self._repeated(user_id, request)
        if repeated is not None:
            return repeated, None
        named = None
        if request.conversation_id is not None:
            named = await self._access.find(user_id, request.conversation_id)
        self._refuse_when_full()
        if (
            named is not None
            and not request.new_conversation
            and not starts_afresh(request.message)
        ):
            interrupted = self._check_running_turn(named.id, request.when_busy)
            if request.project_id is not None:
                named = replace(named, project_id=request.project_id)
            accepted = await self._take(user_id, request, named, None)
            # not before: nothing is stopped for a message not stored
            if interrupted is not None and interrupted is self._parts.lanes.current(named.id):
                interrupted.control.stop("user_interrupt")
                accepted = replace(accepted, interrupted=interrupted.turn.id)
            return accepted, None
        fresh = fresh_conversation(
            user_id, self._parts.now(), like=named, project_id=request.project_id
        )
        accepted = await self._take(user_id, request, fresh, fresh)
        self._parts.memory.started(fresh, named, self._parts.now())
        return accepted, named

    async def check(
        self,
        user_id: UserId,
        place: str | None,
        when_busy: WhenBusy = "enqueue",
        key: str | None = None,
    ) -> None:
        """Raise what `accept` would raise now for a message in the conversation `place`, unless one
        is stored under the key; "" is a new conversation, and None one that is not known yet. For
        callers that make something before the message is stored, such as a fork or files.
        """
        if key is not None and await self._parts.turns.find_key(user_id, key) is not None:
            return
        self._refuse_when_full()
        if place:
            named = await self._access.find(user_id, place)
            self._check_running_turn(named.id, when_busy)
            await self._parts.ownership.hold(named.id)
        await self.check_quota(user_id, place)

    async def check_quota(self, user_id: UserId, place: str | None) -> None:
        """Raise `QuotaUsed` as `check` does."""
        quota = await self._parts.turns.quota_of(user_id, self._parts.quota)
        if quota.is_set:
            now = self._parts.now()
            limit = await reached_limit(self._parts.turns, user_id, quota, now, place)
            if limit is not None:
                raise quota_used(limit, quota, now)

    async def accept_answer(self, approval: Approval, answer: ApprovalAnswer) -> Accepted:
        """Store the answer to a waiting approval, and start the run that it asks for.

        Raises:
            NotFound: the conversation is gone.
            Conflict: the approval was answered meanwhile.
            Overloaded, QuotaUsed, ShuttingDown: nothing was stored.
        """
        async with self.accepting_in(approval.conversation_id):
            target = await self._access.find(approval.user_id, approval.conversation_id)
            self._refuse_when_full()
            answered = replace(
                approval,
                decision=answer.decision,
                message=answer.message,
                answers=answer.answers,
            )
            turn = replace(
                self._new_turn(approval.user_id, target, message_of(answered)),
                approval_id=approval.id,
                epoch=await self._parts.ownership.hold(target.id),
            )
            trace = self._parts.begin_trace(turn)
            with anyio.CancelScope(shield=True):
                try:
                    turn = await self._store(turn, answer=answer)
                except StoreConflict as exc:
                    raise answered_already() from exc
                self._enqueue_new(turn, trace)
        return Accepted(conversation_id=target.id, turn_id=turn.id)

    def _new_turn(self, user_id: UserId, target: Conversation, message: str) -> Turn:
        return Turn(
            id=new_turn_id(),
            conversation_id=target.id,
            user_id=user_id,
            seq=0,
            state="queued",
            message=message,
            created_at=self._parts.now(),
        )

    async def _take(
        self,
        user_id: UserId,
        request: ChatRequest,
        target: Conversation,
        create: Conversation | None,
    ) -> Accepted:
        key = None
        if request.idempotency_key is not None:
            key = IdempotencyKey(key=request.idempotency_key, request_hash=request.fingerprint)
        turn = replace(
            self._new_turn(user_id, target, request.message),
            schedule=request.schedule,
            epoch=0 if create else await self._parts.ownership.hold(target.id),
        )
        trace = self._parts.begin_trace(turn)
        with anyio.CancelScope(shield=True):  # what is stored must be in its lane
            store = partial(self._store, create=create, key=key, project_id=request.project_id)
            waits = await self._is_bounded(user_id) or self._parts.lanes.is_busy(target.id)
            if self._parts.start_fields is None or waits:
                turn = await store(turn)
                self._enqueue_new(turn, trace)
            else:
                await self._start(turn, target, store, self._parts.start_fields, trace)
        return Accepted(conversation_id=target.id, turn_id=turn.id)

    async def _is_bounded(self, user_id: UserId) -> bool:
        """Return whether a message may well be refused; then its agent is not begun before it is
        stored.

        The local user's own limits are not looked up, which costs every message time; they are
        held all the same.
        """
        default = self._parts.quota
        if default.is_set or user_id == LOCAL_USER:
            return default.is_set
        return (await self._parts.turns.quota_of(user_id, default)).is_set

    async def _store(self, turn: Turn, **more: Any) -> Turn:
        """Store a turn with `more`, as `TurnStore.accept` does, if the user's quota has room."""
        ownership = self._parts.ownership
        try:
            with ownership.creating(turn.conversation_id):
                stored = await self._store_once(turn, more)
                ownership.note(stored, is_first=turn.epoch == 0)
        except CommitUnknown:  # nobody would run it if it is stored
            ownership.doubt(turn.conversation_id)
            raise
        except QuotaReached as exc:
            raise quota_used(exc.limit, exc.quota, turn.created_at) from exc
        except LeaseLost:
            ownership.lose(turn.conversation_id)
            raise
        return stored

    async def _store_once(self, turn: Turn, more: Mapping[str, Any]) -> Turn:
        """Store a turn, also where the database's answer to that is lost.

        Raise `CommitUnknown` if it may be stored, and the database cannot be read for some time.
        """
        quota, node = self._parts.quota, self._parts.ownership.node
        accept = partial(self._parts.turns.accept, turn, quota=quota, node=node, **more)
        try:
            return await accept()
        except CommitUnknown as exc:
            lost = exc
        with anyio.move_on_after(_IN_DOUBT_S):
            while True:
                try:
                    return await self._store_unless_stored(turn.id, accept)
                except LeaseLost:
                    raise
                except StoreUnavailable:
                    await anyio.sleep(_LOOK_S)
        raise lost

    async def _store_unless_stored(
        self, turn_id: TurnId, accept: Callable[[], Awaitable[Turn]]
    ) -> Turn:
        turns = self._parts.turns
        try:
            return await turns.get(turn_id) or await accept()
        except (StoreConflict, QuotaReached):  # it may have been stored just now
            stored = await turns.get(turn_id)
            if stored is None:
                raise
            return stored

    async def _start(
        self,
        turn: Turn,
        conversation: Conversation,
        store: Callable[..., Awaitable[Turn]],
        start_fields: StartFields,
        trace: TurnTrace,
    ) -> None:
        """Start a turn in a free lane and store it with its start; the model waits until it is
        stored.
        """
        turn = replace(turn, state="running", started_at=turn.created_at)
        events = self._parts.log.open_new_turn(turn)
        ticket = Ticket(turn=turn, events=events, conversation=conversation, trace=trace)
        self._parts.lanes.join(ticket)
        fields = start_fields(turn, conversation)
        try:  # it holds the turn's events before the lane's task begins
            await self._parts.log.begin_turn(
                events, "turn.started", fields, lambda first: store(turn, events=first)
            )
        except BaseException:
            ticket.control.stop("user_interrupt")  # an agent may have the prompt and wait
            raise
        trace.step("request")

    def _enqueue_new(self, turn: Turn, trace: TurnTrace) -> None:
        trace.step("request")
        if self._parts.ownership.runs(turn):
            events = self._parts.log.open_new_turn(turn)
            self._enqueue(Ticket(turn=turn, events=events, trace=trace))
        else:  # it waits for whoever takes the conversation
            trace.end(None)

    def _enqueue(self, ticket: Ticket) -> None:
        position = self._parts.lanes.join(ticket)
        if position > 0:
            ticket.events.emit("turn.queued", position=position)

    async def readmit(self, turn: Turn) -> None:
        """Put a turn back into its lane that was queued when its server stopped."""
        events = await self._parts.log.open_turn(turn)
        self._enqueue(Ticket(turn=turn, events=events, trace=self._parts.begin_trace(turn)))

    def _refuse_when_full(self) -> None:
        self._refuse_when_closed()
        if self._parts.lanes.live_count >= self._parts.max_turns:
            raise FullHere(
                "Too many turns are waiting; try again in a moment.", retry_after_s=RETRY_AFTER_S
            )

    def _refuse_when_closed(self) -> None:
        if self.is_closed:
            raise ClosedHere("The server is shutting down.", retry_after_s=RETRY_AFTER_S)

    async def _stored_elsewhere(self, user_id: UserId, request: ChatRequest) -> Accepted | None:
        """Return the turn of a message in doubt that is refused here, if another server stored it.

        None: it did not, and will not.
        """
        if not request.is_in_doubt or request.idempotency_key is None:
            return None
        with suppress(StoreConflict):
            await self._parts.turns.withdraw_key(
                user_id, request.idempotency_key, self._parts.now()
            )
            return None
        return await self._repeated(user_id, request)

    async def _repeated(self, user_id: UserId, request: ChatRequest) -> Accepted | None:
        if request.idempotency_key is None:
            return None
        known = await self._parts.turns.find_key(user_id, request.idempotency_key)
        if known is None:
            return None
        if known.request_hash != request.fingerprint:
            raise Conflict(
                "This idempotency_key was used with another body.", code="idempotency_key_reused"
            )
        turn = await self._parts.turns.get(known.turn_id)
        if turn is None:
            raise NotFound("The turn of this idempotency_key was deleted.")
        return Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)

    def _check_running_turn(
        self, conversation_id: ConversationId, when_busy: WhenBusy
    ) -> Ticket | None:
        """Return the turn that the message interrupts, if any; raise `Busy` if it must not wait."""
        if when_busy == "reject" and self._parts.lanes.is_busy(conversation_id):
            raise Busy("A turn is running in this conversation.")
        current = self._parts.lanes.current(conversation_id)
        return current if when_busy == "interrupt" else None

    async def interrupt(
        self, user_id: UserId, conversation_id: str, *, turn_id: TurnId | None = None
    ) -> TurnId:
        """Ask the running turn, or that turn if it runs, to stop; its result follows when it has.

        Raises:
            NotFound: no such conversation.
            Conflict: nothing runs there, or another turn does.
        """
        conversation = await self._access.find(user_id, conversation_id)
        current = self._parts.lanes.current(conversation.id)
        if current is None:
            raise Conflict("Nothing is running in this conversation.", code="nothing_running")
        if turn_id not in {None, current.turn.id}:
            raise Conflict(
                "The turn in `turn_id` is not the one that is running.",
                code="nothing_running",
            )
        current.control.stop("user_interrupt")
        return current.turn.id

    async def take_back(self, user_id: UserId, conversation_id: str, turn_id: str) -> None:
        """Withdraw a queued message; its turn ends without having run.

        Raise `NotFound` if there is no such conversation, or no such message waits there.
        """
        conversation = await self._access.find(user_id, conversation_id)
        taken = self._parts.lanes.take_back(conversation.id, TurnId(turn_id))
        if taken is None:
            raise NotFound("No such message is waiting in this conversation.")
        await self._withdraw([taken], "withdrawn")

    async def leave(self, conversation: Conversation) -> None:
        """Stop what runs and waits in a conversation, and make its process stale."""
        waiting = self._parts.lanes.take_all_back(conversation.id)
        self._stop_running(conversation.id)
        self._parts.pool.leave(conversation.id)
        await self._withdraw(waiting, "withdrawn_left")

    async def clear(self, conversation_id: ConversationId) -> None:
        """End what runs and waits in a conversation that is being deleted; return when it has."""
        async with self.accepting:  # a message that was being stored is in the lane afterwards
            waiting = self._parts.lanes.take_all_back(conversation_id)
        running = self._stop_running(conversation_id)
        await self._withdraw(waiting, "withdrawn")
        if running is not None:
            await running.control.finished.wait()

    def _stop_running(self, conversation_id: ConversationId) -> Ticket | None:
        running = self._parts.lanes.running(conversation_id)
        if running is not None:
            running.control.stop("user_interrupt", "left")
        return running

    async def _withdraw(self, tickets: Sequence[Ticket], why: Withdrawal) -> None:
        """Complete turns that were taken out of their lane; cancellation does not stop it."""
        with anyio.CancelScope(shield=True):
            for ticket in tickets:
                await close_withdrawn(ticket.turn, ticket.events, why, self._parts.now())
                self._parts.lanes.finish(ticket)
                ticket.trace.end(None)

    async def wait_shut_down(self) -> None:
        """Wait until all turns have ended because the server shuts down; streams end then."""
        await self._shutting_down.wait()

    @property
    def is_shut_down(self) -> bool:
        """True if all turns have ended because the server shuts down."""
        return self._shutting_down.is_set()

    async def shut_down(self, *, grace_s: float) -> None:
        """Take nothing more; let running turns finish within the grace, then stop them.

        Where other servers share the database they get the conversations in which nothing runs at
        once, and each of the others when its turn has ended, with what waits there.
        """
        self.is_closed = True
        with anyio.move_on_after(_ACCEPTING_S):  # a turn that is stored as running must run
            async with self.accepting:
                pass
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain)  # when the lanes begin nothing more
            await self._parts.lanes.close(grace_s=grace_s, on_idle=self._parts.ownership.release)
        self._shutting_down.set()

    async def _drain(self) -> None:
        await self._parts.ownership.drain(self._parts.lanes.running_in)
