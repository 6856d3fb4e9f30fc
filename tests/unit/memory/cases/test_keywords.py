"""The names of matters: the same for one matter told in two languages, and nothing that holds a case back."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from memory.cases.item import to_item
from memory.cases.keywords import keywords, with_keywords
from memory.cases.lexicon import BACKGROUND, EFFECTS, FAULTS, THINGS
from memory.recall.holding import Holding
from tests.support.found_cases import make_case, open_finder

TOLD_TWICE = (
    ("The connection pool is exhausted", "连接池已耗尽"),
    ("The certificate expired", "证书过期"),
    ("OOM: the heap is too small", "堆太小，内存溢出"),
)
TOOLS = (
    "Read",
    "Write",
    "Bash",
    "mcp__memory_case__memory_case_search",
    "search",
    "article-list-query",
)


@pytest.mark.parametrize(("one", "other"), TOLD_TWICE)
def test_one_matter_has_one_name_in_both_languages(one: str, other: str) -> None:
    assert len({*keywords(one)} & {*keywords(other)}) >= 2


def test_each_is_named_once_in_the_order_told_and_the_question_stays() -> None:
    assert keywords("证书过期", "the expired cert and its chain") == (
        "certificate",
        "expired",
        "chain",
    )
    asked = "为什么证书过期了？"
    assert with_keywords(asked) == f"{asked}\ncertificate expired"
    assert with_keywords("ledger_entry?") == "ledger_entry?"


def test_names_of_matters_hold_no_case_back() -> None:
    """`request`, `schema` and `field` may stand side by side among them, and tell of no call."""
    blocks = (FAULTS, EFFECTS, THINGS, BACKGROUND)
    lines = [line for block in blocks for line in block.strip().splitlines() if ":" in line]
    names = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    draw, holding = random.Random(7), Holding.of(TOOLS)
    for _ in range(300):
        item = to_item(make_case(root_cause=" ".join(draw.sample(names, 40))))
        assert item is not None
        told = item.body.partition("## Keywords")[2]
        assert told.count(",") > 20
        named = replace(item, summary="", body=f"`search` and article-list-query hang.\n\n{told}")
        assert holding.judge(named) is None, told


async def test_a_case_is_found_in_the_other_language_by_its_matters_alone(tmp_path: Path) -> None:
    async with open_finder(tmp_path) as opened:
        await opened.put(
            make_case("zh", "支付时报错", root_cause="连接池耗尽，连接未归还"),
            make_case("en", "the certificate of the gateway expired"),
        )
        assert (await opened.found("the pool ran out, connections were never returned"))[0] == "zh"
        assert (await opened.found("网关证书过期了"))[0] == "en"
