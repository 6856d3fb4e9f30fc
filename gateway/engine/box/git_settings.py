"""Rewrites the settings that a command left in a new repository.

Git runs programs that settings name: monitors, filters, helpers, transports. So nothing is copied:
a new file is written, of settings that git itself writes into a new repository or a clone, with
values that are checked. A file that cannot be read for certain counts as empty. Neither git nor
anything else is run.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

MAX_SETTINGS_BYTES: Final = 65_536
"""Larger settings are not read."""
_MAX_URL_CHARS: Final = 2_000
_ORIGIN: Final = "origin"
_FORMATS: Final = frozenset({"sha1", "sha256", "files", "reftable"})
"""How a repository stores objects and references: without these it cannot be read."""

Setting = tuple[str, str, str, str]
"""Section, subsection or nothing, name, value."""

_HEADER: Final = re.compile(r'\[([A-Za-z0-9-]+)(?:[ \t]+"([^"\\\0-\x1f\x7f]*)")?\]')
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_UNCLEAR: Final = re.compile(r'["\\\0-\x1f\x7f]')
"""Quotes inside a value, escapes, continued lines."""
_COMMENT: Final = re.compile("[#;]")
_BRANCH: Final = r"\w[\w./-]*"
_BRANCH_NAME: Final = re.compile(_BRANCH)
_MERGE: Final = re.compile(rf"refs/heads/{_BRANCH}")
_FETCH: Final = re.compile(rf"\+refs/heads/(\*|{_BRANCH}):refs/remotes/{_ORIGIN}/\1")
_HOST: Final = r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*"
"""With a user, without a password. A host or user that begins with `-` is an option to ssh."""
_PATH: Final = r"[A-Za-z0-9_./~+-]*"
_REMOTE_URL: Final = re.compile(
    rf"(?:https|ssh)://{_HOST}(?::[0-9]{{1,5}})?/{_PATH}|{_HOST}:(?!//|-){_PATH}"
)
"""Over https or ssh. `ext::` and other transports that run a helper have a second colon."""
_LOCAL: Final = re.compile(r"(?:file://)?(/.*)")


def rewrite_settings(settings: bytes, is_repository: Callable[[str], bool]) -> tuple[bytes, bool]:
    """Return the new content of a repository's settings, and whether any setting was left out.

    `is_repository` says of an absolute path whether it is a repository whose hooks and settings
    are protected: git runs those of a remote that is a path.
    """
    found = _parse(settings)
    kept = [*_own_settings(found or ()), *_origin_settings(found or (), is_repository)]
    return _format(kept), found is None or not set(found) <= set(kept)


def _parse(settings: bytes) -> Sequence[Setting] | None:
    """Return the settings of a file; None: it may mean something else to git."""
    try:
        text = settings.decode()
    except UnicodeDecodeError:
        return None
    found: list[Setting] = []
    section: tuple[str, str] | None = None
    for line in (line.strip(" \t") for line in text.split("\n")):
        if not line or line[0] in "#;":
            continue
        if header := _HEADER.fullmatch(line):
            section = header[1].lower(), header[2] or ""
            continue
        name, equals, value = line.partition("=")
        name, value = name.rstrip(" \t").lower(), value.lstrip(" \t")
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        value = value[1:-1] if is_quoted else value
        is_clear = not _UNCLEAR.search(value) and (is_quoted or not _COMMENT.search(value))
        if section is None or not equals or not _NAME.fullmatch(name) or not is_clear:
            return None
        found.append((*section, name, value))
    return found


def _own_settings(found: Sequence[Setting]) -> Iterator[Setting]:
    """Yield what `git init` writes."""
    last = {setting[:3]: setting[3] for setting in found}
    extensions = [
        ("extensions", "", name, last.get(("extensions", "", name), ""))
        for name in ("objectformat", "refstorage")
    ]
    extensions = [setting for setting in extensions if setting[3] in _FORMATS]
    is_bare = last.get(("core", "", "bare")) == "true"
    has_modes = last.get(("core", "", "filemode")) != "false"
    yield "core", "", "repositoryformatversion", "1" if extensions else "0"
    yield "core", "", "filemode", "true" if has_modes else "false"
    yield "core", "", "bare", "true" if is_bare else "false"
    if not is_bare:
        yield "core", "", "logallrefupdates", "true"
    yield from extensions


def _origin_settings(
    found: Sequence[Setting], is_repository: Callable[[str], bool]
) -> Iterator[Setting]:
    """Yield what `git clone` writes of the remote and of branches that follow it; nothing if the
    remote has any other setting, such as a program of its own, a proxy or a second address.
    """
    remote = [setting for setting in found if setting[:2] == ("remote", _ORIGIN)]
    urls = [value for *_, name, value in remote if name == "url"]
    fetches = [value for *_, name, value in remote if name == "fetch"]
    is_plain = len(urls) == 1 and len(remote) == 1 + len(fetches)
    if not (
        is_plain
        and _is_harmless(urls[0], is_repository)
        and all(_FETCH.fullmatch(fetch) for fetch in fetches)
    ):
        return
    yield from remote
    for setting in found:
        section, branch, name, value = setting
        if section == "branch" and _BRANCH_NAME.fullmatch(branch):
            is_followed = name == "merge" and _MERGE.fullmatch(value)
            if is_followed or (name, value) == ("remote", _ORIGIN):
                yield setting


def _is_harmless(url: str, is_repository: Callable[[str], bool]) -> bool:
    if len(url) > _MAX_URL_CHARS or "::" in url:
        return False
    local = _LOCAL.fullmatch(url)
    return is_repository(local[1]) if local else _REMOTE_URL.fullmatch(url) is not None


def _format(settings: Sequence[Setting]) -> bytes:
    lines: list[str] = []
    at: tuple[str, str] | None = None
    for section, subsection, name, value in settings:
        if at != (section, subsection):
            at = section, subsection
            lines.append(f'[{section} "{subsection}"]' if subsection else f"[{section}]")
        lines.append(f'\t{name} = "{value}"' if subsection else f"\t{name} = {value}")
    return "".join(f"{line}\n" for line in lines).encode()
