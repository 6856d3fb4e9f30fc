"""The conversations whose turns this server runs, and the beat of its heart that keeps them."""

import logging
import math
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import anyio
from anyio.abc import TaskGroup

from gateway.conversations.event_log import OnLost
from gateway.conversations.leases import Lease, Node
from gateway.conversations.model import Turn
from gateway.conversations.sql.leases import LeaseStore
from gateway.engine.pool import ClientPool
from gateway.errors import Overloaded, ShuttingDown
from gateway.ids import ConversationId
from gateway.turns.lanes import Lanes
from gateway.turns.requests import RETRY_AFTER_S
from gateway.turns.standing_rules import StandingRules
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)


class Recovery(Protocol):
    """Ends the turns that the last owner of a conversation has left, and queues those that wait.

    See `TurnRecovery`.
    """

    async def recover(self, lease: Lease, *, was_let_go: bool) -> None:
        """Recover the turns of a conversation that was taken; `was_let_go` by a living server."""

    async def recover_all(
        self, leases: Sequence[Lease], is_foreign: Callable[[ConversationId], Awaitable[bool]]
    ) -> None:
        """Recover the turns of all of them, at the start."""


HasEnded = Callable[[str], Awaitable[bool]]
"""Returns whether a process, as a node names it, is known to have ended."""


