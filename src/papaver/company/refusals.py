"""How an error leaves: written as the request's version says, and logged once, for the Company's own eyes."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Final

from papaver.company.incoming import Incoming
from papaver.protocol.dialect import BEARER_ONLY, Challenged, Dialect, Place
from papaver.protocol.errors import PoppyError
from papaver.protocol.terms import CompanyId
from papaver.values.errors import PapaverError
from papaver.web.messages import Response

__all__ = ["Attempt", "Refusals"]

log = logging.getLogger("papaver.company")

LONGEST: Final = 500


@dataclass(slots=True)
class Attempt:
    """What is known of a request so far, for how its refusal is written and what is logged of it.

    `dialect`  of its version, once that is known      `client`  who it says it is from      `proven`  and that is true
    """

    incoming: Incoming
    dialect: Dialect | None = None
    client: str = ""
    proven: bool = False


class Refusals:
    """Writes and logs the refusals of one Company. `fallback` speaks to requests of no version that is served."""

    def __init__(self, company_id: CompanyId, fallback: Dialect) -> None:
        self._company_id, self._fallback = company_id, fallback

    def write(
        self, error: PapaverError, dialect: Dialect | None, place: Place, challenged: Challenged = BEARER_ONLY
    ) -> Response:
        """The response of section 7 and 8.13; what is no error of the protocol becomes a 500 that tells nothing."""
        return (dialect or self._fallback).errors.write(error, place, challenged)

    def log(self, error: PapaverError, response: Response, attempt: Attempt) -> None:
        """One line of JSON: no control character survives, no secret is in it, and it has a bounded length."""
        incoming = attempt.incoming
        line = {
            "event": "refused",
            "company": self._company_id,
            "status": response.status,
            "code": error.code,
            "rule": error.rule,
            "client": attempt.client,
            "proven": attempt.proven,
            "detail": error.detail,
            "method": incoming.method,
            "path": incoming.path,
            "peer": incoming.peer,
        }
        cut = {name: value[:LONGEST] if isinstance(value, str) else value for name, value in line.items()}
        ours = not isinstance(error, PoppyError)
        log.log(logging.ERROR if ours else logging.WARNING, "%s", json.dumps(cut), exc_info=error if ours else None)
