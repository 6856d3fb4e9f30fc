"""The vectors beside the words: an embedder as the gateway uses it."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from bench.recall_memory import Memory
from memory.clock import utc_now
from memory.embeddings.multilingual import MultilingualEmbedder
from memory.embeddings.onnx import OnnxEmbedder
from memory.embeddings.openai import Embeddings, OpenAiEmbedder
from memory.embeddings.protocol import TextEmbedder, ThreadedEmbedder
from memory.vectors.chroma import ChromaVectorIndex
from memory.vectors.indexer import IndexFiles, VectorIndexer, VectorRetriever
from memory.vectors.state import SqlIndexState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name an embedder."""
    parser.add_argument("--url", help="an embeddings server's, as CANDOR_EMBEDDINGS_URL")
    parser.add_argument("--model", default="", help="of the server")
    parser.add_argument("--key", default="", help="of the server")
    parser.add_argument("--onnx", type=Path, help="a model's folder")
    parser.add_argument("--multilingual", action="store_true", help="as CANDOR_EMBEDDER")


def embedder_of(options: argparse.Namespace) -> TextEmbedder | None:
    """Return the embedder that the arguments name, None without one."""
    if options.url:
        server = Embeddings(base_url=options.url, model=options.model, api_key=options.key)
        return OpenAiEmbedder(server, mask=str, now=utc_now)
    if options.multilingual:
        return ThreadedEmbedder(MultilingualEmbedder())
    if options.onnx:
        return ThreadedEmbedder(OnnxEmbedder(options.onnx))
    return None


@asynccontextmanager
async def indexed(memory: Memory, embedder: TextEmbedder) -> AsyncIterator[VectorRetriever]:
    """Index what a memory holds, and search it while the block runs."""

    async def is_sound(model_id: str, dimension: int) -> bool:  # noqa: RUF029  as `IndexFiles` asks
        del model_id, dimension
        return True

    async with anyio.TemporaryDirectory(prefix="vectors-") as name:

        def opened(model_id: str, dimension: int) -> ChromaVectorIndex:
            return ChromaVectorIndex(Path(name), model_id=model_id, dimension=dimension)

        indexer = VectorIndexer(
            IndexFiles(open=opened, is_sound=is_sound),
            embedder,
            memory.items,
            SqlIndexState(memory.database),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(indexer.run)
            await indexer.wait_settled()
            yield VectorRetriever(indexer)
            tasks.cancel_scope.cancel()
        await indexer.close()
