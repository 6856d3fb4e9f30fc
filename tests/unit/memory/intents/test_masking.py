import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.intents.masking import (
    MAX_PAYLOAD_CHARS,
    MAX_TEXT_CHARS,
    clipped,
    masked_payload,
    masked_text,
)
from policies.secrets import mask_secrets
from policies.secrets.text import MASK

KNOWN = "Vq7-geheim/口令+x9Tz"
LONG = "".join(f"geheim/{n:03}~" for n in range(90))
PEM_BODY = "\n".join("Ab3/" * 16 for _ in range(40))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n-----END RSA PRIVATE KEY-----\n"


def mask(text: str) -> str:
    return mask_secrets(text, known=[KNOWN, LONG])


def test_a_short_text_without_a_secret_stays() -> None:
    for text in ("", "plain words", "修复支付\n第二行\t", "🧑‍🚀"):
        assert masked_text(text, mask) == text


def test_no_bound_is_too_small() -> None:
    for most in (0, 1, 10, 40, 200):
        assert len(clipped("x" * 1000, most)) == most
        assert len(masked_text("x" * 50_000, mask, most)) == most


def test_what_follows_a_telling_option_and_names_of_fields_are_masked() -> None:
    masked = masked_payload({"argv": ["mysql", "--password", "hunter2abc", "-v", "orders"]}, mask)
    assert masked == {"argv": ["mysql", "--password", MASK, "-v", "orders"]}
    names = list(masked_payload({"args": {f"x {KNOWN}": 1, "n" * 10_000: 2}}, mask)["args"])
    assert "geheim" not in names[0]
    assert len(names[1]) == 80


def test_a_long_text_keeps_head_and_tail_and_says_how_much_is_left_out() -> None:
    text = f"first {'字' * 50_000} last"
    told = masked_text(text, mask)
    assert told.startswith("first 字")
    assert told.endswith("字 last")
    assert len(told) == MAX_TEXT_CHARS
    assert f"{len(text) - MAX_TEXT_CHARS} more characters" in told


@pytest.mark.parametrize("secret", [KNOWN, LONG, PEM], ids=["known", "long", "key block"])
@pytest.mark.parametrize("chars", [3_000, 13_990, 30_000], ids=str)
def test_no_cut_leaves_half_a_secret(secret: str, chars: int) -> None:
    """Secrets side by side, so that one lies across whatever cut there is, and masks that shorten."""
    text = secret * (chars // len(secret) + 1)
    for shift in range(0, len(secret), max(1, len(secret) // 12)):
        told = masked_text(f"{'.' * shift}{text}", mask)
        assert "geheim" not in told
        assert "口令" not in told
        assert "Ab3/Ab3/" not in told


def test_a_value_behind_a_cut_does_not_lose_the_name_that_tells_that_it_is_secret() -> None:
    for chars in range(6_996, 7_004):
        text = f"{'a' * 20_000}\npassword={'z' * 30}\n{'b' * (chars - 31)}"
        assert "zzzzz" not in masked_text(text, mask)


def test_what_stands_under_a_telling_name_is_masked_whatever_it_looks_like() -> None:
    secret = {"password": "correct horse", "api_key": 123456}
    plain = {"max_tokens": 100, "path": "/tmp/归档", "token": "", "secret": None}
    payload = {"args": {**secret, "令牌": ["我的猫", {"inner": "x y"}], **plain}}
    masked = {**dict.fromkeys(secret, MASK), "令牌": [MASK, {"inner": MASK}], **plain}
    assert masked_payload(payload, mask) == {"args": masked}


def test_what_json_cannot_carry_is_told_otherwise() -> None:
    payload: dict[str, Any] = {"nan": float("nan"), "huge": 10**5000, "half": "a\ud800b"}
    payload |= {"nul": "a\0b", "object": object(), "bytes": b"raw"}
    masked = masked_payload(payload, mask)
    json.dumps(masked, allow_nan=False, ensure_ascii=False).encode()
    del masked["huge"]
    told = {"nan": "nan", "half": "a\ufffdb", "nul": "a\ufffdb"}
    assert masked == {**told, "object": "[object]", "bytes": "[bytes]"}


def test_a_payload_is_bounded_in_every_direction() -> None:
    deep: Any = "bottom"
    for _ in range(2_000):
        deep = {"down": [deep]}
    wide = {str(n): [{str(m): "x" * 5_000 for m in range(100)}] * 100 for n in range(1_000)}
    for payload in ({"args": deep}, {"args": wide}, {"args": [[[list(range(100))] * 99] * 99]}):
        masked = masked_payload(payload, mask)
        assert chars_of(masked) <= MAX_PAYLOAD_CHARS
        assert len(json.dumps(masked, ensure_ascii=False)) < 4 * MAX_PAYLOAD_CHARS


def test_the_payload_itself_is_left_alone() -> None:
    inner = [KNOWN, {"password": "x y"}]
    payload = {"args": {"list": inner}}
    masked = masked_payload(payload, mask)
    assert payload == {"args": {"list": [KNOWN, {"password": "x y"}]}}
    assert masked["args"]["list"] is not inner


def chars_of(value: Any) -> int:
    if isinstance(value, dict):
        return sum(len(name) + chars_of(entry) for name, entry in value.items())
    if isinstance(value, list):
        return sum(map(chars_of, value))
    return len(value) if isinstance(value, str) else 0


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.text(alphabet="ab\0\ud800$\n`{}", max_size=30),
    st.just(KNOWN),
    st.text(max_size=8).map(lambda entry: f"{entry}{KNOWN}{entry}"),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=6))
def test_whatever_a_payload_holds_it_comes_out_masked_bounded_and_as_json(
    payload: dict[str, Any],
) -> None:
    masked = masked_payload(payload, mask)
    text = json.dumps(masked, ensure_ascii=False, allow_nan=False)
    text.encode()
    assert KNOWN not in text
    assert json.loads(text) == masked
    assert chars_of(masked) <= MAX_PAYLOAD_CHARS


@given(st.text(max_size=60), st.integers(0, 400), st.integers(0, 30_000))
def test_a_masked_text_never_grows_beyond_its_bound(text: str, times: int, most: int) -> None:
    told = masked_text(text * times, mask, most)
    assert len(told) <= most
    assert masked_text(told, mask, most) == told
