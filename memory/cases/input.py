"""Reads and cleans a case that a model or an HTTP client sent.

Fields that only the server writes (feedback, relations, lifecycle, counters, scope) are ignored and
named. Secrets are masked before anything is compared, cut or stored. A placeholder such as `n/a`
counts as not sent. Invalid input is refused with one sentence.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from memory.cases.case import FAILURE_LAYERS, CaseContent, CaseMetadata, FailureLayer
from memory.cases.results import CaseRefused, sentence
from memory.text.lines import flat, one_line
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
"""Names in a list of metadata."""
MAX_NAME_CHARS: Final = 200
_MAX_STRIPPED: Final = 20
_MAX_STRIPPED_CHARS: Final = 60
_READ_FACTOR: Final = 4
"""A text is read, and secrets are looked for, in at most this multiple of the characters that are
kept."""
_MAX_READ_NAME: Final = MAX_NAME_CHARS * _READ_FACTOR

_PLACEHOLDERS: Final = frozenset(
    "unknown|n/a|na|none|null|nil|todo|tbd|undefined|to be filled|to be determined|not available"
    "|not known|待补充|待填写|待定|待确认|未知|不详|不明|无|暂无|没有|空".split("|")
)
_AROUND: Final = " \t\n.。,，;；:：!！?？-–—_*`'\"“”‘’()（）[]【】<>《》…"
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NO_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
_SEPARATOR: Final = re.compile(r"[,，;；、\n]")
_METADATA: Final = frozenset(CaseMetadata.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCase:
    """The valid part of what was sent."""

    case_id: str | None
    """None: a new case."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """By the names of `TEXT_FIELDS`."""
    confidence: float | None = None
    metadata: CaseMetadata = field(default_factory=CaseMetadata)
    stripped: tuple[str, ...] = ()
    """Ignored fields; those of the metadata as `metadata.…`."""
    redacted: int = 0
    """Number of masked secrets."""
    notes: tuple[str, ...] = ()


def read_case(sent: object, *, known_secrets: Sequence[str] = ()) -> SentCase:
    """Read a case that was sent. Pure; long texts take some milliseconds.

    Raise `CaseRefused` if there is no case, or a field is not valid.
    """
    if sent is None or sent == {}:
        raise CaseRefused("MISSING_CASE", "Say in `case` what happened and what helped.")
    if not isinstance(sent, Mapping):
        raise CaseRefused("INVALID_CASE", "`case` must be an object with the fields of a case.")
    metadata = sent.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise _invalid("metadata", "must be an object")
    return _Reading(known_secrets).read(sent, metadata or {})


def new_content(sent: SentCase) -> tuple[CaseContent, float]:
    """Return the content and the stated confidence of a new case.

    Raise `CaseRefused` if a required field is missing, or only a placeholder.
    """
    missing = [name for name in TEXT_FIELDS if name in REQUIRED and name not in sent.texts]
    if missing or sent.confidence is None:
        parts = [", ".join(f"`{name}`" for name in missing) + " in real words"] if missing else []
        if sent.confidence is None:
            parts.append("a `confidence` from 0 to 1")
        message = f"A new case must also say {' and '.join(parts)}."
        raise CaseRefused("INVALID_CASE", message, field=[*missing, "confidence"][0])
    return CaseContent(**sent.texts, metadata=sent.metadata), sent.confidence


class _Reading:
    def __init__(self, known_secrets: Sequence[str]) -> None:
        self._known_secrets = known_secrets
        self._redacted = 0
        self._notes: list[str] = []

    def read(self, sent: Mapping[Any, Any], known: Mapping[Any, Any]) -> SentCase:
        texts = {name: self._text(name, sent.get(name)) for name in TEXT_FIELDS}
        layer, layer_tag = self._layer(known.get("failure_layer"))
        tags = self._names("tags", known.get("tags"))
        metadata = CaseMetadata(
            failure_layer=layer,
            runtime=self._name("runtime", known.get("runtime")),
            related_services=self._names("related_services", known.get("related_services")),
            middleware=self._name("middleware", known.get("middleware")),
            application_name=self._name("application_name", known.get("application_name")),
            region=self._name("region", known.get("region")),
            tags=(*tags, *(tag for tag in layer_tag if tag not in tags))[:MAX_NAMES],
        )
        stripped = [
            *(self._shown(name) for name in sent if name not in WRITABLE),
            *(f"metadata.{self._shown(name)}" for name in known if name not in _METADATA),
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
            raise _invalid(name, "must be text")
        limit = MAX_CHARS[name]
        text = self._clean(name, value[: limit * _READ_FACTOR]).strip()
        if len(text) > limit:
            self._notes.append(f"`{name}` was cut to {limit} characters.")
            text = f"{text[: limit - 1].rstrip()}…"
        return text if _says_something(text) else None

    def _layer(self, value: object) -> tuple[FailureLayer | None, tuple[str, ...]]:
        """Read the layer by its name; what names none is kept as a tag.

        `unknown` counts as not sent.
        """
        name = self._name("failure_layer", value)
        if name is None:
            return None, ()
        layer = next((known for known in FAILURE_LAYERS if known == name.casefold()), None)
        if layer is not None:
            return layer, ()
        self._notes.append(sentence("notes", "layer_as_tag", ", ".join(FAILURE_LAYERS)))
        return None, (name,)

    def _name(self, name: str, value: object) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise _invalid(f"metadata.{name}", "must be text")
        return _line(self._clean(f"metadata.{name}", value[:_MAX_READ_NAME]))

    def _names(self, name: str, value: object) -> tuple[str, ...]:
        if value is None:
            return ()
        field_name = f"metadata.{name}"
        if isinstance(value, str):  # models send a list as one text
            text = self._clean(field_name, value[: MAX_NAMES * _READ_FACTOR * _MAX_READ_NAME])
            parts = _SEPARATOR.split(text)
        elif isinstance(value, Sequence) and all(isinstance(entry, str) for entry in value):
            entries = [self._name(name, entry) for entry in value[: MAX_NAMES * _READ_FACTOR]]
            # masked again together: a secret sent one line an entry looks like none in parts
            joined = "\n".join(entry for entry in entries if entry is not None)
            parts = self._clean(field_name, joined).split("\n")
        else:
            raise _invalid(field_name, "must be a list of names")
        names = [line for line in map(_line, parts) if line is not None]
        kept = tuple(dict.fromkeys(names))
        if len(kept) > MAX_NAMES:
            self._notes.append(f"`{field_name}` was cut to {MAX_NAMES} names.")
        return kept[:MAX_NAMES]

    def _clean(self, name: str, text: str) -> str:
        """Return a text with secrets masked and without characters that no store can hold."""
        if _NO_TEXT.search(text):
            self._notes.append(sentence("notes", "no_text", name))
        return self._masked(text)

    def _masked(self, text: str) -> str:
        clean = text.encode("utf-8", "replace").decode("utf-8")
        clean = _CONTROLS.sub("", clean.replace("\r\n", "\n").replace("\r", "\n"))
        masked = mask_secrets_counted(clean, known=self._known_secrets)
        self._redacted += masked.count
        return masked.text

    def _shown(self, name: object) -> str:
        """Return the name of an ignored field in a form that can be shown."""
        return flat(self._masked(str(name)[: _MAX_STRIPPED_CHARS * 2]))[:_MAX_STRIPPED_CHARS]


def _invalid(name: str, problem: str) -> CaseRefused:
    return CaseRefused("INVALID_CASE", f"`{name}` {problem}.", field=name)


def _says_something(text: str) -> bool:
    """Return whether a text is more than a placeholder or punctuation."""
    if not any(map(str.isalnum, text)):
        return False
    return text.strip(_AROUND).casefold() not in _PLACEHOLDERS


def _case_id(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _invalid("case_id", "must be text")
    text = value.strip()
    return text if _says_something(text) else None


def _confidence(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= 1 else math.nan  # an int may be beyond all floats
        if 0 <= number <= 1:
            return round(number, 4)
    raise _invalid("confidence", "must be a number from 0 to 1")


def _line(text: str) -> str | None:
    line = one_line(text, MAX_NAME_CHARS)
    return line if _says_something(line) else None


def _bounded(names: Sequence[str]) -> tuple[str, ...]:
    kept = tuple(dict.fromkeys(names))
    if len(kept) <= _MAX_STRIPPED:
        return kept
    return (*kept[:_MAX_STRIPPED], f"and {len(kept) - _MAX_STRIPPED} more")
