"""Secrets are looked for in a text's shadow and masked in the text itself."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.secrets import MASK, mask_secrets, mask_secrets_counted
from policies.secrets.text import Plain, mask_spans
from tests.unit.policies.fabricated import PROVIDERS, fake

INVISIBLE = [
    "\u200b",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\u034f",
    "\ufe0f",
    "\U000e0041",
    "\u202e",
]
TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from([*INVISIBLE, "ａ", "＝", "\u3000", "…", "a", "码"])),
    max_size=30,
)


def _wide(text: str) -> str:
    """Write a text in full-width letters; the marks that Chinese ends a sentence with stay."""
    return "".join(
        chr(ord(char) + 0xFEE0) if "!" <= char <= "~" and char not in "!(),:;?" else char
        for char in text
    )


def test_a_plain_text_has_plain_letters_and_nothing_invisible() -> None:
    assert Plain.of("ｐａ\u200bｓｓ＝１\u00a0a\ufeff").text == "pass=1 a"


def test_the_punctuation_of_chinese_stays_in_the_plain_text() -> None:
    text = "密码：不能为空，（必填）！对；“好”…？"
    assert Plain.of(text).text == text


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS)
def test_two_pieces_fold_as_the_whole_does(first: str, second: str) -> None:
    assert Plain.of(first).text + Plain.of(second).text == Plain.of(first + second).text


@settings(max_examples=40, deadline=None)
@given(TEXTS)
def test_each_position_of_a_plain_text_is_found_in_its_source(text: str) -> None:
    plain = Plain.of(text)
    for at, one in enumerate(plain.text):
        start = plain.source_start(at)
        assert Plain.of(text[start]).text == one
        assert plain.source_end(at + 1) == start + 1
    assert plain.source_start(len(plain.text)) == len(text)
    assert plain.source_end(0) == 0


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_a_masked_span_leaves_all_around_it(before: str, inside: str, after: str) -> None:
    text = f"{before}x{inside}y{after}"
    start = len(Plain.of(before).text)
    span = (start, start + len(Plain.of(inside).text) + 2)
    masked = mask_spans(text, Plain.of(text), [span])
    assert masked.text.startswith(before)
    assert masked.text.endswith(f"{MASK}{after}")
    assert masked.count == 1


@pytest.mark.parametrize("invisible", INVISIBLE, ids=ascii)
def test_no_invisible_character_hides_a_token(invisible: str) -> None:
    for provider, at in product(("github", "anthropic", "aws", "jwt", "slack bot"), range(1, 8)):
        secret = PROVIDERS[provider]()
        text = f"用 {secret[:at]}{invisible}{secret[at:]}，好"
        masked = mask_secrets_counted(text)
        assert masked.count == 1
        assert secret[12:] not in masked.text
        assert masked.text.startswith("用 ")
        assert masked.text.endswith(f"{MASK}，好")
        assert mask_secrets_counted(masked.text).count == 0


def test_full_width_letters_hide_no_token() -> None:
    for provider, make in PROVIDERS.items():
        secret = _wide(make())
        masked = mask_secrets_counted(f"令牌在这里 {secret} 结束")
        assert masked.count >= 1, provider
        assert secret[-12:] not in masked.text
        assert masked.text.endswith(f"{MASK} 结束")


@pytest.mark.parametrize(
    "line",
    [
        "Ａｕｔｈｏｒｉｚａｔｉｏｎ： Ｂｅａｒｅｒ {}",
        "Authorization:\u00a0Bearer {}",
        "post\u200bgres://bob:{}@db.example/x",
        "curl －ｕ bob:{} https://x.example",
        "--pass\u2060word {}",
    ],
)
def test_a_place_is_known_in_whatever_letters(line: str) -> None:
    secret = fake(24)
    masked = mask_secrets_counted(line.format(secret))
    assert masked.count == 1
    assert secret[4:] not in masked.text
    assert masked.text.startswith(line.partition("{}")[0])


def test_a_known_value_is_found_in_whatever_letters() -> None:
    known = "known-value-4711"
    for text in (known, _wide(known), "known\u200b-value-\u20604711"):
        masked = mask_secrets_counted(f"他说 {text} 了", known=[known])
        assert masked.count == 1
        assert masked.text == f"他说 know{MASK} 了"
    assert (
        mask_secrets("密码就是这个（很长）", known=["这个（很长）ｏｋ"]) == "密码就是这个（很长）"
    )
    assert mask_secrets("见这个（很长）ｏｋ。", known=["这个（很长）ｏｋ"]) == f"见这个{MASK}。"


def test_a_text_without_secrets_keeps_its_letters() -> None:
    text = "👨\u200d👩\u200d👧 ｆｕｌｌ　ｗｉｄｔｈ＝ok \u200b\ufeff（好）：１２３\u00a0!"
    assert mask_secrets(text) == text
