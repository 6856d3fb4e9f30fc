"""Why memory refused a call is told in the person's language; the model gets it in English."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.turns.reply import describe_tools, failures
from gateway.turns.sentences import MEMORY_REFUSALS, Language
from memory.recall.argument_names import unknown_argument
from tests.support.builders import called, evidence_of, failed, finished

FACTS = Path(__file__).resolve().parents[4] / "memory" / "facts"
SECRET = "The text holds a secret, which is never kept. Leave it out."


def refusals() -> Iterator[str]:
    """Yield what refusals of memory say, without what is put in; one is made elsewhere."""
    yield unknown_argument({"querie": 1}, {"properties": {}}) or ""
    for file in FACTS.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="FactRefused"), args=[ast.Name(id="unknown")]):
                    pass
                case ast.Call(func=ast.Name(id="FactRefused" | "FactConflict"), args=[argument]):
                    texts = [
                        one.value for one in ast.walk(argument) if isinstance(one, ast.Constant)
                    ]
                    yield "".join(text for text in texts if isinstance(text, str))
                case _:
                    pass


def test_every_refusal_of_memory_has_its_reason_in_chinese() -> None:
    found = list(refusals())
    assert len(found) > 12
    for refusal in found:
        assert [words for words in MEMORY_REFUSALS if words in refusal], refusal
    for reason in MEMORY_REFUSALS.values():
        assert re.search("[\u4e00-\u9fff]", reason)
        assert not reason.endswith(("。", ".")), "it stands inside a sentence"


@pytest.mark.parametrize(
    ("language", "name", "error", "told"),
    [
        ("zh", "mcp__memory__memory_remember", SECRET, "失败：其中含有密钥或密码，这些从不记录"),
        ("en", "mcp__memory__memory_remember", SECRET, f"failed: {SECRET.removesuffix('.')}"),
        ("zh", "mcp__memory__memory_remember", "busy", "失败：busy"),
        ("zh", "Bash", SECRET, f"失败：{SECRET.removesuffix('.')}"),
    ],
)
def test_a_refused_call_is_told_in_the_persons_language(
    language: Language, name: str, error: str, told: str
) -> None:
    evidence = evidence_of(called(name=name), failed(error), finished())
    assert describe_tools(failures(evidence), language).endswith(told)
