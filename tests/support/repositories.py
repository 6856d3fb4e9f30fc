"""Git repositories for tests."""

import os
import subprocess
from pathlib import Path

ATTACKS = {
    "core.fsmonitor": "touch @MARK@",
    "core.hooksPath": "@HOOKS@",
    "core.sshCommand": "touch @MARK@",
    "diff.external": "touch @MARK@",
    "filter.evil.clean": "touch @MARK@; cat",
    "filter.evil.smudge": "touch @MARK@; cat",
    "filter.evil.process": "touch @MARK@",
    "filter.evil.required": "true",
    "diff.evil.command": "touch @MARK@",
    "diff.evil.textconv": "touch @MARK@; cat",
    "merge.evil.driver": "touch @MARK@",
    "gpg.program": "touch @MARK@",
    "commit.gpgSign": "true",
    "core.editor": "touch @MARK@",
    "credential.helper": "!touch @MARK@",
}
"""Settings of a repository by which git would run a program."""


def git(folder: Path, *words: str) -> str:
    """Run git as a person would; return its output."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgSign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def git_in_box(tree: Path, store: Path, *words: str) -> str:
    """Run git in a work tree as a command in the box does: new objects go to the store."""
    objects = {
        "GIT_OBJECT_DIRECTORY": str(store),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(tree.parents[1] / ".git/objects"),
    }
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", *who, *words],
        cwd=tree,
        env=os.environ | objects,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def commit_in_box(tree: Path, store: Path, content: str) -> str:
    """Commit a content of `a.txt` as a command in the box does; return the commit."""
    (tree / "a.txt").write_text(content)
    git_in_box(tree, store, "commit", "-qam", "change it")
    return git_in_box(tree, store, "rev-parse", "HEAD")


def lay_repository(folder: Path, **files: str) -> None:
    """Make a repository whose first commit has these files; `__` in a name is a slash, `_` a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first", "--allow-empty")


def arm(folder: Path, mark: Path) -> None:
    """Make the repository's settings, attributes and hooks leave a mark when they run."""
    hooks = folder.parent / "hooks"
    hooks.mkdir()
    for name in (
        "post-checkout",
        "pre-commit",
        "commit-msg",
        "post-merge",
        "reference-transaction",
    ):
        for place in (hooks, folder / ".git/hooks"):
            place.mkdir(exist_ok=True)
            (place / name).write_text(f"#!/bin/sh\ntouch {mark}\n", encoding="utf-8")
            (place / name).chmod(0o700)
    (folder / ".git/info/attributes").write_text("* filter=evil diff=evil merge=evil\n")
    for key, value in ATTACKS.items():
        program = value.replace("@MARK@", str(mark)).replace("@HOOKS@", str(hooks))
        subprocess.run(["git", "config", key, program], cwd=folder, check=True)
