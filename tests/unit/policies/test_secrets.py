"""Masking: the samples are put together here at run time, so that no secret stands in the source."""

import base64
import random
import uuid
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.secrets import MASK, mask_secrets, mask_secrets_counted
from tests.unit.policies.fabricated import HEX, fake

_random = random.Random(7)


def test_a_password_need_not_look_random() -> None:
    for line in (
        "password=correcthorse",
        'password: "hunter two"',
        "密码是letmein",
        "pwd: pa$$word!",
    ):
        assert mask_secrets_counted(line).count == 1


def test_an_ampersand_ends_a_value_only_where_the_next_one_begins() -> None:
    assert mask_secrets("password: yOXdk1&3Ssmk32") == f"password: yOX{MASK}"
    assert mask_secrets("password is yOXdk1&3Ssmk32 now") == f"password is yOX{MASK} now"
    assert mask_secrets("a?password=abcd1234&user=bob") == f"a?password=ab{MASK}&user=bob"
    assert mask_secrets("a?password=abcd1234&amp;user=bob") == f"a?password=ab{MASK}&amp;user=bob"
    assert mask_secrets("tool --password abcd1234&& next") == f"tool --password ab{MASK}&& next"


def test_a_name_that_tells_little_needs_a_value_that_tells_more() -> None:
    for line in ("DB_PASS=letmein", "root_pw = letmein", "PAYMENTS_PASS='hunter22'"):
        assert mask_secrets_counted(line).count == 1, line
    for line in ("second_pass=letmein", "pass: hunter22", "CACHE_KEY=Zq9vTr7mKp2x", "MY_KEY=name"):
        assert mask_secrets(line) == line


def test_a_key_is_found_behind_another_that_has_no_value() -> None:
    assert "hunter22" not in mask_secrets("token: password: hunter22")
    assert "hunter22" not in mask_secrets("token=none,password=hunter22")


def test_a_short_secret_keeps_less_of_itself() -> None:
    assert mask_secrets("password=abcd1234") == f"password=ab{MASK}"
    assert mask_secrets("password=a1b2") == f"password=a{MASK}"


def test_a_very_long_value_is_masked_to_its_end() -> None:
    assert mask_secrets(f"token={fake(5000)} end").endswith(f"{MASK} end")


def test_known_values_are_masked_also_when_encoded() -> None:
    secret = 'blue "wörd" & more'
    encoded = base64.b64encode(secret.encode()).decode()
    text = f"a {secret} b {quote(secret, safe='')} c {encoded} d"
    masked = mask_secrets_counted(text, known=[secret])
    assert masked.count == 3
    assert secret not in masked.text
    assert encoded[8:-2] not in masked.text
    assert mask_secrets(masked.text, known=[secret]) == masked.text


def test_known_values_too_short_to_be_told_apart_are_left_alone() -> None:
    assert mask_secrets("a cat sat masked", known=["cat", "", "masked", MASK]) == "a cat sat masked"


def test_identifiers_and_hashes_are_left_alone() -> None:
    for length in (7, 32, 40, 64, 128):
        digest = "".join(_random.choice(HEX) for _ in range(length))
        for line in (f"commit {digest}", f"sha256:{digest}", f"id={digest} done", digest):
            assert mask_secrets(line) == line
    for _ in range(200):
        line = f"request {uuid.UUID(int=_random.getrandbits(128))} finished"
        assert mask_secrets(line) == line


_FRAGMENTS = st.sampled_from(
    [
        *(
            "password",
            "token",
            "密码",
            "Cookie",
            "Bearer ",
            "=",
            ": ",
            "：",
            "://",
            "@",
            '"',
            "'",
            "\\",
        ),
        *(" ", "\n", "…", "[masked]", MASK, "a1b2c3d4", "x" * 20, "s=1", "&", "?sig=", "-----"),
        *(
            "BEGIN PRIVATE KEY",
            "END PRIVATE KEY",
            "sk-",
            "ghp_",
            "eyJ",
            ".",
            "SG.",
            "none",
            "(",
            "known1",
        ),
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_FRAGMENTS, max_size=14).map("".join))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask_secrets(text, known=["known1"])
    again = mask_secrets_counted(once, known=["known1"])
    assert (again.text, again.count) == (once, 0)
