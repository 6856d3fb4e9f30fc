"""Secrets as people tell them, in prose, lists and tables; talk beside them stays as it is."""

from itertools import cycle, product

import pytest

from policies.secrets import mask_secrets, mask_secrets_counted
from policies.secrets.stream import settled_chars
from policies.secrets.text import MASK
from tests.unit.policies.fabricated import fake

RANDOM = "Zq9vTr" + "7mKp2x"
FULL_WIDTH = "".join(chr(ord(char) + 0xFEE0) for char in RANDOM)
ENGLISH = [
    "the root password is {}",
    "Root password is {}.",
    "the password is: {}",
    "The password for root is {}, keep it",
    "The password for bob on db1 is now {}",
    "The password of the admin was changed to {} yesterday",
    "the password has been reset to {}!",
    "please set the password to {}",
    "the api key is {}",
    "The secret is {}",
    "the token is now {}",
    "Password for root: {}",
    "Password (root): {}",
    "password -> {}",
    "pwd {}",
    "passwd {}",
    "log in with password {} now",
    "the password is “{}”",
    "the password is '{}'",
    "**Password**: `{}`",
    "**Password:** {}",
    "`password`: `{}`",
    "__Password__: {}",
    "*Password*: {}",
    "**Password**: **{}**",
    "**Password** is `{}`",
    "- **API key**: `{}`",
    "| password | {} |",
    "|password|{}|",
    "| DB_PASSWORD | {} | db |",
    "| **Password** | `{}` |",
    "| api key | `{}` |",
    "ｐａｓｓｗｏｒｄ＝{}",
    "ＰＷＤ：{}",
    "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝={}",
    "password:\u00a0{}",
    "pass\u200bword={}",
]
CHINESE = [
    "管理员密码改为 {}",
    "管理员密码改为{}。",
    "管理员密码设为 {}，请保密",
    "管理员密码换成 {}",
    "密码改成“{}”了",
    "密码已重置为 {}",
    "密码更新为：{}",
    "密码现在是 {}",
    "密码默认是 {}",
    "密码统一设置成 {}",
    "管理員密碼設為 {}",
    "管理員密碼設爲 {}",
    "管理員密碼爲{}",
    "root密码给你：{}",
    "密碼如下：{}",
    "存取權杖換成 {}",
    "密碼變更為 {}",
    "口令改为`{}`",
    "令牌换成 {}",
    "密钥更新为 {}",
    "密码（root）：{}",
    "账号 root 密码 {}",
    "密码{}",
    "- **密码**：`{}`",
    "**密码：** {}",
    "| 密码 | {} |",
    "| 管理员密码 | `{}` | 备注 |",
    "密码＝{}",
    "密\u200b码：{}",
    "密码　＝　{}",
]
TOLD = [*ENGLISH, *CHINESE]
CHOSEN = [
    "the password is hunter22",
    "the password is pa$$word",
    "the password is correct7horse",
    "the password is 20261121",
    "the password is 'letmein'",
    "the password is `letmein`",
    "the password is “letmein”",
    "The password has been reset to Summer2024!",
    "| root password | hunter22 | note |",
    "密码改为 hunter22",
    "**Password**: **letmein**",
    "**密码**：**letmein**",
    "密码设为 12345678",
    "密码改成“letmein”了",
    "密码换成 P@ssw0rd-2024",
]
TALK = [
    "the password is required",
    "the password is hashed with bcrypt",
    "the password is base64-encoded",
    "the password is base64",
    "password is stored as SHA-256",
    "the password is sha256 hashed",
    "the password is Argon2id-hashed",
    "The password is PBKDF2-HMAC-SHA256",
    "the password is at least 12 characters",
    "the password is 16characters long",
    "the password is 12-characters long",
    "password is 8-64 chars",
    "password rotation is every 90d",
    "password is in vault-2",
    "password is in docs/setup2.md",
    "the password is at https://x.example/a1B2c3",
    "The password for root is kept in vault",
    "the password is case-sensitive",
    "set the password to something strong",
    "the password is ${DB_PASS2}",
    "password of user42 is required",
    "`password` is `null`",
    "`password` is required",
    "`token` is `str`",
    "**Password**: required",
    "**Password**: `string`",
    "| password | required | string |",
    "| password | string | yes |",
    "| token | string | the token |",
    "the token is expired",
    "the token is refreshed-every-60s",
    "the token is v2",
    "the token is JWT",
    "the credential is db-creds-2",
    "the key is pressed",
    "the key is k8s-secret",
    "pass the token to worker-2",
    "the secret is out",
    "passwd root",
    "sudo passwd deploy1",
    "pwd /srv/app2/x",
    "cd x && pwd",
    "pwd; ls -la",
    "password policy v2.1",
    "password manager 1Password",
    "password root@db1",
    "password for bob@example.com:",
    "cat token | sha256sum",
    "echo $PASSWORD | base64 -d",
    ".. _`Bearer Token`: https://tools.example/html/rfc6750",
    "密码是必填的",
    "密码是 bcrypt 加密的",
    "密码是 base64 编码",
    "密码改为从环境变量读取",
    "密码改为用 vault 管理",
    "密码改为 bcrypt 存储",
    "密码改为 SHA256 加盐",
    "密码设为只读",
    "密码设为必填",
    "密码换成统一登录",
    "密码重置为默认值",
    "密码更新为 90 天一次",
    "管理员密码改为每 90 天轮换",
    "密码由 user01 保管",
    "密码在 vault-prod2",
    "密码 sha256 加密",
    "密码长度改为 12 位",
    "密码＝必填",
    "**密码**：必填",
    "| 密码 | 必填 | 字符串 |",
    "令牌改为 OAuth2.0",
    "ｐａｓｓｗｏｒｄ　ｉｓ　ｒｅｑｕｉｒｅｄ",
    "ｐａｓｓｗｏｒｄ＝必填",
    "👨\u200d👩\u200d👧 the family's password\u200b is required",
]


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
        for at in range(len(text) + 1):
            assert _told_in_pieces([text[:at], text[at:]]) == whole, text[:at]
        assert _told_in_pieces([*text]) == whole, text


def test_talk_of_a_password_waits_for_a_word_and_no_longer() -> None:
    text = "the password is required for every user"
    assert settled_chars("the password is requi") == len("the")
    assert settled_chars(text) == len("the password is required for every")
    assert settled_chars("密码找管理员要") == len("密码找管理员要")
    assert settled_chars("密码改为") == 0
