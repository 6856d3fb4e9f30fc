"""Skills, sub-agents and commands of a workspace: texts that a model follows.

An agent is given those alone whose exact content a person approved, and Candor's own skills as they
were installed. A file that is broken is listed with what is wrong. Decides on contents that were
read before; does not access the disk.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import yaml  # type: ignore[import-untyped]  # its types are a package of their own

from policies.calls import SUBAGENT_TYPE
from policies.configuration import FOLDER, Concern, Found, digest_of, name_of_agent
from policies.paths.protected import fold
from policies.tools import is_skill_name

Kind: TypeAlias = Literal["skill", "agent", "command"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Problem: TypeAlias = Literal[
    "acts",  # it acts by itself and nobody approved that; no agent starts
    "changed",  # other content was approved
    "elsewhere",  # agents load none from there
    "link",
    "name",  # the name cannot be used
    "name_taken",
    "off",  # it explains tools that no agent has
    "syntax",  # the front matter cannot be parsed
    "too_large",
    "too_many",
    "unapproved",
    "unreadable",
]
"""Why agents are not given a file."""
NOT_APPROVED: frozenset[Problem] = frozenset({"changed", "unapproved"})

MAX_LOADED = 200
"""Of each kind that an agent is given."""
MAX_FRONT_BYTES = 16 * 1024
MAX_FRONT_MARKS = 500
"""Brackets and commas of a front matter: the parser takes longer the deeper they nest."""
_FOLDERS: Mapping[str, Kind] = {"skills": "skill", "agents": "agent", "commands": "command"}
_SKILL_DEPTH = 4
"""`.claude/skills/NAME/SKILL.md`; nothing deeper is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A skill, sub-agent or command that stands in the workspace."""

    kind: Kind
    path: str
    name: str
    """What an agent launches it by; a guess by its path where it has none."""
    description: str = ""
    digest: str = ""
    """Of its content; empty if that could not be read."""
    is_trusted: bool = False
    """A person approved exactly this content, or it is Candor's own."""
    problem: Problem | None = None
    """None: agents are given it."""
    acts: str = ""
    """What acts in it, as its file names it."""
    tools: tuple[str, ...] | None = None
    """The tools that a sub-agent's file names; None: all."""
    body: str = field(default="", repr=False)
    """The instructions of a sub-agent."""

    @property
    def is_loaded(self) -> bool:
        """True if agents are given it."""
        return self.problem is None


def find_instructions(
    files: Iterable[Found],
    concerns: Iterable[Concern],
    approved: Mapping[str, str],
    own: Mapping[str, str],
) -> tuple[Instruction, ...]:
    """Return the skills, sub-agents and commands among files of the configuration, in their order.

    `approved` maps a path to the digest of the content that a person approved, `own` to that of
    Candor's own skill.
    """
    acting = {concern.path: concern.what for concern in concerns}
    found = [
        _judge(file, kind, acting.get(file.path, ""), approved.get(file.path), own.get(file.path))
        for file in files
        if (kind := _kind_of(file)) is not None
    ]
    return tuple(_bounded(_without_clashes(found)))


def _kind_of(file: Found) -> Kind | None:
    parts = file.path.split("/")
    folded = [fold(part) for part in parts]
    if FOLDER not in folded:
        return None
    below = folded[folded.index(FOLDER) + 1 :]
    kind = _FOLDERS.get(below[0]) if below else None
    if kind is None or file.trouble is not None:
        return kind
    is_instruction = below[-1] == "skill.md" if kind == "skill" else below[-1].endswith(".md")
    return kind if is_instruction and len(below) > 1 else None


