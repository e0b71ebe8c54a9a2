"""How a failure is told: the rule it broke, what was expected and found, what to type next, and the exit status."""

from __future__ import annotations

from typing import Final

from papaver.values.errors import PapaverError

__all__ = ["FAILED", "SIGN_IN_NEEDED", "USAGE", "CliError", "describe", "exit_status"]

FAILED: Final = 1
USAGE: Final = 2
SIGN_IN_NEEDED: Final = 3


class CliError(PapaverError):
    """A failure of the command line itself. `next` is what to type, or to do, now."""

    code = "failed"

    def __init__(self, description: str, *, next: str, code: str = "failed", rule: str = "", detail: str = "") -> None:
        self.code = code
        self.next = next
        super().__init__(description, rule=rule, detail=detail)


def exit_status(error: PapaverError) -> int:
    """1 refused or failed, 3 when the User has to sign in."""
    return SIGN_IN_NEEDED if error.code == "sign_in_needed" else FAILED


def describe(error: PapaverError, command: str) -> dict[str, object]:
    """`error`, `rule`, `detail`, `next`, and beside them `expected` and `found` where two values differed.

    `command` is the command line without its options, such as `papaver discover`.
    """
    told: dict[str, object] = {"error": error.code or "refused", "rule": error.rule, "detail": error.description}
    if error.detail and error.detail not in error.description:
        told["detail"] = f"{error.description} ({error.detail})" if error.description else error.detail
    expected, found = getattr(error, "expected", ""), getattr(error, "found", "")
    if expected or found:
        told |= {"expected": expected, "found": found}
    return {**told, "next": _next(error, command)}


def _next(error: PapaverError, command: str) -> str:
    remedy = getattr(error, "remedy", "") or getattr(error, "next", "")
    if remedy:
        return str(remedy)
    if error.code == "sign_in_needed":
        scope = getattr(error, "scope", "")
        return f"the User has to sign in{f' with scope {scope}' if scope else ''}; this version cannot do that yet"
    if error.code == "rate_limited":
        return "wait, then run the same command again"
    if error.code == "configuration":
        return f"correct the setting; {command} --help has an example"
    if error.code in ("conversation_not_found", "conversation_closed"):
        return "papaver status lists the conversations that are open"
    return f"{command} --trace shows every exchange, with secrets hidden"
