"""What the policy says about one call: `Allow`, `Ask` or `Deny`.

Plain values. Every verdict names the rule that decided, for logs and tests, and gives a reason in one
English sentence that helps a model do better. An `updated_input` replaces the tool's input: whoever acts
on the verdict runs that and nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run, as `updated_input` where that is given and as it came otherwise."""

    rule: str
    reason: str
    updated_input: Mapping[str, object] | None = None
    """The whole input to run instead; `None`: run the input that was judged."""
    changes: bool = True
    """Whether the call changes anything; a gateway with approvals may ask a person about those alone."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The call may run if a person agrees; with nobody to ask it is a denial."""

    rule: str
    reason: str
    updated_input: Mapping[str, object] | None = None
    """The whole input to run after a yes; `None`: run the input that was judged."""
    changes: bool = True
    """Whether the call changes anything."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run."""

    rule: str
    reason: str
    hint: str | None = None
    """What would work instead; `None`: nothing would."""
    interrupt: bool = False
    """Whether the whole run should end, not only this call."""
    quoted: str | None = None
    """What a person said about it; the reason holds it as well."""

    @property
    def message(self) -> str:
        """Give the reason and the hint as one text for the model."""
        return self.reason if self.hint is None else f"{self.reason} {self.hint}"


Verdict = Allow | Ask | Deny


def _strictness(verdict: Verdict) -> int:
    match verdict:
        case Allow():
            return 0
        case Ask():
            return 1
        case Deny():
            return 2
        case _:
            assert_never(verdict)


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Give the strictest verdict, the first one among equals; a denial when there is none at all."""
    found = list(verdicts)
    if not found:
        return Deny("no_verdict", "Nothing decided on this call, so it is refused.")
    return max(found, key=_strictness)
