"""Secrets that never were: put together at run time, so that none stands in the source."""

import base64
import random
import re
import string
from collections.abc import Callable, Mapping
from urllib.parse import quote

_LETTERS = string.ascii_letters
ALNUM = _LETTERS + string.digits
HEX = "0123456789abcdef"
URL_SAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
UPPER = string.ascii_uppercase + string.digits

_random = random.Random(7)  # the same ones in each run


def fake(length: int, alphabet: str = ALNUM) -> str:
    """Give a random text that holds digits and begins and ends as real tokens do."""
    inner = "".join(_random.choice(alphabet) for _ in range(length - 3))
    letter, digit = ("A", "7") if alphabet == UPPER else ("a", "7")
    return f"{letter}{inner}{digit}{letter}"


def _joined(by: str, *parts: str) -> str:
    return by.join(parts)


def _jwt() -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    head, body = part('{"alg":"HS256","typ":"JWT"}'), part(f'{{"sub":"{fake(12)}","exp":1}}')
    return f"{head}.{body}.{fake(43, URL_SAFE)}"


PROVIDERS: Mapping[str, Callable[[], str]] = {
    "anthropic": lambda: _joined("-", "sk", "ant", "api03", fake(93, URL_SAFE)) + "AA",
    "anthropic admin": lambda: _joined("-", "sk", "ant", "admin01", fake(93, URL_SAFE)) + "AA",
    "anthropic oauth": lambda: _joined("-", "sk", "ant", "oat01", fake(93, URL_SAFE)) + "AA",
    "openai": lambda: _joined("-", "sk", fake(48)),
    "openai project": lambda: _joined("-", "sk", "proj", fake(120, URL_SAFE)),
    "openai service": lambda: _joined("-", "sk", "svcacct", fake(60, URL_SAFE)),
    "deepseek": lambda: _joined("-", "sk", fake(32, HEX)),
    "dashscope": lambda: _joined("-", "sk", fake(32, HEX)),
    "openrouter": lambda: _joined("-", "sk", "or", "v1", fake(64, HEX)),
    "github": lambda: _joined("_", "ghp", fake(36)),
    "github oauth": lambda: _joined("_", "gho", fake(36)),
    "github server": lambda: _joined("_", "ghs", fake(36)),
    "github refresh": lambda: _joined("_", "ghr", fake(76)),
    "github fine-grained": lambda: _joined("_", "github", "pat", fake(22), fake(59)),
    "candor": lambda: _joined("_", "candor", fake(43, URL_SAFE)),
    "gitlab": lambda: _joined("-", "glpat", fake(20, URL_SAFE)),
    "gitlab deploy": lambda: _joined("-", "gldt", fake(20, URL_SAFE)),
    "gitlab runner": lambda: _joined("-", "glrt", fake(20, URL_SAFE)),
    "gitlab job": lambda: _joined("-", "glcbt", "64_" + fake(20, URL_SAFE)),
    "aws": lambda: "AK" + "IA" + fake(16, UPPER),
    "aws temporary": lambda: "AS" + "IA" + fake(16, UPPER),
    "aws bedrock": lambda: "AB" + "SK" + fake(120, BASE64),
    "slack bot": lambda: _joined("-", "xoxb", "123456789012", "1234567890123", fake(24)),
    "slack user": lambda: _joined("-", "xoxp", "123456789012", "123456789012", fake(32, HEX)),
    "slack app": lambda: _joined("-", "xapp", "1", "A0" + fake(9, UPPER), "123", fake(64, HEX)),
    "slack config": lambda: "xoxe.xoxp-1-" + fake(140),
    "stripe": lambda: _joined("_", "sk", "live", fake(24)),
    "stripe restricted": lambda: _joined("_", "rk", "live", fake(99)),
    "stripe webhook": lambda: _joined("_", "whsec", fake(32)),
    "google": lambda: "AI" + "za" + fake(35, URL_SAFE),
    "google client": lambda: "GOCSPX" + "-" + fake(28, URL_SAFE),
    "google oauth": lambda: "ya29" + "." + fake(120, URL_SAFE),
    "google refresh": lambda: "1//0" + fake(60, URL_SAFE),
    "jwt": _jwt,
    "npm": lambda: _joined("_", "npm", fake(36)),
    "pypi": lambda: _joined("-", "pypi", "AgEIcHlwaS5vcmc" + fake(150, URL_SAFE)),
    "hugging face": lambda: _joined("_", "hf", fake(34, _LETTERS)),
    "groq": lambda: _joined("_", "gsk", fake(52)),
    "xai": lambda: _joined("-", "xai", fake(80)),
    "perplexity": lambda: _joined("-", "pplx", fake(48)),
    "replicate": lambda: _joined("_", "r8", fake(37)),
    "nvidia": lambda: _joined("-", "nvapi", fake(64, URL_SAFE)),
    "telegram": lambda: f"1234567890:{'A' * 2}{fake(33, URL_SAFE)}",
    "sendgrid": lambda: _joined(".", "SG", fake(22, URL_SAFE), fake(43, URL_SAFE)),
    "mailgun": lambda: _joined("-", "key", fake(32, HEX)),
    "mailchimp": lambda: fake(32, HEX) + "-us" + "12",
    "discord": lambda: _joined(".", "M" + fake(23), fake(6), fake(38)),
    "discord webhook": lambda: (
        "https://discord.com/api/web" + "hooks/1234567890123456789/" + fake(68, URL_SAFE)
    ),
    "slack webhook": lambda: (
        "https://hooks.slack"
        ".com/services/T0" + fake(8, UPPER) + "/B0" + fake(8, UPPER) + "/" + fake(24)
    ),
    "teams webhook": lambda: (
        "https://contoso.webhook.office"
        ".com/webhookb2/" + fake(36, HEX) + "/IncomingWebhook/" + fake(32, HEX)
    ),
    "dingtalk webhook": lambda: (
        "https://oapi.dingtalk" + ".com/robot/send?access_token=" + fake(64, HEX)
    ),
    "wecom webhook": lambda: (
        "https://qyapi.weixin.qq"
        ".com/cgi-bin/webhook/send?key="
        + _joined("-", fake(8, HEX), fake(4, HEX), fake(4, HEX), fake(4, HEX), fake(12, HEX))
    ),
    "feishu webhook": lambda: (
        "https://open.feishu"
        ".cn/open-apis/bot/v2/hook/"
        + _joined("-", fake(8, HEX), fake(4, HEX), fake(4, HEX), fake(4, HEX), fake(12, HEX))
    ),
    "digitalocean": lambda: _joined("_", "dop", "v1", fake(64, HEX)),
    "databricks": lambda: "dapi" + fake(32, HEX),
    "vault": lambda: _joined(".", "hvs", fake(90, URL_SAFE)),
    "terraform": lambda: fake(14) + ".atlasv1." + fake(64, URL_SAFE),
    "shopify": lambda: _joined("_", "shpat", fake(32, HEX)),
    "twilio": lambda: "SK" + fake(32, HEX),
    "age": lambda: "AGE-SECRET-KEY-1" + fake(58, UPPER),
    "docker": lambda: _joined("_", "dckr", "pat", fake(27, URL_SAFE)),
    "linear": lambda: _joined("_", "lin", "api", fake(40)),
    "notion": lambda: _joined("_", "ntn", fake(46)),
    "figma": lambda: _joined("_", "figd", fake(40, URL_SAFE)),
    "supabase": lambda: _joined("_", "sbp", fake(40, HEX)),
    "planetscale": lambda: _joined("_", "pscale", "tkn", fake(43, URL_SAFE)),
    "postman": lambda: "PMAK" + "-" + fake(24, HEX) + "-" + fake(34, HEX),
    "grafana": lambda: _joined("_", "glsa", fake(32), fake(8, HEX)),
    "new relic": lambda: "NRAK" + "-" + fake(27, UPPER),
    "sentry": lambda: _joined("_", "sntrys", fake(80, BASE64)),
    "atlassian": lambda: "ATATT3" + "xFf" + fake(180, URL_SAFE),
    "bitbucket": lambda: "ATBB" + fake(32),
    "azure storage": lambda: "AccountKey=" + fake(86, BASE64) + "==",
    "azure client": lambda: fake(3) + "8Q~" + fake(34, URL_SAFE),
    "tencent cloud": lambda: "AKID" + fake(32),
    "alibaba cloud": lambda: "LTAI5t" + fake(18),
    "volcengine": lambda: "AKLT" + fake(44),
    "doppler": lambda: "dp.pt." + fake(43),
    "cloudflare": lambda: "v1.0-" + fake(24, HEX) + "-" + fake(146, HEX),
    "fly": lambda: "FlyV1 fm2_" + fake(90, BASE64),
    "gitee": lambda: "access_token=" + fake(32, HEX),
}

