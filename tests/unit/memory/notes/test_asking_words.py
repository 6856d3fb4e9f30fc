"""Families of messages: each word that makes a phrase one about memory, or about something else."""

import pytest

from memory.notes.memory_questions import asks_about_memory

BEFORE = (
    "shared virtual physical gpu cpu video heap stack flash main free used available total peak max"
    " minimum enough insufficient allocated leaked consumed reserved kernel device host node pod"
    " process container server worker browser phone laptop computer jvm java python redis docker vm"
    " cache dynamic unified muscle human working"
)
AFTER = (
    "leak leaks usage use limit pressure error footprint allocation address management map profiler"
    " safety bandwidth corruption overflow model cost card foam lane palace barrier ordering dump bus"
    " controller hierarchy region block pool budget cap spike access layout alignment size requirements"
    " quota request metrics growth efficiency fragmentation cache consumption optimization capacity"
    " problem issue chip slot speed page protection loss"
)
MACHINES = (
    "ram oom 512mb 2gib 8g heap malloc swap gc rss cgroup kubernetes k8s pod containers docker jvm cpu"
    " gpu disk numpy dataframe allocator leak buffer pointer segfault threads htop valgrind kernel"
    " laptop server runtime 内存 显存 占用 泄漏 不足 容器 使用率"
)
VERBS = (
    "search consult summarize summarise organize revise tidy query browse review read list show check"
    " open print display clear wipe erase delete update export see explain describe"
)


@pytest.mark.parametrize("word", BEFORE.split())
def test_a_machines_memory_is_not_meant_whatever_sort_it_is(word: str) -> None:
    assert not asks_about_memory(f"what is your {word} memory?")
    assert not asks_about_memory(f"do you have {word} memory?")


@pytest.mark.parametrize("word", AFTER.split())
def test_nor_is_what_only_begins_with_the_word(word: str) -> None:
    assert not asks_about_memory(f"what is your memory {word}?")
    assert not asks_about_memory(f"Memory-{word}: what does it do?")


@pytest.mark.parametrize("word", MACHINES.split())
def test_where_machines_are_spoken_of_a_doubtful_phrase_does_not_count(word: str) -> None:
    assert not asks_about_memory(f"show memory of the {word}")
    assert asks_about_memory(f"what do you remember of the {word}?")
    assert asks_about_memory(f"关于 {word} 你的记忆里有什么?")


@pytest.mark.parametrize("verb", VERBS.split())
def test_memory_can_be_handled_in_many_ways(verb: str) -> None:
    for memory in ("memory", "the memory", "your memory", "your memories", "my memory"):
        assert asks_about_memory(f"please {verb} {memory}")


@pytest.mark.parametrize(
    "word",
    [
        "犹新",
        "力",
        "体",
        "棉",
        "卡",
        "曲线",
        "深刻",
        "碎片",
        "化",
        "合金",
        "宫殿",
        "点",
        "法",
        "方法",
        "技巧",
        "单词",
        "术",
        "大师",
        "障碍",
        "效率",
        "能力",
    ],
)
def test_a_word_that_only_begins_with_the_chinese_one_is_not_meant(word: str) -> None:
    assert not asks_about_memory(f"说说记忆{word}")


@pytest.mark.parametrize(
    "word",
    [
        "肌肉",
        "童年",
        "儿时",
        "集体",
        "文化",
        "城市",
        "青春",
        "美好的",
        "失去",
        "恢复",
        "短时",
        "无",
    ],
)
def test_a_persons_memory_is_not_meant(word: str) -> None:
    assert not asks_about_memory(f"说说{word}记忆")


@pytest.mark.parametrize(
    "question",
    [
        f"{who}{how}{verb}{what}"
        for who in ("你", "您")
        for how in ("", "还", "都", "是否", "现在还")
        for verb in ("记得", "记住了", "记着", "记下了")
        for what in ("什么", "哪些事", "多少", "部署的时间吗", "谁负责")
    ],
)
def test_whoever_is_asked_in_chinese_what_is_remembered_is_asked(question: str) -> None:
    assert asks_about_memory(question)
