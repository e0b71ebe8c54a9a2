"""What was done in a turn: who decides it, how it ended, and in which words it is told."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from papaver.company.company_agent.arguments import ToolError
from papaver.company.company_agent.tools import Confirmation, ToolCall
from papaver.company.texts import Texts
from papaver.values.strict_json import JsonError

if TYPE_CHECKING:
    from papaver.company.turn import Turn

__all__ = [
    "ActionFailed",
    "ActionOutcome",
    "ActionPolicy",
    "ActionRejected",
    "ActionStatus",
    "AuthorizeAction",
    "FormatAction",
    "filled",
    "format_action",
    "read_action",
    "told",
    "write_action",
    "written",
]


class ActionPolicy(StrEnum):
    """Who approves what changes something. A message never does."""

    APPROVE_BY_SCOPE = "approve_by_scope"
    """The User did, by the scopes of their token (8.11)."""
    REJECT = "reject"
    """Nobody: no action runs."""


AuthorizeAction = Callable[["Turn", ToolCall], "bool | str | Awaitable[bool | str]"]
"""The Company's own say, after the scopes: True lets it run; False, or the reason as text, rejects it."""

ActionStatus = Literal["succeeded", "failed", "rejected"]
_STATUS: Final[Mapping[str, ActionStatus]] = {"succeeded": "succeeded", "failed": "failed", "rejected": "rejected"}


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """How one action ended, as the other side is told in `data.actions`.

    `summary`  what a person would have been asked to confirm
    `error`    why it failed or was rejected, in words for the User: never what an exception said
    `key`      the same for the same tool with the same arguments
    `certain`  False when nobody knows whether it was done: then it is not run again by itself
    """

    tool: str
    status: ActionStatus
    summary: Confirmation
    result: object = None
    error: str | None = None
    key: str = field(default="", compare=False)
    certain: bool = True


class ActionFailed(ToolError):
    """An action ran and came to nothing, or nobody knows whether it did."""

    code = "action_failed"


class ActionRejected(ToolError):
    """An action did not run, because that was decided. The description tells a model so."""

    code = "action_rejected"


FormatAction = Callable[[ActionOutcome, Texts], str]
"""Words one action for the User."""

_PLACE: Final = re.compile(r"\{(title|detail|error)\}")


def filled(template: str, **values: str | None) -> str:
    """`template` with `{title}`, `{detail}` and `{error}` replaced, once: what is put in is never read again."""
    return _PLACE.sub(lambda found: values.get(found[1]) or "", template).strip()


def format_action(action: ActionOutcome, texts: Texts) -> str:
    """One action in the words of `texts`, with the detail of its summary below."""
    templates = {"succeeded": texts.action_succeeded, "failed": texts.action_failed, "rejected": texts.action_rejected}
    summary = action.summary
    said = filled(templates[action.status], title=summary.title, detail=summary.detail, error=action.error)
    return f"{said}\n{summary.detail}" if summary.detail and summary.detail not in said else said


def told(text: str | None, actions: Sequence[ActionOutcome], texts: Texts, words: FormatAction) -> str | None:
    """The text of a reply that tells of every action.

    A model says what it is about to do as if it were done. So where it said nothing, or something did not come off, our
    words take the place of its own; else what its text does not name is added.
    """
    if not actions:
        return text
    said = [words(action, texts) for action in actions]
    if not text or any(action.status != "succeeded" for action in actions):
        return "\n\n".join(said)
    named = [_names(text, action.summary.title) for action in actions]
    return "\n\n".join([text, *(line for line, there in zip(said, named, strict=True) if not there)])


def _names(text: str, title: str) -> bool:
    """Whether the text has the whole title, in whatever letter case."""
    return re.search(rf"(?<!\w){re.escape(title)}(?!\w)", text, re.IGNORECASE) is not None


def write_action(action: ActionOutcome) -> dict[str, object]:
    """As it is journaled, and stands in `data.actions`; members that say nothing are left out."""
    summary: dict[str, object] = {"title": action.summary.title}
    if action.summary.detail is not None:
        summary["detail"] = action.summary.detail
    record: dict[str, object] = {"tool": action.tool, "status": action.status, "summary": summary}
    if action.result is not None:
        record["result"] = action.result
    if action.error is not None:
        record["error"] = action.error
    if not action.certain:
        record["certain"] = False
    return {**record, "key": action.key}


def read_action(record: object) -> ActionOutcome:
    """The reverse of `write_action`. Raises JsonError for a record of another form."""
    try:
        found = cast("Mapping[str, Any]", record)
        summary = found["summary"]
        return ActionOutcome(
            str(found["tool"]),
            _STATUS[found["status"]],
            Confirmation(str(summary["title"]), summary.get("detail")),
            found.get("result"),
            found.get("error"),
            str(found["key"]),
            found.get("certain") is not False,
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise JsonError("the action has another form", detail=repr(error)) from None


def written(actions: Iterable[ActionOutcome]) -> list[dict[str, object]]:
    """`data.actions`."""
    return [write_action(action) for action in actions]
