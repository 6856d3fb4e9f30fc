"""Writes a small ONNX model with its tokenizer: each word has a vector, and a text has those of its words.

The package `onnx` is not installed, so the model's protobuf message is written by hand: one node,
`Gather`, which takes the rows of a table by the numbers of the words.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.hashed_embedder import DIMENSION, HashedEmbedder

_FLOAT, _INT64, _BYTES = 1, 7, 2


def write_model(folder: Path, words: Sequence[str], *, takes_first: bool = False) -> None:
    """Write the model of these words; any other word has a vector of its own, too."""
    folder.mkdir(parents=True, exist_ok=True)
    known = ["unknown", *words]
    table = [number for row in HashedEmbedder().embed_blocking(known) for number in row]
    (folder / "model.onnx").write_bytes(_model(table, len(known)))
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: at for at, word in enumerate(known)},
            "unk_token": "unknown",
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = json.dumps({"pooling_mode_cls_token": takes_first})
    (folder / "1_Pooling" / "config.json").write_text(pooling, encoding="utf-8")


def _model(table: Sequence[float], rows: int) -> bytes:
    tensor = (
        _number(1, rows)
        + _number(1, DIMENSION)
        + _number(2, _FLOAT)
        + _field(8, b"table")
        + _field(9, struct.pack(f"<{len(table)}f", *table))
    )
    node = b"".join(
        _field(at, text)
        for at, text in ((1, b"table"), (1, b"input_ids"), (2, b"hidden"), (4, b"Gather"))
    )
    graph = (
        _field(1, node)
        + _field(2, b"words")
        + _field(5, tensor)
        + _field(11, _value(b"input_ids", _INT64, [b"batch", b"tokens"]))
        + _field(12, _value(b"hidden", _FLOAT, [b"batch", b"tokens", b"width"]))
    )
    opset = _field(1, b"") + _number(2, 13)
    return _number(1, 8) + _field(7, graph) + _field(8, opset)


def _value(name: bytes, kind: int, names: Sequence[bytes]) -> bytes:
    shape = b"".join(_field(1, _field(2, each)) for each in names)
    return _field(1, name) + _field(2, _field(1, _number(1, kind) + _field(2, shape)))


def _field(at: int, content: bytes) -> bytes:
    return _varint(at << 3 | _BYTES) + _varint(len(content)) + content


def _number(at: int, value: int) -> bytes:
    return _varint(at << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
