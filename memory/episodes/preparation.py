"""Turns a draft into an episode, or refuses it.

Secrets and internal addresses are masked first, so that clipping cannot cut a secret in two. Then
noise, decisions that memory had shown and what must never be saved are removed, and the rest is
judged.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Final

from memory.episodes.clipping.clip import clip_sections, clip_text
from memory.episodes.episode import (
    MAX_VARIANTS,
    SECTIONS,
    Clipped,
    Episode,
    EpisodeDraft,
    EpisodeType,
    SectionName,
    Sections,
    Variant,
)
from memory.episodes.episode_merge import MAX_VARIANT_CHARS
from memory.episodes.redact import redact
from memory.text.lines import one_line
from memory.text.recalled import without_recalled
from policies.content.write_gate import refuse_worthless, without_unsavable
from policies.secrets import Masked

MAX_TAGS: Final = 20
MAX_TAG_CHARS: Final = 60
MAX_SOURCE_REFS: Final = 500
MAX_MADE_TITLE_CHARS: Final = 80
"""Of a title that is the beginning of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The episode of a draft, or the reason why there is none."""

    episode: Episode | None
    reason: str | None = None
    clipped: tuple[Clipped, ...] = ()
    redacted: int = 0
    left_out: int = 0
    """Number of removed sentences that must never be saved."""


@dataclass(frozen=True, slots=True)
class _Cleaned:
    texts: dict[SectionName, str]
    title: str
    variants: tuple[Variant, ...]
    left_out: int
    reason: str | None
    """Why nothing new is left; None if something may be."""


def prepare(
    draft: EpisodeDraft,
    *,
    episode_id: str,
    now: datetime,
    known_secrets: Sequence[str] = (),
    keeps_contacts: bool = False,
) -> Prepared:
    """Redact, clip, clean and judge a draft. Pure; may take tens of milliseconds."""
    draft, masked_count = _mask(
        draft, partial(redact, known_secrets=known_secrets, keeps_contacts=keeps_contacts)
    )
    sections, first = clip_sections(draft.sections)
    clean = _clean(draft, sections.named())
    sections = Sections.of({name: text.strip() for name, text in clean.texts.items()})
    sections, second = clip_sections(sections)  # what is left may stand repeated side by side now
    clipped = _together(first, second)
    told = Prepared(episode=None, clipped=clipped, redacted=masked_count, left_out=clean.left_out)
    reason = clean.reason or refuse_worthless(sections.text)
    if reason is not None:
        return replace(told, reason=reason)
    episode = Episode(
        episode_id=draft.episode_id or episode_id,
        episode_type=_type(draft, sections),
        title=clean.title or one_line(sections.text, MAX_MADE_TITLE_CHARS),
        scope=draft.scope,
        sections=sections,
        occurred_at=draft.occurred_at or now,
        updated_at=now,
        tags=draft.tags,
        source_refs=tuple(dict.fromkeys(draft.source_refs))[:MAX_SOURCE_REFS],
        conversation_id=draft.conversation_id,
        turn_id=draft.turn_id,
        variants=clean.variants,
        repeats=draft.kept.repeats if draft.kept is not None else 0,
        revision=1 + len(clean.variants),  # each had made a new one
    )
    return replace(told, episode=episode)


def _together(*told: Sequence[Clipped]) -> tuple[Clipped, ...]:
    chars: Counter[str] = Counter()
    for clipped in chain(*told):
        chars[clipped.section] += clipped.chars
    return tuple(Clipped(section=name, chars=chars[name]) for name in SECTIONS if chars[name] > 0)


def _mask(draft: EpisodeDraft, mask: Callable[[str], Masked]) -> tuple[EpisodeDraft, int]:
    """Return the draft with secrets masked, and how many were."""
    count = 0

    def clean(text: str) -> str:
        nonlocal count
        # no store can write a lone surrogate
        redacted = mask(text.encode("utf-8", "replace").decode("utf-8"))
        count += redacted.count
        return redacted.text

    texts = {name: clean(text) for name, text in draft.sections.named().items()}
    title = one_line(clean(draft.title))
    tags = {one_line(clean(tag), MAX_TAG_CHARS) for tag in draft.tags} - {""}
    kept = draft.kept
    if kept is not None:
        variants = tuple(replace(variant, text=clean(variant.text)) for variant in kept.variants)
        kept = replace(kept, variants=variants)
    masked = replace(
        draft,
        sections=Sections.of(texts),
        title=title,
        tags=tuple(sorted(tags))[:MAX_TAGS],
        kept=kept,
    )
    return masked, count


def _clean(draft: EpisodeDraft, texts: dict[SectionName, str]) -> _Cleaned:
    """Remove decisions that memory had shown, and what must never be saved.

    The same rules apply to imported variants, because anybody may have written the file.
    """
    decisions = without_recalled(texts.get("decisions", ""), draft.recalled_texts)
    left_out = 0

    def savable(text: str) -> str:
        nonlocal left_out
        cleaned = without_unsavable(text, tools=draft.tools)
        left_out += cleaned.removed
        return cleaned.text

    kept = {name: savable(text) for name, text in (texts | {"decisions": decisions}).items()}
    reason = "never_saved" if left_out and not any(map(_says, kept.values())) else None
    variants = [
        replace(variant, text=clip_text(savable(variant.text), MAX_VARIANT_CHARS).strip())
        for variant in (draft.kept.variants if draft.kept is not None else ())
    ]
    return _Cleaned(
        texts=kept,
        title=savable(draft.title).strip(),
        variants=tuple(variant for variant in variants if variant.text)[:MAX_VARIANTS],
        left_out=left_out,
        reason=reason,
    )


def _type(draft: EpisodeDraft, sections: Sections) -> EpisodeType:
    """Return the type; a decision without a decision left is a run."""
    gone = draft.sections.decisions.strip() and not sections.decisions
    return "run" if gone and draft.episode_type == "decision" else draft.episode_type


def _says(text: str) -> bool:
    return any(map(str.isalnum, text))


def without_what_may_repeat(draft: EpisodeDraft) -> EpisodeDraft:
    """Remove what could repeat a forgotten item: decisions, and the output of tools."""

    def at_the_margin(text: str) -> str:
        return "\n".join(line for line in text.split("\n") if not line.startswith(" "))

    return replace(
        draft,
        episode_type="run" if draft.episode_type == "decision" else draft.episode_type,
        sections=replace(
            draft.sections,
            decisions="",
            actions=at_the_margin(draft.sections.actions),
            pitfalls=at_the_margin(draft.sections.pitfalls),
        ),
    )
