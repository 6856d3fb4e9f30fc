"""Judges the file patterns of the Glob and Grep tools: none that leaves the workspace or aims at secrets.

Those tools expand patterns themselves, so they are judged by their spelling: braces spread out, no `..`,
the part before the first wildcard inside. A broad pattern (`*`, `.*`, `*.json`) does not aim at secrets
although it would match some; Grep is kept from those by exclusions that are added to its input.
"""

import fnmatch
from collections.abc import Iterator

from policies.paths import Workspace, find_form_fault, show
from policies.protected import find_secret, fold
from policies.verdict import Deny

MAX_PATTERN_CHARS = 1024
MAX_PATTERNS_CHARS = 4096
MAX_ALTERNATIVES = 64

_WILD = "*?["
_SECRET_SAMPLES = (
    *(".env", ".env.local", ".env.production", ".netrc", ".npmrc", ".pgpass", ".git-credentials"),
    *(".ssh", ".aws", ".gnupg", ".kube", "id_rsa", "id_ed25519", "server.pem", "server.key"),
    *("server.p12", "server.pfx", "credentials.json", "client_secret_1.json", "secrets.yaml"),
)
_ORDINARY_SAMPLES = (
    *("readme.md", "main.py", "config.yaml", "data.json", "a.txt", "index.html", "photo.png"),
    *(".gitignore", ".github", ".nvmrc", "session.json", "compose.yml", "style.css"),
)


def _spread(pattern: str, left: list[int]) -> Iterator[str] | None:
    """Give every alternative of the braces; `None` where they are unbalanced or too many."""
    opening = pattern.rfind("{")
    if opening < 0:
        left[0] -= 1
        return None if "}" in pattern or left[0] < 0 else iter((pattern,))
    closing = pattern.find("}", opening)
    if closing < 0:
        return None
    found: list[str] = []
    for middle in pattern[opening + 1 : closing].split(","):
        spread = _spread(f"{pattern[:opening]}{middle}{pattern[closing + 1 :]}", left)
        if spread is None:
            return None
        found += spread
    return iter(found)


def _aims_at_secret(component: str) -> bool:
    name = fold(component)
    if not any(c in _WILD for c in name):
        return find_secret((component,)) is not None
    if any(fnmatch.fnmatchcase(sample, name) for sample in _ORDINARY_SAMPLES):
        return False
    return any(fnmatch.fnmatchcase(sample, name) for sample in _SECRET_SAMPLES)


def _find_alternative_fault(pattern: str, workspace: Workspace) -> Deny | None:
    components = pattern.split("/")
    if ".." in components:
        return Deny(
            "pattern_parent",
            "A pattern must not go up with ..",
            "Give a folder inside the workspace as path.",
        )
    for component in components:
        if _aims_at_secret(component):
            return Deny(
                "pattern_secret",
                f"The pattern {show(component)} aims at files that hold secrets.",
                "Look for other files; .env.example may be read.",
            )
    wild = next((i for i, c in enumerate(components) if any(w in c for w in _WILD)), None)
    prefix = "/".join(components if wild is None else components[:wild])
    prefix = prefix or ("/" if pattern.startswith("/") else ".")
    place = workspace.locate(prefix)
    return place if isinstance(place, Deny) else None


def find_pattern_fault(pattern: str, workspace: Workspace) -> Deny | None:
    """Refuse a pattern of the Glob tool; `workspace` starts from the folder that is searched."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return Deny("pattern_too_long", "The pattern is too long.", "Use a shorter one.")
    fault = find_form_fault(pattern)
    if fault is not None:
        return fault
    spread = _spread(pattern, [MAX_ALTERNATIVES])
    if spread is None:
        return Deny(
            "pattern_braces",
            "The pattern's braces are unbalanced or stand for too many names.",
            "Use several calls.",
        )
    for alternative in spread:
        fault = _find_alternative_fault(alternative, workspace) if alternative else None
        if fault is not None:
            return fault
    return None


def find_grep_glob_fault(glob: str, workspace: Workspace) -> Deny | None:
    """Refuse a `glob` of the Grep tool, which is several patterns in one text.

    The tool splits at white space, and at commas where a piece has no braces; each piece may begin with
    an exclamation mark.
    """
    if len(glob) > MAX_PATTERNS_CHARS:
        return Deny("pattern_too_long", "The patterns are too long.", "Use several calls.")
    for piece in glob.split():
        patterns = [piece] if "{" in piece and "}" in piece else piece.split(",")
        for pattern in patterns:
            excludes_only = not pattern or pattern.startswith("!")
            fault = None if excludes_only else find_pattern_fault(pattern, workspace)
            if fault is not None:
                return fault
    return None
