"""The words of mixed text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.terms import characters, is_character, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n\t…“”，。", []),
        ("Deploy the Gateway", ["deploy", "the", "gateway"]),
        ("部署", ["部署"]),
        ("支付服务", ["支付", "付服", "服务"]),
        ("税", ["税"]),
        ("税，和 a", ["税", "和", "a"]),
        ("ITGC控制v2", ["itgc", "控制", "v2"]),
        ("ERR_CONN_RESET", ["err", "conn", "reset", "errconnreset"]),
        ("v2.3.1", ["v2", "3", "1", "v231"]),
        (
            "getUserName HTTPServer",
            ["get", "user", "name", "getusername", "http", "server", "httpserver"],
        ),
        ("a/b.py", ["a", "b", "py", "abpy"]),
        ("well. Then", ["well", "then"]),
        ("ＡＢＣ ｶﾅ Ⅳ", ["abc", "カナ", "iv"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("결제를", ["결제", "제를"]),
        ("𠮷野家", ["𠮷野", "野家"]),
        ("Straße", ["strasse"]),
        ("a\0b", ["a", "b"]),
        ("\ud800部署\udfff", ["部署"]),
        ("x" * 65, []),
    ],
    ids=range(21),
)
def test_a_text_gives_its_words(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_single_characters_are_given_once_and_in_order() -> None:
    assert characters("支付了支票 pay 3") == ["支", "付", "了", "票"]
    assert characters("plain words") == []
    assert characters("ﾀﾜｰタ") == ["タ", "ワ", "ー"]


def test_only_one_character_of_such_a_script_is_one() -> None:
    assert is_character("税")
    assert is_character("タ")
    assert not is_character("税务")
    assert not is_character("a")
    assert not is_character("")


@given(st.text())
def test_words_are_letters_and_digits_alone(text: str) -> None:
    """Nothing of a word can be a sign of the index's own language, or cut it short."""
    for term in [*terms(text), *characters(text)]:
        assert term
        assert not set(term) & set("\"'*^:(){}+-\0 _\n")
        term.encode()


@given(st.text(min_size=2, alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)))
def test_every_two_neighbours_are_a_word(text: str) -> None:
    words = terms(text)
    assert words == [text[n : n + 2] for n in range(len(text) - 1)]
