"""What a front end can do with conversations and turns: the parts that the HTTP routes call."""

from gateway.chat.approvals import Approvals
from gateway.chat.arrivals import Arrivals
from gateway.chat.conversations import Conversations
from gateway.chat.departures import Departures
from gateway.chat.intake import Intake
from gateway.chat.operations import Operations
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.chat.reader import TurnReader
from gateway.chat.schedules import Schedules
from gateway.chat.threads import Threads
from gateway.chat.work_trees import WorkTrees
from gateway.turns.requests import Accepted, ChatRequest, ConversationView

__all__ = ["Accepted", "Chat", "ChatParts", "ChatRequest", "ConversationView"]


class Chat:
    """All parts. Every call names the user; what belongs to another user raises `NotFound`."""

    def __init__(self, parts: ChatParts) -> None:
        access = ConversationAccess(parts)
        self.intake = Intake(parts, access)
        """Takes messages, withdraws and interrupts them."""
        self.conversations = Conversations(parts, access, self.intake)
        self.work_trees = WorkTrees(parts, access, self.intake)
        """Where conversations work apart from the workspace."""
        self.reader = TurnReader(parts, access, self.intake)
        """Results and events of turns."""
        self.operations = Operations(parts)
        self.approvals = Approvals(parts, access, self.intake)
        """What persons are asked, and what they allowed."""
        self.schedules = Schedules(parts, access, self.intake)
        self.threads = Threads(parts, self.conversations)
        """The conversations of clients that send their history."""
        self.client_objects = parts.client_objects
        """What clients of another protocol made."""
        self.departures = Departures(parts, self.intake)
        """Clients that close their stream to stop a turn."""
        self.arrivals = Arrivals(parts, self.departures)
        """Requests that clients send again."""
