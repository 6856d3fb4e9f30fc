"""Answers plain requests: recognise, call tools while there is something to call, then report."""

from collections.abc import Sequence

from gateway.demo.answer import Reply, call, say
from gateway.demo.calling import Calls, Missing, Round, Workplace
from gateway.demo.conversation import Conversation
from gateway.demo.intents import Intent, Language, Recall, ToolIntent
from gateway.demo.memory_told import tell_memory
from gateway.demo.phrasebook import detect_language, recognise
from gateway.demo.plan import next_calls
from gateway.demo.report import report, report_missing
from gateway.demo.talk import note_asides, scripted_note, talk


def answer_plainly(conversation: Conversation) -> Reply:
    """The next step towards what the last prompt asks for: tool calls, or the closing words."""
    prompt = conversation.last
    language = detect_language(prompt.text)
    intents = recognise(prompt.text)
    orders = _orders(intents, conversation)
    if not orders:
        return say(_close(_talk(intents[0], conversation, language), conversation, language))
    place = Workplace.of(conversation)
    reports: list[str] = []
    rounds: Sequence[Round] = prompt.rounds
    for order in orders:
        calls, own, rounds = _advance(order, rounds, place)
        if isinstance(calls, Missing):
            reports.append(report_missing(calls, language))
            break
        if calls:
            return call(*calls)
        reports.append(report(order, own, language))
        if own and any(outcome.is_error for outcome in own[-1]):
            break
    return say(_close(_join(reports, len(orders), language), conversation, language))


def _advance(
    order: ToolIntent, rounds: Sequence[Round], place: Workplace
) -> tuple[Calls | Missing, Sequence[Round], Sequence[Round]]:
    """What `order` calls next, the rounds that were its own, and those left for the orders after it."""
    for taken in range(len(rounds) + 1):
        calls = next_calls(order, rounds[:taken], place)
        if not calls or isinstance(calls, Missing):
            return calls, rounds[:taken], rounds[taken:]
    return next_calls(order, rounds, place), rounds, ()


def _orders(intents: Sequence[Intent], conversation: Conversation) -> list[ToolIntent]:
    """The intents that take tools; what memory was shown with the prompt need not be looked up."""
    return [
        intent
        for intent in intents
        if isinstance(intent, ToolIntent)
        and not (isinstance(intent, Recall) and conversation.memory)
    ]


def _talk(intent: Intent, conversation: Conversation, language: Language) -> str:
    if isinstance(intent, ToolIntent):
        return tell_memory(conversation.memory, language)
    return talk(intent, conversation, language)


def _join(reports: Sequence[str], order_count: int, language: Language) -> str:
    left = order_count - len(reports)
    text = "\n\n".join(reports)
    if not left:
        return text
    rest = (
        f"后面还有 {left} 步没有做。"
        if language == "zh"
        else f"The {left} step(s) after that were not attempted."
    )
    return f"{text}\n\n{rest}"


def _close(text: str, conversation: Conversation, language: Language) -> str:
    parts = [text]
    if conversation.last.asides:
        parts.append(note_asides(conversation.last.asides, language))
    if len(conversation.prompts) == 1 and "candor-demo" not in text:
        parts.append(scripted_note(language))
    return "\n\n".join(parts)
