"""The sections of an episode as Markdown.

A line of a section that looks like a heading is escaped with a backslash.
"""

import re
from typing import Final

from memory.clock import rfc3339
from memory.episodes.episode import SECTIONS, Episode

HEADINGS: Final = {name: name.capitalize() for name in SECTIONS}
_HEADING: Final = re.compile(r"^(\\*)(?=#)", re.MULTILINE)


def body_of(episode: Episode) -> str:
    """Return the sections and variants; of a single section only its text."""
    named = episode.sections.named()
    if len(named) == 1 and not episode.variants:
        return next(iter(named.values()))
    parts = [f"## {HEADINGS[name]}\n\n{_escaped(text)}\n" for name, text in named.items()]
    if episode.variants:
        parts.append("## Variants\n")
    parts += [
        f"### {rfc3339(variant.occurred_at)}\n\n{_escaped(variant.text)}\n"
        for variant in episode.variants
    ]
    return "\n".join(parts).strip()


def _escaped(text: str) -> str:
    return _HEADING.sub(lambda match: f"\\{match[1]}", text)
