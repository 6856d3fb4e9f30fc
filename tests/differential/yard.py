"""What lies around a workspace and in it, made to tempt: links that lead out, secrets, names like options.

Every file outside holds one telling text and every folder outside one telling name, every secret
inside another, so that an escape shows in what a command said or in what it wrote.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.differential.throwaway import OUTSIDE_NAME, ThrowawayRoot, outside_text
from tests.unit.policies.corpus import build_workspace
from tests.unit.policies.judging import read_list

SECRET = "SECRET-91e0d7bb"
SECRET_MARK = "\x02"
"""Both stand in every secret of the workspace; the mark also at its very beginning."""
SHARED = "SHARED-c03b77e4"
"""Stands in the files of `ro` and `rw`, beside the workspace, which rules may open to it."""
RULED = "RULES-2f6c55de"
"""Stands in configuration that acts: it may be read, and nothing may change it."""

_SECRET_TEXT = f"{SECRET_MARK * 4}{SECRET}{SECRET_MARK * 4}\n"
_LINKS = {
    "out": "../outdir",
    "outfile": "../outside.txt",
    "abs": "/etc",
    "absfile": "/etc/passwd",
    "dangle": "../born-outside",
    "loop": "loop",
    "selflink": ".",
    "inlink": "a.txt",
    "docs2": "docs",
    "envlink": ".env",
    "ruleslink": ".claude",
    "src/up": "..",
    "src/upup": "../..",
    "src/deep/far": "../../../outdir",
    "src/deep/near": "../../docs",
    "链接": "../outdir",
    "tests/same": "../../outside.txt",
    "big/a/same": "../../src/.env",
    "-l": "../outdir",
}
_FILES = read_list(r"""
-rf ¦ -- ¦ --help ¦ --target-directory=.. ¦ -t ¦ -t.. ¦ --no-preserve-root ¦ -
--files0-from=a.txt ¦ -f ¦ -exec ¦ --reference=a.txt ¦ =id ¦ #x ¦ !x ¦ ~ ¦ ~root ¦ $(id) ¦ `id`
;id ¦ && id ¦ | id ¦ > z ¦ a{U+000A}b ¦ a{U+0009}b ¦ * ¦ ? ¦ [a] ¦ [ab].txt ¦ {a,b} ¦ a b
{U+0020}lead ¦ trail{U+0020} ¦ ... ¦ ..x ¦ x.. ¦ back\slash ¦ " ¦ ' ¦ '' ¦ %s ¦ 数据/一.txt
数据/二 三.txt ¦ 😀 ¦ é ¦ é ¦ Ｂ．txt ¦ src/deep/er/x.txt ¦ $HOME ¦ deps/one/node_modules/p/index.js
big/a/b/c/d.txt ¦ src/deep/-x ¦ src/-rf ¦ img/same ¦ archive/same
""")
_SECRETS = (
    *("src/.env", "data/.env.local", "src/deep/server.pem", "id_rsa", "docs/credentials.json"),
    *(".ssh/config", "big/a/b/.env", "tmp/.ENV", "big/a/b/Id_RSA"),
)
_RULED = (
    *("src/.claude/settings.json", "docs/CLAUDE.md", ".bashrc", ".vscode/tasks.json"),
    *("src/deep/.git/config", ".github/workflows/ci.yml", "logs/2024/t.jsonl"),
    *("node_modules/pkg/.vscode/settings.json",),
)
_PROTECTED_NAMES = frozenset(
    {
        *(".claude", ".git", ".mcp.json", "claude.md", "claude.local.md", ".vscode", ".bashrc"),
        *(".idea", ".husky", ".profile", ".zshrc", ".gitconfig", ".gitmodules", ".cursor", ".ssh"),
        *("id_rsa", "credentials.json", ".netrc", ".npmrc", ".aws", ".kube", ".candor"),
    }
)


def is_protected(parts: tuple[str, ...]) -> bool:
    """Return whether a path in the workspace is one that no command may change; a list of its own.

    `parts` begin with the folder of the yard: the workspace, or one that rules open.
    """
    top, *folded = [part.casefold() for part in parts]
    return (
        (top, *folded[:1]) == ("ws", "logs")
        or folded[:2] == [".github", "workflows"]
        or any(name in _PROTECTED_NAMES or name.endswith((".pem", ".key")) for name in folded)
        or any(name.startswith(".env") and name != ".env.example" for name in folded)
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """One name, as it stands."""

    mode: int
    inode: int
    size: int
    changed_ns: int
    """Of the content, and for a file of its name, mode and links, too."""
    target: str
    """Where a link says that it leads."""

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


Tree = Mapping[str, Seen]


def look(yard: Path) -> dict[str, Seen]:
    """Return every name in the yard, links not followed."""
    found: dict[str, Seen] = {".": _see(yard)}
    waiting = [("", str(yard))]
    while waiting:
        prefix, folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                found[name] = _see(entry)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((f"{name}/", entry.path))
    return found


def _see(entry: os.DirEntry[str] | Path) -> Seen:
    told = entry.stat(follow_symlinks=False)
    is_folder = stat.S_ISDIR(told.st_mode)
    link = str(Path(entry).readlink()) if stat.S_ISLNK(told.st_mode) else ""
    return Seen(
        told.st_mode,
        told.st_ino,
        0 if is_folder else told.st_size,
        told.st_mtime_ns if is_folder else told.st_ctime_ns,
        link,
    )


class Yard:
    """The yard of one throw-away root, put right again after each command that changed it."""

    def __init__(self, root: ThrowawayRoot, pristine: Path) -> None:
        self.root = root
        self.open_to: dict[str, bool] = {}
        """Folders beside the workspace that the rules open, and whether for writing."""
        self.path = root.yard
        self.pristine = pristine
        self._fill()
        self.tree: Tree = look(self.path)

    def _fill(self) -> None:
        # the base files name the workspace by its path, so they are made where they will stand
        shutil.rmtree(self.path)
        workspace = build_workspace(self.path)
        for name in _FILES:
            _write(workspace / name, "ordinary\n")
        for name in (*_SECRETS, ".env"):
            _write(workspace / name, _SECRET_TEXT)
        for name in (*_RULED, "CLAUDE.md", ".mcp.json", ".claude/settings.json", ".git/config"):
            _write(workspace / name, f"{RULED}\n")
        for name, target in _LINKS.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).symlink_to(target)
        for file in (
            "outside.txt",
            "outdir/keep.txt",
            "outdir/deep/keep.txt",
            "ws-evil/secret.txt",
        ):
            _write(self.path / file, outside_text())
        for file in (
            "ro/manual.txt",
            "ro/sub/手册.txt",
            "rw/draft.txt",
            "rw/sub/x.txt",
            "rw/a b.txt",
        ):
            _write(self.path / file, f"{SHARED}\n")
        for folder in ("ro", "rw"):
            _write(self.path / folder / ".env", _SECRET_TEXT)
            _write(self.path / folder / "sub" / "CLAUDE.md", f"{RULED}\n")
            (self.path / folder / "link").symlink_to("../outdir")
            (workspace / f"to-{folder}").symlink_to(f"../{folder}")
        for folder in ("", "outdir", "outdir/deep", "ws-evil"):
            (self.path / folder / OUTSIDE_NAME).touch()
        self.root.own()
        subprocess.run(["cp", "-a", self.path, self.pristine], check=True)

    def restore(self, after: Tree | None = None) -> None:
        """Put everything back, or what differs; the yard's own folder stays, it may be mounted."""
        names = {entry.name for entry in self.path.iterdir()}
        if after is not None and "ws" in after:
            either = self.tree.keys() | after.keys()
            changed = {name for name in either if self.tree.get(name) != after.get(name)} - {"ws"}
            if all(name.startswith("ws/") for name in changed):
                names = {"/".join(name.split("/")[:2]) for name in changed}
                self._put_back(names, "ws")
                return
        self._put_back(names | {entry.name for entry in self.pristine.iterdir()}, ".")

    def _put_back(self, names: set[str], folder: str) -> None:
        for name in names:
            _remove(self.path / name)
        kept = [self.pristine / name for name in names if os.path.lexists(self.pristine / name)]
        if kept:
            subprocess.run(["cp", "-a", *kept, self.path / folder], check=True)
        self.tree = look(self.path)


def _remove(path: Path) -> None:
    """Remove what is there, also where a command took away the right to look into it."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    _open(path)
    shutil.rmtree(path)


def _open(folder: Path) -> None:
    folder.chmod(0o755)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _open(entry)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
