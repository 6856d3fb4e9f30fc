"""Runs git in a repository whose files agents may have written.

Nothing that its configuration names is run: no hook, filter, driver, monitor, helper, editor or
signature. The places are given, so that no `commondir`, `gitdir` or `core.worktree` of the
repository counts, and no replacement or summary of objects does. A repository may also lead git out
of itself, by links and by the objects of other repositories: `enclosed_in` keeps git in a box where
commands can write the repository. There git reads its settings from a copy, because a command that
runs may change them at any moment. Everything here blocks, for a bounded time.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

GIT_S: Final = 120.0
_IDENTITY: Final = {"NAME": "Candor", "EMAIL": "candor@localhost"}
_SETTINGS: Final = {
    "advice.detachedHead": "false",
    "commit.gpgSign": "false",
    "core.alternateRefsCommand": "",
    "core.askPass": "",
    "core.attributesFile": os.devnull,
    "core.commitGraph": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.multiPackIndex": "false",
    "core.quotePath": "false",
    "core.sshCommand": "false",
    "core.untrackedCache": "false",
    "diff.external": "",
    "gc.auto": "0",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}
_REPLACED: Final = (
    (re.compile(r"filter\..*\.(clean|smudge|process)", re.DOTALL), ""),
    (re.compile(r"filter\..*\.required", re.DOTALL), "false"),
    (re.compile(r"merge\..*\.driver", re.DOTALL), "false"),  # a command that fails: a conflict
    (re.compile(r"diff\..*\.(command|textconv)", re.DOTALL), ""),
)
"""Settings that name programs, by the whole key, and what stands in their place."""


class GitFailed(Exception):
    """A git command failed or took too long."""

    def __init__(self, code: int, output: bytes, errors: str) -> None:
        super().__init__(errors.strip().split("\n")[-1] or f"git ended with {code}")
        self.code = code
        self.output = output
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTree:
    """A repository with the folder that its files are in."""

    folder: Path
    git_dir: Path
    """Its own part of the repository: index and HEAD."""
    common_dir: Path
    """What all work trees of the repository share."""
    enclosed_in: Sequence[str] = ()
    """Words before each git command: bubblewrap with the mounts of a box."""

    def run_blocking(
        self,
        *words: str,
        given: bytes | BinaryIO = b"",
        index: Path | None = None,
        timeout_s: float = GIT_S,
    ) -> bytes:
        """Run a git command and return its output; `index` is used in place of its own, and `given`
        is its input.

        Raise `GitFailed`.
        """
        env = {**self._environment(), **({"GIT_INDEX_FILE": str(index)} if index else {})}
        told = self._call(env, ("config", "--list", "-z"), b"", timeout_s)
        env |= _settings_in_environment({**_SETTINGS, **dict(_replacements(told))})
        if not self.enclosed_in:
            return self._call(env, words, given, timeout_s)
        with TemporaryFile() as copy:
            copy.write(_settings_file(told))
            copy.seek(0)
            return self._call(env, words, given, timeout_s, copy.fileno())

    def sparse_settings_blocking(self) -> bytes:
        """Return the settings of a sparse checkout as a file, which is empty if there are none."""
        told = self._call(self._environment(), ("config", "--list", "-z"), b"", GIT_S)
        return _settings_file(b"\0".join(filter(_SPARSE.fullmatch, told.split(b"\0"))))

    def is_sparse_blocking(self) -> bool:
        """Return whether a sparse checkout leaves files out; the settings stay when one ends."""
        told = self._call(self._environment(), ("config", "--list", "-z"), b"", GIT_S)
        set_to = [line for line in told.split(b"\0") if line.startswith(b"core.sparsecheckout\n")]
        return set_to[-1:] == [b"core.sparsecheckout\ntrue"]

    def _environment(self) -> dict[str, str]:
        return {
            **{f"GIT_{who}_{key}": value for who in _WHO for key, value in _IDENTITY.items()},
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_COMMON_DIR": str(self.common_dir),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(self.git_dir),
            "GIT_EDITOR": "false",
            "GIT_GRAFT_FILE": os.devnull,
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_WORK_TREE": str(self.folder),
            "HOME": os.devnull,
            "LC_ALL": "C.UTF-8",
            "PATH": os.defpath,
        }

    def _call(
        self,
        env: Mapping[str, str],
        words: Sequence[str],
        given: bytes | BinaryIO,
        timeout_s: float,
        settings: int | None = None,
    ) -> bytes:
        """Run git; `settings` is a descriptor of what it reads in place of the repository's own."""
        place = os.path.realpath(self.common_dir / "config")  # a mount takes no link
        copied = () if settings is None else ("--ro-bind-data", str(settings), place)
        box = (*self.enclosed_in, *copied, *_BOX_END) if self.enclosed_in else ()
        try:
            done = subprocess.run(  # noqa: S603  no shell, and the environment above
                [*box, "git", "--no-pager", *words],
                pass_fds=() if settings is None else (settings,),
                cwd=self.folder,
                env=env,
                input=given if isinstance(given, bytes) else None,
                stdin=None if isinstance(given, bytes) else given,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise GitFailed(-1, b"", "git took too long") from exc
        except OSError as exc:
            raise GitFailed(-1, b"", f"git cannot be run ({exc.strerror})") from exc
        if done.returncode != 0:
            raise GitFailed(done.returncode, done.stdout, done.stderr.decode(errors="replace"))
        return done.stdout


_WHO: Final = ("AUTHOR", "COMMITTER")
_NAMING_FILES: Final = frozenset({b"include", b"includeif"})
_SPARSE: Final = re.compile(rb"(?:core\.sparsecheckout(?:cone)?|index\.sparse)\n(?:true|false)")
_BOX_END: Final = ("--remount-ro", "/", "--")


def _replacements(told: bytes) -> Iterator[tuple[str, str]]:
    for entry in told.decode(errors="surrogateescape").split("\0"):
        name = entry.partition("\n")[0]
        for pattern, value in _REPLACED:
            if pattern.fullmatch(name):
                yield name, value


def _settings_file(told: bytes) -> bytes:
    """Return a file of the settings that `git config --list -z` tells, which names no other one."""
    lines = []
    for entry in filter(None, told.split(b"\0")):
        key, is_set, value = entry.partition(b"\n")
        section, _, rest = key.partition(b".")
        subsection, has_subsection, name = rest.rpartition(b".")
        if section in _NAMING_FILES or key == b"extensions.worktreeconfig":
            continue
        head = b' "%s"' % _escaped(subsection) if has_subsection else b""
        lines.append(b"[%s%s]\n\t%s" % (section, head, name))
        lines.append(b' = "%s"\n' % _escaped(value) if is_set else b"\n")
    return b"".join(lines)


def _escaped(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _settings_in_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which settings outweigh every file; any key can be given so."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env
