"""Tokens of known providers, as data: what each begins with and what follows.

The formats are facts about the providers. They were compared with the rules of gitleaks (MIT licence); no
text of theirs is copied here.

A line holds prefixes, a colon and a regular expression for the rest. Each rest reads on in one class of
characters or is bounded, so the time is linear. `W` stands for a letter, digit, `_` or `-`.
"""

import re
from collections.abc import Iterator

from policies.secrets.looks import is_mixed, looks_made
from policies.secrets.text import MASK, Span, words

_TABLE = r"""
candor_: W{43}(?!W)
sk-: (?=[A-Za-z_\-]{0,60}[0-9])W{16,}
hf_ api_org_ gsk_ r8_ npm_ ntn_ lin_api_ fly_: [A-Za-z0-9]{24,}
tvly- xai- pplx- nvapi- fw_ csk- jina_ tgp_v1_ wandb_v1_: W{24,}
fc- e2b_ sk_: [a-f0-9]{32,}(?![A-Za-z0-9])
pa-: (?=[a-z0-9_\-]{0,42}[A-Z])(?=[A-Za-z_\-]{0,42}[0-9])W{43}(?!W)
lsv2_: [ps][tk]_[a-f0-9]{32}_[a-f0-9]{10}
pcsk_: [A-Za-z0-9_]{40,}
bce-v3/ALTAK-: [A-Za-z0-9]{10,}/[a-f0-9]{32,}
ghp_ gho_ ghu_ ghs_ ghr_: [A-Za-z0-9]{20,}
github_pat_: [A-Za-z0-9_]{22,}
glpat- gldt- glrt- glptt- glsoat- glcbt- glimt- glft- glagent- gloas- glffct-: [\w\-.]{16,}
pypi-: W{40,}
dckr_pat_ dckr_oat_ ya29. GOCSPX- hvs. hvb. hvr. sb_secret_ AVNS_: W{20,}
rubygems_: [a-f0-9]{48}
cio: (?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9])
oy2: [a-z0-9]{43}(?![A-Za-z0-9])
AKCp: [A-Za-z0-9]{60,}
cmVmd phx_: [A-Za-z0-9]{40,}
CLOJARS_: [a-f0-9]{60}
bkua_ squ_ sqp_ sqa_ pul-: [a-f0-9]{40}
CCIPAT_ CCIPRJ_: [A-Za-z0-9]{16,}_[a-f0-9]{40}
ATATT3 ATCTT3: [A-Za-z0-9_\-=]{20,}
ATBB: [A-Za-z0-9]{28,}
figd_ AIza: W{30,}
PMAK-: [a-f0-9]{24}-[a-f0-9]{34}
GR1348941: W{20}(?!W)
s-s4t2ud- s-s4t2af-: [a-f0-9]{64}
API-: (?=[A-Z]{0,25}[0-9])[A-Z0-9]{26}(?![A-Z0-9])
4b1d: (?=[a-z0-9]{0,37}[A-Z])[A-Za-z0-9]{38}(?![A-Za-z0-9])
A3T: (?=[A-Z]{0,16}[0-9])[A-Z0-9]{17}(?![A-Za-z0-9])
AKIA ASIA ABIA ACCA: [A-Z0-9]{16}(?![A-Za-z0-9])
ABSK: [A-Za-z0-9+/=]{60,}
1//0 CFPAT- tk-us- fio-u-: W{40,}
LTAI: [A-Za-z0-9]{12,26}(?![A-Za-z0-9+/=])
AKID: [A-Za-z0-9]{28,40}(?![A-Za-z0-9+/=])
AKLT: [A-Za-z0-9=]{36,}
dop_v1_ doo_v1_ dor_v1_: [a-f0-9]{32,}
dapi: [a-f0-9]{32}(?:-\d)?
v1.0-: [a-f0-9]{24}-[a-f0-9]{100,}
fm1a_ fm1r_ fm2_: [A-Za-z0-9+/=,_]{40,}
dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.: [A-Za-z0-9_.\-]{36,}
sbp_: [a-f0-9]{36,}
napi_ hcaik_ hcxik_: [a-z0-9]{40,}
nfp_ rnd_: (?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{28,}
HRKU-AA fo1_ vercel_blob_rw_ cfk_ cfut_ cfat_: W{32,}
tskey-: [a-z]{2,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}
st.: [a-f0-9]{8}-[a-f0-9\-]{27}\.[a-f0-9]{32}\.[a-f0-9]{32}
ops_eyJ: [A-Za-z0-9+/_\-]{100,}
A3-: [A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}(?![A-Z0-9-])
glc_: [A-Za-z0-9+/=]{40,}
eyJrIjoi: [A-Za-z0-9+/=]{50,}
dt0c01.: [A-Z0-9]{24}\.[A-Z0-9]{64}
sdk- mob-: [a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[a-f0-9]{4}-[a-f0-9]{12}
pscale_tkn_ pscale_pw_ pscale_oauth_ pnu_ ico- dnkey-: W{28,}
glsa_: [A-Za-z0-9]{28,}_[a-f0-9]{8}
NRAK-: [A-Z0-9]{24,}
NRJS-: [a-f0-9]{19}
NRII-: [A-Za-z0-9\-]{32}
sntrys_ sntryu_: [A-Za-z0-9+/=_]{40,}
sgp_: (?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}
sha256~: W{43}(?!W)
pat. sat.: W{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}
AQVN: W{35,38}(?!W)
tfp_: [A-Za-z0-9_\-.]{40,}
rdme_: [a-z0-9]{60,}
EZAK EZTK: [A-Za-z0-9]{54}(?![A-Za-z0-9])
FLWSECK: (?:_TEST)?-[a-f0-9]{12,}
access-: (?:sandbox|development|production)-[a-f0-9]{8}-[a-f0-9\-]{27}
AGE-SECRET-KEY-1: [A-Z0-9]{40,}
shippo_live_ shippo_test_ sm_aat_ sm_pat_ sm_sat_ duffel_live_ duffel_test_: [\w\-=]{16,}
p8e-: [a-z0-9]{32}(?![a-z0-9])
sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_ whsec_: [A-Za-z0-9+/=]{16,}
shpat_ shpca_ shppa_ shpss_: [a-fA-F0-9]{24,}
xoxb- xoxa- xoxp- xoxo- xoxr- xoxs- xoxe- xoxe. xapp-: [A-Za-z0-9.\-]{10,}
xoxd-: [A-Za-z0-9%+/=\-]{40,}
sq0csp- sq0atp-: W{22,}
re_: (?=[A-Za-z_]{0,33}[0-9])[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9])
xkeysib- xsmtpsib-: [a-f0-9]{64}-[A-Za-z0-9]{16}
pat: [A-Za-z0-9]{14}\.[a-f0-9]{64}
pat-na1- pat-na2- pat-eu1-: [a-f0-9]{8}-[a-f0-9\-]{27}
sl.: (?=[A-Za-z_\-]{0,60}[0-9])W{100,}
EAA IGQV: (?<![+/]...)(?<![+/]....)[A-Za-z0-9]{100,}
EAAA: (?<![+/]....)(?=[A-Za-z_\-]{0,40}[0-9])W{60}(?!W)
AAAAAAAAAAAAAAAAAAAAA: [A-Za-z0-9]{40,}%[A-Za-z0-9%]{20,}
WPL_AP1.: [A-Za-z0-9]{10,}\.[A-Za-z0-9=]{6,}
hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/: [A-Za-z0-9+/]{20,}
SG.: W{16,}\.W{16,}
key-: [a-f0-9]{32}(?![a-f0-9])
t1.: (?=[A-Za-z_\-]{0,60}[0-9])[A-Za-z0-9_\-=]{8,}\.W{86}
$1$ $5$ $6$ $apr1$: (?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22,86}
$2a$ $2b$ $2y$: [0-9]{2}\$[./A-Za-z0-9]{53}
$y$: [./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}
$argon2id$ $argon2i$: v=[0-9]{1,4}\$[a-z0-9=,]{1,64}\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,}
eyJ: (?<![_\-]eyJ)W{8,}\.W{8,}(?:\.W*)?
"""

