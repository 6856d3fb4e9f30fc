"""Which messages ask about all of memory."""

import pytest

from memory.recall.memory_questions import asks_about_memory


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("What is in your memory?", True),
        ("summarise MEMORY", True),
        ("memory里有什么", True),
        ("记忆系统总结", True),
        ("列出我的个人记忆", True),
        ("说说你的记忆", True),
        ("", False),
        ("What do you know of the gateway?", False),
        ("Who wrote the memoryview module?", False),
        (f"What says this log? {'out of memory ' * 60}", False),
    ],
)
def test_one_of_four_keywords_in_a_short_message_asks(message: str, *, asks: bool) -> None:
    assert asks_about_memory(message) is asks
