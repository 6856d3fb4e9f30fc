"""Secrets in texts: names, formats, places, known values, and prose."""

import json
import random
import re
import uuid
from itertools import cycle, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.secrets import MASK, mask_secrets, mask_secrets_counted
from policies.secrets.detect import settled_chars
from policies.secrets.text import Masked
from tests.unit.policies.fabricated import (
    ALNUM,
    HEX,
    KEY_BLOCKS,
    PROVIDERS,
    URL_SAFE,
    fake,
    key_block,
    spellings,
)
from tests.unit.policies.fabricated_places import KEYED
from tests.unit.policies.ordinary import LINES
from tests.unit.policies.pieces import masked_in_pieces

_random = random.Random(7)


MASKED = {
    # a password need not look random
    "password=correcthorse": f"password=cor{MASK}",
    'password: "hunter two"': f'password: "hu{MASK}"',
    "密码是letmein": f"密码是l{MASK}",
    "pwd: pa$$word": f"pwd: pa{MASK}",
    # an ampersand ends a value only where the next one begins
    "password: yOXdk1&3Ssmk32": f"password: yOX{MASK}",
    "password is yOXdk1&3Ssmk32 now": f"password is yOX{MASK} now",
    "a?password=abcd1234&user=bob": f"a?password=ab{MASK}&user=bob",
    "a?password=abcd1234&amp;user=bob": f"a?password=ab{MASK}&amp;user=bob",
    "tool --password abcd1234&& next": f"tool --password ab{MASK}&& next",
    # a name that tells little needs a value that tells more
    "DB_PASS=letmein": f"DB_PASS=l{MASK}",
    "root_pw = letmein": f"root_pw = l{MASK}",
    "PAYMENTS_PASS='hunter22'": f"PAYMENTS_PASS='hu{MASK}'",
    **{line: line for line in ("second_pass=letmein", "pass: hunter22", "MY_KEY=name")},
    "CACHE_KEY=Zq9vTr7mKp2x": "CACHE_KEY=Zq9vTr7mKp2x",
    # behind another name that has no value; a short one keeps less of itself
    "token: password: hunter22": f"token: password: hu{MASK}",
    "password=a1b2": f"password=a{MASK}",
}


def test_a_value_is_masked_from_its_first_letters_to_its_end() -> None:
    assert {line: mask_secrets(line) for line in MASKED} == MASKED
    assert "hunter22" not in mask_secrets("token=none,password=hunter22")


def test_a_very_long_value_is_masked_to_its_end() -> None:
    assert mask_secrets(f"token={fake(5000)} end").endswith(f"{MASK} end")


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
        *("password", "token", "密码", "Cookie", "Bearer ", "=", ": ", "：", "://", "@", '"', "'"),
        *(" ", "\n", "…", "[masked]", MASK, "a1b2c3d4", "x" * 20, "s=1", "&", "?sig=", "-----"),
        *("BEGIN PRIVATE KEY", "END PRIVATE KEY", "sk-", "ghp_", "eyJ", ".", "SG.", "none", "("),
        *("known1", "\\"),
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_FRAGMENTS, max_size=14).map("".join))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask_secrets(text, known=["known1"])
    again = mask_secrets_counted(once, known=["known1"])
    assert (again.text, again.count) == (once, 0)


RANDOM = "Zq9vTr" + "7mKp2x"
FULL_WIDTH = "".join(chr(ord(char) + 0xFEE0) for char in RANDOM)
_LISTS = json.loads((Path(__file__).parent / "data" / "told.json").read_text("utf-8"))
TOLD, CHOSEN, TALK = _LISTS["told"], _LISTS["chosen"], _LISTS["talk"]
"""Sentences with a place for a secret; whole ones with a weak one; those without any."""


