"""Separates the messages of the turn that a prompt started from unsolicited ones.

Background work wakes the agent for turns of its own (SDK #1190), and such a turn may begin before a
prompt and end after it. Results are matched by the prompt's uuid. Other messages name a uuid only
when it changes, so the last one named applies until the next.
"""

from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, UserMessage


class MessageFilter:
    """Classifies the messages of one client; the client reports when runs begin and end."""

    def __init__(self) -> None:
        self._run_uuid: str | None = None
        self._interrupted = False
        self._in_foreign_turn = False

    def begin(self, run_uuid: str) -> None:
        """Begin a run; its prompt carries this uuid."""
        self._run_uuid = run_uuid
        self._interrupted = False

    def interrupt(self) -> None:
        """Record that the run in progress was interrupted."""
        self._interrupted = True

    def end(self) -> None:
        """End the run."""
        self._run_uuid = None

    def is_solicited(self, message: Message) -> bool:
        """Return whether a message belongs to the run in progress. Call once for each, in order."""
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
        """Return whether a result is the run's; without a uuid it is, unless another turn is in
        progress.

        An interrupted turn may list no uuid, and so may an error.
        """
        if self._run_uuid is None:
            return False
        told = _uuids_of(result)
        if told:
            return self._run_uuid in told
        return result.origin is None and (self._interrupted or not self._in_foreign_turn)


def _uuids_of(message: ResultMessage | AssistantMessage | StreamEvent) -> list[str]:
    """Return the prompts that a message names as part of its turn; may be empty."""
    told = list(message.user_message_uuids or [])
    if message.user_message_uuid:
        told.append(message.user_message_uuid)
    return told
