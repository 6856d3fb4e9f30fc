"""When two texts say opposite things of one matter."""

import pytest

from memory.cases.agreement import contradict
from memory.cases.opposition import denied, oppose
from memory.cases.wording import telling_words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ran before the deploy", "ran after the deploy"),
        ("在发布之前执行", "在发布之后执行"),
        ("发布前执行", "发布后执行"),
        ("Increased prefetch to 200", "Decreased prefetch to 1"),
        ("增大 prefetch", "减小 prefetch"),
        ("Enabled the retry switch", "Disabled the retry switch"),
        ("打开 retry 功能", "关闭 retry 功能"),
        ("Upgraded the broker client", "Downgraded the broker client"),
        ("Added the index on user_id", "Removed the index on user_id"),
        ("添加 user_id 索引", "删除 user_id 索引"),
        ("增加消费者线程", "减少消费者线程"),
        ("Scaled up the consumers", "Scaled down the consumers"),
        ("消费者扩容", "消费者缩容"),
        ("Restart the broker", "Do not restart the broker"),
        ("重启网关实例", "不要重启网关实例"),
        (
            "The agent lost permission on the DNS zone",
            "The agent did not lose permission on the DNS zone, the gateway was not reloaded",
        ),
        ("缺少 user_id 索引", "索引存在但类型不一致，隐式转换"),
        ("The index is missing", "The index exists, the cast is implicit"),
        ("There was no index", "The index exists, the optimizer passed it over"),
        ("The cache before the database", "The database before the cache"),
        ("先更新缓存再更新数据库", "先更新数据库再更新缓存"),
        ("The pool is larger than the heap", "The heap is larger than the pool"),
        ("池大于堆", "堆大于池"),
    ],
)
def test_opposite_things_of_one_matter_contradict(one: str, other: str) -> None:
    mine, theirs = telling_words(one), telling_words(other)
    assert oppose(mine, theirs)
    assert oppose(theirs, mine)
    assert contradict(mine, theirs)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("slow after the deploy", "slow before the failover of the night"),
        ("slow after the deploy", "slow"),
        ("Increased the heap", "Increased the heap, the pool was decreased"),
        ("Increased the heap", "Decreased the prefetch of the consumer"),
        ("The index is missing", "There is no index"),
        ("The index is missing", "The table exists, its index is missing"),
        ("缺少 user_id 索引", "orders 表存在，user_id 索引缺失"),
        ("The certificate was not renewed", "The renewal of the certificate failed"),
        ("证书未续期", "证书续期失败"),
        ("The retry was never applied", "The retry is missing"),
        ("The limit leaves no room beside the heap", "The limit leaves too little beside the heap"),
        ("不重启网关", "证书过期"),
        ("Missing index on orders", "orders 表存在慢查询"),
        ("The agent could not renew the certificate", "The renewal by the agent failed"),
        (
            "The migration had not run when the pods started",
            "The pods started before the migration",
        ),
        ("The cache before the database", "The cache before the queue"),
        ("After the deploy the cache is cold", "The cache is cold after the deploy"),
        ("发布后缓存未预热", "缓存在发布后未预热"),
    ],
)
def test_the_same_or_something_else_is_no_opposite(one: str, other: str) -> None:
    mine, theirs = telling_words(one), telling_words(other)
    assert not oppose(mine, theirs)
    assert not oppose(theirs, mine)


def test_what_is_said_no_to_is_the_word_after_the_no() -> None:
    assert denied(telling_words("The heap did not leak, the pool hummed")) == {"leak"}
    assert denied(telling_words("堆没有泄漏")) == {"leak"}
    assert denied(["heap", "not"]) == set()


def test_only_the_beginnings_of_very_long_texts_are_compared() -> None:
    """In full, a thousand words that are denied would be looked for in a thousand others."""
    long = ["leak"] * 1000
    assert oppose(["not", "heap", "pool"], ["heap", "pool", *long])
    assert not oppose(["not", "heap", "pool"], [*long, "heap", "pool"])
