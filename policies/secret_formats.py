"""Tokens in the formats of known providers: what begins as only a token begins.

A cheap word is looked for before any expression runs; each expression begins at a border and is bounded
or reads on in one class of characters, so none runs back over what it has read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from policies.masks import MASK, mask_value, replace_whole, replaced_spans
from policies.secret_looks import is_mixed, looks_made
from policies.secret_shadow import Page

_BORDERS = (
    r"(?<![A-Za-z0-9]{0})",
    r"(?<=\\[nrt]{0})",  # a line break or a tab, written out
    r"(?<=\\u[0-9a-fA-F]{{4}}{0})",
    r"(?<=%[0-9a-fA-F]{{2}}{0})",
    *(r"(?<=[\[;]\dm{0})", r"(?<=[\[;]\d\dm{0})", r"(?<=;\d\d\dm{0})"),  # a terminal's colours
)
"""What may stand before a token: nothing that it could be a part of, or the end of an escape."""


def _border(word: str = "") -> str:
    """Say that a border was before the word that was just read, or is here."""
    return f"(?:{'|'.join(one.format(word) for one in _BORDERS)})"


_BEFORE = _border()


@dataclass(frozen=True, slots=True)
class _Format:
    """A token's format; the cheap word is in every text that holds one."""

    word: str
    pattern: re.Pattern[str]


def _format(word: str, rest: str) -> _Format:
    """Make a format; the word goes first, because a search for plain text is the fastest."""
    plain = re.escape(word)
    return _Format(word, re.compile(f"{plain}{_border(plain)}{rest}"))


def _formats(words: str, rest: str) -> list[_Format]:
    return [_format(word, rest) for word in words.split()]


_WORD = r"[A-Za-z0-9_\-]"

