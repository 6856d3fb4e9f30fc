"""A finished turn of a conversation as an item: the person's words and the reply's conclusion.

The item is a view of the conversation, which has every word; its id is the turn's. Turns are in
their conversation's thread, so that they are searched with their neighbours. They do not name the
conversation by its title: that is its first message, which may be forgotten.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from memory.intents.masking import Mask, masked_text
from memory.items.item import REPLY, Item
from memory.items.scope import Scope
from memory.recall.question_parts import QUESTION_MARKS
from memory.recall.question_words import ASKING_TERMS, QuestionWords, is_stop
from memory.text.lines import one_line
from memory.text.recalled import without_recalled, without_sentences
from memory.text.terms import terms

_MESSAGE_CHARS: Final = 6000
_REPLY_CHARS: Final = 2000
_TITLE_CHARS: Final = 80
_SUMMARY_CHARS: Final = 300
_REPLY_SHARE: Final = 2
"""A reply gets half of the summary at most if the message needs the rest."""
_LEAST_WORDS: Final = 3
"""A message with fewer words ("ok, thanks") is not found by the words of its neighbours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """A finished turn as the conversations have it."""

    turn_id: str
    conversation_id: str
    owner_id: str
    position: int
    """The turn's place in the conversation."""
    occurred_at: datetime
    message: str
    reply: str = ""
    """Empty if the model gave none of its own."""
    recalled_ids: Sequence[str] = ()
    """The items that memory showed in it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    copy_of: str | None = None
    """The turn that was copied first, if this one came into its conversation as a copy."""


Outdated = Sequence[tuple[str, str]]
"""Facts that were replaced, each with what came in its place."""


def item_of(
    turn: RecordedTurn,
    recalled_texts: Sequence[str] | None,
    mask: Mask,
    now: datetime,
    outdated: Outdated = (),
) -> Item | None:
    """Return the item of a turn, with secrets masked; None if there is nothing in it to find.

    What only repeats what memory had shown is left out, so that it does not come up again as a
    statement of its own; `recalled_texts` is None if some of that was forgotten, which the reply
    may repeat. For `outdated` see `without_outdated`.
    """
    message = masked_text(turn.message.strip(), mask, _MESSAGE_CHARS)
    reply = ""
    if recalled_texts is not None:
        said = masked_text(turn.reply, mask, _REPLY_CHARS)
        reply = _without_recalled(said, recalled_texts, turn.recalled_ids)
        reply = _current(reply, outdated)
        if turn.reply.strip() and not reply and _only_asks(message, recalled_texts):
            return None
    words = QuestionWords.of(message)
    if not (words.weights or words.characters or QuestionWords.of(reply).weights):
        return None
    has_neighbours = len(words.weights) >= _LEAST_WORDS
    return Item(
        id=turn.turn_id,
        kind="turn",
        scope=Scope(owner_id=turn.owner_id, **turn.labels),
        title=one_line(message, _TITLE_CHARS),
        summary=_summary(message, reply),
        body=_body(message, reply),
        source=f"conversation {turn.conversation_id}",
        occurred_at=turn.occurred_at,
        updated_at=now,
        conversation_id=turn.conversation_id,
        turn_id=turn.turn_id,
        thread=turn.conversation_id if has_neighbours else None,
        position=turn.position if has_neighbours else None,
    )


def without_reply(item: Item) -> Item:
    """Return the item of a turn with the message alone."""
    message = item.body.partition(f"\n{REPLY}")[0]
    return _with(item, message, "")


def without_outdated(item: Item, outdated: Outdated) -> Item:
    """Return the item of a turn without what its reply says of facts that hold no longer: sentences
    with a word of one that what came in its place has not, and with none that only the latter has.
    Stop words do not count.
    """
    message, _, reply = item.body.partition(f"\n{REPLY}")
    current = _current(reply, outdated)
    return item if current == reply else _with(item, message, current)


def without_cut(item: Item, known: Item) -> Item:
    """Return the item of a turn without the sentences of its reply that were left out of the known
    one since it was made; a reply does not change.
    """
    message, _, reply = item.body.partition(f"\n{REPLY}")
    told, _, known_reply = known.body.partition(f"\n{REPLY}")
    if message != told:
        return item
    kept = without_sentences(reply, lambda said: said.strip() not in known_reply).strip()
    return item if kept == reply else _with(item, message, kept)


def _with(item: Item, message: str, reply: str) -> Item:
    return replace(item, body=_body(message, reply), summary=_summary(message, reply))


def _body(message: str, reply: str) -> str:
    return f"{message}\n{REPLY}{reply}" if reply else message


def _current(reply: str, outdated: Outdated) -> str:
    for old, new in outdated:
        before, after = set(terms(old)), set(terms(new))
        gone = {term for term in before - after if not is_stop(term)}
        come = {term for term in after - before if not is_stop(term)}

        def is_old(
            sentence: str, gone: AbstractSet[str] = gone, come: AbstractSet[str] = come
        ) -> bool:
            said = set(terms(sentence))
            return not gone.isdisjoint(said) and come.isdisjoint(said)

        reply = without_sentences(reply, is_old).strip()
    return reply


def _without_recalled(reply: str, texts: Sequence[str], ids: Sequence[str]) -> str:
    """Return a reply without the sentences that repeat what was shown, and without lines that name
    it.
    """
    lines = [line for line in reply.split("\n") if not any(item_id in line for item_id in ids)]
    return without_recalled("\n".join(lines), texts).strip()


def _only_asks(message: str, recalled_texts: Sequence[str]) -> bool:
    """Return whether a message is a question without a word, of asking apart, that memory had not
    shown.

    A statement stays, however often it is made: the conversation where it was made first may be
    deleted.
    """
    if QUESTION_MARKS.isdisjoint(message):
        return False
    shown = {word for text in recalled_texts for word in terms(text)} | ASKING_TERMS
    characters = set("".join(shown))  # a pair of Chinese characters may span two words
    return all(
        word in shown or (not word.isascii() and characters.issuperset(word))
        for word in QuestionWords.of(message).weights
    )


def _summary(message: str, reply: str) -> str:
    asked = one_line(message, _SUMMARY_CHARS)
    if not reply:
        return asked
    room = max(_SUMMARY_CHARS // _REPLY_SHARE, _SUMMARY_CHARS - len(asked) - len(REPLY) - 1)
    said = one_line(reply, room)
    return f"{one_line(message, _SUMMARY_CHARS - len(said) - len(REPLY) - 1)} {REPLY}{said}"
