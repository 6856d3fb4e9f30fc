"""One turn in progress, as all who work on it see it."""

from dataclasses import dataclass, field
from datetime import datetime

import anyio

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.model import Conversation, Turn
from gateway.journal import TurnJournal
from gateway.turns.control import TurnControl
from gateway.turns.evidence import Evidence, Notice
from gateway.turns.parts import TurnParts
from gateway.turns.sanitizer import OutputSanitizer
from gateway.turns.sentences import Language, language_of, say
from gateway.turns.turn_memory import TurnChronicle


@dataclass(slots=True, kw_only=True)
class TurnContext:
    """The turn, where it is told and written down, and what is known of it so far."""

    parts: TurnParts
    turn: Turn
    conversation: Conversation
    """As it was when the turn began."""
    events: TurnEvents
    control: TurnControl
    sanitizer: OutputSanitizer
    evidence: Evidence
    started_at: datetime
    untrusted: str = ""
    """What of the workspace's configuration kept the agent from being started, in words."""
    is_over: bool = False
    """Set when the result is made: nothing is told after the turn's last event."""
    call_seen: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, at each tool call that the run's reader has come to."""
    language: Language = field(init=False)
    journal: TurnJournal = field(init=False)
    chronicle: TurnChronicle = field(init=False)

    def __post_init__(self) -> None:
        self.language = language_of(self.turn.message)
        self.chronicle = TurnChronicle(
            self.parts.memory, self.turn, is_on=self.conversation.memory_enabled
        )
        self.journal = self.parts.journal.open(
            self.turn.conversation_id, self.turn.id, self.started_at
        )

    def say(self, key: str, **places: object) -> str:
        """Give a sentence in the person's language."""
        return say(self.language, key, **places)

    def notice(self, code: str, **places: object) -> None:
        """Tell something to the person, now and in the turn result; the code names the sentence."""
        self.tell_notice(Notice(code, self.say(code, **places)))

    def tell_notice(self, notice: Notice) -> None:
        """Tell a notice that is in words already."""
        self.evidence.notices.append(notice)
        self.events.emit("notice", code=notice.code, message=notice.message)
