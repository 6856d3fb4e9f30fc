from hypothesis import given
from hypothesis import strategies as st

from gateway.turns.pieces import Pieces
from policies.secrets import MASK, mask_secrets

KEY = "sk-" + "ant-api03-" + "Zx9Qw3Er7Ty1Ui5Op2As6Df8Gh4Jk0Lz" * 2


def told(pieces: list[str]) -> list[str]:
    block = Pieces(mask_secrets)
    return [*(block.feed(one) for one in pieces), block.rest()]


@given(st.integers(1, len(KEY)), st.integers(1, 9))
def test_a_secret_is_masked_wherever_it_is_cut(at: int, size: int) -> None:
    text = f"the key is {KEY[:at]}{KEY[at:]} as you said"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]

    shown = "".join(told(pieces))

    assert KEY not in shown
    assert KEY[8:] not in shown
    assert shown.endswith(" as you said")
    assert MASK in shown


@given(st.lists(st.text(max_size=8), max_size=30))
def test_what_is_told_is_what_came(pieces: list[str]) -> None:
    block = Pieces(lambda text: text)

    assert "".join([*(block.feed(one) for one in pieces), block.rest()]) == "".join(pieces)


def test_a_finished_word_is_told_at_once_and_the_unfinished_one_waits() -> None:
    assert told(["one two th", "ree", " four"]) == ["one two ", "", "three ", "four"]


def test_chinese_never_waits() -> None:
    assert told(["这是工作", "区里的文件"]) == ["这是工作", "区里的文件", ""]


def test_an_endless_run_is_not_held_for_ever() -> None:
    block = Pieces(lambda text: text)

    assert sum(len(block.feed("a" * 100)) for _ in range(20)) > 1400
