"""On whose behalf a tool is called, in the one form that everything behind it relies on."""

from dataclasses import replace
from typing import Final

from memory.cases.case import Case, CaseCaller
from memory.cases.results import CaseRefused
from memory.scope import Scope

MAX_LABEL_CHARS: Final = 200
_ANY: Final = "default"


def normalised(caller: CaseCaller) -> CaseCaller:
    """Give the caller with the labels that cases have; what names no app or environment means any.

    Raises:
        CaseRefused: a label is none that a case could have.
    """
    scope = Scope(
        owner_id=caller.scope.owner_id,
        app_code=_label("app_code", caller.scope.app_code),
        environment=_label("environment", caller.scope.environment),
    )
    return replace(caller, scope=scope)


def _label(name: str, value: object) -> str | None:
    if value is None:
        return None
    text = value.strip() if isinstance(value, str) else None
    if text is None or len(text) > MAX_LABEL_CHARS or not text.isprintable():
        raise CaseRefused(
            "INVALID_SCOPE",
            f"`{name}` must be one line of at most {MAX_LABEL_CHARS} characters.",
            field=name,
        )
    return label_of(text)


def label_of(text: str | None) -> str | None:
    """Read an app or environment as people write it; empty or `default` is None: any."""
    known = (text or "").strip()
    return None if known.casefold() in {"", _ANY} else known


def sees(caller: CaseCaller, case: Case) -> bool:
    """Whether the caller may have a case by its id: it is theirs, and of their app or of none.

    An environment is no wall: what was learned in production is judged in staging.
    """
    app_code = caller.scope.app_code
    return case.scope.owner_id == caller.scope.owner_id and (
        app_code is None or case.scope.app_code in {None, app_code}
    )
