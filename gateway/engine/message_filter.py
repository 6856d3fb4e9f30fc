"""Which of an agent's messages are of the turn that a prompt started, and which nobody asked for.

One prompt is not one turn: background work wakes the agent for turns of its own (SDK #1190), and a
turn may begin before a prompt and end after it. Results are matched by the prompt's uuid. The other
messages name it only where it changes, so the last name told holds until the next.
"""

from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, UserMessage


class MessageFilter:
    """Sorts one client's messages, told of every run's begin and end."""

    def __init__(self) -> None:
        self._run_uuid: str | None = None
        self._interrupted = False
        self._in_foreign_turn = False

    def begin(self, run_uuid: str) -> None:
        """A run begins; its prompt carries this uuid."""
        self._run_uuid = run_uuid
        self._interrupted = False

    def interrupt(self) -> None:
        """The run in progress was asked to stop."""
        self._interrupted = True

    def end(self) -> None:
        """No run is in progress any more."""
        self._run_uuid = None

    def is_solicited(self, message: Message) -> bool:
        """Say whether a message belongs to the run in progress. Ask once for each, in order."""
        match message:
            case ResultMessage():
                solicited = self._is_own_result(message)
                self._in_foreign_turn = False
                return solicited
            case AssistantMessage() | StreamEvent():
                told = _uuids_of(message)
                if self._run_uuid is None:
                    self._in_foreign_turn = True
                elif told:
                    self._in_foreign_turn = self._run_uuid not in told
                return not self._in_foreign_turn
            case UserMessage():
                return self._run_uuid is not None and not self._in_foreign_turn
            case _:
                return self._run_uuid is not None

    def _is_own_result(self, result: ResultMessage) -> bool:
        """Judge a result; one without any uuid is the run's own unless another turn explains it.

        An interrupted turn may list none, and so do some errors.
        """
        if self._run_uuid is None:
            return False
        told = _uuids_of(result)
        if told:
            return self._run_uuid in told
        return result.origin is None and (self._interrupted or not self._in_foreign_turn)


def _uuids_of(message: ResultMessage | AssistantMessage | StreamEvent) -> list[str]:
    """List the prompts that a message names as taken into its turn; empty where it is silent."""
    told = list(message.user_message_uuids or [])
    if message.user_message_uuid:
        told.append(message.user_message_uuid)
    return told
