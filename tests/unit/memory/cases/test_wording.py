"""What is left of a section when only its telling words are kept."""

import re
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.lexicon import BACKGROUND, EFFECTS, FAULTS, THINGS
from memory.cases.wording import MAX_CHARS, kind_of, stem, telling_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The pool was exhausted", ["pool", "exhausted"]),
        ("ran out of connections", ["exhausted", "connection"]),
        ("File descriptors leaked", ["descriptor", "leak"]),
        ("never returned", ["leak"]),
        ("The export job", ["export", "job"]),
        ("连接泄漏导致连接池耗尽", ["connection", "leak", "pool", "exhausted"]),
        ("ExportJob.run", ["export", "job"]),
        ("maximumPoolSize", ["limit", "pool", "size"]),
        ("the frobnicator whirrs", ["frobnicator", "whirr"]),
        ("奇异果", ["奇异", "异果"]),
        ("Redis连接", ["redi", "connection"]),
        ("TLS 证书已过期", ["tls", "certificate", "expired"]),
        ("", []),
    ],
)
def test_words_for_one_matter_become_its_name_in_both_languages(
    text: str, words: list[str]
) -> None:
    assert list(telling_words(text)) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("disk at 93 %", "disk at 7.5%"),
        ("since 2026-03-01T10:00:00Z disk", "since 2025-12-31 23:59:59.123+08:00 disk"),
        ("disk of 10.2.3.4", "disk of 192.168.0.12:9042"),
        ("disk order-7d9c5b8f4-x2x9q", "disk order-66b8c7d9f5-abcd2"),
        ("disk redis-3", "disk redis-12"),
        ("disk 550e8400-e29b-41d4-a716-446655440000", "disk 6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ("disk at commit 9fceb02d0ae5", "disk at commit 1a410efbd13591db"),
        ("disk after 300ms", "disk after 12 s"),
        ("磁盘延迟 3 秒", "磁盘延迟 45 秒"),
        ("磁盘有 3 万条", "磁盘有 12 万条"),
    ],
)
def test_what_names_one_occasion_is_left_out(one: str, other: str) -> None:
    assert telling_words(one) == telling_words(other)
    assert "disk" in telling_words(one)


@pytest.mark.parametrize("word", ["http2", "ipv6", "s3", "deadbeat", "facade", "log4j", "k8s"])
def test_a_name_with_a_digit_or_like_a_digest_is_no_occasion(word: str) -> None:
    assert telling_words(f"the {word}") != ()


@pytest.mark.parametrize(
    "text",
    [
        *("was not applied", "wasn't applied", "wasn’t applied", "没有应用补丁", "未打补丁"),
        *("unrotated logs", "without rotation", "logs are not rotated", "日志未轮转", "unpaged"),
        *("by name instead of by id", "by name rather than by id", "未失效缓存"),
    ],
)
def test_a_negation_stays(text: str) -> None:
    assert "not" in telling_words(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("settlement-job", ["@settlement-job"]),
        ("export-job", ["@export-job"]),
        ("ledger_entry", ["@ledger-entry"]),
        ("orders.user_id", ["@orders-user-id"]),
        ("max_connections", ["limit", "connection"]),
        ("memory-leak-detector", ["memory", "leak", "detector"]),
        ("off-heap", ["offheap"]),
        ("keep-alive timeout", ["keepalive", "timeout"]),
        ("read/write", ["read", "write"]),
    ],
)
def test_a_name_is_one_word_unless_it_says_what_went_wrong_or_with_what(
    text: str, words: list[str]
) -> None:
    assert list(telling_words(text)) == words
    assert [kind_of(word) == "name" for word in words] == [word[0] == "@" for word in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the migration ran before the deploy", ["schema", "before", "release"]),
        ("在发布之前迁移", ["before", "release", "schema"]),
        ("发布后迁移", ["after", "release", "schema"]),
        ("之前迁移", ["before", "schema"]),
    ],
)
def test_what_was_before_or_after_stands_ahead_of_what_it_is_about(
    text: str, words: list[str]
) -> None:
    assert list(telling_words(text)) == words
    assert [kind_of(word) for word in words].count("bearing") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pool larger than the heap", ["pool", "large", "than", "heap"]),
        ("池大于堆", ["pool", "large", "than", "heap"]),
        ("池小于堆", ["pool", "small", "than", "heap"]),
        ("迁移早于发布", ["schema", "before", "release"]),
        ("先更新缓存", ["first", "write", "cache"]),
        ("unrotated logs", ["not", "rotation", "log"]),
    ],
)
def test_a_word_that_tells_two_things_becomes_both(text: str, words: list[str]) -> None:
    assert list(telling_words(text)) == words


