"""The workspace's own configuration, and which of it a person approved.

Read before every start of an agent, and by the command `policy trust`. Each file is read once,
judged and hashed, never through a link, within bounds of number and size. An approval holds for the
exact content of a path; approvals are in the data directory, where the agent cannot write.
Everything here blocks.
"""

import contextlib
import json
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gateway.atomic import write_atomically_blocking
from gateway.errors import StartError
from gateway.instructions import NOT_APPROVED, Instruction, find_instructions
from gateway.settings import Settings
from policies.configuration import FOLDER, Concern, Found, digest_of, find_concerns, is_content
from policies.paths.protected import INSTRUCTIONS, fold

MAX_FILES = 5000
MAX_ENTRIES = 10_000
"""Of the workspace that are searched for deeper `.claude` folders, so that a start stays quick.
Beyond them only the options of the agent program protect."""
MAX_FILE_BYTES = 1024 * 1024
MAX_APPROVALS_BYTES = 16 * 1024 * 1024
_APPROVALS = "trusted.json"
_ROOTS = frozenset({".claude", ".mcp.json", *INSTRUCTIONS})
"""Configuration at the top of the workspace, folded by `fold`."""

_SKILLS = f"{FOLDER}/skills/"
OWN_SKILLS = Path(__file__).resolve().parent.parent / FOLDER / "skills"
"""The skills that belong to Candor; each workspace gets a copy."""
WORKTREES = ".candor-worktrees"
"""The folder of the conversations' work trees in a workspace; its approvals count there, too."""
MAX_WITHHELD = 500
"""Files that agents are kept from by their names; more would not fit their command line."""
_MANAGED = (
    "/etc/claude-code",
    "/Library/Application Support/ClaudeCode",
    "C:\\Program Files\\ClaudeCode",
)
"""Where the administrator of a machine keeps settings and instructions for all agents."""

_WORDS = {
    "link": "is a link; put the file itself there, or remove it",
    "unreadable": "cannot be read; remove it, or let the server read it",
    "too_large": "is too large to be judged; remove it",
    "too_many": "holds too many files to be judged; remove what is not needed",
    "syntax": "cannot be parsed",
    "unknown_kind": "is of an unknown kind",
    "name": "has a name that is not one plain word",
}

_Approved = Mapping[str, str]
"""The digest of the approved content by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustReport:
    """A review of the workspace's configuration."""

    workspace: Path
    concerns: tuple[Concern, ...]
    """Active configuration without approval; while there is any, no agent starts."""
    approved: tuple[str, ...] = ()
    """Active configuration that is approved as it is."""
    may_instruct: bool = True
    """The workspace may hold instructions for agents, or the machine does for all of them."""
    instructions: tuple[Instruction, ...] | None = None
    """Its skills, sub-agents and commands; None: nobody looked, so agents are kept from none."""

    @property
    def is_trusted(self) -> bool:
        """True if agents may start there."""
        return not self.concerns

    @property
    def is_approvable(self) -> bool:
        """False if nothing of what keeps agents from starting can be approved."""
        return any(concern.is_approvable for concern in self.concerns)

    @property
    def names(self) -> str:
        """The files that keep agents from starting."""
        return ", ".join(concern.path for concern in self.concerns)

    def lines(self) -> list[str]:
        """Return the review as text, one file a line."""
        concerns = [
            f"{concern.path}: {_WORDS.get(concern.what, f'acts: {concern.what}')}"
            for concern in self.concerns
        ]
        waiting = [
            f"{item.path}: a {item.kind}; agents are given it once it is approved"
            for item in self.waiting
        ]
        return [*concerns, *waiting, *(f"{path}: approved" for path in self.approved)]

    @property
    def wanted(self) -> Mapping[str, str]:
        """The digests, by path, whose approval is asked for."""
        acting = {concern.path: concern.digest for concern in self.concerns if concern.digest}
        return acting | {item.path: item.digest for item in self.waiting}

    @property
    def waiting(self) -> list[Instruction]:
        """Skills, sub-agents and commands that only wait for approval; agents start without
        them.
        """
        return [item for item in self.instructions or () if item.problem in NOT_APPROVED]


