"""Tokens in the formats of known providers: what begins as only a token begins.

A cheap word is looked for before any expression runs; each expression begins at a border and is bounded
or reads on in one class of characters, so none runs back over what it has read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from policies.masks import replace_whole, replaced_spans
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
    *_formats("hf_ gsk_ r8_ tvly-", r"[A-Za-z0-9]{24,}"),
    *_formats("xai- pplx- nvapi- fw_ csk- jina_", rf"{_WORD}{{24,}}"),
)
_OURS = (_format("candor_", rf"{_WORD}{{43}}(?!{_WORD})"),)
"""What lets a person into the gateway itself."""
_CODE_HOSTS = (
    *_formats("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    _format("github_pat_", r"[A-Za-z0-9_]{22,}"),
    *_formats("glpat- gldt- glrt- glptt- glsoat- glcbt- glimt- glft- glagent-", r"[\w\-.]{16,}"),
    *_formats("npm_ ntn_ lin_api_", r"[A-Za-z0-9]{24,}"),
    _format("pypi-", rf"{_WORD}{{40,}}"),
    _format("dckr_pat_", rf"{_WORD}{{20,}}"),
    _format("ATATT3", r"[A-Za-z0-9_\-=]{20,}"),
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
    *_formats("pscale_tkn_ pscale_pw_ pscale_oauth_", rf"{_WORD}{{28,}}"),
    _format("glsa_", r"[A-Za-z0-9]{28,}_[a-f0-9]{8}"),
    _format("NRAK-", r"[A-Z0-9]{24,}"),
    *_formats("sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{40,}"),
    _format("AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}"),
)
_SHOPS_AND_CHATS = (
    *_formats(
        "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", r"[A-Za-z0-9+/=]{16,}"
    ),
    *_formats("shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{24,}"),
    *_formats("xoxb- xoxa- xoxp- xoxo- xoxr- xoxs- xoxe- xoxe. xapp-", r"[A-Za-z0-9.\-]{10,}"),
    _format("hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    _format("SG.", rf"{_WORD}{{16,}}\.{_WORD}{{16,}}"),
    _format("key-", r"[a-f0-9]{32}(?![a-f0-9])"),
    _Format("-us", re.compile(rf"{_BEFORE}[a-f0-9]{{32}}-us\d{{1,2}}(?!\w)")),
    # Telegram's bots and Discord's, Twilio: no telling word, so the nearest that there is
    _Format(":AA", re.compile(rf"{_BEFORE}\d{{8,10}}:AA{_WORD}{{30,}}")),
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


def mask_formats(page: Page) -> None:
    """Mask every token whose form alone tells what it is."""
    for one in _FORMATS:
        if one.word in page.read:
            page.mask(replaced_spans(page.read, one.pattern, replace_whole))