def test_a_text_is_read_once_and_few_are_remembered() -> None:
    """A case is laid beside many others, one after another."""
    telling_words.cache_clear()
    telling_words("the pool leaks")
    telling_words("the pool leaks")
    remembered = telling_words.cache_info()
    assert (remembered.hits, remembered.misses) == (1, 1)
    assert remembered.maxsize is not None
    assert remembered.maxsize * MAX_CHARS < 1_000_000


def test_what_grows_when_it_is_brought_to_one_form_is_cut_too() -> None:
    assert len(telling_words("\ufdfa" * MAX_CHARS)) <= MAX_CHARS


def test_a_phrase_is_known_with_light_words_in_between() -> None:
    assert telling_words("logs had not been rotated") == telling_words("logs were not rotated")


@pytest.mark.parametrize(
    "forms",
    [
        ("leak", "leaks", "leaked", "leaking"),
        ("configure", "configured", "configuration"),
        ("retry", "retries", "retried"),
        ("validator", "validators"),
        ("compaction", "compactions"),
        ("throttle", "throttled", "throttling"),
        ("query", "queries"),
    ],
)
def test_the_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({telling_words(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("too small", "too large"),
        ("enabled", "disabled"),
        ("heap", "off-heap"),
        ("primary", "replica"),
        ("liveness probe", "readiness probe"),
        ("missing", "wrong"),
        ("上限过小", "上限过大"),
        ("开启", "关闭"),
        ("主库", "从库"),
        ("堆内存", "堆外内存"),
        ("rotated", "not rotated"),
        ("日志轮转", "日志未轮转"),
        ("缓存失效", "未失效缓存"),
        ("arm", "x86"),
        ("thread pool", "connection pool"),
        ("线程池", "连接池"),
        ("大于", "小于"),
    ],
)
def test_opposites_stay_apart(one: str, other: str) -> None:
    assert telling_words(one) != telling_words(other)


def test_each_word_stands_for_one_matter_only() -> None:
    matters = defaultdict(set)
    for line in re.split(r"\n(?! )", (FAULTS + EFFECTS + THINGS + BACKGROUND).strip()):
        if not line:
            continue
        name, _, rest = line.partition(":")
        english, _, chinese = rest.partition(";")
        for one in (name, *english.split(","), *chinese.split()):
            matters[" ".join(one.split())].add(name)
    assert {word: names for word, names in matters.items() if len(names) > 1} == {}


def test_matters_have_kinds_and_other_words_too() -> None:
    kinds = [kind_of(one) for one in ("leak", "slow", "heap", "node", "not", "redi", "奇异")]
    assert kinds == ["fault", "effect", "thing", "background", "negation", "word", "han"]


def test_only_the_beginning_of_a_long_section_is_read() -> None:
    assert telling_words("disk " + " " * MAX_CHARS + "leak") == ("disk",)


@given(st.text(max_size=300))
def test_any_text_has_telling_words_without_blanks(text: str) -> None:
    assert all(word and not word.isspace() and " " not in word for word in telling_words(text))


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=20))
def test_a_stem_is_never_empty(word: str) -> None:
    assert stem(word)