def _judge(
    file: Found, kind: Kind, acts: str, approved: str | None, own: str | None
) -> Instruction:
    guess = _name_by_path(file.path, kind)
    if file.trouble is not None:
        return Instruction(kind=kind, path=file.path, name=guess, problem=file.trouble)
    digest = digest_of(file.content)
    is_trusted = digest in {approved, own}
    front = _read_front(file.content)
    name = (name_of_agent(file.content) or "") if kind == "agent" else guess
    item = Instruction(
        kind=kind,
        path=file.path,
        name=name or guess,
        digest=digest,
        is_trusted=is_trusted,
        acts=acts,
    )
    problem: Problem | None = None
    if acts:
        problem = "acts"
    elif front is None:
        problem = "syntax"
    elif not _is_in_place(file.path, kind):
        problem = "elsewhere"
    elif not is_skill_name(name):
        problem = "name"
    elif not is_trusted:
        problem = "changed" if approved or own else "unapproved"
    if front is None:
        return replace(item, problem=problem)
    fields, body = front
    described = fields.get("description")
    return replace(
        item,
        problem=problem,
        description=" ".join(described.split()) if isinstance(described, str) else "",
        tools=_read_tools(fields.get("tools")),
        body=body if kind == "agent" else "",
    )


def _name_by_path(path: str, kind: Kind) -> str:
    parts = path.split("/")
    if kind == "skill":
        return parts[-2] if fold(parts[-1]) == "skill.md" else parts[-1]
    below = parts[[fold(part) for part in parts].index(FOLDER) + 2 :] or parts[-1:]
    return ":".join(below).removesuffix(".md")


def _is_in_place(path: str, kind: Kind) -> bool:
    parts = path.split("/")
    is_deep = kind == "skill" and (len(parts) != _SKILL_DEPTH or parts[-1] != "SKILL.md")
    return parts[0] == FOLDER and _FOLDERS.get(parts[1]) == kind and not is_deep


def _read_front(content: bytes) -> tuple[Mapping[str, Any], str] | None:
    """Return the fields of a front matter and the text after it; None if it cannot be parsed."""
    try:
        text = content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").lstrip()
        if not text.startswith("---\n"):
            return {}, text
        front, _, body = text.removeprefix("---\n").partition("\n---")
        if len(front) > MAX_FRONT_BYTES or not (body == "" or body[0] in "\n "):
            return None
        if sum(map(front.count, "[]{},")) > MAX_FRONT_MARKS:
            return None
        fields = _parse(front)
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError):
        return None
    return (fields or {}, body.strip()) if isinstance(fields or {}, dict) else None


@lru_cache(maxsize=256)
def _parse(front: str) -> Any:
    """Parse a front matter; kept, because each start of an agent reads the same ones."""
    return yaml.load(front, Loader=yaml.BaseLoader)  # which makes texts, lists and mappings alone


def _read_tools(given: object) -> tuple[str, ...] | None:
    if isinstance(given, str):
        return tuple(word.strip() for word in given.split(",") if word.strip())
    if isinstance(given, list):
        return tuple(word for word in given if isinstance(word, str))
    return None


def _without_clashes(found: Sequence[Instruction]) -> Iterable[Instruction]:
    """Yield them without those that another file, which is not given, has the name of.

    Skills and commands share their names. No file takes the name of the gateway's own sub-agent.
    """
    in_place = [item for item in found if item.problem != "elsewhere"]
    withheld = Counter(_key(item) for item in in_place if not item.is_loaded)
    for item in found:
        is_taken = withheld[_key(item)] or _key(item) == (True, SUBAGENT_TYPE)
        yield replace(item, problem="name_taken") if item.is_loaded and is_taken else item


def _key(item: Instruction) -> tuple[bool, str]:
    return item.kind == "agent", item.name.casefold()


def _bounded(found: Iterable[Instruction]) -> Iterable[Instruction]:
    counts: Counter[Kind] = Counter()
    for item in found:
        counts[item.kind] += item.is_loaded
        is_over = item.is_loaded and counts[item.kind] > MAX_LOADED
        yield replace(item, problem="too_many") if is_over else item


def names_of(found: Iterable[Instruction], kinds: Sequence[Kind]) -> tuple[str, ...]:
    """Return the names of those of some kinds that agents are given, sorted."""
    return tuple(sorted({item.name for item in found if item.is_loaded and item.kind in kinds}))