Line = Callable[[str], str]
KEYED: Mapping[str, str] = {
    # key and value
    "env": "DB_PASSWORD={}",
    "export": "export OPENAI_API_KEY={}",
    "env quoted": "PGPASSWORD='{}'",
    "spaced": 'password = "{}"',
    "plain": "password={}",
    "plain colon": "passwd: {}",
    "walrus": 'secret := "{}"',
    "arrow": ":password => '{}'",
    "camel": "clientSecret: {}",
    "prefixed": "SPRING_DATASOURCE_PASSWORD={}",
    "aws": "aws_secret_access_key = {}",
    "aws session": "aws_session_token={}",
    "private": "private_key: {}",
    "encryption": "ENCRYPTION_KEY={}",
    "secret key base": "SECRET_KEY_BASE={}",
    "django": "SECRET_KEY = '{}'",
    "auth token": "_authToken={}",
    "npmrc": "//registry.example/:_authToken={}",
    "netrc": "machine example.com login bob password {}",
    "pgpass": "PGPASSWORD={} psql -h db",
    "connection string": "Server=db;User Id=sa;Password={};Encrypt=true",
    "azure": "AccountKey={};EndpointSuffix=core",
    "shared access": "SharedAccessKey={}",
    # json, yaml, toml, xml, python
    "json": '{{"password": "{}", "user": "bob"}}',
    "json compact": '{{"api_key":"{}"}}',
    "json in json": '{{\\"password\\": \\"{}\\"}}',
    "json twice in json": '{{\\\\\\"token\\\\\\": \\\\\\"{}\\\\\\"}}',
    "yaml": "  password: {}",
    "yaml quoted": "  client_secret: '{}'",
    "toml": 'token = "{}"',
    "ini": "password={}",
    "python dict": "{{'password': '{}', 'user': 'bob'}}",
    "python call": "connect(user='bob', password='{}')",
    "xml": "<password>{}</password>",
    "xml attribute": '<add key="x" password="{}" />',
    "properties": "spring.datasource.password={}",
    # command lines
    "flag": "mysql --password={} -u root",
    "flag apart": "tool --password {} --verbose",
    "flag token": "gh auth login --token {}",
    "flag api key": "cli --api-key {} run",
    "flag secret": "cli --client-secret '{}' run",
    "curl user": "curl -u bob:{} https://x.example",
    "curl user long": "curl --user bob:{} https://x.example",
    "sshpass": "sshpass -p {} ssh host",
    "mysql short": "mysql -uroot -p{} db",
    # headers
    "x api key": "X-Api-Key: {}",
    "x auth token": "x-auth-token: {}",
    "bearer": "Authorization: Bearer {}",
    "bearer json": '"Authorization": "Bearer {}"',
    "bearer python": "headers={{'Authorization': 'Bearer {}'}}",
    "bearer curl": "curl -H 'Authorization: Bearer {}' https://x.example",
    "basic": "authorization: Basic {}",
    "token scheme": "Authorization: token {}",
    "authorization alone": "Authorization: {}",
    "proxy": "Proxy-Authorization: Basic {}",
    "private token": "PRIVATE-TOKEN: {}",
    "cookie": "Cookie: session={}; theme=dark",
    "set cookie": "Set-Cookie: sid={}; HttpOnly",
    # addresses
    "query token": "https://x.example/a?access_token={}&b=1",
    "query key": "https://x.example/a?key={}",
    "query api key": "https://x.example/a?b=1&apikey={}",
    "query signature": "https://x.example/a?X-Amz-Signature={}",
    "query sas": "https://x.example/a?sv=1&sig={}",
    "fragment": "https://x.example/#access_token={}&state=1",
    "url password": "postgres://bob:{}@db.example/x",
    "url password alone": "redis://:{}@cache.example:6379/0",
    "url token": "https://{}@github.example/x",
    "url basic": "https://x-access-token:{}@github.example/x.git",
    "mongodb": "mongodb+srv://bob:{}@cluster.example/db?retryWrites=true",
    "amqp": "amqp://guest:{}@mq.example:5672/%2f",
    # Chinese
    "zh password": "密码：{}",
    "zh password ascii": "密码:{}",
    "zh password is": "我的密码是{}",
    "zh password is apart": "密码是 {}，请保密",
    "zh password as": "密码为 {}，请保密",
    "zh passphrase": "口令：{}",
    "zh traditional": "密碼：{}",
    "zh key": "密钥: {}",
    "zh token": "令牌={}",
    "zh private": "私钥：{}",
    "zh access": "访问密钥：{}",
    "zh credential": "凭证：{}",
    "zh api": "API密钥为{}",
    "zh quoted": "密码是“{}”，不要外传",
    "zh corner": "密码「{}」",
    "zh login": "登录密码: {}",
    "zh database": "数据库密码={}",
    "zh json": '{{"密码": "{}"}}',
    "zh key word": "秘钥：{}",
    "zh auth code": "授权码：{}",
    "zh escaped": '{{"\\u5bc6\\u7801": "{}"}}',
    "zh escaped talk": "\\u5bc6\\u7801\\u662f{}\\uff0c\\u8bf7",
    "zh escaped twice": "\\\\u4ee4\\\\u724c\\\\uff1a{}",
}