def write_approvals_blocking(file: Path, approvals: Mapping[str, _Approved]) -> None:
    """Write the digests of what was approved, by workspace and path."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stored = json.dumps({"workspaces": approvals}, indent=2, sort_keys=True)
    write_atomically_blocking(file, stored.encode(), mode=0o600)


def approvals_file(data_dir: Path) -> Path:
    """Return the path of the approvals."""
    return data_dir / _APPROVALS


def review_blocking(settings: Settings) -> TrustReport:
    """Review the workspace's present configuration; writes nothing.

    Raise `StartError` if the approvals cannot be read.
    """
    workspace = settings.workspace.resolve()
    file = approvals_file(settings.data_dir.resolve())
    try:
        return review_folder_blocking(workspace, file)
    except OSError as exc:
        raise _cannot(file, "read", exc) from exc


def trust_blocking(settings: Settings, report: TrustReport | None = None) -> TrustReport:
    """Approve exactly the contents that a report shows, and return a new report.

    Idempotent. A link or a file that is too large stays a concern. Raise `StartError` if the
    approvals cannot be read or written.
    """
    shown = report or review_blocking(settings)
    file = approvals_file(settings.data_dir.resolve())
    if wanted := shown.wanted:
        try:
            everything = read_approvals_blocking(file)
            key = str(shown.workspace)
            approvals = {**everything, key: {**everything.get(key, {}), **wanted}}
            write_approvals_blocking(file, approvals)
        except OSError as exc:
            raise _cannot(file, "written", exc) from exc
    return review_blocking(settings)


def review_folder_blocking(workspace: Path, approvals: Path | None) -> TrustReport:
    """Review a folder's configuration. Approvals that cannot be parsed count as none.

    Raise `OSError` if the approvals cannot be read.
    """
    known = read_approvals_blocking(approvals) if approvals is not None else {}
    is_work_tree = workspace.parent.name == WORKTREES
    approved = known.get(str(workspace.parent.parent if is_work_tree else workspace), {})
    deeper, may_instruct = _search(workspace)
    files = list(_find_files(workspace, deeper))
    concerns = find_concerns(files, approved)
    instructions = find_instructions(files, concerns, approved, _own_digests())
    if sum(not item.is_loaded for item in instructions) > MAX_WITHHELD:
        concerns += (Concern(path=FOLDER, what="too_many"),)
    held = tuple(
        file.path
        for file in files
        if file.trouble is None and approved.get(file.path) == digest_of(file.content)
    )
    may_instruct |= any(not file.path.startswith(_SKILLS) for file in files)
    may_instruct |= any(map(os.path.exists, _MANAGED))
    return TrustReport(
        workspace=workspace,
        concerns=concerns,
        approved=held,
        may_instruct=may_instruct,
        instructions=instructions,
    )


@cache
def _own_digests() -> Mapping[str, str]:
    """Return the digest of each skill of Candor's by its place in a workspace."""
    return {
        f"{_SKILLS}{file.parent.name}/{file.name}": digest_of(file.read_bytes())
        for file in OWN_SKILLS.glob("*/SKILL.md")
    }


def _find_files(workspace: Path, deeper: Iterable[Path]) -> Iterator[Found]:
    """Yield the files that the agent program reads as configuration, sorted, up to a bound."""
    count = 0
    at_top = sorted(path for path in _list(workspace) if fold(path.name) in _ROOTS)
    for path in (*at_top, *sorted(deeper)):
        for found in _read(workspace, path):
            count += 1
            if count > MAX_FILES:
                name = path.relative_to(workspace).as_posix()
                yield Found(path=name, trouble="too_many")
                return
            yield found


def _search(workspace: Path) -> tuple[list[Path], bool]:
    """Return the `.claude` folders of subfolders, up to a bound, and whether instructions may be in
    the workspace.
    """
    folders = deque([str(workspace)])
    found: list[Path] = []
    left, may_instruct = MAX_ENTRIES, False
    while folders and left > 0:
        folder = folders.popleft()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left <= 0:
                    break
                name = entry.name.lower()
                may_instruct |= name in INSTRUCTIONS
                if name == WORKTREES:
                    continue
                if name == FOLDER:
                    if folder != str(workspace):
                        found.append(Path(entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return found, may_instruct or left <= 0


def _list(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries]
    return []


def _read(workspace: Path, path: Path) -> Iterator[Found]:
    """Yield one file, or a folder's files at any depth."""
    name = path.relative_to(workspace).as_posix()
    try:
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            for child in sorted(_list(path)):
                yield from _read(workspace, child)
        elif stat.S_ISREG(mode):
            yield Found(path=name) if is_content(name) else _read_file(path, name)
        else:
            yield Found(path=name, trouble="link" if stat.S_ISLNK(mode) else "unreadable")
    except FileNotFoundError:
        return  # gone since it was listed
    except (OSError, RecursionError):
        yield Found(path=name, trouble="unreadable")


def _read_file(path: Path, name: str) -> Found:
    """Read a file; a link that took its place meanwhile is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return Found(path=name, trouble="unreadable")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        return Found(path=name, trouble="too_large")
    return Found(path=name, content=content)


def read_approvals_blocking(file: Path) -> dict[str, _Approved]:
    """Return the digests of what was approved, by workspace and path. Those that cannot be parsed
    are none.

    Raise `OSError` if the file cannot be read.
    """
    try:
        with file.open("rb") as opened:
            stored = json.loads(opened.read(MAX_APPROVALS_BYTES))["workspaces"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {
        workspace: {path: digest for path, digest in paths.items() if isinstance(digest, str)}
        for workspace, paths in stored.items()
        if isinstance(paths, dict)
    }


def _cannot(file: Path, what: str, exc: OSError) -> StartError:
    return StartError(
        f"The approvals in {file} cannot be {what} ({exc.strerror}); "
        "let the server use them, or set CANDOR_DATA_DIR to another directory."
    )
