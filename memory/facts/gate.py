"""The gate of facts: what of a statement may become one."""

import re
from typing import Final

from policies.content.write_gate import refuse_worthless, without_unsavable

MAX_FACT_CHARS: Final = 2_000
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069]"
)
"""Controls and halves of characters, which no import takes; what has no width, and what turns a
line around, which would show a person something else than a model reads.
"""


class FactRefused(Exception):
    """A statement, or a request about facts, was refused; the text is one sentence that says why
    and what to do.
    """


class FactConflict(FactRefused):
    """The statement may be kept, but not beside what memory holds at present."""


def replaced_already(fact_id: str) -> FactConflict:
    """Return the refusal of a change to a fact that is superseded."""
    return FactConflict(f"The fact {fact_id} holds no longer: another fact has replaced it.")


def quotable(evidence: str) -> str:
    """Return a person's words without unseen characters and the clauses that describe how a tool is
    called.
    """
    return without_unsavable(_UNSEEN.sub("", evidence)).text.strip()


def savable(text: str) -> str:
    """Return a statement without unseen characters and the clauses that describe how a tool is
    called.

    Raise `FactRefused` if nothing of use is left.
    """
    kept = without_unsavable(_UNSEEN.sub("", text)).text.strip(" \n;；,，")
    if not kept or refuse_worthless(kept) is not None:
        raise FactRefused(
            "The text holds nothing that may be kept: greetings, progress, tool schemas, guessed"
            " call formats and failed calls are never saved. Leave them out, and keep what a person"
            " would want to know."
        )
    return kept
