"""The protection of names at any depth, whether or not they exist.

*Secrets* (`.env`, keys, credential files) are neither read nor written. *Configuration that acts*
(`.claude`, `.git`, `CLAUDE.md`, start-up files of shells and editors) may be read, but not written,
renamed or deleted. Names are compared by path component and without regard to case, because some
file systems disregard it. This module accesses no file of a workspace. The names themselves are in
`protected_names.toml`.
"""

import fnmatch
import functools
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

_TOLD = tomllib.loads(Path(__file__).with_name("protected_names.toml").read_text(encoding="utf-8"))


def _words(key: str) -> tuple[str, ...]:
    return tuple(_TOLD[key].split())


def _pairs(key: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (folder, name) for folder, _, name in (word.partition("/") for word in _words(key))
    )


READABLE = frozenset(_words("readable"))
SECRET_PATTERNS = _words("secret_patterns")
SECRET_SAMPLES = _words("secret_samples")
ORDINARY_SAMPLES = _words("ordinary_samples")
SECRET_IN_REPOSITORY = _words("secret_in_repository")
SECRET_BELOW = _pairs("secret_below")
INSTRUCTIONS = _words("instructions")
ACTING = frozenset(
    (*INSTRUCTIONS, *(n for names in _TOLD["acting"].values() for n in names.split()))
)
ACTING_ENDINGS = _words("acting_endings")
ACTING_BELOW = _pairs("acting_below")
ACTING_AT_ROOT = frozenset(_words("acting_at_root"))
ACTING_IN_REPOSITORY = frozenset(
    (
        *("config", "config.worktree", "hooks", "info", "modules", "worktrees"),
        *("commondir", "gitdir", "branches", "remotes"),
    )
)
"""The last two name remotes as well, as settings do (gitrepository-layout(5))."""
_REPOSITORY = (frozenset({"HEAD", "objects", "refs"}), frozenset({"HEAD", "commondir"}))
"""What makes a folder a repository for git, whatever its name: with `commondir`, its objects,
references and settings are in another folder, which is none by itself.
"""
IN_REPOSITORY = frozenset[str]().union(*_REPOSITORY)

Parts = Sequence[str]
"""A path below the workspace's root, component by component."""

_SECRET = re.compile("|".join(fnmatch.translate(pattern) for pattern in SECRET_PATTERNS))
_KEY_IN_NAME_ALONE = re.compile(r"id_[a-z0-9]+[-_][^.]*\..+")
"""A key for one service, `id_rsa_work`, has no extension; `id_rsa_test.py` and `id_rsa_work.pub`
are none."""
_REPOSITORIES = (".git", "git~1")
_FOLDERS_OF_SECRETS = frozenset({*(folder for folder, _name in SECRET_BELOW), *_REPOSITORIES})


def fold(name: str) -> str:
    """Return the form in which names are compared: what a forgiving file system would
    take it for.
    """
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


def _fold_file(part: str) -> str:
    """Fold the name of the file in a component: on NTFS a stream of it may follow after a colon."""
    return fold(part.partition(":")[0])


_FOLDERS_OF_ACTING = frozenset(folder for folder, _name in ACTING_BELOW)
_TELLING = frozenset(map(fold, ACTING_IN_REPOSITORY | IN_REPOSITORY))


@functools.lru_cache(maxsize=4096)
def _is_secret(part: str) -> bool:
    name = _fold_file(part)
    readable = name in READABLE or _KEY_IN_NAME_ALONE.fullmatch(name) is not None
    return not readable and _SECRET.match(name) is not None


@functools.lru_cache(maxsize=4096)
def _is_acting(part: str) -> bool:
    name = _fold_file(part)
    return name in ACTING or name.endswith(ACTING_ENDINGS)


def _find_pair(parts: Parts, i: int, pairs: Collection[tuple[str, str]]) -> str | None:
    """Name the component at `i` with the folder above it, where the two together are listed."""
    if not i or (_fold_file(parts[i - 1]), _fold_file(parts[i])) not in pairs:
        return None
    return f"{parts[i - 1]}/{parts[i]}"


def _find_below(parts: Parts, i: int) -> str | None:
    """Return the component at `i` with a folder above it, if it is a secret only there."""
    if _fold_file(parts[i]) in SECRET_IN_REPOSITORY:
        above = next((part for part in parts[:i] if _is_repository(part)), None)
        if above is not None:
            return f"{above}/{parts[i]}"
    return _find_pair(parts, i, SECRET_BELOW)


