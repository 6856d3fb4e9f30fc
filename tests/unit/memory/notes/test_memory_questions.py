"""Which messages ask about what is remembered, in English and Chinese, and which only look like it."""

from pathlib import Path

import pytest

from memory.notes.memory_questions import asks_about_memory

CORPUS = Path(__file__).with_name("memory_questions.txt")
MACHINE_MEMORY = (
    "shared virtual physical gpu cpu video heap flash free used peak minimum insufficient allocated leaked"
    " reserved kernel host node pod process container server browser laptop jvm python redis docker cache"
)
ABOUT_MACHINES = (
    "leak usage limit pressure error footprint allocation address profiler bandwidth corruption overflow"
    " cost card barrier dump bus controller region pool budget spike layout alignment size quota growth"
)
VERBS = (
    "search consult summarize organize revise tidy query browse review read list show check open print"
    " display clear wipe erase delete update export see explain describe"
)
CHINESE_WORDS = (
    "犹新 力 体 棉 卡 曲线 深刻 碎片 化 合金 宫殿 点 法 技巧 单词 术 大师 障碍 效率 能力"
)
CHINESE_MEMORIES = "肌肉 童年 儿时 集体 文化 城市 青春 美好的 失去 恢复 短时 无"


def test_a_message_is_recognised_by_what_it_asks() -> None:
    lines = CORPUS.read_text(encoding="utf-8").splitlines()[1:]
    wrong = [line for line in lines if asks_about_memory(line[2:]) is not (line[0] == "+")]
    assert wrong == []
    assert len(lines) > 400


def test_a_machines_or_a_persons_memory_is_not_meant() -> None:
    messages = [
        "",
        "   ",
        *(f"what is your {word} memory?" for word in MACHINE_MEMORY.split()),
        *(f"what is your memory {word}?" for word in ABOUT_MACHINES.split()),
        *(f"说说记忆{word}" for word in CHINESE_WORDS.split()),
        *(f"说说{word}记忆" for word in CHINESE_MEMORIES.split()),
        *(f"show memory of the {word}" for word in ("gpu", "heap", "pod", "jvm", "内存", "容器")),
    ]
    assert [message for message in messages if asks_about_memory(message)] == []


def test_the_same_question_is_recognised_in_many_words() -> None:
    messages = [
        *(
            f"please {verb} {what}"
            for verb in VERBS.split()
            for what in ("memory", "your memories")
        ),
        *(f"what do you remember of the {word}?" for word in ("gpu", "heap", "pod", "内存")),
        *(
            f"{who}{how}{verb}{what}"
            for who in ("你", "您")
            for how in ("", "还", "都", "是否")
            for verb in ("记得", "记住了", "记着", "记下了")
            for what in ("什么", "哪些事", "多少", "谁负责")
        ),
    ]
    assert [message for message in messages if not asks_about_memory(message)] == []


@pytest.mark.parametrize("message", ["what do you remember?", "你的记忆里有什么?"])
def test_a_question_before_or_after_what_was_pasted_is_seen(message: str) -> None:
    pasted = "line of a log that somebody pasted\n" * 1000
    assert asks_about_memory(f"{message}\n\n{pasted}")
    assert asks_about_memory(f"{pasted}\n\n{message}")
    assert not asks_about_memory(pasted)


def test_gaps_and_case_do_not_matter() -> None:
    for gap in (" ", "\n", "\t\t", "\u3000", "  \r\n  "):
        assert asks_about_memory(gap.join(["", "What", "DO", "you", "remember", ""]))
        assert not asks_about_memory(gap.join(["", "Out", "OF", "memory", ""]))
