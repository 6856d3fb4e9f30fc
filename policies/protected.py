"""Which names are protected, wherever they stand and also while nothing stands there.

Two sorts. *Secrets* (`.env`, keys, credential files) are neither read nor written. *Configuration that
acts* (`.claude`, `.git`, `CLAUDE.md`, start-up files of shells and editors) may be read, never written,
renamed or deleted. Names are compared by path component, without regard to case, because some file
systems disregard it. Nothing here touches the disk.
"""

import fnmatch
import functools
import re
import unicodedata
from collections.abc import Sequence

Parts = Sequence[str]
"""A path below the workspace's root, component by component."""

READABLE_ENV = ".env.example"

SECRET_PATTERNS = (
    ".env*",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".dockercfg",
    ".dockerconfigjson",
    ".claude.json",
    "credentials.json",
    ".credentials.json",
    "application_default_credentials.json",
    "client_secret*.json",
    "service[-_]account*.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".candor",
)
"""Each matches one component, a file's or a folder's, so that Grep can be told to leave out the same.

The last one is the gateway's own data, other people's conversations among it.
"""

_SECRET = re.compile("|".join(fnmatch.translate(pattern) for pattern in SECRET_PATTERNS))

_ACTING = frozenset(
    {
        # what the agent itself obeys
        *(".claude", ".mcp.json", "claude.md", "claude.local.md"),
        # version control: hooks, filters, aliases
        *(".git", ".gitconfig", ".gitmodules", ".gitattributes", ".hg", ".husky"),
        *(".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"),
        *(".gitlab-ci.yml", ".circleci", ".travis.yml", ".drone.yml", ".woodpecker.yml"),
        *("azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile"),
        # shells and what they start
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".inputrc", ".ripgreprc"),
        *(".kshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".xinitrc", ".xprofile", ".curlrc"),
        *(".xsession", ".xsessionrc", ".pam_environment", ".mkshrc", ".bash_sessions"),
        *(
            ".wgetrc",
            ".screenrc",
            ".tmux.conf",
            ".pythonrc.py",
            ".rprofile",
            ".psqlrc",
            ".sqliterc",
        ),
        # editors and other agents, which run tasks from the folder that they open
        *(".vscode", ".idea", ".devcontainer", ".cursor", ".windsurf", ".codex", ".gemini"),
        *(".devcontainer.json", ".cursorrules", ".windsurfrules", ".zed", ".fleet", ".vim"),
        *(
            ".vimrc",
            ".gvimrc",
            ".nvimrc",
            ".nvim.lua",
            ".exrc",
            ".emacs",
            ".dir-locals.el",
            ".gdbinit",
            ".lldbinit",
        ),
        # package managers and version managers, which run hooks
        *(".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".mise.toml", ".direnv", ".cargo", ".bundle"),
    }
)
_ACTING_BELOW = ((".github", "workflows"), (".github", "actions"))
_ACTING_AT_ROOT = frozenset({"logs"})
"""The gateway's own journal; a `logs` folder further down is anybody's."""


def fold(name: str) -> str:
    """Give the form in which names are compared: what a forgiving file system would take it for."""
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


@functools.lru_cache(maxsize=4096)
def _is_secret(part: str) -> bool:
    name = fold(part)
    return name != READABLE_ENV and _SECRET.match(name) is not None


@functools.lru_cache(maxsize=4096)
def _is_acting(part: str) -> bool:
    return fold(part) in _ACTING


def find_secret(parts: Parts) -> str | None:
    """Name the first component that is, or holds, a secret; `None`: there is none."""
    return next((part for part in parts if _is_secret(part)), None)


def find_acting(parts: Parts) -> str | None:
    """Name the first component that is configuration that acts; `None`: there is none."""
    if parts and fold(parts[0]) in _ACTING_AT_ROOT:
        return parts[0]
    for i, part in enumerate(parts):
        if _is_acting(part):
            return part
        if i and (fold(parts[i - 1]), fold(part)) in _ACTING_BELOW:
            return f"{parts[i - 1]}/{part}"
    return None


def find_protected_entry(parts: Parts) -> str | None:
    """Name the last component where it is protected, given that those above it are not."""
    last = parts[-1]
    if _is_secret(last) or _is_acting(last) or (len(parts) == 1 and fold(last) in _ACTING_AT_ROOT):
        return last
    pair = tuple(fold(part) for part in parts[-2:])
    return "/".join(parts[-2:]) if pair in _ACTING_BELOW else None


def _any_case(pattern: str) -> str:
    in_bracket = False
    out: list[str] = []
    for char in pattern:
        in_bracket = char == "[" or (in_bracket and char != "]")
        plain = in_bracket or not char.isalpha()
        out.append(char if plain else f"[{char.lower()}{char.upper()}]")
    return "".join(out)


def secret_patterns_any_case() -> tuple[str, ...]:
    """Give `SECRET_PATTERNS` for programs that heed case."""
    return tuple(_any_case(pattern) for pattern in SECRET_PATTERNS)


def secret_exclusions() -> str:
    """Give ripgrep globs, separated by spaces, that leave out every secret at any depth.

    The Grep tool splits its `glob` at white space and hands each piece to `rg --glob`, where the last
    match wins; so these go last. They hold no brace and no comma, which the tool would read otherwise.
    """
    return " ".join(f"!{pattern}" for pattern in secret_patterns_any_case())
