"""Masking: the samples are put together here at run time, so that no secret stands in the source."""

import base64
import random
import string
import uuid
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.secrets import MASK, mask_secrets, mask_secrets_counted

_random = random.Random(7)
_LETTERS = string.ascii_letters
_ALNUM = _LETTERS + string.digits
_HEX = "0123456789abcdef"


def _fake(length: int, alphabet: str = _ALNUM) -> str:
    """Give a random text that holds digits, as real tokens do."""
    return "".join(_random.choice(alphabet) for _ in range(length - 2)) + "7a"


def _upper(length: int) -> str:
    return _fake(length, string.ascii_uppercase + string.digits)[:-1].upper() + "Q"


PROVIDERS: dict[str, Callable[[], str]] = {
    "anthropic": lambda: "-".join(("sk", "ant", "api03", _fake(80))),
    "anthropic oauth": lambda: "-".join(("sk", "ant", "oat01", _fake(60))),
    "openai": lambda: "-".join(("sk", _fake(48))),
    "openai project": lambda: "-".join(("sk", "proj", _fake(60))),
    "deepseek": lambda: "-".join(("sk", _fake(32, _HEX))),
    "github": lambda: "_".join(("ghp", _fake(36))),
    "github fine-grained": lambda: "_".join(("github", "pat", _fake(22), _fake(59))),
    "gitlab": lambda: "-".join(("glpat", _fake(20))),
    "aws": lambda: "AK" + "IA" + _upper(16),
    "slack": lambda: "-".join(("xoxb", "123456789012", _fake(24))),
    "stripe": lambda: "_".join(("sk", "live", _fake(24))),
    "google": lambda: "AI" + "za" + _fake(35),
    "google client": lambda: "GOCSPX" + "-" + _fake(28),
    "jwt": lambda: ".".join(("ey" + "J" + _fake(20), "ey" + "J" + _fake(40), _fake(43))),
    "npm": lambda: "_".join(("npm", _fake(36))),
    "pypi": lambda: "-".join(("pypi", _fake(120))),
    "hugging face": lambda: "_".join(("hf", _fake(34))),
    "groq": lambda: "_".join(("gsk", _fake(52))),
    "xai": lambda: "-".join(("xai", _fake(80))),
    "telegram": lambda: f"1234567890:{'A' * 2}{_fake(33)}",
    "sendgrid": lambda: ".".join(("SG", _fake(22), _fake(43))),
    "discord": lambda: ".".join(("M" + _fake(23), _fake(6), _fake(38))),
    "digitalocean": lambda: "_".join(("dop", "v1", _fake(64, _HEX))),
    "databricks": lambda: "dapi" + _fake(32, _HEX),
    "vault": lambda: ".".join(("hvs", _fake(24))),
    "shopify": lambda: "_".join(("shpat", _fake(32, _HEX))),
    "twilio": lambda: "SK" + _fake(32, _HEX),
    "age": lambda: "AGE-SECRET-KEY-1" + _upper(58),
}
KEYED = [
    "password={}",
    'password = "{}"',
    "PGPASSWORD='{}'",
    "export DB_PASSWORD={}",
    '{{"password": "{}", "user": "bob"}}',
    '{{\\"password\\": \\"{}\\"}}',
    "passwd: {}",
    "client_secret: {}",
    "aws_secret_access_key = {}",
    "AccountKey={};EndpointSuffix=core",
    "X-Api-Key: {}",
    "api_key={}",
    "https://x.example/a?access_token={}&b=1",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "Cookie: session={}; theme=dark",
    "Set-Cookie: sid={}; HttpOnly",
    "postgres://bob:{}@db.example/x",
    "https://{}@github.example/x",
    "密码：{}",
    "我的密码是{}",
    "密码为 {}，请保密",
    "密钥: {}",
    "令牌={}",
]
ORDINARY = [
    "INFO turn finished in 1520 ms, input_tokens=1523 output_tokens=88 max_tokens: 4096",
    "usage: cache_read_input_tokens=12 token_count=15 tokens: 2048",
    "password reset for user bob",
    "Password: required",
    "password: incorrect",
    "token expired at 2024-01-01T00:00:00Z",
    "def f(token: str, password: str | None = None) -> bool:",
    "password=self.password, token=request.headers['x']",
    "password=password, api_key=api_key",
    "GET /api/tokens?limit=10 200",
    "cache_key=user:1234:profile primary key: user_id",
    "token: identifier_of_the_long_kind",
    "sk-learn is scikit-learn; task-management-system-v2-release-2024",
    "basic authentication is required, bearer token missing",
    "secret santa: party at 18:00",
    "密码错误，请重试",
    "请输入密码：",
    "令牌已过期，关键字：memory",
    "密码：不能为空，密码是必填项",
    "ssh://git@github.com/org/repo.git http://localhost:8080/path@2x.png",
    "time 12:34:56 file a.py:10 passed=12 failed=3 bypass=enabled",
    "toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL req_011CSHoEeqs5C35K2UUqR7Fy",
    "password=${DB_PASSWORD} token=<redacted> secret=**** api_key=os.getenv('X')",
    "scheme://user:password@proxy.example",
    "a line about -----BEGIN PRIVATE KEY----- blocks.",
    "Cookie: enabled",
]


@pytest.mark.parametrize("provider", list(PROVIDERS))
@pytest.mark.parametrize("around", ["{}", "using {} now", '"{}"', "a={},", "（{}）"])
def test_every_providers_format_is_masked(provider: str, around: str) -> None:
    secret = PROVIDERS[provider]()
    masked = mask_secrets_counted(around.format(secret))
    assert masked.count == 1
    assert secret[6:] not in masked.text
    assert masked.text == around.format(f"{secret[:4]}{MASK}")


@pytest.mark.parametrize("line", KEYED)
def test_a_value_under_a_telling_key_is_masked(line: str) -> None:
    secret = _fake(30)
    masked = mask_secrets_counted(line.format(secret))
    assert masked.count == 1
    assert secret[4:] not in masked.text
    assert MASK in masked.text


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
    assert mask_secrets(f"token={_fake(5000)} end").endswith(f"{MASK} end")


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


def _key_block(kind: str) -> str:
    body = "\n".join(_fake(64) for _ in range(4))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_key_blocks_are_masked_whole(kind: str) -> None:
    block = _key_block(kind)
    for text in (block, block.replace("\n", "\\n"), block[:200]):
        masked = mask_secrets_counted(f"key: {text} after")
        assert masked.count == 1
        assert block[40:60] not in masked.text
        assert mask_secrets(masked.text) == masked.text


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_are_left_alone(line: str) -> None:
    assert mask_secrets_counted(line) == mask_secrets_counted(line, known=["unrelated"])
    assert mask_secrets(line) == line


def test_identifiers_and_hashes_are_left_alone() -> None:
    for length in (7, 32, 40, 64, 128):
        digest = "".join(_random.choice(_HEX) for _ in range(length))
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


@settings(max_examples=600, deadline=None)
@given(st.lists(_FRAGMENTS, max_size=14).map("".join))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask_secrets(text, known=["known1"])
    again = mask_secrets_counted(once, known=["known1"])
    assert (again.text, again.count) == (once, 0)