@pytest.mark.parametrize(
    "around", ["{}", "he said: {} and went on\n", "他说{}。然后走了", "　{}\n\n"]
)
def test_a_secret_that_is_told_is_masked_and_all_around_it_stays(around: str) -> None:
    for line, secret in product(TOLD, (RANDOM, FULL_WIDTH, fake(24))):
        before, after = around.replace("{}", line.replace("{}", "\0")).split("\0")
        masked = mask_secrets_counted(f"{before}{secret}{after}")
        assert masked.count == 1, line
        assert masked.text.startswith(before)
        assert masked.text.endswith(f"{MASK}{after}")
        assert len(masked.text) <= len(before) + 4 + len(MASK) + len(after)
        assert mask_secrets_counted(masked.text).count == 0


def test_what_people_choose_is_masked_where_it_is_told() -> None:
    for line in CHOSEN:
        masked = mask_secrets_counted(line)
        assert masked.count == 1, line
        assert mask_secrets_counted(masked.text).count == 0


def test_talk_stays_as_it_is() -> None:
    for line in TALK:
        for text in (line, f"He wrote: {line}. And more.", f"据说{line}，然后继续"):
            assert mask_secrets(text) == text


def test_two_ways_to_read_one_secret_are_one_mask() -> None:
    text = f"passwd for rootghp_（root）{RANDOM} 现在密码{RANDOM}：hunter22"
    masked = mask_secrets_counted(text)
    assert masked.count == 2
    assert masked.text.endswith(f"现在密码Zq9{MASK}：hu{MASK}")
    assert mask_secrets_counted(masked.text).count == 0


def test_a_user_and_a_password_together_are_masked() -> None:
    masked = mask_secrets(f"the credentials are admin/{RANDOM}, he said")
    assert masked == f"the credentials are admi{MASK}, he said"


def test_a_stream_is_masked_as_the_whole_wherever_it_is_cut() -> None:
    arounds = cycle(("{}", "so {} it is\n", "他说{}。然后走了", "x\u200b {}\u200b y"))
    for line, around in zip((*TOLD, *CHOSEN, *TALK), arounds, strict=False):
        text = around.replace("{}", line.replace("{}", RANDOM))
        whole = mask_secrets(text)
        for at in range(len(text) % 4, len(text) + 1, 4):
            assert masked_in_pieces([text[:at], text[at:]]) == whole, text[:at]
        assert masked_in_pieces([*text]) == whole, text


def test_talk_of_a_password_waits_for_a_word_and_no_longer() -> None:
    text = "the password is required for every user"
    assert settled_chars("the password is requi") == len("the")
    assert settled_chars(text) == len("the password is required for every")
    assert settled_chars("密码找管理员要") == len("密码找管理员要")
    assert settled_chars("密码改为") == 0


SHORT = {
    *("query key", "query signature", "query sas", "url token", "bot", "ssws", "genie"),
    *(
        "typed",
        "typed script",
        "docker auth",
        "kubeconfig",
        "github pat",
        "npmrc auth",
        "vendor key",
        "any key",
        "master key",
        "app key",
        "function key",
    ),
}
"""Places where something short stands more often than a secret."""
TO_THE_END = {"cookie", "set cookie"}
"""Places where all that follows belongs to the secret."""
AROUND = [
    *("{}", "using {} now", '"{}"', "'{}',", "a={},", "（{}）", "{}\n", "|{}|"),
    # behind a colour, a line break that is written out, and what addresses and JSON escape
    *("\x1b[1m{}\x1b[0m", "\x1b[38;5;196m{}", '{{"text": "one\\n{}\\ttwo"}}'),
    *("%3D{}%26", "\\u003d{}\\u0026"),
]
ODD = ["hunter2!", "P@ssw0rd-2024", "Tr0ub4dor&3", "yOXdk1&3Ssmk32", "correct7horse", "1a2b3c4d"]


def test_there_are_enough_of_both() -> None:
    assert len(PROVIDERS) >= 60
    assert len(LINES) >= 400
    assert len(set(LINES)) == len(LINES)


