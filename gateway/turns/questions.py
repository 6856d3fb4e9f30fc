"""Calls that are addressed to the person: questions (`AskUserQuestion`) and plans (`ExitPlanMode`).

An answer is given by the text of its question: `{"Which colour?": "blue"}`.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import UnprocessableEntity

FOR_PERSONS: Final[Mapping[str, str]] = {"AskUserQuestion": "questions", "ExitPlanMode": "plan"}
"""The tools whose every call a person answers, each with the input that the person is shown."""
PERSON_TOOLS: Final = frozenset({*FOR_PERSONS, "EnterPlanMode"})
"""The tools that make no sense without a person."""


def question_texts(tool_input: Mapping[str, Any]) -> list[str]:
    """Return the text of each question of a call, in order."""
    questions = tool_input.get("questions")
    asked = questions if isinstance(questions, list) else []
    return [
        str(question.get("question", "")) for question in asked if isinstance(question, Mapping)
    ]


def answers_to(
    asked: Mapping[str, Any], shown: Mapping[str, Any], answers: Mapping[str, str]
) -> dict[str, str]:
    """Return answers by the questions as the agent asked them; people answer them as they are
    shown.

    Raise `UnprocessableEntity` if the call has no such question.
    """
    texts = dict(zip(question_texts(shown), question_texts(asked), strict=False))
    for text in answers:
        if text not in texts:
            raise UnprocessableEntity(
                "`answers` must name questions of this call by their text.",
                details={"field": "answers"},
            )
    return {texts[text]: answer for text, answer in answers.items() if answer.strip()}