def key_block(kind: str, *, lines: int = 6, end: str = "\n") -> str:
    """Give a private key of some kind, as PEM."""
    body = end.join(fake(64, BASE64) for _ in range(lines))
    word = "PRIVATE KEY BLOCK" if kind == "PGP " else "PRIVATE KEY"
    return f"-----BEGIN {kind}{word}-----{end}{body}{end}-----END {kind}{word}-----"


KEY_BLOCKS = ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP ")


def spellings(secret: str) -> Mapping[str, str]:
    """Give the forms in which a known value turns up."""
    raw = secret.encode()
    return {
        "plain": secret,
        "url": quote(secret, safe=""),
        "url with slashes": quote(secret),
        "url lower": re.sub("%..", lambda one: one[0].lower(), quote(secret, safe="")),
        "form": quote(secret, safe="").replace("%20", "+"),
        "base64": base64.b64encode(raw).decode(),
        "base64 url safe": base64.urlsafe_b64encode(raw).decode(),
        "base64 with a name": base64.b64encode(b"bob:" + raw).decode(),
        "base64 behind one": base64.b64encode(b"x" + raw).decode(),
        "base64 behind two": base64.b64encode(b"xy" + raw + b"tail").decode(),
        "hex": raw.hex(),
        "hex upper": raw.hex().upper(),
        "json": secret.replace("\\", "\\\\").replace('"', '\\"'),
    }
