"""Lines without any secret, as logs, tools, programs and people write them."""

import base64
import random
import uuid
from pathlib import Path

from tests.unit.policies.fabricated import HEX

_random = random.Random(11)  # the same ones in each run


def _hex(length: int) -> str:
    return "".join(_random.choice(HEX) for _ in range(length))


def _uuid() -> str:
    return str(uuid.UUID(int=_random.getrandbits(128), version=4))


def _b64(length: int) -> str:
    return base64.b64encode(_random.randbytes(length)).decode()


def _url_safe(length: int) -> str:
    return base64.urlsafe_b64encode(_random.randbytes(length)).decode().rstrip("=")


def _locks() -> list[str]:
    lines = []
    for at in range(20):
        lines += [
            f'      "integrity": "sha512-{_b64(64)}",',
            f"    --hash=sha256:{_hex(64)} \\",
            f'      "resolved": "https://registry.example/p{at}/-/p{at}-1.{at}.0.tgz#{_hex(40)}",',
            f'checksum = "{_hex(64)}"',
            f"github.com/x/y{at} v1.{at}.0 h1:{_b64(32)}",
        ]
    return lines


def _ids() -> list[str]:
    lines = []
    for at in range(20):
        lines += [
            f"request {_uuid()} finished in {at} ms",
            f"commit {_hex(40)}",
            f"{_hex(7)} Mend the thing, number {at}",
            f"index {_hex(7)}..{_hex(7)} 100644",
            f'{{"id":"{_uuid()}","hash":"{_hex(64)}","n":{at}}}',
            f"sha256:{_hex(64)} image{at}:latest",
            f"/static/main.{_hex(8)}.js 200 {at}",
            f"etag={_hex(32)} size={at}",
            f"package/part{at}.py,sha256=Ab-{_url_safe(30)},{at}",
            f"package/more{at}.py,sha256=part-{_url_safe(28)},{at}",
            f'W/"e3df{at}-{_url_safe(27)}"',
            f"nonce Q{at}-{_url_safe(33)}",
            f"arn:aws:s3:::bucket-{at}/{_uuid()}.parquet",
            f"data:image/png;base64,iVBORw0KGgo{_b64(60)}",
        ]
    return lines


LINES = [
    *Path(__file__).with_name("data").joinpath("ordinary.txt").read_text("utf-8").splitlines(),
    *_locks(),
    *_ids(),
]
