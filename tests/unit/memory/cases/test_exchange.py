"""Root causes told in the same words but for one, or with who does it and whom it hits turned round."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import CaseContent
from memory.cases.exchange import MAX_WORDS, exchanged, turned_round
from memory.cases.relating import relate
from memory.cases.sameness import are_at_odds, is_same
from memory.cases.sections import SectionComparer
from memory.cases.wording import telling_words
from memory.embeddings.hashed import HashedEmbedder
from tests.unit.memory.cases.judged import make_case, make_content
from tests.unit.memory.cases.pairs import BESIDE

EXCHANGED = (
    ("The producer retries without idempotency, so messages are duplicated",
     "The consumer retries without idempotency, so messages are duplicated"),
    ("The release deleted a column that the old version reads",
     "The release deleted a column that the old version writes"),
    ("The log disk of the node is unreachable", "The log disk of the node is full"),
    ("消费者重试没有幂等，导致重复扣款", "生产者重试没有幂等，导致重复扣款"),
    ("发布删除了旧版本读取的字段", "发布删除了旧版本写入的字段"),
    ("进程的日志文件无法访问", "进程的日志文件写满"),
    ("入库任务死锁", "出库任务死锁"),
    ("左表缺少索引", "右表缺少索引"),
    ("旧密钥被删除", "新密钥被删除"),
)  # fmt: skip
TURNED_ROUND = (
    ("Orders calls payments while it holds the lock of the row",
     "Payments calls orders while it holds the lock of the row"),
    ("The read timeout of the client is shorter than its write timeout",
     "The write timeout of the client is shorter than its read timeout"),
    ("The consumer reads from the replica", "The replica reads from the consumer"),
    ("Reads wait for writes under the lock", "Writes wait for reads under the lock"),
    ("读请求阻塞写请求", "写请求阻塞读请求"),
    ("The gateway does not trust the certificate of the database",
     "The database does not trust the certificate of the gateway"),
    ("服务端证书不被客户端信任", "客户端证书不被服务端信任"),
)  # fmt: skip
RETOLD = (
    ("Connection leak in the nightly export used up the pool of the database",
     "The nightly export leaked connections, so the pool of the client ran dry"),
    ("The certificate of the gateway expired after the release",
     "The gateway served an expired certificate to its users"),
    ("Redis reached maxmemory and evicted the sessions of users",
     "Sessions in Redis were evicted on the node once it hit maxmemory"),
    ("A missing index on orders.user_id made the query slow",
     "The query waits: orders.user_id has no index on this instance"),
    ("The NAT gateway of the cluster ran out of SNAT ports",
     "SNAT ports were exhausted at the NAT gateway by client connections"),
    ("订单服务连接泄漏，数据库连接池耗尽", "订单服务没有关闭连接，线程都在等待连接池"),
    ("证书到期，网关拒绝请求", "网关证书过期，客户端无法访问"),
    ("容器日志未轮转，节点磁盘写满", "日志没有轮转，主机上的文件占满磁盘"),
    ("缓存大键过大，Redis 请求变慢", "Redis 大键过大导致客户端超时"),
    ("毒消息被无限重试，消费者阻塞", "一条毒消息不断重试，分区卡住，进程无法消费"),
    ("内存泄漏：按请求 ID 往本地缓存里放数据，没人删除", "内存泄漏：按调用 ID 往本地缓存里放数据，没人删除"),
    ("Memory leak: data are put into a local cache by request ID, nobody deletes them",
     "Memory leak: data are put into a local cache by call ID, nobody deletes them"),
)  # fmt: skip
ALIKE: dict[str, Any] = {
    "symptom_summary": "Requests to the service time out 服务请求超时",
    "diagnosis": "Looked at the logs and the dashboards of the service. 查看了日志和监控面板。",
    "resolution": "Mended it.",
}
WORDS = ("full", "slow", "read", "write", "node", "client", "lock", "入", "出", "pool")
words = st.lists(st.sampled_from(WORDS), max_size=8)


async def judged(one: str, other: str) -> tuple[str | None, bool]:
    """Name the relation of two that only the root cause tells apart, and whether they merge."""
    mine, theirs = (CaseContent(root_cause=each, **ALIKE) for each in (one, other))
    case = make_case(content=theirs)
    (similarity,) = await SectionComparer(HashedEmbedder()).compare(mine, [case])
    related = relate(mine, [case], [similarity])
    return (related[0].relation if related else None), is_same(mine, theirs, similarity)


@pytest.mark.parametrize(("one", "other"), [*EXCHANGED, *TURNED_ROUND, *BESIDE])
async def test_what_is_told_alike_but_for_one_thing_is_not_the_same_root_cause(
    one: str, other: str
) -> None:
    for mine, theirs in ((one, other), (other, one)):
        relation, merges = await judged(mine, theirs)
        assert relation in {"similar_diagnosis", "surface_similar"}
        assert not merges


@pytest.mark.parametrize(("one", "other"), [*EXCHANGED, *TURNED_ROUND, *BESIDE])
def test_a_report_that_is_told_alike_but_for_one_thing_is_at_odds(one: str, other: str) -> None:
    mine, theirs = make_content(root_cause=one), make_content(root_cause=other)
    assert are_at_odds(mine, theirs)
    assert are_at_odds(theirs, mine)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("GC logging is off in production", "GC logging is on in production"),
        ("The retries of the gateway are off", "The retries of the gateway are on"),
        ("网关重试被关闭", "网关重试被打开"),
    ],
)
async def test_what_is_off_and_what_is_on_are_two(one: str, other: str) -> None:
    assert not (await judged(one, other))[1]


@pytest.mark.parametrize(("one", "other"), RETOLD)
async def test_what_is_retold_freely_with_other_things_beside_stays_the_same_root_cause(
    one: str, other: str
) -> None:
    for mine, theirs in ((one, other), (other, one)):
        assert (await judged(mine, theirs))[0] == "same_root_cause"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The limit of the count is small", "The limit of the size is small"),
        ("The disk is exhausted by logs", "The disk is full of logs"),
        ("The disk is full of logs", "The disk is full of images"),
        ("The disk of the node is full", "The disk is full"),
    ],
)
def test_only_what_stands_beside_and_excludes_the_other_is_an_exchange(
    one: str, other: str
) -> None:
    assert not exchanged(telling_words(one), telling_words(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("full lock pool slow", "slow lock pool slow"),
        ("nightly export pool read lock", "pool write lock stock table job"),
    ],
    ids=["told in another place as well", "built otherwise"],
)
def test_a_word_in_place_of_another_may_tell_nothing(one: str, other: str) -> None:
    assert not exchanged(one.split(), other.split())
    assert not exchanged(other.split(), one.split())


def test_how_far_two_are_built_alike_is_measured_one_way_whoever_comes_first() -> None:
    """Matched from the left and from the right, these two differ."""
    one, other = ["leak", "pool", "lock", "full", "slow"], ["leak", "lock", "write", "slow", "pool"]
    assert exchanged(one, other)
    assert exchanged(other, one)


def test_who_comes_first_matters_only_where_one_does_something_to_the_other() -> None:
    assert not turned_round(("node", "database"), ("database", "node"))
    assert turned_round(("node", "call", "database"), ("database", "call", "node"))
    assert not turned_round(("node", "call", "database"), ("call", "node", "database"))
    assert not turned_round(("node", "call", "database"), ("database", "node"))


def test_of_very_long_ones_the_beginnings_are_laid_side_by_side() -> None:
    many = [f"w{n}" for n in range(MAX_WORDS - 1)]
    assert exchanged((*many, "read"), (*many, "write"))
    assert not exchanged((*many, "x", "read"), (*many, "x", "write"))


@given(words, words)
def test_the_order_of_the_two_plays_no_part(one: list[str], other: list[str]) -> None:
    assert exchanged(one, other) == exchanged(other, one)
    assert turned_round(one, other) == turned_round(other, one)
    assert not exchanged(one, one)
    assert not turned_round(one, one)
