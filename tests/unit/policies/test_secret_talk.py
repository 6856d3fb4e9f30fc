"""Secrets as people tell them, in prose, lists and tables; talk beside them stays as it is."""

import json
from itertools import cycle, product
from pathlib import Path

import pytest

from policies.secrets import mask_secrets, mask_secrets_counted
from policies.secrets.detect import settled_chars
from policies.secrets.text import MASK
from tests.unit.policies.fabricated import fake

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


def _told_in_pieces(pieces: list[str]) -> str:
    out, held = "", ""
    for piece in pieces:
        held += piece
        at = settled_chars(held)
        out += mask_secrets(held[:at])
        held = held[at:]
    return out + mask_secrets(held)


def test_a_stream_is_masked_as_the_whole_wherever_it_is_cut() -> None:
    arounds = cycle(("{}", "so {} it is\n", "他说{}。然后走了", "x\u200b {}\u200b y"))
    for line, around in zip((*TOLD, *CHOSEN, *TALK), arounds, strict=False):
        text = around.replace("{}", line.replace("{}", RANDOM))
        whole = mask_secrets(text)
        for at in range(len(text) % 4, len(text) + 1, 4):
            assert _told_in_pieces([text[:at], text[at:]]) == whole, text[:at]
        assert _told_in_pieces([*text]) == whole, text


def test_talk_of_a_password_waits_for_a_word_and_no_longer() -> None:
    text = "the password is required for every user"
    assert settled_chars("the password is requi") == len("the")
    assert settled_chars(text) == len("the password is required for every")
    assert settled_chars("密码找管理员要") == len("密码找管理员要")
    assert settled_chars("密码改为") == 0
