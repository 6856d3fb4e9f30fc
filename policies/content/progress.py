"""Recognises progress lines: bars, percentages, spinners, image layers."""

import re
from typing import Final

_SPINNER: Final = re.compile(r"^\s{0,16}(?:[⠀-⣿◐◓◑◒◜◝◞◟]|[|/\\\-](?=\s+\S+\s*(?:\.{3}|…)\s*$))")
_BAR: Final = re.compile(r"[=#>█▓▒░▏▎▍▌▋▊▉━╸╺─•.*\-]{3,}")
_SHARE: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3})?\s?[%％]")
_AMOUNT: Final = re.compile(
    r"(?<!\d)\d+(?:\.\d+)?\s?(?:[kKMGT]i?)?[bB]?\s?/\s?\d+(?:\.\d+)?\s?(?:[kKMGT]i?)?[bB]?(?!\w)",
)
_MOVING: Final = re.compile(
    r"\b(?:downloading|uploading|receiving|resolving|counting|compressing|writing"
    "|extracting|unpacking"
    "|fetching|installing|loading|copying|progress|building|processing|indexing"
    r"|transferring|reading)\b|下载|上传|进度|加载|安装中|处理中|解压|已完成|正在",
    re.IGNORECASE,
)
_LAYER: Final = re.compile(
    r"^\s{0,4}[0-9a-f]{12}:\s+(?:Pulling fs layer|Waiting|Downloading|Verifying Checksum"
    "|Download complete|Extracting|Pull complete|Already exists|Preparing|Pushing|Pushed"
    "|Layer already exists)",
)
_VARYING: Final = re.compile(
    r"[\d.,:%％/\s\[\](){}<>=#>█▓▒░▏▎▍▌▋▊▉━╸╺─•*|\\\-⠀-⣿◐◓◑◒◜◝◞◟]+"
    r"|(?<=\d)[kKMGT]i?[bB]?(?!\w)",
)
_SAYING: Final = re.compile(r"[，。；！？]|[,;!?](?=\s)|\.\s+[A-Z]")
_WORD: Final = re.compile(r"[A-Za-z]{2,}|[一-鿿]{2}")
_MOST_WORDS = 8
"""With more words, or more than one clause, it says something."""

_LONGEST = 400
"""A longer line tells more than a number."""


def progress_of(line: str) -> str | None:
    """Return what a line shows the progress of, without how far, or None.

    Two lines of the same thing give the same text, so that the later one can stand for both.
    """
    if not line.strip() or len(line) > _LONGEST:
        return None
    if _LAYER.match(line):
        return "layer"
    if not _SPINNER.match(line):
        measured = _SHARE.search(line) or _AMOUNT.search(line)
        if not measured or not (_BAR.search(line) or _MOVING.search(line)):
            return None
    if _SAYING.search(line) or len(_WORD.findall(line)) > _MOST_WORDS:
        return None
    return _VARYING.sub(" ", line).strip()
