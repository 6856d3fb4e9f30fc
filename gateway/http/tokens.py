"""The users of the server: a file of names and hashed tokens, read again when it changes.

    # one token a line; a name may have several
    ada 3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea

The file holds only hashes, so reading it gives no access. A token is shown once, when it is made.
"""

import errno
import logging
import os
import re
import stat
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from gateway.errors import SettingsError, StartError
from gateway.ids import UserId
from gateway.users.model import digest_of, new_secret
from gateway.version import COMMAND

_log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ROOT = 0
_MAX_FILE_BYTES = 1_048_576
_LOOK_EVERY_S = 0.5
_FINAL = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR})
"""Errors of a file that stay; others, such as no free descriptor, pass."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The hashes of all tokens, each with its user."""

    users: tuple[tuple[str, UserId], ...]

    def user_of(self, token: str) -> UserId | None:
        """Return the token's user, or None, in a time that does not depend on the text."""
        given = digest_of(token)
        found = None
        for known, user_id in self.users:
            if compare_digest(given, known):
                found = user_id
        return found


class TokenFile:
    """The tokens of a file, kept up to date while `watch` runs.

    A changed file that cannot be used holds no tokens.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._loaded = _signature(path)
        self._tokens = load_tokens(path)
        self._changed = anyio.Event()

    def user_of(self, token: str) -> UserId | None:
        """Return the token's user; see `Tokens.user_of`."""
        return self._tokens.user_of(token)

    def has_user(self, user_id: UserId) -> bool:
        """Return whether a user has a token."""
        return any(known == user_id for _, known in self._tokens.users)

    async def wait_revoked(self, token: str) -> None:
        """Return when a token no longer belongs to its present user."""
        user_id = self.user_of(token)
        while user_id is not None and self.user_of(token) == user_id:
            await self._changed.wait()

    async def watch(self) -> None:
        """Read the file again after each change, until cancelled."""
        while True:
            await anyio.sleep(_LOOK_EVERY_S)
            if await run_sync(self.look_blocking):
                self._changed.set()
                self._changed = anyio.Event()

    def look_blocking(self) -> bool:
        """Read a file that changed and then stayed the same for one period; return whether it was
        read.

        An editor may have written only half of it before. Blocking.
        """
        before, self._seen = self._seen, _signature(self._path)
        if self._seen != before or self._seen == self._loaded:
            return False
        try:
            self._tokens = load_tokens(self._path)
        except StartError as exc:
            if isinstance(exc.__cause__, OSError) and exc.__cause__.errno not in _FINAL:
                _log.warning("tokens_not_read", extra={"reason": str(exc)})
                return False
            _log.error("tokens_not_usable", extra={"reason": str(exc)})
            self._tokens = Tokens(())
        self._loaded = self._seen
        return True


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as exc:
        return (exc.errno or 0,)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)


def make_token(name: str) -> tuple[str, str]:
    """Return a new token for a user and the line to add to the file.

    Raise `StartError` if the name is not valid.
    """
    if _NAME.fullmatch(name) is None:
        raise StartError(
            "A user's name is 1 to 64 letters, digits, dots, hyphens or underscores,"
            " beginning with a letter or digit."
        )
    token = new_secret()
    return token, f"{name} {digest_of(token)}"


def add_line_blocking(path: Path, name: str, line: str) -> None:
    """Append a line to the tokens file; a new file is readable by its owner alone.
    Blocking.

    Raise `StartError` if the name has a token already, or the file is not as it should be;
    `OSError` if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR)
    with os.fdopen(descriptor, "rb+") as file:
        content = file.read()
        if content.strip():
            if any(user_id == name for _, user_id in load_tokens(path).users):
                raise StartError(f"{name} has a token in {path} already; remove that line first.")
        else:
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        file.write(
            (b"" if not content or content.endswith(b"\n") else b"\n") + f"{line}\n".encode()
        )


def load_tokens(path: Path) -> Tokens:
    """Read a file of tokens; blocking.

    Raise `StartError` if it cannot be read, others can read or write it, or a line is wrong.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            raw = file.read(_MAX_FILE_BYTES)
    except OSError as exc:
        raise SettingsError(f"The tokens file {path} cannot be read: {exc.strerror}.") from exc
    if found.st_mode & _OTHERS:
        raise SettingsError(
            f"Others may read or write the tokens file {path}; run: chmod 600 {path}"
        )
    if found.st_uid not in {os.geteuid(), _ROOT}:
        raise SettingsError(
            f"The tokens file {path} belongs to another user, who could add tokens."
        )
    try:
        return read_tokens(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise SettingsError(f"The tokens file {path} is not UTF-8 text.") from exc
    except SettingsError as exc:
        raise SettingsError(f"The tokens file {path} cannot be used: {exc}") from exc


def read_tokens(text: str) -> Tokens:
    """Parse the content of a file of tokens.

    Raise `StartError` if a line is wrong, a token is repeated, or there is none.
    """
    users: dict[str, UserId] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, digest = line.strip().partition(" ")
        digest = digest.strip()
        if _NAME.fullmatch(name) is None or _HASH.fullmatch(digest) is None:
            raise SettingsError(f"line {number} is not a name and the SHA-256 of a token.")
        if digest in users:
            raise SettingsError(f"line {number} holds a token that an earlier line has already.")
        users[digest] = UserId(name)
    if not users:
        raise SettingsError(f"it holds no token; make one with `{COMMAND} token NAME`.")
    return Tokens(tuple(users.items()))
