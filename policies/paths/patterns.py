"""The judgement of file patterns of the Glob and Grep tools, which must not leave the workspace or
aim at secrets.

The tools expand patterns themselves, so a pattern is judged by its spelling: braces are spread out,
`..` is refused, and the part before the first wildcard must be inside. A broad pattern (`*`, `.*`,
`*.json`, `*key*`) does not aim at secrets even if it would match some; exclusions added to Grep's
input keep it from those.
"""

import fnmatch
import re
from collections.abc import Iterator

from policies.denials import denied
from policies.paths.protected import (
    ORDINARY_SAMPLES,
    SECRET_PATTERNS,
    SECRET_SAMPLES,
    find_secret,
    fold,
)
from policies.paths.workspace import Workspace, find_form_fault
from policies.visible_text import show

MAX_PATTERN_CHARS = 1024
MAX_PATTERNS_CHARS = 4096
MAX_ALTERNATIVES = 64

_WILD = "*?["
_BRACKET = re.compile(r"\[(?:!.|(.))[^\]]*\]")
_ANYTHING = "\0"
"""Fills a wildcard with what no pattern spells out."""


def _fill(pattern: str, star: str) -> str:
    plain = _BRACKET.sub(lambda found: found[1] or _ANYTHING, pattern)
    return plain.replace("*", star).replace("?", _ANYTHING)


_SECRET_SAMPLES = frozenset(
    _fill(pattern, star)
    for pattern in SECRET_PATTERNS
    for star in ("", _ANYTHING)
    if star or not pattern.startswith("*")
).union(SECRET_SAMPLES)


def _spread(pattern: str, left: list[int]) -> Iterator[str]:
    """Yield every alternative of the braces; refuse unbalanced ones, and too many."""
    before, opening, rest = pattern.rpartition("{")
    inner, closing, after = rest.partition("}")
    left[0] -= not opening
    if left[0] < 0 or (not closing if opening else "}" in pattern):
        raise denied("pattern_braces")
    if not opening:
        yield pattern
        return
    for middle in inner.split(","):
        yield from _spread(f"{before}{middle}{after}", left)


def _aims_at_secret(component: str) -> bool:
    """Return whether a pattern takes names of secrets, and none of those that people use for other
    things.
    """
    name = fold(component)
    if any(fnmatch.fnmatchcase(sample, name) for sample in ORDINARY_SAMPLES):
        return False
    spelled = _count_spelled(_fill(name, ""))
    return any(
        # what spells out less than half of the name means something else (`*log*`, `.mylogin.cnf`)
        2 * spelled >= _count_spelled(sample) and fnmatch.fnmatchcase(sample, name)
        for sample in _SECRET_SAMPLES
    )


def _count_spelled(name: str) -> int:
    return len(name) - name.count(_ANYTHING)


def _goes_up(component: str) -> bool:
    """Return whether a component stands for the folder above; brackets of dots might be read so,
    too.
    """
    return component == ".." or (
        "[" in component and "*" not in component and fnmatch.fnmatchcase("..", component)
    )


def _check_alternative(pattern: str, workspace: Workspace) -> None:
    components = pattern.split("/")
    if any(_goes_up(component) for component in components):
        raise denied("pattern_parent")
    secret = find_secret(components) or next(filter(_aims_at_secret, components), None)
    if secret is not None:
        raise denied("pattern_secret", show(secret))
    wild = next((i for i, c in enumerate(components) if any(w in c for w in _WILD)), None)
    prefix = "/".join(components if wild is None else components[:wild])
    workspace.locate(prefix or ("/" if pattern.startswith("/") else "."))


def check_pattern(pattern: str, workspace: Workspace) -> None:
    """Refuse a pattern of the Glob tool; `workspace` starts from the folder that is searched."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise denied("pattern_too_long")
    if fault := find_form_fault(pattern):
        raise fault
    spread = list(_spread(pattern, [MAX_ALTERNATIVES]))
    for alternative in filter(None, spread):
        _check_alternative(alternative, workspace)


def check_grep_glob(glob: str, workspace: Workspace) -> None:
    """Refuse a `glob` of the Grep tool, which is several patterns in one text.

    The tool splits at white space, and at commas where a piece has no braces; each piece may begin
    with an exclamation mark.
    """
    if len(glob) > MAX_PATTERNS_CHARS:
        raise denied("pattern_too_long.grep_glob")
    for piece in glob.split():
        patterns = [piece] if "{" in piece and "}" in piece else piece.split(",")
        for pattern in patterns:
            if pattern.startswith("-"):
                raise denied("pattern_option", show(pattern))
            if pattern and not pattern.startswith("!"):
                check_pattern(pattern, workspace)
