"""Ordinary lines, such as fill logs: nothing in them is to be masked. The same in each run."""

import random
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path

_TEMPLATES = (
    "{time} INFO turn_finished conversation_id=cnv_{hex16} turn_id=trn_{hex16} ms={number}",
    "{time} INFO request method=GET path=/conversations/{uuid} status=200 took_ms={number}",
    "{time} WARNING cache miss key=user:{number}:profile shard={number}",
    "{time} ERROR worker {number} failed: connection reset by peer (errno 104)",
    "usage input_tokens={number} output_tokens={number} cache_read_input_tokens={number}",
    "commit {hex40} by 李雷: 修正登录页面的密码提示",
    "Merge {hex40} into {hex40}",
    "sha256:{hex64} 12.3MB layer pulled",
    "docker image app@sha256:{hex64} started in {number} ms",
    "toolu_01{base24} Bash ls -la finished rc=0",
    "session {uuid} resumed, transcript {uuid}.jsonl has {number} lines",
    "GET /static/app.{hex16}.js HTTP/1.1 200 {number}",
    '{ip} - - [{time}] "POST /api/tokens/refresh HTTP/1.1" 401 {number}',
    "password reset mail queued for user {number}",
    "用户 {number} 的密码错误，第 {digit} 次",
    "令牌已过期，用户 {number} 需要重新登录",
    "token expired after {number} s, asking for another one",
    "auth: token type is bearer, scope is read",
    'File "/srv/app/auth/password.py", line {number}, in check_password',
    "    if not verify_password(password, user.password_hash):",
    "DEBUG secret santa list has {number} names",
    "span trace_id={hex32} span_id={hex16} parent={hex16}",
    'etag W/"{hex32}" matched, 304',
    "s3://bucket/year=2026/part-{number}-{uuid}.parquet written",
    "kernel: [{number}.{number}] eth0: link up, {number} Mbps",
    "pip install package-{digit}.{digit}.{digit}-py3-none-any.whl",
    "migrating table api_keys: {number} rows, column secret_name added",
    "primary key: id, foreign key: user_id, {number} rows",
    "max_tokens: {number}, temperature: 0.{digit}, model: some-model-2026-01-0{digit}",
    "uuid7 {uuid} -> shard {digit}",
    "报告 {number} 已生成，用时 {number} 毫秒，文件 报告-{hex16}.docx",
    "https://docs.example.com/guide?page={digit}&sort=name#section-{digit} 200",
    "ssh://git@example.com/team/repo.git fetched, HEAD is {hex40}",
    "MAC 02:42:ac:11:00:0{digit} leased {ip}",
    "base64 image data omitted ({number} bytes)",
)
_EACH = 12


def ordinary_lines() -> list[str]:
    """Return some 400 lines of logs."""
    chance = random.Random(2026)
    return [_fill(template, chance) for template in _TEMPLATES for _ in range(_EACH)]


def _fill(template: str, chance: random.Random) -> str:
    def hexadecimal(length: int) -> str:
        return "".join(chance.choice("0123456789abcdef") for _ in range(length))

    alphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ123456789"
    return template.format(
        time=f"2026-01-{chance.randint(10, 28)}T{chance.randint(10, 23)}:15:{chance.randint(10, 59)}Z",
        number=chance.randint(10, 99_999),
        digit=chance.randint(0, 9),
        uuid=uuid.UUID(int=chance.getrandbits(128), version=4),
        ip=f"10.0.{chance.randint(0, 255)}.{chance.randint(1, 254)}",
        base24="".join(chance.choice(alphabet) for _ in range(22)),
        **{f"hex{length}": hexadecimal(length) for length in (16, 32, 40, 64)},
    )


def library_lines(most: int) -> list[str]:
    """Return lines of Python's own library, whose sources often mention passwords and tokens."""
    return [line for line, _ in zip(_read_library(), range(most), strict=False)]


def _read_library() -> Iterator[str]:
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        yield from file.read_text(encoding="utf-8", errors="replace").splitlines()
