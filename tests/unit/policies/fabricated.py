"""Secrets that never were: put together at run time, so that none stands in the source."""

import base64
import json
import random
import re
import shlex
import string
from collections.abc import Callable, Mapping
from urllib.parse import quote

_LETTERS = string.ascii_letters
ALNUM = _LETTERS + string.digits
HEX = "0123456789abcdef"
URL_SAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
UPPER = string.ascii_uppercase + string.digits
_SMALL = string.ascii_lowercase + string.digits

_random = random.Random(7)  # the same ones in each run


def fake(length: int, alphabet: str = ALNUM) -> str:
    """Return a random text that holds digits and begins and ends as real tokens do."""
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
    "together": lambda: _joined("_", "tgp", "v1", fake(43, URL_SAFE)),
    "hugging face org": lambda: _joined("_", "api", "org", fake(34, _LETTERS)),
    "firecrawl": lambda: _joined("-", "fc", fake(32, HEX)),
    "e2b": lambda: _joined("_", "e2b", fake(40, HEX)),
    "elevenlabs": lambda: _joined("_", "sk", fake(48, HEX)),
    "voyage": lambda: _joined("-", "pa", "Z" + fake(42)),
    "langsmith": lambda: _joined("_", "lsv2", "pt", fake(32, HEX), fake(10, HEX)),
    "pinecone": lambda: _joined("_", "pcsk", fake(6), fake(60)),
    "baidu": lambda: "bce-v3" + "/ALTAK-" + fake(21) + "/" + fake(40, HEX),
    "zhipu": lambda: fake(32, HEX).replace("A", "a") + "." + "Z" + fake(15),
    "gitlab oauth": lambda: _joined("-", "gloas", fake(64, HEX)),
    "docker organisation": lambda: _joined("_", "dckr", "oat", fake(32, URL_SAFE)),
    "rubygems": lambda: _joined("_", "rubygems", fake(48, HEX)),
    "crates": lambda: "cio" + fake(32),
    "nuget": lambda: "oy2" + fake(43, _SMALL),
    "jfrog": lambda: "AKC" + "p" + fake(69),
    "jfrog reference": lambda: "cmVmdGtu" + "Oj" + fake(54),
    "clojars": lambda: _joined("_", "CLOJARS", fake(60, HEX)),
    "buildkite": lambda: _joined("_", "bkua", fake(40, HEX)),
    "sonar": lambda: _joined("_", "squ", fake(40, HEX)),
    "circleci": lambda: _joined("_", "CCIPAT", fake(22), fake(40, HEX)),
    "pulumi": lambda: _joined("-", "pul", fake(40, HEX)),
    "supabase secret": lambda: _joined("_", "sb", "secret", fake(31, URL_SAFE)),
    "neon": lambda: _joined("_", "napi", fake(64, _SMALL)),
    "netlify": lambda: _joined("_", "nfp", fake(36)),
    "render": lambda: _joined("_", "rnd", fake(28)),
    "heroku": lambda: "HRKU" + "-AA" + fake(58, URL_SAFE),
    "vercel blob": lambda: _joined("_", "vercel", "blob", "rw", fake(16), fake(32)),
    "cloudflare user": lambda: _joined("_", "cfut", fake(48)),
    "tailscale": lambda: _joined("-", "tskey", "auth", fake(16), fake(32)),
    "infisical": lambda: _joined(
        ".",
        "st",
        _joined("-", *map(fake, (8, 4, 4, 4, 12), (HEX,) * 5)),
        fake(32, HEX),
        fake(32, HEX),
    ),
    "one password": lambda: _joined("_", "ops", "eyJ" + fake(250)),
    "one password key": lambda: _joined("-", "A3", *map(fake, (6, 6, 5, 5, 5, 5), (UPPER,) * 6)),
    "grafana cloud": lambda: _joined("_", "glc", fake(80, BASE64)),
    "grafana key": lambda: "eyJr" + "Ijoi" + fake(90),
    "dynatrace": lambda: _joined(".", "dt0c01", fake(24, UPPER), fake(64, UPPER)),
    "honeycomb": lambda: _joined("_", "hcaik", fake(58, _SMALL)),
    "posthog": lambda: _joined("_", "phx", fake(47)),
    "launchdarkly": lambda: _joined(
        "-",
        "sdk",
        *map(fake, (8, 4), (HEX,) * 2),
        "4" + fake(3, HEX),
        *map(fake, (4, 12), (HEX,) * 2),
    ),
    "new relic license": lambda: fake(36, HEX) + "NRAL",
    "slack session": lambda: _joined("-", "xoxd", fake(120)),
    "square": lambda: _joined("-", "sq0csp", fake(43, URL_SAFE)),
    "square access": lambda: "EAA" + "A" + fake(60, URL_SAFE),
    "resend": lambda: _joined("_", "re", fake(8), fake(24)),
    "brevo": lambda: _joined("-", "xkeysib", fake(64, HEX), fake(16)),
    "airtable": lambda: "pat" + fake(14) + "." + fake(64, HEX),
    "hubspot": lambda: _joined("-", "pat", "na1", *map(fake, (8, 4, 4, 4, 12), (HEX,) * 5)),
    "dropbox": lambda: _joined(".", "sl", fake(135, URL_SAFE)),
    "facebook": lambda: "EA" + "A" + fake(180),
    "instagram": lambda: "IGQ" + "V" + fake(180),
    "x": lambda: "A" * 21 + fake(45) + "%3D" + fake(40),
    "linkedin": lambda: "WPL" + "_AP1." + fake(16) + "." + fake(8) + "==",
    "contentful": lambda: _joined("-", "CFPAT", fake(43, URL_SAFE)),
    "sourcegraph": lambda: _joined("_", "sgp", fake(16, HEX).replace("A", "a"), fake(40, HEX)),
    "openshift": lambda: "sha256" + "~" + fake(43, URL_SAFE),
    "harness": lambda: _joined(".", "pat", fake(22), fake(24, HEX), fake(20)),
    "yandex": lambda: "AQ" + "VN" + fake(36, URL_SAFE),
    "typeform": lambda: _joined("_", "tfp", fake(44, URL_SAFE), fake(14)),
    "readme": lambda: _joined("_", "rdme", fake(70, _SMALL)),
    "frame": lambda: _joined("-", "fio", "u", fake(64, URL_SAFE)),
    "easypost": lambda: "EZ" + "AK" + fake(54),
    "flutterwave": lambda: _joined("-", "FLWSECK", fake(32, HEX)),
    "plaid": lambda: _joined("-", "access", "sandbox", *map(fake, (8, 4, 4, 4, 12), (HEX,) * 5)),
    "telegram in an address": lambda: f"https://api.telegram.org/bot7845123667:{'A' * 2}{fake(33)}",
    # no list names them; one of their own words tells
    "unnamed secret key": lambda: _joined("_", "acme", "sk", fake(32)),
    "unnamed live": lambda: _joined("_", "acme", "live", fake(43)),
    "unnamed personal": lambda: _joined("-", "acmepay", "pat", fake(28)),
    "unnamed long": lambda: _joined("_", "acp", fake(48)),
    "unnamed hex": lambda: _joined("_", "acme", "live", fake(40, HEX)),
    "unnamed secret": lambda: _joined("_", "secret", fake(43)),
}


def key_block(kind: str, *, lines: int = 6, end: str = "\n") -> str:
    """Return a private key of some kind, as PEM."""
    body = end.join(fake(64, BASE64) for _ in range(lines))
    word = "PRIVATE KEY BLOCK" if kind == "PGP " else "PRIVATE KEY"
    return f"-----BEGIN {kind}{word}-----{end}{body}{end}-----END {kind}{word}-----"


KEY_BLOCKS = ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP ")


def spellings(secret: str) -> Mapping[str, str]:
    """Return the forms in which a known value turns up."""
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
        "json in json": json.dumps(json.dumps(secret, ensure_ascii=False)[1:-1])[1:-1],
        "repr": repr(secret)[1:-1],
        "shell": shlex.quote(secret),
        "shell with backslashes": secret.replace("'", "'\\''"),
        "shell in double quotes": re.sub(r'[\\"$`]', r"\\\g<0>", secret),
        "sql": secret.replace("'", "''"),
    }
