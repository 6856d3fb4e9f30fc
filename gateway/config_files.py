"""Files of TOML that an operator writes for a part of the gateway, and secrets that they refer to.

Such a file holds no secret: it names the environment variable or the file that does. Each error
names the file, the key and what is wrong, in one sentence.
"""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from gateway.errors import SettingsError
from policies.rule_file import show_path, suggest
from policies.visible_text import show

MAX_FILE_BYTES = 256 * 1024
MAX_SECRET_BYTES = 64 * 1024


class Table(BaseModel):
    """A table of a file: no key but those that it names."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SecretSource(Table):
    """Where a secret is kept."""

    env: str | None = None
    file: Path | None = None
    before: str = ""
    """Stands before the secret in its value, as `Bearer ` in a header."""

    @model_validator(mode="after")
    def _names_one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("it must name either env or file")
        if not self.before.isprintable():
            raise ValueError("before must be on one line")
        return self

    def read_blocking(self, what: str, environ: Mapping[str, str]) -> str:
        """Return the secret without what stands before it; `what` names it for the operator.

        Raise `StartError` if it is missing or is not one line of text. The text repeats what the
        operator wrote only if that names something: it may be the secret itself.
        """
        if self.env is not None:
            value, where, no_place = environ.get(self.env), f"the variable {self.env}", _NO_VARIABLE
        else:
            value, where, no_place = (
                _read_file_blocking(self.file),
                f"the file {self.file}",
                _NO_FILE,
            )
        if value is None:
            raise SettingsError(f"{what} is not in {no_place}, not the secret itself.")
        if not value.strip() or not value.strip().isprintable():
            raise SettingsError(f"{what} is not in {where}; put one line of text there.")
        return value.strip()


_NO_VARIABLE = "a variable: env must be the name of one that is set"
_NO_FILE = "a file: file must be the path of one that the server can read"


def _read_file_blocking(path: Path | None) -> str | None:
    """Return the text of a file, empty if it is no text; None if it cannot be read."""
    try:
        with (path or Path()).open("rb") as file:
            return file.read(MAX_SECRET_BYTES).decode()
    except UnicodeDecodeError:
        return ""
    except (OSError, ValueError):
        return None


T = TypeVar("T", bound=Table)


class ConfigFile:
    """A file of the operator's: `title` names it in errors, `setting` is the variable for it."""

    def __init__(self, path: Path, *, title: str, setting: str) -> None:
        self._path = path
        self._title = title
        self._setting = setting

    def load_blocking(
        self, model: type[T], tables: Mapping[int, type[Table]], in_reach: Collection[Path]
    ) -> T:
        """Return the file's content.

        `tables` are the tables by the depth of their keys, for hints on a key that is not known.
        `in_reach` are directories that agents can change; the file must not lie there. Raise
        `StartError` if the file cannot be used.
        """
        real = self._path.resolve()
        for folder in in_reach:
            if real.is_relative_to(folder.resolve()):
                raise self.fault(f"it lies in {folder}, where the agent could change it; move it")
        try:
            with self._path.open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
            if len(raw) > MAX_FILE_BYTES:
                raise self.fault(f"it is larger than {MAX_FILE_BYTES} bytes; make it smaller")
            return model.model_validate(tomllib.loads(raw.decode("utf-8-sig")))
        except OSError as exc:
            raise self.fault(f"it cannot be read ({exc.strerror}); set {self._setting}") from exc
        except ValidationError as exc:
            raise self.fault(_explain(exc, tables)) from exc
        except (RecursionError, ValueError) as exc:
            raise self.fault(f"it is not TOML in UTF-8 ({show(str(exc))}); correct it") from exc

    def fault(self, what: str) -> SettingsError:
        """Return the error that tells what is wrong with the file."""
        return SettingsError(f"{self._title} {show_path(self._path)}: {what}.")


def _explain(exc: ValidationError, tables: Mapping[int, type[Table]]) -> str:
    """Return the first fault as the end of a sentence; it repeats no value."""
    fault = exc.errors(include_url=False, include_input=False)[0]
    place = [show(str(part)) for part in fault["loc"]]
    where = ".".join(place)
    if fault["type"] == "extra_forbidden":
        known: Any = tables.get(len(place), SecretSource)
        return f"{where} is not known; {suggest(place[-1], known.model_fields)}"
    what = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {what[:1].lower()}{what[1:]}"