def test_every_providers_format_is_masked_once() -> None:
    for provider, make in PROVIDERS.items():
        for around in AROUND:
            secret = make()
            masked = mask_secrets_counted(around.format(secret))
            assert masked.count == 1, (provider, around)
            for part in (secret[-12:], secret[-24:-12]):
                assert part not in masked.text, (provider, around)
            assert mask_secrets_counted(masked.text) == Masked(masked.text, 0)


def test_a_secret_is_known_by_its_place() -> None:
    for place, line in KEYED.items():
        odd = [] if place in SHORT else ODD
        before, _, after = line.format("\0").partition("\0")
        if place in TO_THE_END:
            before, after = before.partition(" ")[0], ""
        for secret in (fake(30), fake(40, URL_SAFE), *odd):
            masked = mask_secrets_counted(line.format(secret))
            assert masked.count == 1, (place, secret)
            assert secret[3:] not in masked.text
            assert re.match(re.escape(before) + r".{0,5}" + re.escape(MASK), masked.text, re.DOTALL)
            assert masked.text.endswith(after)
            assert mask_secrets(masked.text) == masked.text


def test_a_secret_known_by_both_is_masked_once() -> None:
    for line in KEYED.values():
        secret = PROVIDERS["anthropic"]()
        masked = mask_secrets_counted(line.format(secret))
        assert masked.count == 1, line
        assert secret[8:] not in masked.text


@pytest.mark.parametrize("kind", KEY_BLOCKS)
def test_a_key_block_is_masked_whole_however_it_is_written(kind: str) -> None:
    block = key_block(kind)
    lines = block.split("\n")
    written = [
        block,
        *("\r\n".join(lines), "\\n".join(lines), "\\\\n".join(lines), "\\r\\n".join(lines)),
        *("\n".join(f"    {line}" for line in lines), "\n".join(f"> {line}" for line in lines)),
        "\n".join(f"{at}\t{line}" for at, line in enumerate(lines, 1)),
        "\n".join(f"2026-11-21T10:00:00Z INFO {line}" for line in lines),
        *(block[:200], "\n".join(lines[:-1])),  # cut off before its end
    ]
    for wrap in ("{}", "key: {} after", '{{"key": "{}"}}', "```\n{}\n```"):
        for form in written:
            masked = mask_secrets(wrap.format(form))
            assert not [line for line in lines[1:-1] if line[4:24] in masked]
            assert mask_secrets(masked) == masked


KNOWN = [
    fake(40),
    "-".join(("sk", "ant", fake(50, URL_SAFE))),
    "blue wörd & more/+",
    'qu"ote\\and/slash+42',
    'it\'s $o `quoted` "42"',
    "密码就是这个很长的句子",
]


def test_a_known_value_is_masked_in_every_form() -> None:
    for secret in KNOWN:
        for form, spelt in spellings(secret).items():
            text = f"before {spelt} after"
            masked = mask_secrets_counted(text, known=[secret, "another-value-that-is-known"])
            core = spelt.strip("=")
            assert masked.count >= 1, (secret, form)
            assert core[4:] not in masked.text, (secret, form)
            assert core[:-4] not in masked.text
            assert masked.text.startswith("before ")
            assert masked.text.endswith(" after")
            assert mask_secrets_counted(masked.text, known=[secret]).text == masked.text


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=5), st.text(st.sampled_from(ALNUM), min_size=16, max_size=60), st.text())
def test_a_known_value_is_masked_between_any_texts(before: str, secret: str, after: str) -> None:
    masked = mask_secrets(f"{before}{secret}{after}", known=[secret])
    assert secret not in masked


def test_ordinary_lines_are_left_as_they_are() -> None:
    assert [mask_secrets(line) for line in LINES] == LINES


def test_ordinary_lines_together_are_left_as_they_are() -> None:
    text = "\n".join(LINES)
    begin = next(at for at, line in enumerate(LINES) if line.startswith("a line about -----BEGIN"))
    assert mask_secrets("\n".join(LINES[:begin])) == "\n".join(LINES[:begin])
    assert mask_secrets_counted(text).count <= 1  # the block that is only talked about