async def never(_: str) -> bool:  # noqa: RUF029  as a `HasEnded`
    """Return False: nothing is known of other processes."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heart:
    """How a server keeps what it holds."""

    ttl_s: float = 15.0
    """A server that has been silent for so long is dead for the others."""
    beat_s: float = 5.0
    unused_s: float = 60.0
    """How long a conversation is unused before others may take it; more than storing takes."""
    margin_s: float = 3.0
    """How long before that a server whose beats fail stops its turns; to kill agents takes less."""

    @property
    def ttl_ms(self) -> int:
        """`ttl_s` in milliseconds."""
        return round(self.ttl_s * 1000)


_BEATS_TO_COME_BACK: Final = 2
"""How many beats a server that was late leaves others that were without the database, too."""

LONE: Final = Heart()
_FIRST_EPOCH: Final = 1
"""Of a conversation that is stored with its first turn."""


def heart_among_others(ttl_s: float) -> Heart:
    """Return how a server beats whose conversations others take over after `ttl_s`; a process that
    has ended on the same machine is noticed with the next beat.
    """
    return Heart(ttl_s=ttl_s, beat_s=min(1.0, ttl_s / 5), margin_s=ttl_s * 0.3)


class HeldElsewhere(Overloaded, code="overloaded", retryable=True):
    """Another server runs the conversation, which can be asked instead."""

    def __init__(self, conversation_id: ConversationId | None, node: Node) -> None:
        """Initialise; without a conversation any server may take what is not taken here."""
        super().__init__(
            "Another server runs this conversation; try again in a moment.",
            retry_after_s=RETRY_AFTER_S,
        )
        self.conversation_id = conversation_id
        self.node = node


class FullHere(Overloaded, code="overloaded", retryable=True):
    """This server takes no more messages now; nothing was stored, and another one may take it."""


class ClosedHere(ShuttingDown, code="shutting_down", retryable=True):
    """This server takes no more messages; nothing was stored, and another one may take it."""


class Ownership:
    """What this server holds. `run` keeps it; a conversation is held until the server stops, or,
    where others may take it, has not been used for a while.
    """

    def __init__(
        self,
        leases: LeaseStore,
        node: Node,
        *,
        is_shared: bool = False,
        has_ended: HasEnded = never,
        heart: Heart = LONE,
    ) -> None:
        """Initialise; `is_shared` if other servers may use the database. `has_ended` returns
        whether a node's process is known to have ended.
        """
        self._leases = leases
        self.node = node
        self._is_shared = is_shared
        self._has_ended = has_ended
        self._heart = heart
        self._living: set[str] = set()
        """The incarnations of the servers that lived at the last beat."""
        self._lets_go_at_s = math.inf
        self._beaten = anyio.Event()
        """Set, and replaced, at each beat that was stored."""
        self._is_unsure = False
        """The store may have leases of this server that it does not use."""
        self._must_compare = False
        """So it is since a late beat, or since all was let go, until the two were compared."""
        self._epochs: dict[ConversationId, int] = {}
        self._let_go: dict[ConversationId, int] = {}
        """The epochs under which this server held what it let go, or could not recover then."""
        self._beats_in_time = _BEATS_TO_COME_BACK
        """Since the last one that was late."""
        self._coming: set[ConversationId] = set()
        """Conversations that are being created."""
        self._taking = anyio.Lock()
        """Held from the taking of conversations until their turns are recovered."""
        self._recovery: Recovery | None = None
        self._used_s: dict[ConversationId, float] = {}
        """When conversations were last seen to be used."""
        self.is_used: Callable[[ConversationId], bool] = lambda _: True
        """Returns whether this server has more of a conversation than what is stored."""
        self.on_lost: OnLost = lambda _: None
        """Called with a conversation that another server holds now; its turns must stop."""

    async def begin(self) -> None:
        """Join the nodes of the database."""
        began_s = anyio.current_time()
        await self._leases.join(self.node, ttl_ms=self._heart.ttl_ms)
        self._note_beat(began_s)

    async def start(self, recovery: Recovery) -> None:
        """Take over from the dead, the server's last process among them, before the first
        message.
        """
        async with self._taking:
            leases = await self._leases.take_unfinished(self.node)
            await recovery.recover_all(leases, self._is_foreign)
            self._epochs.update((lease.conversation_id, lease.epoch) for lease in leases)
        self._recovery = recovery

    async def adopt(self) -> None:
        """Take the conversations with unfinished turns whose servers are dead, and recover them.

        A server that was without the database may not be the only one: it takes what others have
        released, and leaves them some beats to do so.
        """
        released_only = self._beats_in_time < _BEATS_TO_COME_BACK
        async with self._taking:
            leases = await self._leases.take_unfinished(self.node, released_only=released_only)
            self._is_unsure |= bool(leases)  # until all of them are recovered
            for lease in leases:
                await self._take(lease)
            self._is_unsure = False

    async def _is_foreign(self, conversation_id: ConversationId) -> bool:
        holder = await self._leases.holder(conversation_id)
        return holder is not None and holder.id != self.node.id

    def holds(self, conversation_id: ConversationId) -> bool:
        """Return whether this server runs a conversation, as far as it knows."""
        return conversation_id in self._epochs

    async def elsewhere(self, conversation_id: ConversationId) -> Node | None:
        """Return the other server that runs a conversation; None if there is none."""
        if not self._is_shared or conversation_id in self._epochs:
            return None
        holder = await self._leases.holder(conversation_id)
        if holder is None or holder.id == self.node.id:
            return None
        if holder.process is not None and await self._has_ended(holder.process):
            await self._leases.bury(holder)
            return None
        return holder

    async def require_here(self, conversation_id: ConversationId) -> None:
        """Raise `HeldElsewhere` if another server runs a conversation."""
        holder = await self.elsewhere(conversation_id)
        if holder is not None:
            raise HeldElsewhere(conversation_id, holder)

    async def hold(self, conversation_id: ConversationId) -> int:
        """Return the epoch under which this server runs a conversation, which is taken if need be.

        What the last owner left unfinished is recovered then. Raise `HeldElsewhere` if another
        server runs it, `Overloaded` if none can, and `StoreUnavailable`.
        """
        known = self._epochs.get(conversation_id)
        if known is not None:
            self._used_s[conversation_id] = anyio.current_time()
            return known
        async with self._taking:
            return await self._hold(conversation_id)

    async def _hold(self, conversation_id: ConversationId) -> int:
        if conversation_id in self._epochs:
            return self._epochs[conversation_id]
        await self.require_here(conversation_id)  # the dead are buried then
        lease = await self._leases.take(self.node, conversation_id)
        if lease is None:
            await self.require_here(conversation_id)
            raise Overloaded(
                "No server can run this conversation now; try again in a moment.",
                retry_after_s=RETRY_AFTER_S,
            )
        await self._take(lease)
        return lease.epoch

    async def _take(self, lease: Lease) -> None:
        """Recover a conversation that was taken; it counts as held when that is done."""
        where = lease.conversation_id
        if self._recovery is not None:
            # in the first case nobody else had it meanwhile
            was_let_go = self._let_go.pop(where, None) == lease.epoch - 1 or lease.was_let_go
            if was_let_go:  # still, if it cannot be recovered
                self._let_go[where] = lease.epoch
            await self._recovery.recover(lease, was_let_go=was_let_go)
        self._let_go.pop(where, None)
        self._epochs[where] = lease.epoch

    @contextmanager
    def creating(self, conversation_id: ConversationId) -> Iterator[None]:
        """Note that a conversation is being created with its lease; `note` its turn within."""
        self._coming.add(conversation_id)
        try:
            yield
        finally:
            self._coming.discard(conversation_id)

    def note(self, turn: Turn, *, is_first: bool) -> None:
        """Note that a turn was stored, the first one of its conversation or another.

        If the conversation was let go meanwhile the turn waits for whoever takes it.
        """
        if is_first:
            self._epochs[turn.conversation_id] = turn.epoch
        elif not self.runs(turn):
            self._must_compare = True  # it was left out while it was being stored
            self.lose(turn.conversation_id)

    def runs(self, turn: Turn) -> bool:
        """Return whether this server runs a turn's conversation as it did when it was stored."""
        return self._epochs.get(turn.conversation_id) == turn.epoch

    def forget(self, conversation_id: ConversationId) -> None:
        """Forget a conversation that was deleted."""
        self._epochs.pop(conversation_id, None)
        self._used_s.pop(conversation_id, None)

    def lose(self, conversation_id: ConversationId) -> None:
        """Note that another server holds a conversation, and stop its turns here."""
        self.forget(conversation_id)
        self.on_lost(conversation_id)

    def lose_epoch(self, conversation_id: ConversationId, epoch: int) -> None:
        """Do as `lose` does, unless this server holds the conversation under another epoch."""
        if self._epochs.get(conversation_id) == epoch:
            self.lose(conversation_id)

    async def run(self) -> None:
        """Beat until cancelled. A beat that cannot be stored is followed by the next one.

        What follows from beats is done beside them: to recover all that a dead server held may
        take longer than this one may be silent.
        """
        async with anyio.create_task_group() as tasks:
            if self._is_shared:
                await _try(self._keep)  # the start may have taken longer than a beat
                tasks.start_soon(self._let_go_in_time)
            tasks.start_soon(self._follow_beats)
            while True:
                await anyio.sleep(self._heart.beat_s)
                await _try(self._keep)

    async def _follow_beats(self) -> None:
        while True:
            await self._beaten.wait()
            await _try(self._follow)

    async def beat(self) -> None:
        """Keep what is held, and take over from the dead; if the beat came too late, find out what
        others took and stop it.
        """
        if await self._keep():
            await self._follow()

    async def _keep(self) -> bool:
        """Store a beat; return whether this server is still one of the database's."""
        began_s = anyio.current_time()
        beat = await self._leases.beat(self.node, ttl_ms=self._heart.ttl_ms)
        if beat != "in_time":
            _log.warning("heart_beat_late", extra={"beat": beat})
        if beat == "gone":
            self._lose_all()
            return False
        self._must_compare |= beat == "late"
        self._beats_in_time = 0 if beat == "late" else self._beats_in_time + 1
        self._note_beat(began_s)
        return True

    async def _follow(self) -> None:
        if self._must_compare or self._is_unsure:
            self._must_compare = False
            await self._reconcile()
        if self._is_shared:
            await self._bury()
            await self._let_unused_go()
        await self.adopt()

    async def _bury(self) -> None:
        """Note the end of processes of this machine, so that nobody waits until they expire."""
        living: set[str] = set()
        for node in await self._leases.living():
            if node.process is not None and await self._has_ended(node.process):
                await self._leases.bury(node)
            else:
                living.add(node.incarnation)
        self._living = living  # not before: a server that is being looked at still lives

    async def _let_unused_go(self) -> None:
        """Release what has been unused for so long that nothing is being stored for it, either."""
        now_s = anyio.current_time()
        for conversation_id in list(self._epochs):
            if self.is_used(conversation_id):
                self._used_s[conversation_id] = now_s
                continue
            used_s = self._used_s.setdefault(conversation_id, now_s)
            if now_s - used_s >= self._heart.unused_s:
                await self._let_go_unless_used(conversation_id, used_s)

    async def _let_go_unless_used(self, conversation_id: ConversationId, used_s: float) -> None:
        """Release a conversation, unless it is used again before what is being taken is."""
        async with self._taking:
            if self._used_s.get(conversation_id) == used_s:
                self.forget(conversation_id)
                await self.release(conversation_id)

    async def another(self, asked: Collection[str] = ()) -> Node | None:
        """Return a server that may take a message instead of this one, and instead of those of the
        incarnations that were `asked`; None if there is none.
        """
        nodes = await self._leases.living(takes_turns=True)
        others = [
            node
            for node in nodes
            if node.id != self.node.id and node.url is not None and node.incarnation not in asked
        ]
        return random.choice(others) if others else None  # noqa: S311  no secret

    async def lives(self, node: Node) -> bool:
        """Return whether another server lives."""
        return any(node.incarnation == other.incarnation for other in await self._leases.living())

    def is_living(self, node: Node) -> bool:
        """Return whether another server lived at the last beat."""
        return node.incarnation in self._living

    def left_s(self) -> float:
        """Return for how many seconds the server may not beat from now on before it lets go."""
        return self._lets_go_at_s - anyio.current_time()

    @property
    def expires_s(self) -> float:
        """How long a server that is silent keeps what it holds, in seconds."""
        return self._heart.ttl_s

    def _note_beat(self, began_s: float) -> None:
        self._lets_go_at_s = began_s + self._heart.ttl_s - self._heart.margin_s
        self._beaten.set()
        self._beaten = anyio.Event()

    async def _let_go_in_time(self) -> None:
        """Stop all turns whenever the beats fail for so long that others may soon take over."""
        while True:
            left_s = self._lets_go_at_s - anyio.current_time()
            if left_s > 0:
                await anyio.sleep(left_s)
                continue
            _log.error("conversations_let_go", extra={"count": len(self._epochs)})
            self.let_go()
            await self._beaten.wait()

    def let_go(self) -> None:
        """Stop all turns; what no other server has taken is taken again when a beat is stored."""
        self._must_compare = True
        self._let_go |= self._epochs
        self._lose_all()

    def doubt(self, conversation_id: ConversationId) -> None:
        """Release a conversation in which a turn may be stored that this server does not run. When
        a beat is stored, the conversation is taken again and the turn is recovered.
        """
        self._must_compare = True
        self._let_go[conversation_id] = self._epochs.get(conversation_id, _FIRST_EPOCH)
        self.lose(conversation_id)

    def _lose_all(self) -> None:
        for conversation_id in list(self._epochs):
            self.lose(conversation_id)

    async def _reconcile(self) -> None:
        """Lose what others have taken, and release what this server has let go."""
        async with self._taking:
            leases = await self._leases.held(self.node)
            held = {lease.conversation_id: lease.epoch for lease in leases}
            for conversation_id, epoch in list(self._epochs.items()):
                if held.get(conversation_id) != epoch:
                    self.lose(conversation_id)
            for conversation_id in held.keys() - self._epochs.keys() - self._coming:
                was_let_go = self._let_go.get(conversation_id) == held[conversation_id]
                end = self._leases.let_go if was_let_go else self._leases.release
                await end(self.node, conversation_id)
            self._is_unsure = False

    async def drain(self, keep: Collection[ConversationId]) -> None:
        """Take nothing more, and let other servers have all but what is to be kept."""
        try:
            await self._leases.drain(self.node, keep=keep)
        except StoreUnavailable as exc:
            _log.warning("leases_not_released", extra={"reason": str(exc)})

    async def release(self, conversation_id: ConversationId) -> None:
        """Release a conversation to other servers."""
        try:
            await self._leases.release(self.node, conversation_id)
        except StoreUnavailable as exc:
            _log.warning("leases_not_released", extra={"reason": str(exc)})

    async def end(self) -> None:
        """Release everything; bounded by what the store takes. A failure leaves it to expire."""
        try:
            await self._leases.leave(self.node)
        except StoreUnavailable as exc:
            _log.warning("leases_not_released", extra={"reason": str(exc)})


async def _try(work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except StoreUnavailable as exc:  # the log of events reports the disk
        _log.warning("heart_not_beating", extra={"reason": str(exc)})


def connect(
    ownership: Ownership, lanes: Lanes, pool: ClientPool, rules: StandingRules, tasks: TaskGroup
) -> None:
    """Connect it with what the server has of a conversation beyond what is stored: it stops the
    turns, kills the agents and forgets the rules of conversations that another server runs now.

    There people are asked anew, and no rule is listed that they could withdraw.
    """

    def is_used(conversation_id: ConversationId) -> bool:
        is_at_work = lanes.is_busy(conversation_id) or pool.is_hot(conversation_id)
        return is_at_work or bool(rules.of(conversation_id))

    def stop(conversation_id: ConversationId) -> None:
        rules.forget(conversation_id)
        lanes.lose(conversation_id)
        tasks.start_soon(pool.discard, conversation_id)

    ownership.is_used, ownership.on_lost = is_used, stop
