"""How a failure is told: the rule it broke, what was expected and found, what to type next, and the exit status."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import papaver
from papaver.protocol.errors import Refused, SignInNeeded
from papaver.values.errors import PapaverError

__all__ = ["FAILED", "SIGN_IN_NEEDED", "USAGE", "CliError", "describe", "exit_status", "to_install"]

FAILED: Final = 1
USAGE: Final = 2
SIGN_IN_NEEDED: Final = 3

NEXT: Final = {
    "configuration": "correct the setting; {command} --help has an example",
    "invalid_client_metadata": "correct the setting; {command} --help has an example",
    "access_denied": "the User declined; run the same command again only if they want that",
    "expired_token": "nobody came in time; run the same command again",
    "invalid_description": "the Company's developers have to correct the description",
    "invalid_parameter": "papaver api DOMAIN lists the operations and what they take",
    "sign_in_unavailable": "{command} --help names the other sign-in type; a Company may offer none",
    "sign_in_unknown": "run the same command again",
    "invalid_session": "papaver identity shows what has to be served at your client_id; the Company may also block you",
    "conversation_not_found": "papaver status lists the conversations of this machine",
    "conversation_closed": "start another: papaver ask DOMAIN TEXT",
    "rate_limited": "wait, then run the same command again",
    "temporarily_unavailable": "wait, then run the same command again",
    "taken": "papaver staff queue shows what waits",
    "not_joined": "papaver staff join ID takes it over again",
    "demo_failed": "papaver demo --seed, with the seed above, makes the same rows and questions again",
    "fetch_failed": "{command} --trace shows each exchange; for local work, see --resolve and --ca-file",
}


NEXT_OF_RULE: Final = {
    "check.out": "choose another folder for --out",
    "client.client-id-form": "give the whole URL of the document, such as https://agent.example/agent.json",
    "identity.listens": "choose another port, or 0 for a free one: papaver identity --serve HOST:PORT",
    "sign-in.redirect-registered": (
        "papaver init CLIENT_ID --redirect-uri http://127.0.0.1/callback, and publish the document again; or --device"
    ),
    "network.ca-file": "name a file of PEM certificates with --ca-file or PAPAVER_CA_FILE",
    "network.resolve-entry": "for example --resolve shop.example:443=127.0.0.1:8443; PAPAVER_RESOLVE has the same form",
}
"""Where the rule says more about what to do than the code."""


class CliError(PapaverError):
    """A failure of the command line itself. `next` is what to type, or to do, now."""

    def __init__(self, description: str, *, next: str, code: str = "failed", rule: str = "", detail: str = "") -> None:
        self.code = code
        self.next = next
        super().__init__(description, rule=rule, detail=detail)


def to_install(extra: str) -> str:
    """What to type for an extra. No index has the package yet, so it is installed from where it came."""
    checkout = Path(papaver.__file__).parents[2]
    where = str(checkout) if (checkout / "pyproject.toml").exists() else "/path/to/checkout"
    return f"pip install {shlex.quote(f'{where}[{extra}]')}"


def exit_status(error: PapaverError) -> int:
    """1 refused or failed, 2 usage, 3 when the User has to sign in."""
    if isinstance(error, SignInNeeded):
        return SIGN_IN_NEEDED
    return USAGE if error.code == "usage" else FAILED


def describe(error: PapaverError, command: str) -> dict[str, object]:
    """`error`, `rule`, `detail`, `next`, and beside them `expected` and `found` where two values differed.

    `command` is the command line without its options, such as `papaver discover`.
    """
    detail = _told_by_company(error) if isinstance(error, Refused) else error.detail
    told: dict[str, object] = {"error": error.code or "refused", "rule": error.rule, "detail": error.description}
    expected, found = error.expected, error.found
    if detail and detail not in error.description and detail not in found:
        told["detail"] = _beside(error.description, detail)
    if expected or found:
        told |= {"expected": expected, "found": found}
    return {**told, "next": _next(error, command)}


def _beside(description: str, detail: str) -> str:
    """The sentence and its reason; a reason of several lines stands below it."""
    if not description:
        return detail
    return f"{description}\n{detail}" if "\n" in detail else f"{description} ({detail})"


def _next(error: PapaverError, command: str) -> str:
    match error:
        case CliError(next=next_step):
            return next_step
        case _ if error.remedy:
            return error.remedy
        case SignInNeeded(scope=scope):
            return f"papaver sign-in DOMAIN --scope {shlex.quote(scope) if scope else 'SCOPE'}"
        case _:
            trace = "{command} --trace shows each exchange, with secrets hidden"
            return NEXT_OF_RULE.get(error.rule, NEXT.get(error.code, trace)).format(command=command)


def _told_by_company(error: Refused) -> str:
    """The code, and the Company's own sentence about it."""
    return f"{error.code}: {error.told}" if error.told else error.code
