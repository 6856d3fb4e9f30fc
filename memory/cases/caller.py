"""What a caller may see and change, and the form of the labels that scopes are compared by."""

from dataclasses import replace
from typing import Final

from memory.cases.case import Case, CaseCaller
from memory.cases.results import CaseRefused, sentence
from memory.items.scope import Scope

MAX_LABEL_CHARS: Final = 200


def normalised(caller: CaseCaller) -> CaseCaller:
    """Return the caller with its labels in the form that cases have.

    Raise `CaseRefused` if no case could have such a label.
    """
    scope = Scope(
        owner_id=caller.scope.owner_id,
        app_code=_label("app_code", caller.scope.app_code),
        environment=_label("environment", caller.scope.environment),
    )
    return replace(caller, scope=scope)


def label_of(text: str | None) -> str | None:
    """Return an app or environment without white space around it; None for `default` and for
    nothing.
    """
    label = (text or "").strip()
    return None if label.casefold() in {"", "default"} else label


def sees(caller: CaseCaller, case: Case) -> bool:
    """Return whether the caller may read a case by its id: same owner, and the caller's app or
    none.

    Cases of other environments are visible: what was learned in production is judged in staging.
    """
    app_code = caller.scope.app_code
    return case.scope.owner_id == caller.scope.owner_id and (
        app_code is None or case.scope.app_code in {None, app_code}
    )


def is_reachable(caller: CaseCaller, case: Case) -> bool:
    """Return whether the caller's scope allows a change: any for a person, the exact app for an
    agent.
    """
    return caller.by == "person" or caller.scope.app_code == case.scope.app_code


def _label(name: str, value: object) -> str | None:
    if value is None:
        return None
    text = value.strip() if isinstance(value, str) else None
    if text is None or len(text) > MAX_LABEL_CHARS or not text.isprintable():
        why = sentence("refusals", "label", name, MAX_LABEL_CHARS)
        raise CaseRefused("INVALID_SCOPE", why, field=name)
    return label_of(text)
