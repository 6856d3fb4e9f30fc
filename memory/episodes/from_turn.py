"""Makes an episode of a turn, deterministically and without a model.

The message becomes the context, tool calls the actions, failed and denied calls the pitfalls,
checks the verification, files and URLs the links. What the reply claims is not read: only a call
shows what was done. A turn that only looked at something, or only talked, leaves nothing.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from memory.episodes.calls import (
    CHANGING,
    asked,
    checks,
    file_of,
    named,
    only_looks,
    outcome,
    reason,
    server_of,
    tells,
)
from memory.episodes.episode import EpisodeDraft, EpisodeType, Sections
from memory.episodes.turn import ToolCall, Turn
from memory.items.ids import derived_id
from memory.items.scope import Scope
from memory.text.lines import one_line
from policies.content.parameters import parameter_names, signature

_MAX_TITLE_CHARS = 120
_FIRST_CALLS = 24
_LAST_CALLS = 16
"""The calls between are counted by tool."""
_MAX_PITFALLS = 12
_HOW: Final = {"denied": "was denied", "interrupted": "was interrupted"}
_MAX_TRIVIAL_CALLS = 2
_MAX_FILES = 30
_MAX_STEPS = 12
_TAG_FILES = 5

_SPEC: Final = re.compile(
    r"(?:^|[/_\-. ])(?:spec|specs|requirements?|rfc|prd|adr)(?:[/_\-. ]|$)|需求|规范|规格",
    re.IGNORECASE,
)
_PART = r"""[^\s/\\'\"`:;,()\[\]{}<>|]+"""
_LOCAL: Final = re.compile(
    r"(?<![\w./\\~-])(?:/(?:home|Users|root|tmp|private|mnt|media|workspaces?|work|srv"
    "|var/folders)|[A-Za-z]:)"
    rf"(?:[/\\]{_PART})*?[/\\](?P<end>{_PART}(?:[/\\]{_PART})?)"
    rf"""(?=$|[\s'\"`:;,()\[\]{{}}<>|]|[/\\](?!{_PART}))""",
)
"""A path that only exists on one machine: below a home, a temporary or a mounted folder."""
_POSTMORTEM: Final = re.compile(r"post-?mortem|复盘|事故报告", re.IGNORECASE)


def draft_of(turn: Turn) -> EpisodeDraft | None:
    """Return the draft of a turn's episode; None if the turn is trivial."""
    calls = [call for call in turn.calls if tells(call)]
    if _is_trivial(calls):
        return None
    overcome = _overcome(calls)
    sections = Sections(
        context=turn.message.strip(),
        actions=_actions(calls),
        pitfalls=_pitfalls(calls),
        recipe=_recipe(calls, overcome) if overcome is not None else "",
        verification=_verification(calls),
        links=_links(calls),
    )
    return EpisodeDraft(
        episode_id=derived_id("epi", turn.turn_id),
        episode_type=_type(calls, solved=overcome is not None),
        title=_without_local_paths(_title(turn.message, calls)),
        scope=Scope(owner_id=turn.owner_id, **turn.labels),
        sections=Sections.of(
            {name: _without_local_paths(text) for name, text in sections.named().items()}
        ),
        tags=_tags(calls),
        source_refs=turn.intent_ids,
        occurred_at=turn.occurred_at,
        conversation_id=turn.conversation_id,
        turn_id=turn.turn_id,
        recalled_ids=turn.recalled_ids,
        was_shown_forgotten=turn.was_shown_forgotten,
        tools=tuple(
            sorted({signature(call.name, parameter_names(call.input)) for call in turn.calls})
        ),
    )


def _without_local_paths(text: str) -> str:
    """Return a text in which only the last two parts of local paths are left, after `…/`."""
    return _LOCAL.sub(lambda found: f"…/{found['end']}", text)


def _title(message: str, calls: Sequence[ToolCall]) -> str:
    line = next((line for line in message.splitlines() if line.strip()), "")
    return one_line(line or (named(calls[0]) if calls else ""), _MAX_TITLE_CHARS)


def _is_trivial(calls: Sequence[ToolCall]) -> bool:
    """Return whether there were no calls, or one or two that only looked at something and
    succeeded.
    """
    return len(calls) <= _MAX_TRIVIAL_CALLS and all(
        call.status == "ok" and only_looks(call) for call in calls
    )


def _type(calls: Sequence[ToolCall], *, solved: bool) -> EpisodeType:
    written = " ".join(filter(None, (file_of(call) for call in calls if _changed(call))))
    if _POSTMORTEM.search(written):
        return "postmortem"
    if solved:
        return "bugfix"
    return "spec_update" if _SPEC.search(written) else "run"


def _changed(call: ToolCall) -> bool:
    return call.status == "ok" and call.name in CHANGING


def _actions(calls: Sequence[ToolCall]) -> str:
    told = [_action(call) for call in calls[:_FIRST_CALLS]]
    rest = calls[_FIRST_CALLS:]
    between, last = rest[: max(0, len(rest) - _LAST_CALLS)], rest[-_LAST_CALLS:]
    if between:
        counts = Counter(server_of(call) or call.name for call in between)
        by_tool = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        told.append(f"- … {len(between)} more calls: {by_tool}")
    return "\n".join([*told, *(_action(call) for call in last)])


def _action(call: ToolCall) -> str:
    line = f"- {named(call)}: {call.status}"
    given = outcome(call)
    indented = "\n".join(f"  {line}" for line in given.split("\n")) if given else ""
    return f"{line}\n{indented}" if indented else line


def _pitfalls(calls: Sequence[ToolCall]) -> str:
    told: dict[str, None] = {}
    for at, call in enumerate(calls):
        if call.status == "ok":
            continue
        why = "\n  ".join(reason(call).split("\n"))
        line = f"- {named(call)} {_HOW.get(call.status, call.status)}" + (f": {why}" if why else "")
        if any(_same(call, later) and later.status == "ok" for later in calls[at + 1 :]):
            line += "\n  (the same call succeeded later)"
        told[line] = None
    return "\n".join(islice(told, _MAX_PITFALLS))


def _same(one: ToolCall, other: ToolCall) -> bool:
    return one.name == other.name and asked(one) == asked(other) and bool(asked(one))


def _overcome(calls: Sequence[ToolCall]) -> tuple[int, int] | None:
    """Return a failed call and the same call that succeeded after another call."""
    for at, call in enumerate(calls):
        if call.status != "failed" or not asked(call):
            continue
        for later in range(len(calls) - 1, at + 1, -1):
            done = _same(call, calls[later]) and calls[later].status == "ok"
            if done and any(call.status == "ok" for call in calls[at + 1 : later]):
                return at, later
    return None


def _recipe(calls: Sequence[ToolCall], overcome: tuple[int, int]) -> str:
    failed, succeeded = overcome
    steps = [call for call in calls[failed + 1 : succeeded + 1] if call.status == "ok"]
    lines = [f"{number}. {named(call)}" for number, call in enumerate(steps[-_MAX_STEPS:], start=1)]
    return "\n".join([f"After {named(calls[failed])} had failed:", *lines])


def _verification(calls: Sequence[ToolCall]) -> str:
    told: dict[str, str] = {}
    for call in calls:
        if checks(call):
            told.pop(asked(call), None)
            told[asked(call)] = f"- `{asked(call)}`: {call.status}"
    return "\n".join(told.values())


def _links(calls: Sequence[ToolCall]) -> str:
    files: dict[str, str] = {}
    for call in calls:
        name = file_of(call)
        if name is not None and call.status == "ok":
            files[name] = "changed" if _changed(call) else files.get(name, "read")
    ordered = sorted(files.items(), key=lambda file: file[1] != "changed")
    lines = [f"- {name} ({how})" for name, how in ordered[:_MAX_FILES]]
    urls = {
        str(call.input["url"]): None for call in calls if isinstance(call.input.get("url"), str)
    }
    return "\n".join([*lines, *(f"- {one_line(url)}" for url in islice(urls, _MAX_FILES))])


def _tags(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    """Return the names of the changed files."""
    files = {
        name.replace("\\", "/").rpartition("/")[2]
        for name in map(file_of, filter(_changed, calls))
        if name
    }
    return tuple(sorted(files)[:_TAG_FILES])
