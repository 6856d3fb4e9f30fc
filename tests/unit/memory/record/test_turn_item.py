"""What of a turn becomes its item."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from memory.record.turn_item import RecordedTurn, item_of, without_outdated
from policies.secrets import mask_secrets

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LOCKER = "Ann's locker at the gym has the number 4711"


def turn(message: str, reply: str = "", **more: Any) -> RecordedTurn:
    return RecordedTurn(
        turn_id="trn_1",
        conversation_id="cnv_1",
        owner_id="ann",
        position=3,
        occurred_at=AT,
        message=message,
        reply=reply,
        **more,
    )


def body(message: str, reply: str = "", recalled: Sequence[str] | None = ()) -> str | None:
    item = item_of(turn(message, reply), recalled, mask_secrets, AT)
    return None if item is None else item.body


def test_an_item_is_the_message_and_the_reply_with_its_place_and_scope() -> None:
    item = item_of(
        turn("My locker is number 4711.", "Noted.", labels={"project_id": "gym"}),
        (),
        mask_secrets,
        AT,
    )
    assert item is not None
    assert (item.id, item.kind, item.turn_id, item.conversation_id) == (
        "trn_1",
        "turn",
        "trn_1",
        "cnv_1",
    )
    assert (item.title, item.body) == (
        "My locker is number 4711.",
        "My locker is number 4711.\n→ Noted.",
    )
    assert item.summary == "My locker is number 4711. → Noted."
    assert item.source == "conversation cnv_1"
    assert (item.thread, item.position) == ("cnv_1", 3)
    assert item.scope.labels == {"project_id": "gym"}
    trivial = item_of(turn("ok, thanks", "You are welcome."), (), mask_secrets, AT)
    assert trivial is not None
    assert trivial.thread is None, "it is not found by its neighbours"


def test_a_secret_is_masked_everywhere() -> None:
    secret = "sk-ant-api03-" + "Zq8vK2pL9xR4" * 8
    item = item_of(turn(f"The key is {secret}", f"{secret} it is"), (), mask_secrets, AT)
    assert item is not None
    assert secret not in repr(item)


def test_of_a_long_text_the_beginning_and_the_conclusion_are_kept() -> None:
    found = body(
        "First the log: " + "line " * 9000 + "why does it fail?", "So " * 9000 + "it rained."
    )
    assert found is not None
    assert found.startswith("First the log")
    assert "why does it fail?\n→ So So" in found
    assert found.endswith("it rained.")
    assert len(found) < 8100


@pytest.mark.parametrize(
    ("message", "reply", "recalled", "expected"),
    [
        ("👍", "", (), None),
        ("What is my locker number?", f"{LOCKER}.", (LOCKER,), None),
        ("我的柜子号是多少？", "柜子号是四七一一，在健身房。", ("我的柜子号是四七一一，在健身房。",), None),
        ("My locker is number 4711.", "Noted.", ("My locker is number 4711.\n→ Noted.",), "My locker is number 4711."),
        ("Is the locker in Riga?", f"{LOCKER}.", (LOCKER,), "Is the locker in Riga?"),
        ("Which locker?", f"{LOCKER}. It is blue.", (LOCKER,), "Which locker?\n→ It is blue."),
        ("Which locker?", f"{LOCKER}.", None, "Which locker?"),
    ],
)  # fmt: skip
def test_what_memory_had_shown_is_no_statement_of_the_turn(
    message: str, reply: str, recalled: Sequence[str] | None, expected: str | None
) -> None:
    """With None something that was shown is forgotten, and the reply may repeat it."""
    assert body(message, reply, recalled) == expected


MOVED = (
    ("The canoe is called Lilabell", "The canoe is called Marabell"),
    ("周会在每周三", "周会在每周四"),
    ("my locker is number 12", "it is in the cellar of the house"),
)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Your canoe is called Lilabell. It is blue.", "Which boat?\n→ It is blue."),
        ("Lilabell.", "Which boat?"),
        ("周三。", "Which boat?"),
        ("Yours has the number 12. It is blue.", "Which boat?\n→ It is blue."),
        ("It is Marabell now, no more Lilabell.", None),
        ("The canoe is blue.", None),
    ],
)
def test_a_reply_does_not_say_what_a_correction_has_replaced(
    reply: str, expected: str | None
) -> None:
    told = turn("Which boat?", reply)
    whole = item_of(told, (), mask_secrets, AT)
    made = item_of(told, (), mask_secrets, AT, MOVED)
    assert whole is not None
    assert made is not None
    assert made.body == (expected or whole.body)
    assert without_outdated(whole, MOVED) == made


def test_all_words_of_a_long_correction_count() -> None:
    many = " ".join(f"柜w{first}{second}" for first in "abcdefgh" for second in "abcdefgh")
    moved = [(f"the number is 1012, {many}", f"the number is 1014, {many}, 在河边 by the river")]
    whole = item_of(turn("Which?", "It was 1012. 是1012，现在是1014。"), (), mask_secrets, AT)
    assert whole is not None
    assert without_outdated(whole, moved).body == "Which?\n→ 是1012，现在是1014。"
    moved = [("the number is 1012", f"the number is 1014, {many}")]
    assert without_outdated(whole, moved).body == "Which?\n→ 是1012，现在是1014。"
