"""An episode as a Markdown file: a header that a person can read, then the sections.

The header stands between two lines of dashes, one field a line, texts as they are and lists and
scopes as JSON. A line of a section that would be taken for a heading is written with a backslash
before it, as Markdown has it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from memory.clock import from_rfc3339, rfc3339
from memory.episodes.episode import EPISODE_TYPES, SECTIONS, Episode, Sections, Variant
from memory.scope import LABELS, Scope

HEADINGS: Final = {name: name.capitalize() for name in SECTIONS}
_NAMES: Final = {heading: name for name, heading in HEADINGS.items()}
_VARIANTS: Final = "Variants"
_ESCAPED: Final = re.compile(r"^(\\*)(?=#)", re.MULTILINE)
_UNESCAPED: Final = re.compile(r"^\\(\\*)(?=#)", re.MULTILINE)
_OPTIONAL: Final = ("conversation_id", "turn_id", "thread")


def to_markdown(episode: Episode) -> str:
    """Write an episode so that `from_markdown` reads the same one."""
    header = "\n".join(f"{name}: {value}" for name, value in _header(episode))
    return f"---\n{header}\n---\n\n# {episode.title}\n{_body(episode)}"


def body_of(episode: Episode) -> str:
    """Write the sections and variants alone; of a single section only its text."""
    named = episode.sections.named()
    if len(named) == 1 and not episode.variants:
        return next(iter(named.values()))
    return _body(episode).strip()


def _header(episode: Episode) -> Iterator[tuple[str, str]]:
    yield "episode_id", episode.episode_id
    yield "episode_type", episode.episode_type
    yield "occurred_at", rfc3339(episode.occurred_at)
    yield "updated_at", rfc3339(episode.updated_at)
    yield "owner_id", _json(episode.scope.owner_id)
    for name, label in episode.scope.labels.items():
        yield name, _json(label)
    yield "tags", _json(episode.tags)
    yield "source_refs", _json(episode.source_refs)
    for name in _OPTIONAL:
        if getattr(episode, name) is not None:
            yield name, _json(getattr(episode, name))
    if episode.position is not None:
        yield "position", str(episode.position)
    yield "repeats", str(episode.repeats)
    yield "revision", str(episode.revision)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _body(episode: Episode) -> str:
    parts = [
        f"\n## {HEADINGS[name]}\n\n{_ESCAPED.sub(_with_backslash, text)}\n"
        for name, text in episode.sections.named().items()
    ]
    if episode.variants:
        parts.append(f"\n## {_VARIANTS}\n")
    parts.extend(
        f"\n### {rfc3339(variant.occurred_at)}\n\n{_ESCAPED.sub(_with_backslash, variant.text)}\n"
        for variant in episode.variants
    )
    return "".join(parts)


def _with_backslash(match: re.Match[str]) -> str:
    return f"\\{match[1]}"


def from_markdown(text: str) -> Episode:
    """Read an episode.

    Raises:
        ValueError: it is none; the text says in a sentence what is wrong.
    """
    if not text.startswith("---\n") or "\n---\n\n# " not in text:
        raise ValueError("An episode begins with a header between two lines of dashes.")
    header, _, rest = text.removeprefix("---\n").partition("\n---\n\n# ")
    title, _, body = rest.partition("\n")
    fields = dict(_read_field(line) for line in header.split("\n"))
    try:
        return _episode(fields, title, body)
    except KeyError as exc:
        raise ValueError(f"The episode's header has no {exc.args[0]}.") from exc
    except (TypeError, json.JSONDecodeError) as exc:
        raise ValueError("A field of the episode's header cannot be read.") from exc


def _read_field(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(": ")
    if not colon:
        raise ValueError("A line of the episode's header has no colon.")
    return name, value


def _episode(fields: Mapping[str, str], title: str, body: str) -> Episode:
    episode_type = next(
        (known_type for known_type in EPISODE_TYPES if known_type == fields["episode_type"]), None
    )
    if episode_type is None:
        raise ValueError("The episode's type is none of those that there are.")
    texts, variants = _read_body(body)
    optional = {name: _text(fields[name]) for name in _OPTIONAL if name in fields}
    return Episode(
        episode_id=fields["episode_id"],
        episode_type=episode_type,
        title=title,
        scope=Scope(
            owner_id=_text(fields["owner_id"]),
            **{name: _text(fields[name]) for name in LABELS if name in fields},
        ),
        sections=Sections.of(texts),
        occurred_at=from_rfc3339(fields["occurred_at"]),
        updated_at=from_rfc3339(fields["updated_at"]),
        tags=_texts(fields["tags"]),
        source_refs=_texts(fields["source_refs"]),
        variants=tuple(variants),
        repeats=int(fields["repeats"]),
        position=int(fields["position"]) if "position" in fields else None,
        revision=int(fields["revision"]),
        **optional,
    )


def _text(value: str) -> str:
    read = json.loads(value)
    if not isinstance(read, str):
        raise TypeError("not a text")
    return read


def _texts(value: str) -> tuple[str, ...]:
    read = json.loads(value)
    if not isinstance(read, list) or not all(isinstance(entry, str) for entry in read):
        raise TypeError("not a list of texts")
    return tuple(read)


def _read_body(body: str) -> tuple[dict[str, str], list[Variant]]:
    texts: dict[str, str] = {}
    variants: list[Variant] = []
    for heading, lines in _parts(body.split("\n")):
        content = _UNESCAPED.sub(r"\1", "\n".join(lines))
        if heading.startswith("### "):
            moment = from_rfc3339(heading.removeprefix("### "))
            variants.append(Variant(occurred_at=moment, text=content))
        elif heading.removeprefix("## ") in _NAMES:
            texts[_NAMES[heading.removeprefix("## ")]] = content
        elif heading != f"## {_VARIANTS}":
            raise ValueError("The episode has a section that there is not.")
    return texts, variants


def _parts(lines: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Split at headings; each is followed by an empty line and its text ends in one."""
    places = [at for at, line in enumerate(lines) if line.startswith("#")]
    for begin, end in zip(places, [*places[1:], len(lines)], strict=True):
        yield lines[begin], lines[begin + 2 : end - 1]
