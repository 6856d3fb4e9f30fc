"""The work of masking grows with a text's length alone, whatever the text repeats."""

import time

import pytest

from policies.secrets import mask_secrets
from policies.secrets.detect import MOST_BLOCK_CHARS, PART_CHARS, parts_of, settled_chars
from tests.unit.policies.fabricated import fake
from tests.unit.policies.fabricated_places import KEYED
from tests.unit.policies.judging import count_calls

UNITS = [
    *("a", "-", "token:[", 'pwd="', "pwd:'x", "sk-", "eyJ-", "://:a@", "cookie: a="),
    *("bearer ", "MMMM.", "12345678:AA", "SG.a", "password", "password:", "?sig=", "密码："),
    *("token_1", "-----BEGIN PRIVATE KEY-----a", "-----BEGIN PRIVATE KEY", "\\", '\\"'),
    *("secret =", "x://", "--password ", "--", "--a", "<password>", "<a "),
    *("login a password ", "curl -u ", "curl ", "mysql -p", "docker login ", "?key=aA"),
    *("authorization: ", "authorization: bearer ", "ghp_", "\\nghp_", "1//0", "AKIA", "Q~"),
    *("a.~1Q~", "-us", "密码「", "“", "api key", 'token: \\"a', "pwd=a&", "pwd=a1&b="),
    *("A_KEY=", "acme_sk_A1b2C3d4E5f6G7h8I9j0K1 ", "a_b_c_d_", "|required", "pwd:\n "),
    *('pwd",\n"value":"', '("pwd","', "pwd: a =", "identified by a ", "-pass "),
    *("7z -p", "echo a|", "-u a -p ", "auth=('", "authorization: Bot a1"),
    *("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.", "密 ", 'pwd:"{{', "://a:", "…[masked]"),
    *("password = a, ", "password='", "a1b2c3 ", "password for a ", "password is "),
    *("password (", "密码改为", "密码 is", "pwd|", "pwd `", "pwd:`", "**password**: "),
    *("passwd a1B2", "密码已已已", "password for a a a is ", "pwd is a1", "token is a1B2c3"),
    *("\u200b", "g\u200b", "ｐ", "ｐｗｄ＝", "pwd: **a", "👨\u200d", "İ", "password=a1\u200b "),
    *("密码（", "A_KEY==", "=密码", "密码是", "token=a&", 'nested \\\\\\"token\\\\\\":\\\\\\"'),
    *("secret is ", "-----BEGIN RSA PRIVATE KEY-----\n", '{"password":', "cookie: a=b"),
    *("login: a password ", "passwordpassword=", "%20ghp_", "\x1b[31m"),
    *("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/"),
    # what sentences state
    *(
        "pin ",
        "pin: 4821 ",
        "PIN 码是",
        "暗号“",
        "暗号是“春眠",
        "密码我的",
        "密码 4821 ",
        "password's ",
    ),
    *("password that is ", "password is 4821 ", 'password is "a b ', "password should be a-1-"),
    *("password:\n", "password - a", "password to the ", "密码是“a b ", "password is a-a-a-a-"),
    *("password which we ", "passcode 's ", "密码还是原来的 "),
]
_MOST_CALLS_A_CHAR = 16


def _text(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def _count_calls(text: str) -> int:
    return count_calls(lambda: mask_secrets(text))[0]


def test_each_character_costs_a_bounded_number_of_calls() -> None:
    for unit in UNITS:
        few, many = _count_calls(_text(unit, 250)), _count_calls(_text(unit, 2_000))
        assert many - few <= 1_750 * _MOST_CALLS_A_CHAR, unit
        assert many <= 9 * few + 1_000, unit  # a square would be 64 times as much


@pytest.mark.soak
@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_time_grows_with_the_length_alone(unit: str) -> None:
    def measure(length: int) -> float:
        text = _text(unit, length)
        began = time.process_time()  # what others do on the machine does not count
        mask_secrets(text)
        return time.process_time() - began

    small = max(min(measure(20_000) for _ in range(3)), 0.002)
    assert min(measure(160_000) for _ in range(2)) < small * 8 * 5  # a square would be 64 times


def test_a_stream_buffers_a_bounded_text() -> None:
    for unit in UNITS:
        assert settled_chars(_text(unit, MOST_BLOCK_CHARS + 1)) > 0, unit


def test_a_long_text_is_masked_in_parts_as_the_whole_would_be() -> None:
    """One search runs over a part only, so that no other thread waits for a long text."""
    secrets = [line.format(fake(24)) for line in KEYED.values()]
    lines = [f"{secret}\nand more words in line {at}" for at, secret in enumerate(secrets * 5)]
    parts = list(parts_of("\n".join(lines)))
    assert "".join(parts) == "\n".join(lines)
    assert max(map(len, parts)) <= 2 * PART_CHARS
    assert mask_secrets("\n".join(lines)) == "\n".join(map(mask_secrets, lines))


def test_a_block_that_never_ends_does_not_hold_the_rest() -> None:
    text = "-----BEGIN RSA PRIVATE KEY-----\n" + "words in a line\n" * 20_000
    assert max(map(len, parts_of(text))) <= 3 * PART_CHARS
    spoken_of = "-----BEGIN RSA PRIVATE KEY-----\n" + "<p>no key</p>;\n" * 20_000
    assert max(map(len, parts_of(spoken_of))) <= 2 * PART_CHARS


def test_a_run_without_a_safe_cut_stays_whole() -> None:
    for run in ("a" * 100_000, "-----BEGIN RSA PRIVATE KEY-----\n" + "QUJD\n" * 4_000):
        assert list(parts_of(run)) == [run]
