"""The embedder of a server, against a server on loopback that answers well, badly, slowly or not at all."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from math import hypot
from typing import Any

import anyio
import pytest

from memory.embeddings.openai import Embeddings, OpenAiEmbedder
from memory.errors import BackendResting, BackendUnavailable
from memory.remote.breaker import BreakerLimits
from tests.unit.memory.backends.memu_services import FakeEmbeddings, Reply, served, vector_of

NOW = datetime(2026, 11, 20, tzinfo=UTC)
WAIT_S = 20


def fed(answers: list[Reply | None]) -> Callable[[list[str]], Reply | None]:
    """Answer each request with the next of these, then properly."""
    return lambda _: answers.pop(0) if answers else None


def rows(*vectors: Any) -> Reply:
    data = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return 200, {"data": data}


@asynccontextmanager
async def opened(
    server: Callable[[str, str, Any], Reply],
    headers: dict[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[OpenAiEmbedder]:
    given: dict[str, Any] = {"mask": str, "now": lambda: NOW, "waits_s": (0.0, 0.0), **options}
    with served(server, headers=headers) as address:
        embeddings = Embeddings(base_url=f"{address}/v1", model="bge-m3", api_key="sk-hidden")
        embedder = OpenAiEmbedder(embeddings, **given)
        try:
            with anyio.fail_after(WAIT_S):
                yield embedder
        finally:
            await embedder.close()


async def test_texts_get_unit_vectors_in_their_order_in_batches() -> None:
    def backwards(texts: list[str]) -> Reply:
        status, said = rows(*([3 * x for x in vector_of(text)] for text in texts))
        return status, {"data": said["data"][::-1]}

    fake = FakeEmbeddings(backwards)
    texts = [f"text number {n}" for n in range(120)] + ["x" * 40_000] * 2
    async with opened(fake.answer) as embedder:
        vectors = await embedder.embed(["", *texts])
        assert not any(vectors[0])
        assert [pytest.approx(vector) for vector in vectors[1:]] == [vector_of(t) for t in texts]
        assert all(hypot(*vector) == pytest.approx(1) for vector in vectors[1:])
        assert [len(batch) for batch in fake.asked] == [50, 50, 21, 1]
        assert await embedder.embed_question("x") == pytest.approx(vector_of("x"))
        assert not await embedder.embed_question(" \n")
        assert (embedder.model_id, "sk-hidden" in repr(vars(embedder))) == ("openai:bge-m3", False)


TEMPORARY: list[Reply] = [(429, {"error": {}}), (500, {}), (503, b"<html>"), (408, {}), (302, {})]
NO_VECTORS: list[Reply] = [
    (200, b"not json"),
    (200, {"data": []}),
    (200, b"[" * 100_000),
    (200, []),
    (200, {"data": None}),
    (200, {"data": [{"index": 0}]}),
    (200, {"data": [{"index": 7, "embedding": [1.0]}]}),
    *(rows(vector) for vector in ([0.1, None], [float("nan")], "abc", [], ["a"])),
    rows([1.0], [1.0]),
]
FOR_GOOD: list[tuple[Reply, str]] = [
    ((401, {}), "CANDOR_EMBEDDINGS_KEY"),
    ((403, {}), "CANDOR_EMBEDDINGS_KEY"),
    ((404, {}), "CANDOR_EMBEDDINGS_MODEL"),
    *((reply, "no vectors") for reply in NO_VECTORS),
]


@pytest.mark.parametrize("reply", TEMPORARY)
async def test_a_failure_that_may_pass_is_tried_twice_more(reply: Reply) -> None:
    async with opened(FakeEmbeddings(fed([reply, reply])).answer) as embedder:
        assert await embedder.embed(["tea"]) == [pytest.approx(vector_of("tea"))]
    async with opened(FakeEmbeddings(fed([reply] * 3)).answer) as embedder:
        with pytest.raises(BackendUnavailable, match=f"HTTP {reply[0]}"):
            await embedder.embed(["tea"])


@pytest.mark.parametrize(("reply", "told"), FOR_GOOD)
async def test_what_another_try_would_not_mend_is_told_at_once(reply: Reply, told: str) -> None:
    fake = FakeEmbeddings(fed([reply]))
    async with opened(fake.answer) as embedder:
        with pytest.raises(BackendUnavailable, match=told) as raised:
            await embedder.embed(["tea"])
        assert (len(fake.asked), "sk-hidden" in str(raised.value)) == (1, False)


async def test_the_server_says_how_long_to_wait() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await anyio.lowlevel.checkpoint()

    fake = FakeEmbeddings(fed([(429, {}), (429, {})]))
    headers = {"Retry-After": "7"}
    async with opened(fake.answer, headers, sleep=sleep) as embedder:
        await embedder.embed(["tea"])
    assert waits == [7.0, 7.0]


async def test_a_text_that_is_too_long_for_the_model_is_cut_and_the_others_are_whole() -> None:
    fake = FakeEmbeddings(lambda texts: (413, {}) if max(map(len, texts)) > 1500 else None)
    async with opened(fake.answer) as embedder:
        short, long = await embedder.embed(["tea", "milk " * 1000])
        assert short == pytest.approx(vector_of("tea"))
        assert long == pytest.approx(vector_of("milk"), abs=0.1)
        assert await embedder.embed_question("milk " * 1000) == pytest.approx(long)


async def test_one_text_that_is_refused_has_no_vector_and_a_server_that_refuses_all_fails() -> None:
    fake = FakeEmbeddings(lambda texts: (400, {}) if "poison" in texts else None)
    async with opened(fake.answer) as embedder:
        assert [bool(any(vector)) for vector in await embedder.embed(["tea", "poison"])] == [1, 0]
        fake.instead = lambda _: (400, {})
        with pytest.raises(BackendUnavailable, match="HTTP 400"):
            await embedder.embed(["tea", "milk"])


async def test_a_hanging_server_is_given_up_and_left_alone_for_questions() -> None:
    go_on, asked, moments = threading.Event(), list[int](), [NOW]

    def hang(*_: Any) -> Reply:
        asked.append(1)
        go_on.wait(WAIT_S)
        return rows(vector_of("tea"))

    limits = BreakerLimits(max_failures=2, open_s=60)
    async with opened(
        hang, now=lambda: moments[0], timeout_s=1.0, limits=limits, waits_s=()
    ) as embedder:
        try:
            with pytest.raises(BackendUnavailable, match="in time"):
                await embedder.embed_question("tea")
            with anyio.move_on_after(0.01) as scope:
                await embedder.embed_question("tea")
            assert scope.cancelled_caught, "a deadline of the caller"
            with pytest.raises(BackendResting):
                await embedder.embed_question("tea")
            assert len(asked) <= 2
            with pytest.raises(BackendUnavailable, match="in time"):
                await embedder.embed(["tea"])
        finally:
            go_on.set()
        moments[0] += timedelta(seconds=61)
        assert await embedder.embed_question("tea") == pytest.approx(vector_of("tea"))


async def test_secrets_in_a_question_do_not_leave() -> None:
    fake = FakeEmbeddings()
    async with opened(fake.answer, mask=lambda text: text.replace("hunter2", "***")) as embedder:
        await embedder.embed_question("why is hunter2 wrong?")
    assert fake.asked == [["why is *** wrong?"]]
