"""Make text safe to show and store: no secrets, no paths of the server, valid UTF-8, bounded
length.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from gateway.jsonsafe import clean_text, estimate_chars, json_safe, json_text
from gateway.observability.masking import clip, mask_leaves
from gateway.observability.paths import PathView
from gateway.turns.questions import question_texts
from policies.secrets.detect import settled_chars

SUMMARY_CHARS = 160
OUTPUT_CHARS = 8_000

_READ_CHARS = 32_000
"""The part of a long text that is searched for secrets; the rest is left out before."""
_SUMMARY_READ_CHARS = 1_200
"""Masked for a summary: more than is shown, so that a secret at the cut is seen whole."""
_INLINE_CHARS = 1_000
"""A longer text is masked in a worker thread, because hostile text takes milliseconds."""
_SHORT_CHARS = 200
_PART_CHARS = 2_000
"""A longer piece is masked in parts: a search in one long text would keep other threads waiting."""

_SUMMARY_KEYS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "skill",
    "url",
    "query",
    "subject",
    "description",
    "prompt",
    "plan",
    "text",
    "evidence",
)

Mask = Callable[[str], str]
_T = TypeVar("_T")

_THREADS = anyio.CapacityLimiter(2)
"""Masking computes all the time: more threads at once only take the interpreter from the loop, so
that all streams stall when many turns end together. Two, because one hostile text takes long."""


class OutputSanitizer:
    """Sanitizes text as the users of one workspace get it."""

    def __init__(self, paths: PathView, mask: Mask) -> None:
        self.mask = mask
        self.paths = paths

    def text(self, text: str) -> str:
        """Mask secrets and make paths relative to the workspace."""
        return self.mask(self.paths.shown(clean_text(text))) if text else ""

    def clipped(self, text: str, limit: int = OUTPUT_CHARS) -> str:
        """Return a long text's head and tail; a secret at the cut is masked before the cut."""
        return clip(self.text(clip(text, _READ_CHARS)), limit)

    def streamed(self, text: str) -> str:
        """Return a text of any length as a stream of it is shown."""
        masker = StreamMasker(self, {})
        return masker.feed(text) + masker.rest()

    def summary(self, tool_input: Mapping[str, Any]) -> str:
        """Return one line about a call: its command, file, pattern or questions."""
        for key in _SUMMARY_KEYS:
            value = tool_input.get(key)
            if isinstance(value, str) and value.strip():
                return self.line(value)
        questions = question_texts(tool_input)
        if questions:
            return self.line(" ".join(questions))
        if not tool_input:
            return ""
        without_secret_fields = mask_leaves(json_safe(tool_input), str)
        return self.line(json_text(without_secret_fields))

    def input(self, tool_input: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool's input with every string clipped and masked, and the values of secret
        keys.
        """
        masked: dict[str, Any] = mask_leaves(json_safe(tool_input), self.clipped)
        return masked

    def line(self, text: str) -> str:
        """Return a text as one short line."""
        return self._short(" ".join(clip(text, _READ_CHARS).split()), " ")

    def command_line(self, text: str) -> str:
        """Return a command as one short line, with `⏎` where its lines end."""
        lines = (" ".join(line.split()) for line in clip(text, _READ_CHARS).split("\n"))
        return self._short("\n".join(filter(None, lines)), " ⏎ ")

    def _short(self, text: str, line_break: str) -> str:
        lines = self.text(text[:_SUMMARY_READ_CHARS]).split("\n")
        line = line_break.join(filter(None, (" ".join(line.split()) for line in lines)))
        return line if len(line) <= SUMMARY_CHARS else f"{line[: SUMMARY_CHARS - 1]}…"


class StreamMasker:
    """Sanitizes one block of text that arrives in pieces.

    A piece may end inside a secret or a path, and half of one is not recognised. So the part that
    may still become one is held back: mostly the unfinished word, more after a word such as
    `password`.
    """

    def __init__(self, sanitizer: OutputSanitizer, blocks: dict[str, str]) -> None:
        """Add each block and what was shown of it to `blocks`, both without white space around."""
        self._sanitizer = sanitizer
        self._blocks = blocks
        self._read: list[str] = []
        self._shown: list[str] = []
        self._look_at_chars = 0
        self._held = ""

    @property
    def waiting_chars(self) -> int:
        """The number of characters held back."""
        return len(self._held)

    def feed(self, piece: str) -> str:
        """Add a piece; return what can be shown now, perhaps nothing."""
        parts = (piece[at : at + _PART_CHARS] for at in range(0, len(piece), _PART_CHARS))
        shown = "".join(map(self._feed, parts))
        self._read.append(piece)
        self._shown.append(shown)
        return shown

    def _feed(self, part: str) -> str:
        text = self._held + part
        if len(text) < self._look_at_chars:
            self._held = text
            return ""
        at = self._sanitizer.paths.settled_chars(text[: settled_chars(text)])
        self._held = text[at:]
        # Each look reads all held text. Long text is looked at again when it has grown by an
        # eighth.
        held = len(self._held)
        self._look_at_chars = held + held // 8 if held > _SHORT_CHARS else 0
        return self._sanitizer.text(text[:at])

    def rest(self) -> str:
        """Return what is still held back; the block is over."""
        held, self._held, self._look_at_chars = self._held, "", 0
        rest = self._sanitizer.text(held)
        if self._read:
            self._blocks["".join(self._read).strip()] = "".join([*self._shown, rest]).strip()
            self._read, self._shown = [], []
        return rest


async def off_loop(work: Callable[[Any], _T], value: Any, *, more_chars: int = 0) -> _T:
    """Apply `work` to a text or a mapping of texts, in a worker thread unless the value is short.

    `more_chars` is what `work` reads besides the value.
    """
    chars = len(value) if isinstance(value, str) else estimate_chars(value)
    if more_chars + chars <= _INLINE_CHARS:
        return work(value)
    return await anyio.to_thread.run_sync(work, value, limiter=_THREADS)
