"""The files of the chat page as of one moment: their version, their types and their compressed
forms.

The page is kept as small modules. `make page` writes them as one script and one style sheet, with
the digest of what they were made of (`bundle.json`). A bundle that is not current is left aside,
and the page loads its modules one by one.
"""

import gzip
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

INDEX: Final = "index.html"
BUNDLE: Final = "static/bundle"
"""What the names of the files begin with that `make page` writes."""

_TOLD: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_STYLES: Final = re.compile(r'(?<! ) *<link rel="stylesheet" href="static/styles/[^"]+">\n')
_SCRIPT: Final = '<script type="module" src="static/main.js"></script>'
_BUNDLED: Final = (
    '<link rel="stylesheet" href="static/bundle.css">\n'
    '  <script type="module" src="static/bundle.js"></script>'
)
_ADDRESS: Final = re.compile(r'(?<=="static/)(?!manifest\.)')
_VERSION_CHARS: Final = 16


@dataclass(frozen=True)
class PageFile:
    """One file of the page."""

    name: str
    content: bytes
    brotli: bytes | None = None

    @property
    def media_type(self) -> str | None:
        """What browsers take it for; None if it is not for them."""
        types: Mapping[str, str] = _TOLD["types"]
        return types.get(Path(self.name).suffix)

    @cached_property
    def etag(self) -> str:
        """Names the content."""
        return sha256(self.content).hexdigest()[:32]

    @cached_property
    def gzip(self) -> bytes | None:
        """The content compressed, the same bytes each time; None if that does not pay. Blocking at
        first.
        """
        is_text = Path(self.name).suffix in _TOLD["compressed"]
        return gzip.compress(self.content, mtime=0) if is_text else None


class PageFiles:
    """The files of a folder as they were when this was made."""

    def __init__(self, folder: Path) -> None:
        """Read the folder; blocking."""
        found = {path.relative_to(folder).as_posix(): path for path in _paths(folder)}
        contents = {name: path.read_bytes() for name, path in found.items()}
        self._files = {
            name: PageFile(name, content, contents.get(f"{name}.br"))
            for name, content in contents.items()
        }
        self.sources = digest(contents)
        self.is_bundled = _bundled_sources(contents) == self.sources
        self.version = digest(contents, with_bundle=True)[:_VERSION_CHARS]
        self._files[INDEX] = PageFile(INDEX, self._index(contents[INDEX].decode()).encode())

    def get(self, name: str) -> PageFile | None:
        """Return a file by its listed name; no other spelling finds it."""
        return self._files.get(name)

    def _index(self, html: str) -> str:
        """Return the page with the addresses of its files' present version, relative to its own."""
        if self.is_bundled:
            html = _STYLES.sub("", html).replace(_SCRIPT, _BUNDLED)
        return _ADDRESS.sub(f"v-{self.version}/", html)


def fingerprint(folder: Path) -> int:
    """Return a number that changes when a file does; blocking."""
    return hash(
        tuple(
            (path, stat.st_mtime_ns, stat.st_size)
            for path in _paths(folder)
            for stat in [path.stat()]
        )
    )


def digest(contents: Mapping[str, bytes], *, with_bundle: bool = False) -> str:
    """Return the SHA-256 of names and contents, in the order of the names."""
    whole = sha256()
    for name in sorted(contents):
        if with_bundle or not name.startswith(BUNDLE):
            whole.update(f"{name}\0{sha256(contents[name]).hexdigest()}\n".encode())
    return whole.hexdigest()


def _paths(folder: Path) -> list[Path]:
    """List the files of a folder in order; no links."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _bundled_sources(contents: Mapping[str, bytes]) -> str | None:
    """Return the digest that the bundle was made of; None if there is none, or it
    cannot be read.
    """
    try:
        told = json.loads(contents.get(f"{BUNDLE}.json", b"{}"))
    except ValueError:  # a conflict of a merge
        return None
    sources = told.get("sources") if isinstance(told, dict) else None
    return sources if isinstance(sources, str) else None
