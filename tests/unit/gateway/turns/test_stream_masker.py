"""Text in pieces: wherever it is cut, the same is told as if it had come whole."""

from collections.abc import Callable
from functools import partial
from itertools import cycle, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.observability.paths import PathView
from gateway.turns import sanitizer as sanitizing
from gateway.turns.sanitizer import OutputSanitizer, StreamMasker
from policies.secrets import MASK, mask_secrets
from policies.secrets.detect import MOST_WAITING_CHARS, settled_chars
from tests.unit.policies.fabricated import PROVIDERS, fake, key_block
from tests.unit.policies.fabricated_places import KEYED
from tests.unit.policies.ordinary import LINES

KEY = "sk-" + "ant-api03-" + "Zx9Qw3Er7Ty1Ui5Op2As6Df8Gh4Jk0Lz" * 2
SECRETS = {
    **{name: make() for name, make in PROVIDERS.items()},
    **{f"in {name}": line.format(fake(24)) for name, line in KEYED.items()},
    **{f"odd in {name}": line.format("P@ssw0rd-2024") for name, line in KEYED.items()},
    "quoted words": 'password: "hunter two and more words" and on',
    "quoted quotes": '{"password": "ab\\"cd 12\\\\ ef", "user": "bob"}',
    "two keys": "token: password: hunter22 and secret=abcd1234efgh",
    "zh corner": "密码「hunter two words」不要外传",
    "zh after prose": "我告诉过你，密码是hunter22，请保密",
    "code": "self.user, self.password = user, password\nusername, password = value",
    "block": f"here is the key:\n{key_block('RSA ')}\nkeep it well",
    "block in json": '{"key": "' + key_block("", end="\\n") + '", "n": 1}',
    "block that is cut off": key_block("EC ")[:200],
    "talk of blocks": "a line about -----BEGIN PRIVATE KEY----- blocks.\nAnd more.",
}


WORKSPACE = "/srv/my work/space"
SERVER = "/srv/candor/data"


def sanitizer(mask: Callable[[str], str] = mask_secrets) -> OutputSanitizer:
    return OutputSanitizer(PathView([WORKSPACE], [SERVER]), mask)


def told(pieces: list[str], mask: Callable[[str], str] = mask_secrets) -> list[str]:
    block = StreamMasker(sanitizer(mask), {})
    return [*(block.feed(piece) for piece in pieces), block.rest()]


def cut(text: str, places: list[int]) -> list[str]:
    ends = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[begin:end] for begin, end in pairwise(ends)]


def test_a_secret_is_masked_wherever_it_is_cut_in_two() -> None:
    contexts = cycle(["{}", "he said: {} and went on\n", "他说{}。然后走了"])
    for (name, secret), around in zip(SECRETS.items(), contexts, strict=False):
        text = around.replace("{}", secret)
        whole = mask_secrets(text)
        for at in range(len(text) % 11, len(text) + 1, 11):
            assert "".join(told([text[:at], text[at:]])) == whole, (name, text[:at])


def test_a_secret_is_masked_in_pieces_of_any_size() -> None:
    for (name, secret), size in zip(SECRETS.items(), cycle([1, 3, 20]), strict=False):
        text = f"so {secret} it is"
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert "".join(told(pieces)) == mask_secrets(text), name


FRAGMENTS = st.sampled_from(
    [
        *("password", "token", "api key", "secret", "密码", "令牌", "Cookie", "Bearer ", "-u "),
        *("=", ": ", "：", " = ", "是", "://", "@", '"', "'", "\\", '\\"', ", ", "; ", "。", "，"),
        *(" ", "\n", "a1b2c3d4e5", "hunter22", "user", "s=1", "&", "?sig=", "?key=", "-----"),
        *("BEGIN PRIVATE KEY", "END PRIVATE KEY", "-----BEGIN RSA PRIVATE KEY-----\n", "MIIEow"),
        *("-----END RSA PRIVATE KEY-----", "--password ", "<password>", "</password>"),
        *(KEY, "AKIA" + "ABCDEFGHIJ234567", "ghp_" + "a7" * 18, "「", "」", "中文", "…", MASK),
        *("Authorization: ", "--", "<", ">", "known-value-4711", "mysql -p", "(", ")", "."),
    ]
)


@example("password「-----END RSA PRIVATE KEY-----", [])
@given(st.lists(FRAGMENTS, max_size=10).map("".join), st.lists(st.integers(0, 400), max_size=12))
@example('password: "a b', [12])
def test_what_is_told_of_any_text_is_what_the_whole_would_be(text: str, places: list[int]) -> None:
    mask = partial(mask_secrets, known=["known-value-4711"])
    assert "".join(told(cut(text, places), mask)) == mask(text)


def test_ordinary_text_is_told_as_it_is_however_it_is_cut() -> None:
    text = "\n".join(item for item in LINES if "-----BEGIN" not in item)
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    assert "".join(told(pieces)) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"I wrote `{WORKSPACE}/a b.txt`.", "I wrote `a b.txt`."),
        (f"我写了 {WORKSPACE}/笔记.txt，在 {WORKSPACE}。", "我写了 笔记.txt，在 .。"),
        (f"see {SERVER}/tmp/out.txt now", "see [a path of the server] now"),
        ("kept: /srv/my workshop and /srv/my", "kept: /srv/my workshop and /srv/my"),
    ],
)
def test_a_path_is_shown_from_the_workspace_wherever_it_is_cut(text: str, shown: str) -> None:
    for at in range(len(text) + 1):
        assert "".join(told([text[:at], text[at:]])) == shown, text[:at]
    assert "".join(told([*text])) == shown


@pytest.mark.parametrize("shape", ["密码：", "A_KEY="])
def test_what_waits_long_is_not_read_again_with_every_piece(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counted(text: str) -> int:
        read.append(len(text))
        return settled_chars(text)

    monkeypatch.setattr(sanitizing, "settled_chars", counted)
    text = shape * 1_500
    told([text[at : at + 5] for at in range(0, len(text), 5)])
    assert sum(read) < 40 * len(text)


def test_talk_of_keys_and_tokens_waits_for_a_word_and_no_longer() -> None:
    pieces = ["The token is", " refreshed every", " hour, and the", " key with it. Ask"]
    expected = ["The", " token is refreshed", " every hour, and", " the key with it.", " Ask"]
    assert told(pieces) == expected


def test_chinese_never_waits() -> None:
    assert told(["这是工作", "区里的文件"]) == ["这是工作", "区里的文件", ""]


def test_a_long_text_is_masked_in_bounded_parts_as_the_whole_would_be() -> None:
    text = f"{'中文 and words, ' * 600}\n密码：{KEY}\n" * 3
    lengths: list[int] = []

    def mask(part: str) -> str:
        lengths.append(len(part))
        return mask_secrets(part)

    assert sanitizer(mask).streamed(text) == mask_secrets(text)
    assert max(lengths) <= 2 * MOST_WAITING_CHARS
