"""Decides what the demo model answers: the step of a script if a prompt has one, plain requests otherwise."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import partial

from gateway.demo.answer import Reply, say
from gateway.demo.conversation import Conversation
from gateway.demo.respond import answer_plainly
from gateway.demo.script import Script, ScriptError, Step, choose_step, find_script, play

_MAX_COUNTED = 4096


class DemoModel:
    """Answers conversations. Keeps nothing between calls but the number of failed attempts."""

    def __init__(self) -> None:
        self._attempts: OrderedDict[Hashable, int] = OrderedDict()

    def reply(self, conversation: Conversation) -> Reply:
        """Return the reply to the last prompt, given what has been answered since. Never raises."""
        try:
            return self._scripted(conversation) or answer_plainly(conversation)
        except ScriptError as exc:
            return say(f"candor-demo cannot play this script: {exc}")

    def _scripted(self, conversation: Conversation) -> Reply | None:
        """Return the reply of the prompt's own script, or of the last script's steps for followups."""
        own = find_script(conversation.last.text)
        if own is not None:
            index = len(conversation.prompts) - 1
            step = self._choose(own.steps, conversation.last.answered_count, conversation, index)
            return play(step, conversation)
        answered = conversation.last.answered_count
        for index in range(len(conversation.prompts) - 2, -1, -1):
            script = _find_past_script(conversation.prompts[index].text)
            if script is not None:
                step = self._choose(script.on_followup, answered, conversation, index)
                return None if step is None else play(step, conversation)
            answered += conversation.prompts[index].answered_count
        return None

    def _choose(
        self, steps: Sequence[Step], answered_count: int, conversation: Conversation, index: int
    ) -> Step | None:
        is_followup = index < len(conversation.prompts) - 1
        prompt = hash(conversation.prompts[index].text)
        key = (conversation.session, index, prompt, is_followup)
        return choose_step(steps, answered_count, partial(self._count_attempt, key))

    def _count_attempt(self, key: Hashable, step_index: int) -> int:
        """Count an attempt and return how many there were before; the least recently used are forgotten."""
        before = self._attempts.pop((key, step_index), 0)
        self._attempts[key, step_index] = before + 1
        if len(self._attempts) > _MAX_COUNTED:
            self._attempts.popitem(last=False)
        return before


def _find_past_script(prompt: str) -> Script | None:
    try:
        return find_script(prompt)
    except ScriptError:
        return None
