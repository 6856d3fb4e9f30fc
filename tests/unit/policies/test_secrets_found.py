"""Every fabricated secret is found in every form, and ordinary lines are left as they are."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.secrets import mask_secrets, mask_secrets_counted
from policies.secrets.text import MASK, Masked
from tests.unit.policies.fabricated import (
    ALNUM,
    KEY_BLOCKS,
    PROVIDERS,
    URL_SAFE,
    fake,
    key_block,
    spellings,
)
from tests.unit.policies.fabricated_places import KEYED
from tests.unit.policies.ordinary import LINES

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
