"""Reads a case as it was sent, by a model or over HTTP: what may be written, cleaned; the rest is named.

Nothing that is sent is trusted. Fields that only the server may write (feedback, relations, lifecycle,
counters, scope) are left out and told; secrets are masked before anything is compared, cut or stored;
a placeholder counts as not sent. What cannot be understood is refused in one sentence.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from memory.cases.case import FAILURE_LAYERS, CaseContent, CaseMetadata, FailureLayer
from memory.cases.results import CaseRefused
from memory.text_lines import flat, one_line
from policies.secrets import mask_secrets_counted

TextField = Literal["symptom_summary", "diagnosis", "resolution", "root_cause"]
TEXT_FIELDS: Final[tuple[TextField, ...]] = get_args(TextField)
REQUIRED: Final = ("symptom_summary", "diagnosis", "resolution", "confidence")
WRITABLE: Final = (*TEXT_FIELDS, "confidence", "case_id", "metadata")

MAX_CHARS: Final[Mapping[TextField, int]] = {
    "symptom_summary": 1_000,
    "diagnosis": 20_000,
    "resolution": 10_000,
    "root_cause": 4_000,
}
MAX_NAMES: Final = 20
"""In a list of metadata."""
MAX_NAME_CHARS: Final = 200
_MAX_TOLD: Final = 20
_MAX_TOLD_CHARS: Final = 60
_MAX_READ: Final = 4
"""So many times as long as is kept, a text is read at most: secrets are looked for in all of that."""
_MAX_READ_NAME: Final = MAX_NAME_CHARS * _MAX_READ

_PLACEHOLDERS: Final = frozenset(
    {
        *("unknown", "n/a", "na", "none", "null", "nil", "todo", "tbd", "undefined"),
        *("to be filled", "to be determined", "not available", "not known"),
        *("待补充", "待填写", "待定", "待确认", "未知", "不详", "不明", "无", "暂无", "没有", "空"),
    }
)
_AROUND: Final = " \t\n.。,，;；:：!！?？-–—_*`'\"“”‘’()（）[]【】<>《》…"
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NO_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
_BETWEEN: Final = re.compile(r"[,，;；、\n]")
_LINE_END: Final = re.compile(r"\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCase:
    """What was sent, as far as it says anything."""

    case_id: str | None
    """None: a new case is meant."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """By the names of `TEXT_FIELDS`."""
    confidence: float | None = None
    metadata: CaseMetadata = field(default_factory=CaseMetadata)
    stripped: tuple[str, ...] = ()
    """Fields that may not be written this way, by their names; those of the metadata as `metadata.…`."""
    redacted: int = 0
    notes: tuple[str, ...] = ()


def read_case(sent: object, *, known_secrets: Sequence[str] = ()) -> SentCase:
    """Read a case that was sent. Pure; long texts take some milliseconds.

    Raises:
        CaseRefused: there is none, or a field is not what it should be.
    """
    if sent is None or sent == {}:
        raise CaseRefused("MISSING_CASE", "Say in `case` what happened and what helped.")
    if not isinstance(sent, Mapping):
        raise CaseRefused("INVALID_CASE", "`case` must be an object with the fields of a case.")
    known = sent.get("metadata")
    if known is not None and not isinstance(known, Mapping):
        raise CaseRefused("INVALID_CASE", "`metadata` must be an object.", field="metadata")
    return _Reading(known_secrets).read(sent, known or {})


def new_content(sent: SentCase) -> tuple[CaseContent, float]:
    """Give what a new case says, and its author's confidence.

    Raises:
        CaseRefused: something that every case has to say is missing, or only a placeholder stands there.
    """
    missing = [name for name in TEXT_FIELDS if name in REQUIRED and name not in sent.texts]
    if missing or sent.confidence is None:
        parts = [", ".join(f"`{name}`" for name in missing) + " in real words"] if missing else []
        if sent.confidence is None:
            parts.append("a `confidence` from 0 to 1")
        told = " and ".join(parts)
        first = missing[0] if missing else "confidence"
        raise CaseRefused("INVALID_CASE", f"A new case must also say {told}.", field=first)
    return CaseContent(**sent.texts, metadata=sent.metadata), sent.confidence


class _Reading:
    """One reading: what was masked, cut and left out adds up here."""

    def __init__(self, known_secrets: Sequence[str]) -> None:
        self._known = known_secrets
        self._redacted = 0
        self._notes: list[str] = []

    def read(self, sent: Mapping[Any, Any], known: Mapping[Any, Any]) -> SentCase:
        texts = {name: self._text(name, sent.get(name)) for name in TEXT_FIELDS}
        metadata = self._metadata(known)
        stripped = [
            *(self._told(field_name) for field_name in sent if field_name not in WRITABLE),
            *(
                f"metadata.{self._told(field_name)}"
                for field_name in known
                if field_name not in _METADATA
            ),
        ]
        return SentCase(
            case_id=_case_id(sent.get("case_id")),
            texts={name: text for name, text in texts.items() if text is not None},
            confidence=_confidence(sent.get("confidence")),
            metadata=metadata,
            stripped=_bounded(stripped),
            redacted=self._redacted,
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _text(self, name: TextField, value: object) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise CaseRefused("INVALID_CASE", f"`{name}` must be text.", field=name)
        limit = MAX_CHARS[name]
        text = self._read(name, value[: limit * _MAX_READ]).strip()
        if len(text) > limit:
            self._notes.append(f"`{name}` was cut to {limit} characters.")
            text = f"{text[: limit - 1].rstrip()}…"
        return text if _says_something(text) else None

    def _metadata(self, known: Mapping[Any, Any]) -> CaseMetadata:
        return CaseMetadata(
            failure_layer=_failure_layer(known.get("failure_layer")),
            runtime=self._name("runtime", known.get("runtime")),
            related_services=self._names("related_services", known.get("related_services")),
            middleware=self._name("middleware", known.get("middleware")),
            application_name=self._name("application_name", known.get("application_name")),
            region=self._name("region", known.get("region")),
            tags=self._names("tags", known.get("tags")),
        )

    def _name(self, name: str, value: object) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            told = f"metadata.{name}"
            raise CaseRefused("INVALID_CASE", f"`{told}` must be text.", field=told)
        return _name(self._read(f"metadata.{name}", value[:_MAX_READ_NAME]))

    def _names(self, name: str, value: object) -> tuple[str, ...]:
        if value is None:
            return ()
        if isinstance(value, str):  # a list written as one text, as models do
            text, between = value[: MAX_NAMES * _MAX_READ * _MAX_READ_NAME], _BETWEEN
        elif isinstance(value, Sequence) and all(isinstance(entry, str) for entry in value):
            lines = (self._name(name, entry) for entry in value[: MAX_NAMES * _MAX_READ])
            text, between = "\n".join(line for line in lines if line is not None), _LINE_END
        else:
            told = f"metadata.{name}"
            raise CaseRefused("INVALID_CASE", f"`{told}` must be a list of names.", field=told)
        # Masked whole: of a secret with a comma, or one name a line, the parts look like none.
        names = [_name(part) for part in between.split(self._read(f"metadata.{name}", text))]
        kept = tuple(dict.fromkeys(name for name in names if name is not None))
        if len(kept) > MAX_NAMES:
            self._notes.append(f"`metadata.{name}` was cut to {MAX_NAMES} names.")
        return kept[:MAX_NAMES]

    def _read(self, name: str, text: str) -> str:
        """Read a text; what is no text in it is left out or replaced, and told."""
        if _NO_TEXT.search(text):
            self._notes.append(
                f"`{name}` held characters that are no text (NUL or half of one);"
                " they were left out or replaced."
            )
        return self._masked(text)

    def _masked(self, text: str) -> str:
        clean = text.encode("utf-8", "replace").decode("utf-8")
        clean = _CONTROLS.sub("", clean.replace("\r\n", "\n").replace("\r", "\n"))
        masked = mask_secrets_counted(clean, known=self._known)
        self._redacted += masked.count
        return masked.text

    def _told(self, name: object) -> str:
        return flat(self._masked(str(name)[: _MAX_TOLD_CHARS * 2]))[:_MAX_TOLD_CHARS]


_METADATA: Final = frozenset(CaseMetadata.__dataclass_fields__)


def _says_something(text: str) -> bool:
    """Whether a text is more than a placeholder or signs."""
    if not any(map(str.isalnum, text)):
        return False
    return text.strip(_AROUND).casefold() not in _PLACEHOLDERS


def _case_id(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise CaseRefused("INVALID_CASE", "`case_id` must be text.", field="case_id")
    text = value.strip()
    return text if _says_something(text) else None


def _confidence(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= 1 else math.nan  # an int may be beyond all floats
        if 0 <= number <= 1:
            return round(number, 4)
    raise CaseRefused(
        "INVALID_CASE", "`confidence` must be a number from 0 to 1.", field="confidence"
    )


def _failure_layer(value: object) -> FailureLayer | None:
    """Read it; `unknown` says nothing, and so does not stand in the way of a known one."""
    if value is None:
        return None
    name = value.strip().casefold() if isinstance(value, str) else None
    found = next((layer for layer in FAILURE_LAYERS if layer == name), None)
    if found is None and (name is None or _says_something(name)):
        told = ", ".join(FAILURE_LAYERS)
        raise CaseRefused(
            "INVALID_CASE",
            f"`metadata.failure_layer` must be one of: {told}.",
            field="metadata.failure_layer",
        )
    return None if found == "unknown" else found


def _name(text: str) -> str | None:
    line = one_line(text, MAX_NAME_CHARS)
    return line if _says_something(line) else None


def _bounded(names: Sequence[str]) -> tuple[str, ...]:
    told = tuple(dict.fromkeys(names))
    if len(told) <= _MAX_TOLD:
        return told
    return (*told[:_MAX_TOLD], f"and {len(told) - _MAX_TOLD} more")
