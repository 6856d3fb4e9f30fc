"""The commands that the policy knows, and the options that each of them may carry.

This is an allow-list with exact long names. It leaves out options that make or follow links, keep backups,
run programs, read lists of names from files, wait for input, or take values that are not listed here. The
rules say which of the commands are allowed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_WORD = re.compile(r"[^-].*", re.DOTALL)
_NAME_PATTERN = re.compile(r"[^-/][^/]*")
"""Not a path: where an option takes no value (`ls -I` on macOS) it would be an operand."""
_TEXT = re.compile(r".*", re.DOTALL)
_MODE = re.compile(r"0?[0-7]{3}|[ugoa]*[-+=][rwxX]*(?:,[ugoa]*[-+=][rwxX]*)*")
_NUMBER = re.compile(r"\d{1,9}")
_COUNT = re.compile(r"[-+]?\d{1,9}")
_WHEN = re.compile("always|auto|never")
_UPDATE = re.compile("all|none|none-fail|older")
_BLOCK_SIZE = re.compile(r"\d{0,9}[KMGTkmgt]?B?|human-readable|si")
_DATE = re.compile(r"[\w :+\-./,]{1,64}", re.ASCII)

_Values = Mapping[str, re.Pattern[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The options of one command, and how many operands it takes."""

    flags: str
    """Short options without a value."""
    long_flags: frozenset[str]
    short_values: _Values = field(default_factory=dict)
    """Short options with a value, and what the value may be."""
    long_values: _Values = field(default_factory=dict)
    """Long options with a value, which is optional if the name is also in `long_flags`."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Options that the policy must understand, by their long name."""
    read_values: frozenset[str] = frozenset()
    """Long names of options whose value is a file to be read."""
    number_option: str | None = None
    """The option that `-5` stands for."""
    least: int = 1
    most: int | None = None
    """The number of operands; `None`: no limit."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FIRST_OR_LAST_LINES = Grammar(
    flags="qvz",
    long_flags=_names("quiet silent verbose zero-terminated"),
    short_values={"n": _COUNT, "c": _COUNT},
    long_values={"lines": _COUNT, "bytes": _COUNT},
    number_option="-n",
)

GRAMMARS: Mapping[str, Grammar] = {
    "ls": Grammar(
        flags="1aABcCdfFghiklmnNopqQrRsStuUvxX",
        long_flags=_names("""
            all almost-all author classify color directory escape file-type full-time
            group-directories-first hide-control-chars human-readable ignore-backups inode kibibytes
            literal no-group numeric-uid-gid quote-name recursive reverse show-control-chars si size
        """),
        short_values={"I": _NAME_PATTERN, "T": _NUMBER, "w": _NUMBER},
        long_values={
            "block-size": _BLOCK_SIZE,
            "color": _WHEN,
            "hide": _NAME_PATTERN,
            "ignore": _NAME_PATTERN,
            "tabsize": _NUMBER,
            "width": _NUMBER,
            "classify": _WHEN,
            "format": re.compile("across|commas|horizontal|long|single-column|verbose|vertical"),
            "sort": re.compile("none|size|time|version|extension|width|name"),
            "time": re.compile("atime|access|use|ctime|status|birth|creation|mtime|modification"),
            "time-style": re.compile("full-iso|long-iso|iso|locale"),
            "indicator-style": re.compile("none|slash|file-type|classify"),
        },
        least=0,
    ),
    "cat": Grammar(
        flags="AbeEnstTuv",
        long_flags=_names("""
            number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank
        """),
    ),
    "rm": Grammar(
        flags="dfiIrRv",
        long_flags=_names("""
            dir force interactive one-file-system preserve-root recursive verbose
        """),
        aliases={"r": "recursive", "R": "recursive"},
        long_values={
            "interactive": re.compile("always|never|no|none|once|yes"),
            "preserve-root": re.compile("all"),
        },
    ),
    "mv": Grammar(
        flags="finTuv",
        long_flags=_names("force interactive no-clobber no-target-directory update verbose"),
        aliases={"T": "no-target-directory", "t": "target-directory"},
        short_values={"t": _WORD},
        long_values={"target-directory": _WORD, "update": _UPDATE},
    ),
    "cp": Grammar(
        flags="adfinpPrRTuvx",
        long_flags=_names("""
            archive attributes-only force interactive no-clobber no-dereference no-target-directory
            one-file-system preserve recursive reflink remove-destination update verbose
        """),
        aliases={
            **dict.fromkeys(("a", "archive", "r", "R"), "recursive"),
            "T": "no-target-directory",
            "t": "target-directory",
        },
        short_values={"t": _WORD},
        long_values={
            "target-directory": _WORD,
            "preserve": re.compile(
                "(?:mode|ownership|timestamps|all)(?:,(?:mode|ownership|timestamps|all))*"
            ),
            "reflink": _WHEN,
            "sparse": _WHEN,
            "update": _UPDATE,
        },
    ),
    "mkdir": Grammar(
        flags="pv",
        long_flags=_names("parents verbose"),
        short_values={"m": _MODE},
        long_values={"mode": _MODE},
    ),
    # the following are off unless a rule switches them on
    "touch": Grammar(
        flags="acm",
        long_flags=_names("no-create"),
        short_values={"d": _DATE, "r": _WORD, "t": re.compile(r"\d{8,12}(?:\.\d\d)?")},
        long_values={
            "date": _DATE,
            "reference": _WORD,
            "time": re.compile("access|atime|use|modify|mtime"),
        },
        aliases={"r": "reference"},
        read_values=frozenset({"reference"}),
    ),
    "rmdir": Grammar(
        flags="pv",
        long_flags=_names("ignore-fail-on-non-empty parents verbose"),
        aliases={"p": "parents"},
    ),
    "pwd": Grammar(flags="LP", long_flags=frozenset(), least=0, most=0),
    "head": _FIRST_OR_LAST_LINES,
    "tail": _FIRST_OR_LAST_LINES,
    "wc": Grammar(flags="cmlLw", long_flags=_names("bytes chars lines max-line-length words")),
    "stat": Grammar(
        flags="t",
        long_flags=_names("terse"),
        short_values={"c": _WORD},
        long_values={"format": _WORD, "printf": _WORD},
    ),
    "file": Grammar(
        flags="bhikN",
        long_flags=_names("""
            brief keep-going mime mime-encoding mime-type no-dereference no-pad
        """),
    ),
    "du": Grammar(
        flags="abchkmsSx",
        long_flags=_names("""
            all apparent-size bytes human-readable inodes no-dereference one-file-system
            separate-dirs si summarize time total
        """),
        short_values={"B": _BLOCK_SIZE, "d": _NUMBER, "t": re.compile(r"-?\d{1,9}[KMGT]?")},
        long_values={
            "block-size": _BLOCK_SIZE,
            "exclude": _WORD,
            "max-depth": _NUMBER,
            "threshold": re.compile(r"-?\d{1,9}[KMGT]?"),
            "time-style": re.compile("full-iso|long-iso|iso"),
        },
        least=0,
    ),
    "diff": Grammar(
        flags="abBcdEiNpqrstTuwyZ",
        long_flags=_names("""
            brief color context expand-tabs ignore-all-space ignore-blank-lines ignore-case
            ignore-space-change ignore-tab-expansion ignore-trailing-space initial-tab left-column
            minimal new-file no-dereference recursive report-identical-files show-c-function
            side-by-side strip-trailing-cr suppress-common-lines text unified
        """),
        short_values={"C": _NUMBER, "I": _WORD, "U": _NUMBER, "W": _NUMBER, "x": _WORD},
        long_values={
            "color": _WHEN,
            "context": _NUMBER,
            "exclude": _WORD,
            "ignore-matching-lines": _WORD,
            "unified": _NUMBER,
            "width": _NUMBER,
        },
        least=2,
        most=2,
    ),
    "grep": Grammar(
        flags="abcEFGhHiIlLnoPqrsTvwxyzZ",
        long_flags=_names("""
            basic-regexp byte-offset color colour count extended-regexp files-with-matches
            files-without-match fixed-strings ignore-case initial-tab invert-match line-buffered
            line-number line-regexp no-filename no-ignore-case no-messages null null-data
            only-matching perl-regexp quiet recursive silent text with-filename word-regexp
        """),
        short_values={**dict.fromkeys("ABCm", _NUMBER), "e": _TEXT, "f": _WORD},
        long_values={
            **dict.fromkeys(("after-context", "before-context", "context", "max-count"), _NUMBER),
            **dict.fromkeys(("exclude", "exclude-dir", "include"), _WORD),
            "binary-files": re.compile("binary|text|without-match"),
            "color": _WHEN,
            "colour": _WHEN,
            "file": _WORD,
            "regexp": _TEXT,
        },
        aliases={"e": "regexp", "f": "file", "r": "recursive"},
        read_values=frozenset({"file"}),
        number_option="-C",
    ),
    "find": Grammar(flags="", long_flags=frozenset(), least=0),
}
"""Every command that the policy knows."""
