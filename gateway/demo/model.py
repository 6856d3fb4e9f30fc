"""Decides what the demo model answers: a script where the prompt has one, plain requests otherwise."""

from collections.abc import Hashable, Sequence
from functools import partial

from gateway.demo.answer import Reply, say
from gateway.demo.attempts import AttemptCounter
from gateway.demo.conversation import Conversation
from gateway.demo.respond import answer_plainly
from gateway.demo.script import Script, ScriptError, Step, choose_step, find_script, play


class DemoModel:
    """Answers read conversations; keeps nothing between calls but the tally of failed attempts."""

    def __init__(self, attempts: AttemptCounter | None = None) -> None:
        self._attempts = attempts if attempts is not None else AttemptCounter()

    def reply(self, conversation: Conversation) -> Reply:
        """The reply to the last prompt, given what has been answered since; never raises."""
        if conversation.is_side_call:
            return say("Candor demo")
        if conversation.is_compaction:
            return say(_summarise(conversation))
        try:
            return self._scripted(conversation) or answer_plainly(conversation)
        except ScriptError as exc:
            return say(f"candor-demo cannot play this script: {exc}")

    def _scripted(self, conversation: Conversation) -> Reply | None:
        own = find_script(conversation.last.text)
        last = len(conversation.prompts) - 1
        if own is not None:
            step = self._choose(
                own.steps, conversation.last.answered_count, _key(conversation, last)
            )
            return play(step, conversation)
        found = _last_script(conversation)
        if found is None or not found[1].on_followup:
            return None
        index, script = found
        answered = sum(prompt.answered_count for prompt in conversation.prompts[index + 1 :])
        step = self._choose(
            script.on_followup, answered, (_key(conversation, index), "on_followup")
        )
        return None if step is None else play(step, conversation)

    def _choose(self, steps: Sequence[Step], answered_count: int, key: Hashable) -> Step | None:
        return choose_step(steps, answered_count, partial(self._count, key))

    def _count(self, key: Hashable, step_index: int) -> int:
        return self._attempts.note((key, step_index))


def _last_script(conversation: Conversation) -> tuple[int, Script] | None:
    for index in range(len(conversation.prompts) - 2, -1, -1):
        try:
            script = find_script(conversation.prompts[index].text)
        except ScriptError:
            continue
        if script is not None:
            return index, script
    return None


def _key(conversation: Conversation, index: int) -> Hashable:
    """Tells a prompt from the same words said elsewhere or earlier."""
    return conversation.session, index, hash(conversation.prompts[index].text)


def _summarise(conversation: Conversation) -> str:
    said = "\n".join(f"- {prompt.text}" for prompt in conversation.prompts[:-1])
    return f"<summary>\nThe person said:\n{said}\n</summary>"
