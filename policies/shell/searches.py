"""The two commands that are not read like the others: `find` with its expression, `grep` with its pattern.

Of `find` only tests and what prints are known; whatever runs, writes, deletes or follows links is not. `grep`
is told to leave out files that hold secrets, in whichever folder it comes upon them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from policies.paths.protected import secret_folders_any_case, secret_patterns_any_case
from policies.paths.workspace import show
from policies.shell.options import Invocation, divide
from policies.verdict import Deny

MAX_EXPRESSION_WORDS = 100

_TEXT = re.compile(r".+", re.DOTALL)
_AMOUNT = re.compile(r"[-+]?\d{1,9}")
_LONE_WORDS = frozenset(
    {
        *("!", "(", ")", "-a", "-and", "-empty", "-not", "-o", "-or", "-prune"),
        *("-ls", "-print", "-print0"),
    }
)
_VALUED: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("-name", "-iname", "-path", "-ipath", "-newer", "-printf"), _TEXT),
    **dict.fromkeys(("-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin"), _AMOUNT),
    **dict.fromkeys(("-maxdepth", "-mindepth"), re.compile(r"\d{1,4}")),
    "-type": re.compile("[bcdflps](?:,[bcdflps])*"),
    "-size": re.compile(r"[-+]?\d{1,9}[bcwkMG]?"),
}


def divide_find(words: Sequence[str]) -> Invocation | Deny:
    """Divide the words after `find` into paths and expression, or refuse them.

    `find` knows no `--`, so a path that could be taken for a part of the expression gets `./` before it.
    """
    end = next((i for i, word in enumerate(words) if _begins_expression(word)), len(words))
    expression = words[end:]
    reads = _read_expression(expression)
    if isinstance(reads, Deny):
        return reads
    paths = tuple(_plain_path(word) for word in words[:end]) or (".",)
    return Invocation("find", (), {}, paths, reads, tuple(expression))


def _begins_expression(word: str) -> bool:
    return word.startswith("-") or word in {"!", "(", ")", ","}


def _plain_path(word: str) -> str:
    plain = not word or word[0].isalnum() or word[0] in "._/~"
    return word if plain else f"./{word}"


def _read_expression(expression: Sequence[str]) -> tuple[str, ...] | Deny:
    """Check every word of an expression; gives the paths in it."""
    if len(expression) > MAX_EXPRESSION_WORDS:
        return Deny("find_expression", "The expression is too long.", "Ask for less at once.")
    reads: list[str] = []
    words = iter(expression)
    for word in words:
        if word in _LONE_WORDS:
            continue
        allowed = _VALUED.get(word)
        value = "" if allowed is None else next(words, "")
        if allowed is None or not allowed.fullmatch(value):
            shown = word if allowed is None else f"{word} {value}"
            return Deny(
                "option_not_allowed",
                f"find does not take {show(shown.strip())} here.",
                f"Listed are {' '.join(sorted(_VALUED))} with a value, -empty, -print, -not, -and, -or.",
            )
        if word == "-newer":
            reads.append(value)
    return tuple(reads)


def divide_grep(words: Sequence[str]) -> Invocation | Deny:
    """Divide the words after `grep`; the pattern becomes an option, so that operands are paths alone."""
    invocation = divide("grep", words)
    if isinstance(invocation, Deny):
        return invocation
    options, operands = invocation.options, invocation.operands
    if not invocation.has("regexp") and not invocation.has("file"):
        if not operands:
            return Deny("operands", "grep needs a pattern and a path.", "Name both.")
        options, operands = (*options, "-e", operands[0]), operands[1:]
    if invocation.has("recursive"):
        options, operands = (*options, *_exclusions()), operands or (".",)
    return replace(invocation, options=options, operands=operands)


def _exclusions() -> tuple[str, ...]:
    """Give the options that leave out secrets; they go last, because the last match wins."""
    patterns = secret_patterns_any_case()
    return (
        *(f"--exclude={one}" for one in patterns),
        *(f"--exclude-dir={one}" for one in (*patterns, *secret_folders_any_case())),
    )
