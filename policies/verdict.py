"""What the policy says about one call: `Allow`, `Ask` or `Deny`.

Plain values. Every verdict names the rule that decided, for logs and tests, and gives a reason in
one English sentence that helps a model do better. An `updated_input` replaces the tool's input:
whoever acts on the verdict runs that and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.permits import Effect


@dataclass(frozen=True, slots=True)
class _Passed:
    """What `Allow` and `Ask` have in common."""

    rule: str
    reason: str
    updated_input: Mapping[str, object] | None = None
    """The whole input to run instead; `None`: run the input that was judged."""
    changes: bool = True
    """Return whether the call changes anything; a gateway with approvals may ask a person about
    those alone."""
    effect: Effect | None = field(default=None, compare=False, repr=False)
    """What a rule for further calls compares; `None`: the input alone."""
    paths: tuple[str, ...] | None = field(default=(), compare=False)
    """What the call touches, absolute; a folder includes everything below it. `None`: unknown."""
    unasked: bool = False
    """Nobody is asked about the call, although it changes something: the operator said so."""


@dataclass(frozen=True, slots=True)
class Allow(_Passed):
    """The call may run, as `updated_input` where that is given and as it came otherwise."""


@dataclass(frozen=True, slots=True)
class Ask(_Passed):
    """The call may run, likewise, if a person agrees; with nobody to ask it is a denial."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run."""

    rule: str
    reason: str
    hint: str | None = None
    """What would work instead; `None`: nothing would."""
    interrupt: bool = False
    """Return whether the whole run should end, not only this call."""
    quoted: str | None = None
    """What a person said about it; the reason holds it as well."""
    question: Ask | None = field(default=None, compare=False, repr=False)
    """What a person may be asked instead, if the call is only unknown."""

    @property
    def kind(self) -> Literal["unknown", "forbidden"]:
        """Return whether the call is only unknown, or forbidden, which no person is asked about."""
        return "forbidden" if self.question is None else "unknown"

    @property
    def message(self) -> str:
        """Return the reason and the hint as one text for the model."""
        return self.reason if self.hint is None else f"{self.reason} {self.hint}"


Verdict = Allow | Ask | Deny


class Refused(Exception):
    """The call must not run. Raised where a fault is found, so that no caller can overlook it."""

    def __init__(
        self, rule: str, reason: str, hint: str | None = None, *, interrupt: bool = False
    ) -> None:
        super().__init__(rule)
        self.denial = Deny(rule, reason, hint, interrupt)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandApproval:
    """A command line that may run, as `line`."""

    rule: str
    command: str
    """Its name, as `rm` or `Remove-Item`."""
    line: str
    """What has to run: the judged words, quoted anew."""
    paths: tuple[str, ...]
    """What it touches; a folder includes everything below it."""
    changes: bool
    options: tuple[str, ...] | None = None
    """As they will run; `None`: not known one by one."""