_BORDERS = (
    r"(?<![A-Za-z0-9]{0})",
    r"(?<=\\[nrt]{0})",  # a line break or a tab, written out
    r"(?<=\\u[0-9a-fA-F]{{4}}{0})",
    r"(?<=%[0-9a-fA-F]{{2}}{0})",
    *(r"(?<=[\[;]\dm{0})", r"(?<=[\[;]\d\dm{0})", r"(?<=;\d\d\dm{0})"),  # a terminal's colours
)
"""What may stand before a token: nothing that it could be a part of, or the end of an escape."""


def _border(word: str = "") -> str:
    return f"(?:{'|'.join(one.format(word) for one in _BORDERS)})"


def _rest(text: str) -> str:
    return re.sub(r"W(?=[{*)])", r"[A-Za-z0-9_\\-]", text)


_B = _border()
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    *(
        # the word goes first, because a search for plain text is the fastest
        (word, re.compile(f"{re.escape(word)}{_border(re.escape(word))}{_rest(rest)}", re.ASCII))
        for line in _TABLE.strip().splitlines()
        for prefixes, rest in [line.split(": ", 1)]
        for word in prefixes.split()
    ),
    # formats without a prefix: a word that is in each, and the whole
    *(
        (word, re.compile(_rest(pattern), re.ASCII))
        for word, pattern in (
            # Zhipu, Terraform, Azure, New Relic, Mailchimp, Telegram, Discord, Twilio
            (
                ".",
                (
                    rf"{_B}(?<![_\-./])[a-f0-9]{{32}}\.(?=[A-Za-z]{{0,15}}[0-9])(?=[a-z0-9]{{0,15}}[A-Z])"
                    r"[A-Za-z0-9]{16}(?![A-Za-z0-9_]|\.[A-Za-z0-9])"
                ),
            ),
            (".atlasv1.", rf"{_B}[A-Za-z0-9]{{10,20}}\.atlasv1\.W{{40,}}"),
            ("Q~", rf"{_B}(?<![_~.\-])[\w.~\-]{{3}}\dQ~[\w.~\-]{{31,34}}(?![\w~])"),
            ("_mmk", rf"{_B}[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk(?![A-Za-z0-9])"),
            ("NRAL", rf"{_B}[a-f0-9]{{36}}NRAL(?![A-Za-z0-9])"),
            ("-us", rf"{_B}[a-f0-9]{{32}}-us\d{{1,2}}(?!\w)"),
            (":AA", rf"(?:{_B}|(?<=/bot))\d{{8,10}}:AAW{{30,}}"),
            (".", rf"{_B}(?<![_\-.])[MNO]W{{23,27}}\.W{{6}}\.W{{27,40}}"),
            ("SK", rf"{_B}SK[a-f0-9]{{32}}(?![a-f0-9])"),
        )
    ),
)

