"""`record_intent` and the builders without a `Happening`, as the intent guide calls them.

Whose it is comes from the block around the call, never from an argument, so that an argument that
was forgotten or that a model chose cannot write into somebody's memory.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memory.intents.builders import Happening, happening_source
from memory.intents.queue import IntentQueue
from memory.intents.registry import IntentRefused, MemoryIntent, validate_intent_contract

_queue: ContextVar[IntentQueue | None] = ContextVar("intent_queue", default=None)


@contextmanager
def reporting(happening: Callable[[], Happening], queue: IntentQueue) -> Iterator[None]:
    """Build intents in a block without a `Happening`, and queue them.

    `happening` is called for each intent. The block and the tasks that it starts are served, no
    others.
    """
    source, target = happening_source.set(happening), _queue.set(queue)
    try:
        yield
    finally:
        happening_source.reset(source)
        _queue.reset(target)


def record_intent(intent: MemoryIntent) -> None:
    """Queue an intent in a `reporting` block; never waits.

    Raise `IntentRefused` outside of such a block, and if the intent does not match the registry;
    nothing is queued then.
    """
    queue = _queue.get()
    if queue is None:
        raise IntentRefused("An intent is recorded within a `reporting` block.")
    validate_intent_contract(intent)
    queue.put(intent)
