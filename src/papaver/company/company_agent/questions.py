"""Questions that an agent would ask a person: who is asked instead, where a Personal Agent is at the other end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["Question", "QuestionPolicy", "worded"]

QuestionPolicy = Literal["skip", "ask_agent", "request_user"]
"""Nobody is asked; the Personal Agent is, in the reply; or the User is asked for, with the questions as reason."""

SKIPPED: Final = (
    "Nobody here can answer questions, so they were not asked. Go on with what you know, and say what you assumed."
)
ASKED: Final = "The questions are in the reply. Their answers come as a later message: end here, and assume nothing."


@dataclass(frozen=True, slots=True)
class Question:
    """`options`: what can be answered, where that is a choice."""

    text: str
    options: Sequence[str] = ()


def worded(questions: Sequence[Question]) -> str:
    """The questions as text, one to a line, each with its choices."""
    return "\n".join(
        f"{question.text} ({' / '.join(question.options)})" if question.options else question.text
        for question in questions
    )