def _is_repository(part: str) -> bool:
    """Return whether a folder is a repository's by its name, a bare one included."""
    name = _fold_file(part)
    return name in _REPOSITORIES or name.endswith(".git")


def find_secret(parts: Parts) -> str | None:
    """Name the first component that is, or holds, a secret; `None`: there is none."""
    for i, part in enumerate(parts):
        found = part if _is_secret(part) else _find_below(parts, i)
        if found is not None:
            return found
    return None


def find_acting(parts: Parts) -> str | None:
    """Name the first component that is configuration that acts; `None`: there is none."""
    if parts and fold(parts[0]) in ACTING_AT_ROOT:
        return parts[0]
    for i, part in enumerate(parts):
        found = part if _is_acting(part) else _find_pair(parts, i, ACTING_BELOW)
        if found is not None:
            return found
    return None


def makes_repository(names: AbstractSet[str]) -> bool:
    """Return whether a folder with these names in it is a repository for git."""
    return any(names >= wanted for wanted in _REPOSITORY)


def tells_of_repository(name: str) -> bool:
    """Return whether a name makes a folder a repository, with others, or acts in one."""
    return fold(name) in _TELLING


def find_repository_parts(paths: Iterable[str], tree: Callable[[], Iterable[str]]) -> list[str]:
    """Return those of the paths that make a folder a repository, or act in it. `tree` returns all
    paths and folders of which these are some.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        parts = path.split("/")
        for i, part in enumerate(parts[1:], 1):
            if tells_of_repository(part):
                found.setdefault("/".join(parts[:i]), []).append(path)
    names: dict[str, set[str]] = {folder: set() for folder in found}
    for path in tree() if found else ():
        folder, _, name = path.rpartition("/")
        if folder in names:
            names[folder].add(name)
    return [path for folder in found if makes_repository(names[folder]) for path in found[folder]]


def may_hold_acting(name: str) -> bool:
    """Return whether a folder of that name may hold an ordinary name that acts only there."""
    return fold(name) in _FOLDERS_OF_ACTING


def find_protected_entry(parts: Parts) -> str | None:
    """Name the last component where it is protected, given that those above it are not."""
    last = parts[-1]
    if _is_secret(last) or _is_acting(last) or (len(parts) == 1 and fold(last) in ACTING_AT_ROOT):
        return last
    end = len(parts) - 1
    return _find_below(parts, end) or _find_pair(parts, end, ACTING_BELOW)


def may_hold_secret(parts: Parts) -> bool:
    """Return whether a folder may hold an ordinary name that is a secret only there."""
    if not parts:
        return False
    return _fold_file(parts[-1]) in _FOLDERS_OF_SECRETS or any(map(_is_repository, parts))


def _any_case(pattern: str) -> str:
    in_bracket = False
    out: list[str] = []
    for char in pattern:
        in_bracket = char == "[" or (in_bracket and char != "]")
        plain = in_bracket or not char.isalpha()
        out.append(char if plain else f"[{char.lower()}{char.upper()}]")
    return "".join(out)


def secret_patterns_any_case() -> tuple[str, ...]:
    """Return `SECRET_PATTERNS` for programs that heed case."""
    return tuple(_any_case(pattern) for pattern in SECRET_PATTERNS)


def secret_folders_any_case() -> tuple[str, ...]:
    """Return the folders of `SECRET_BELOW`, for programs that heed case and leave out by one name
    alone.
    """
    return tuple(_any_case(folder) for folder in sorted(_FOLDERS_OF_SECRETS))


def secret_exclusions() -> str:
    """Return ripgrep globs, separated by spaces, that leave out every secret at any depth.

    The Grep tool splits its `glob` at white space and hands each piece to `rg --glob`, where the
    last match wins; so these go last. They hold no brace and no comma, which the tool would read
    otherwise.
    """
    below = [f"**/{folder}/{name}" for folder, name in SECRET_BELOW]
    below += [f"**/*.git/**/{name}" for name in SECRET_IN_REPOSITORY]
    pairs = map(_any_case, below)
    return " ".join(f"!{pattern}" for pattern in (*secret_patterns_any_case(), *pairs))