_LONG_RUN = re.compile(r"[!-~]{15}")
"""No format is shorter, and most lines of prose hold nothing so long."""
_SECRET_WORDS = frozenset(words("sk pat secret token tok apikey key api auth live pw"))
_SECRET_WORDS_FOR_HEX = frozenset(("sk", "pat", "live"))
_HASHES = re.compile(r"(?:sha|md)\d{1,3}[_\-]\Z")
_PLAIN_HEAD = re.compile(r"(?:[a-z]{2,12}[_\-])+|(?:[A-Z]{2,12}[_\-])+")
_LONG_TAIL = re.compile(r"[_\-][A-Za-z0-9]{20}")
_UNLISTED = re.compile(
    rf"{_B}(?<![_\-./+\\])(?<!sha256=)(?<!sha384=)(?<!sha512=)(?P<head>(?:[A-Za-z][A-Za-z0-9]{{0,15}}[_\-]){{1,4}})"
    r"(?P<tail>[A-Za-z0-9]{20,512})(?![A-Za-z0-9_\-/+]|\.[A-Za-z0-9])"
)
"""Joined words and a long tail, as most providers make tokens today: `acme_sk_…`, `acme-pat-…`."""
_LONGER_THAN_IDS = 32


def token_spans(text: str) -> Iterator[Span]:
    """Yield where tokens stand that their form alone shows."""
    if _LONG_RUN.search(text) is None:
        return
    for word, pattern in _PATTERNS:
        if word in text:
            for match in pattern.finditer(text):
                if not text.startswith(MASK, match.end()):
                    yield match.span()
    if _LONG_TAIL.search(text) is not None:
        for match in _UNLISTED.finditer(text):
            if _is_unlisted_token(match):
                yield match.span()


def _is_unlisted_token(match: re.Match[str]) -> bool:
    """Return whether one of a token's own words says that it is one, or its length.

    Ids are made the same way (`req_…`, `msg_…`) but shorter; names of caches have no capitals.
    """
    head, tail = match["head"].lower(), match["tail"]
    if match.string.startswith(MASK, match.end()) or _HASHES.search(head):
        return False
    parts = re.split(r"[_\-]", head)
    is_long = len(tail) >= _LONGER_THAN_IDS
    if looks_made(tail):
        is_plain = _PLAIN_HEAD.fullmatch(match["head"]) is not None
        return (is_long and is_plain) or not _SECRET_WORDS.isdisjoint(parts)
    return is_long and is_mixed(tail) and not _SECRET_WORDS_FOR_HEX.isdisjoint(parts)
