"""An embedder of this process beside the event loop."""

import threading
from collections.abc import Sequence

import anyio

from memory.embeddings.protocol import ThreadedEmbedder

WAIT_S = 30


class Gated:
    """Waits in its first call until it is let go, and notes the texts of each call."""

    model_id = "gated"

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.calls: list[list[str]] = []

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        assert self.go_on.wait(WAIT_S)
        return [[float(len(text))] for text in texts]


async def test_a_question_does_not_wait_for_all_items_that_are_being_indexed() -> None:
    gated = Gated()
    embedder = ThreadedEmbedder(gated)
    vectors: list[Sequence[float]] = []

    async def index() -> None:
        vectors.extend(await embedder.embed(["x" * n for n in range(1, 21)]))

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(index)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(embedder.embed_question, "question")
            await anyio.wait_all_tasks_blocked()
            gated.go_on.set()
    assert vectors == [[float(n)] for n in range(1, 21)]
    assert gated.calls.index(["question"]) < len(gated.calls) - 1
    assert len(gated.calls) > 2
