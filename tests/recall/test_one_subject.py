"""The more is remembered of a subject, the better it is found, however it is asked for."""

from functools import partial
from pathlib import Path

import pytest

from memory.recall.confidence import LEAST_CONFIDENCE
from memory.stores.sqlite.items import SqliteItemStore, put_item_blocking
from tests.conformance.suites.item_values import ANN, item
from tests.support.episodes import open_memory

ENGLISH = [
    "paymentservice timed out in staging, the pool was raised to {n}",
    "deployed paymentservice {n} to staging and rolled it back",
    "paymentservice in staging lost its certificate, renewed by ticket {n}",
]
CHINESE = [
    "支付服务在预发环境超时，连接池调到 {n}",
    "支付服务第 {n} 版发布到预发环境后回滚",
    "支付服务在预发环境的证书过期，工单 {n} 已更新",
]
OTHERS = [
    "the office moves to the second floor",
    "invoices are rounded per line",
    "周五下午不开会",
    "差旅报销需要发票原件",
]
ASKED = {
    "paymentservice": ENGLISH,
    "what do we know about paymentservice?": ENGLISH,
    "tell me about paymentservice": ENGLISH,
    "Can you remind me about staging?": ENGLISH,
    "summarise paymentservice": ENGLISH,
    "Do you remember what happened in staging?": ENGLISH,
    "支付服务": CHINESE,
    "我们对支付服务了解多少？": CHINESE,
    "说说支付服务的情况": CHINESE,
    "你还记得预发环境发生过什么吗": CHINESE,
    "总结一下支付服务的问题": CHINESE,
}
NOT_ASKED = [
    "what do we know about zeppelins?",
    "tell me about the harbour ferry",
    "summarise the giraffe incidents",
    "说说长颈鹿的事情",
    "bake a cake with umbrella giraffe service",
]


@pytest.mark.parametrize("count", [3, 8, 20])
async def test_a_subject_is_found_however_much_is_remembered_of_it(
    tmp_path: Path, count: int
) -> None:
    texts = {
        f"{name}{n}": lines[n % len(lines)].format(n=n + 100)
        for name, lines in (("en", ENGLISH), ("zh", CHINESE))
        for n in range(count)
    }
    texts |= {f"other{n}": text for n, text in enumerate(OTHERS)}
    async with open_memory(tmp_path) as database:
        store = SqliteItemStore(database)
        for name, text in texts.items():
            await database.write(partial(put_item_blocking, item=item(name, text)))
        for question, lines in ASKED.items():
            hits = await store.search(question, ANN, limit=60)
            about = [
                hit.item_id.removeprefix("epi_")
                for hit in hits
                if hit.confidence >= LEAST_CONFIDENCE
            ]
            language = "en" if lines is ENGLISH else "zh"
            assert len(about) >= min(count, 3), question
            assert all(each_item.startswith(language) for each_item in about[:count]), (
                question,
                about,
            )
        for question in NOT_ASKED:
            hits = await store.search(question, ANN, limit=60)
            assert not any(hit.confidence >= LEAST_CONFIDENCE for hit in hits), question
