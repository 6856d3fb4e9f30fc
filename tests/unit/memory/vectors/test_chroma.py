"""What of Chroma no other index has."""

from pathlib import Path

from memory.vectors.chroma import ChromaVectorIndex


async def test_it_tells_nobody_that_it_is_used(tmp_path: Path) -> None:
    """Chroma by itself sends what it calls anonymous telemetry over the network."""
    index = ChromaVectorIndex(tmp_path / "vectors", model_id="test-1", dimension=4)
    try:
        assert await index.count() == 0
        settings = index._client.get_settings()  # noqa: SLF001  no other way to see it
        assert settings.anonymized_telemetry is False
    finally:
        await index.close()
