"""Secrets are looked for in a text's shadow and masked in the text itself."""

import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.secret_shadow import Page, Shadow, lowered
from policies.secrets import MASK, mask_secrets, mask_secrets_counted
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
        chr(ord(one) + 0xFEE0) if "!" <= one <= "~" and one not in "!(),:;?" else one
        for one in text
    )


def test_a_shadow_has_plain_letters_and_nothing_invisible() -> None:
    assert Shadow.of("ｐａ\u200bｓｓ＝１\u00a0a\ufeff").text == "pass=1 a"


def test_the_punctuation_of_chinese_is_no_other_in_the_shadow() -> None:
    text = "密码：不能为空，（必填）！对；“好”…？"
    assert Shadow.of(text).text == text


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_the_shadows_of_two_pieces_are_the_shadow_of_the_whole(first: str, second: str) -> None:
    assert Shadow.of(first).text + Shadow.of(second).text == Shadow.of(first + second).text


@settings(deadline=None)
@given(TEXTS)
def test_each_place_of_a_shadow_is_found_in_the_text(text: str) -> None:
    shadow = Shadow.of(text)
    for at, one in enumerate(shadow.text):
        start = shadow.start(at)
        assert Shadow.of(text[start]).text == one
        assert shadow.end(at + 1) == start + 1
    assert shadow.start(len(shadow.text)) == len(text)
    assert shadow.end(0) == 0


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_what_is_put_in_a_place_leaves_all_around_it(before: str, inside: str, after: str) -> None:
    page = Page(f"{before}x{inside}y{after}")
    start = len(Shadow.of(before).text)
    page.mask([(start, start + len(Shadow.of(inside).text) + 2, MASK)])
    assert page.text == f"{before}{MASK}{after}"
    assert page.read == Shadow.of(page.text).text
    assert page.count == 1


def test_small_letters_are_as_many_as_the_large_ones() -> None:
    for code in range(sys.maxunicode + 1):
        assert len(lowered(chr(code))) == 1


@pytest.mark.parametrize("invisible", INVISIBLE, ids=ascii)
@pytest.mark.parametrize("provider", ["github", "anthropic", "aws", "jwt", "slack bot"])
def test_no_invisible_character_hides_a_token(invisible: str, provider: str) -> None:
    secret = PROVIDERS[provider]()
    for at in range(1, 8):
        text = f"用 {secret[:at]}{invisible}{secret[at:]}，好"
        masked = mask_secrets_counted(text)
        assert masked.count == 1
        assert secret[12:] not in masked.text
        assert masked.text.startswith("用 ")
        assert masked.text.endswith(f"{MASK}，好")
        assert mask_secrets_counted(masked.text).count == 0


@pytest.mark.parametrize("provider", list(PROVIDERS))
def test_full_width_letters_hide_no_token(provider: str) -> None:
    secret = _wide(PROVIDERS[provider]())
    masked = mask_secrets_counted(f"令牌在这里 {secret} 结束")
    assert masked.count >= 1
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


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "password for a ",
            "password is ",
            "password (",
            "密码改为",
            "密码 is",
            "pwd|",
            "pwd `",
            "pwd:`",
        ),
        *(
            "**password**: ",
            "passwd a1B2",
            "密码已已已",
            "password for a a a is ",
            "pwd is a1",
            "token is a1B2c3",
        ),
        *(
            "\u200b",
            "g\u200b",
            "ｐ",
            "ｐｗｄ＝",
            "pwd: **a",
            "👨\u200d",
            "İ",
            "password=a1\u200b ",
            "密码（",
        ),
    ],
    ids=ascii,
)
def test_time_grows_with_the_length_alone(unit: str) -> None:
    def measure(length: int) -> float:
        text = (unit * (length // len(unit) + 1))[:length]
        began = time.process_time()  # what others do on the machine does not count
        mask_secrets(text)
        return time.process_time() - began

    small = max(min(measure(10_000) for _ in range(3)), 0.002)
    assert min(measure(80_000) for _ in range(2)) < small * 8 * 5  # a square would be 64 times