_MODELS = (
    # Anthropic, OpenAI, DeepSeek, DashScope, Moonshot, OpenRouter
    _format("sk-", r"(?=[A-Za-z_\-]{0,60}[0-9])[A-Za-z0-9_\-]{16,}"),
    *_formats("hf_ api_org_ gsk_ r8_", r"[A-Za-z0-9]{24,}"),
    *_formats("tvly- xai- pplx- nvapi- fw_ csk- jina_ tgp_v1_ wandb_v1_", rf"{_WORD}{{24,}}"),
    # Firecrawl, E2B, ElevenLabs; Voyage; LangSmith
    *_formats("fc- e2b_ sk_", r"[a-f0-9]{32,}(?![A-Za-z0-9])"),
    _format(
        "pa-", rf"(?=[a-z0-9_\-]{{0,42}}[A-Z])(?=[A-Za-z_\-]{{0,42}}[0-9]){_WORD}{{43}}(?!{_WORD})"
    ),
    _format("lsv2_", r"[ps][tk]_[a-f0-9]{32}_[a-f0-9]{10}"),
    _format("pcsk_", r"[A-Za-z0-9_]{40,}"),  # Pinecone
    _format("bce-v3/ALTAK-", r"[A-Za-z0-9]{10,}/[a-f0-9]{32,}"),  # Baidu
    # Zhipu: 32 digits of an id, a dot, and a word
    _Format(
        ".",
        re.compile(
            rf"{_BEFORE}(?<![_\-./])[a-f0-9]{{32}}\.(?=[A-Za-z]{{0,15}}[0-9])(?=[a-z0-9]{{0,15}}[A-Z])"
            r"[A-Za-z0-9]{16}(?![A-Za-z0-9_]|\.[A-Za-z0-9])"
        ),
    ),
)
_OURS = (_format("candor_", rf"{_WORD}{{43}}(?!{_WORD})"),)
"""What lets a person into the gateway itself."""
_CODE_HOSTS = (
    *_formats("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    _format("github_pat_", r"[A-Za-z0-9_]{22,}"),
    *_formats(
        "glpat- gldt- glrt- glptt- glsoat- glcbt- glimt- glft- glagent- gloas-", r"[\w\-.]{16,}"
    ),
    *_formats("npm_ ntn_ lin_api_", r"[A-Za-z0-9]{24,}"),
    _format("pypi-", rf"{_WORD}{{40,}}"),
    *_formats("dckr_pat_ dckr_oat_", rf"{_WORD}{{20,}}"),
    _format("rubygems_", r"[a-f0-9]{48}"),
    # crates.io, NuGet, JFrog, Clojars, Buildkite and Sonar, Pulumi
    _format("cio", r"(?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    _format("oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    _format("AKCp", r"[A-Za-z0-9]{60,}"),
    _format("cmVmdGtuOj", r"[A-Za-z0-9]{40,}"),
    _format("CLOJARS_", r"[a-f0-9]{60}"),
    *_formats("bkua_ squ_ sqp_ sqa_", r"[a-f0-9]{40}"),
    *_formats("CCIPAT_ CCIPRJ_", r"[A-Za-z0-9]{16,}_[a-f0-9]{40}"),
    _format("pul-", r"[a-f0-9]{40}"),
    *_formats("ATATT3 ATCTT3", r"[A-Za-z0-9_\-=]{20,}"),
    _format("ATBB", r"[A-Za-z0-9]{28,}"),
    _format("figd_", rf"{_WORD}{{30,}}"),
    _format("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
)
_CLOUDS = (
    *_formats("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _format("ABSK", r"[A-Za-z0-9+/=]{60,}"),
    _format("AIza", rf"{_WORD}{{30,}}"),
    _format("ya29.", rf"{_WORD}{{20,}}"),
    _format("GOCSPX-", rf"{_WORD}{{20,}}"),
    _format("1//0", rf"{_WORD}{{40,}}"),
    # Alibaba Cloud, Tencent Cloud, Volcengine
    _format("LTAI", r"[A-Za-z0-9]{12,26}(?![A-Za-z0-9+/=])"),
    _format("AKID", r"[A-Za-z0-9]{28,40}(?![A-Za-z0-9+/=])"),
    _format("AKLT", r"[A-Za-z0-9=]{36,}"),
    *_formats("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{32,}"),
    _format("dapi", r"[a-f0-9]{32}"),
    _format("v1.0-", r"[a-f0-9]{24}-[a-f0-9]{100,}"),
    _format("fm2_", r"[A-Za-z0-9+/=,_]{40,}"),
    _format("fly_", r"[A-Za-z0-9]{24,}"),
    _Format(".atlasv1.", re.compile(rf"{_BEFORE}[A-Za-z0-9]{{10,20}}\.atlasv1\.{_WORD}{{40,}}")),
    # Azure's client secrets: three characters, a digit, Q~
    _Format(
        "Q~",
        re.compile(rf"{_BEFORE}(?<![_~.\-])[\w.~\-]{{3}}\dQ~[\w.~\-]{{31,34}}(?![\w~])", re.ASCII),
    ),
    *_formats("hvs. hvb. hvr.", rf"{_WORD}{{20,}}"),
    *_formats("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9_.\-]{36,}"),
    _format("sbp_", r"[a-f0-9]{36,}"),
    _format("sb_secret_", rf"{_WORD}{{20,}}"),
    # Neon, Netlify, Render, Heroku, Vercel, Cloudflare
    _format("napi_", r"[a-z0-9]{40,}"),
    *_formats("nfp_ rnd_", r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{28,}"),
    *_formats("HRKU-AA fo1_ vercel_blob_rw_ cfk_ cfut_ cfat_", rf"{_WORD}{{32,}}"),
    _format("tskey-", r"[a-z]{2,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}"),  # Tailscale
    _format("st.", r"[a-f0-9]{8}-[a-f0-9\-]{27}\.[a-f0-9]{32}\.[a-f0-9]{32}"),  # Infisical
    _format("ops_eyJ", r"[A-Za-z0-9+/_\-]{100,}"),  # 1Password
    _format("A3-", r"[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}(?![A-Z0-9-])"),
    _format("glc_", r"[A-Za-z0-9+/=]{40,}"),
    _format("eyJrIjoi", r"[A-Za-z0-9+/=]{50,}"),  # Grafana before its version 9
    _format("dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    # Honeycomb, PostHog, LaunchDarkly
    *_formats("hcaik_ hcxik_", r"[a-z0-9]{40,}"),
    _format("phx_", r"[A-Za-z0-9]{40,}"),
    *_formats("sdk- mob-", r"[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[a-f0-9]{4}-[a-f0-9]{12}"),
    _Format("NRAL", re.compile(rf"{_BEFORE}[a-f0-9]{{36}}NRAL(?![A-Za-z0-9])")),
    *_formats("pscale_tkn_ pscale_pw_ pscale_oauth_", rf"{_WORD}{{28,}}"),
    _format("glsa_", r"[A-Za-z0-9]{28,}_[a-f0-9]{8}"),
    _format("NRAK-", r"[A-Z0-9]{24,}"),
    *_formats("sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{40,}"),
    # Contentful, Scalingo, Sourcegraph, OpenShift, Harness, Yandex
    *_formats("CFPAT- tk-us-", rf"{_WORD}{{40,}}"),
    _format("sgp_", r"(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}"),
    _format("sha256~", rf"{_WORD}{{43}}(?!{_WORD})"),
    _format("pat.", r"[A-Za-z0-9_\-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
    _format("AQVN", rf"{_WORD}{{35,38}}(?!{_WORD})"),
    # Typeform, Frame.io, ReadMe, EasyPost, Flutterwave, Plaid
    _format("tfp_", r"[A-Za-z0-9_\-.]{40,}"),
    _format("fio-u-", rf"{_WORD}{{40,}}"),
    _format("rdme_", r"[a-z0-9]{60,}"),
    *_formats("EZAK EZTK", r"[A-Za-z0-9]{54}(?![A-Za-z0-9])"),
    _format("FLWSECK", r"(?:_TEST)?-[a-f0-9]{12,}"),
    _format("access-", r"(?:sandbox|development|production)-[a-f0-9]{8}-[a-f0-9\-]{27}"),
    _format("AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}"),
)
_SHOPS_AND_CHATS = (
    *_formats(
        "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", r"[A-Za-z0-9+/=]{16,}"
    ),
    *_formats("shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{24,}"),
    *_formats("xoxb- xoxa- xoxp- xoxo- xoxr- xoxs- xoxe- xoxe. xapp-", r"[A-Za-z0-9.\-]{10,}"),
    _format("xoxd-", r"[A-Za-z0-9%+/=\-]{40,}"),
    *_formats("sq0csp- sq0atp-", rf"{_WORD}{{22,}}"),
    # Resend, Brevo, Airtable, HubSpot, Dropbox, Facebook and Square, Instagram, X, LinkedIn
    _format("re_", r"(?=[A-Za-z_]{0,33}[0-9])[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    *_formats("xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _format("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    *_formats("pat-na1- pat-na2- pat-eu1-", r"[a-f0-9]{8}-[a-f0-9\-]{27}"),
    _format("sl.", r"(?=[A-Za-z_\-]{0,60}[0-9])[A-Za-z0-9_\-]{100,}"),
    *_formats("EAA IGQV", r"(?<![+/]...)(?<![+/]....)[A-Za-z0-9]{100,}"),  # not inside base64
    _format("EAAA", rf"(?<![+/]....)(?=[A-Za-z_\-]{{0,40}}[0-9]){_WORD}{{60}}(?!{_WORD})"),
    _format("AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9]{40,}%[A-Za-z0-9%]{20,}"),
    _format("WPL_AP1.", r"[A-Za-z0-9]{10,}\.[A-Za-z0-9=]{6,}"),
    _format("hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    _format("SG.", rf"{_WORD}{{16,}}\.{_WORD}{{16,}}"),
    _format("key-", r"[a-f0-9]{32}(?![a-f0-9])"),
    _Format("-us", re.compile(rf"{_BEFORE}[a-f0-9]{{32}}-us\d{{1,2}}(?!\w)")),
    # Telegram's bots and Discord's, Twilio: no telling word, so the nearest that there is
    _Format(":AA", re.compile(rf"(?:{_BEFORE}|(?<=/bot))\d{{8,10}}:AA{_WORD}{{30,}}")),
    _Format(
        ".",
        re.compile(rf"{_BEFORE}(?<![_\-.])[MNO]{_WORD}{{23,27}}\.{_WORD}{{6}}\.{_WORD}{{27,40}}"),
    ),
    _Format("SK", re.compile(rf"{_BEFORE}SK[a-f0-9]{{32}}(?![a-f0-9])")),
)
_JWT = _format(
    "eyJ",
    rf"(?<![_\-]eyJ){_WORD}{{8,}}\.{_WORD}{{8,}}(?:\.{_WORD}*)?",
)

_FORMATS: Sequence[_Format] = (*_OURS, *_MODELS, *_CODE_HOSTS, *_CLOUDS, *_SHOPS_AND_CHATS, _JWT)


_LONG_RUN = re.compile(r"[!-~]{15}")
"""No format is shorter, and most lines of talk hold nothing so long."""

_TELLING = frozenset(
    ("sk", "pat", "secret", "token", "tok", "apikey", "key", "api", "auth", "live", "pw")
)
_TELLING_OF_ANY = frozenset(("sk", "pat", "live"))
"""Behind these a tail of small letters counts, too; behind the others it is a hash."""
_HASHES = re.compile(r"(?:sha|md)\d{1,3}[_\-]\Z")
_PLAIN_HEAD = re.compile(r"(?:[a-z]{2,12}[_\-])+|(?:[A-Z]{2,12}[_\-])+")
"""Anything else before a long tail is the first piece of a hash or an id: `sha256=Y9I-c0p…`."""
_SELF_TOLD = re.compile(
    rf"{_BEFORE}(?<![_\-./+\\])(?<!sha256=)(?<!sha384=)(?<!sha512=)(?P<head>(?:[A-Za-z][A-Za-z0-9]{{0,15}}[_\-]){{1,4}})"
    r"(?P<tail>[A-Za-z0-9]{20,512})(?![A-Za-z0-9_\-/+]|\.[A-Za-z0-9])"
)
"""Words that are joined, and a long tail: as most providers make tokens today, `acme_sk_…`, `acme-pat-…`."""
_LONG_TAIL = re.compile(r"[_\-][A-Za-z0-9]{20}")
_LONGER_THAN_IDS = 32


def _mask_self_told(match: re.Match[str]) -> str:
    """Mask a token that no list names, if one of its own words says that it is one, or its length.

    Ids are made the same way (`req_…`, `msg_…`) but shorter, and hashes stand behind names of files and
    caches, but have no large letters.
    """
    head, tail = match["head"].lower(), match["tail"]
    if match.string.startswith(MASK, match.end()) or _HASHES.search(head):
        return match[0]
    words = re.split(r"[_\-]", head)
    is_long = len(tail) >= _LONGER_THAN_IDS
    if looks_made(tail):
        is_plain = _PLAIN_HEAD.fullmatch(match["head"]) is not None
        is_token = (is_long and is_plain) or not _TELLING.isdisjoint(words)
    else:
        is_token = is_long and is_mixed(tail) and not _TELLING_OF_ANY.isdisjoint(words)
    return mask_value(match[0]) if is_token else match[0]


def mask_formats(page: Page) -> None:
    """Mask every token whose form alone tells what it is."""
    text = page.read
    if _LONG_RUN.search(text) is None:
        return
    for one in _FORMATS:
        if one.word in text:
            page.mask(replaced_spans(text, one.pattern, replace_whole))
            text = page.read
    if _LONG_TAIL.search(text) is not None:
        page.mask(replaced_spans(text, _SELF_TOLD, _mask_self_told))
