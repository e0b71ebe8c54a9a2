"""`healthz` and `livez`, below the public base URL: whether all that a Company needs works, and whether it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from papaver.company.endpoints import nothing_here
from papaver.company.runner import Runner
from papaver.ports.company import CompanyStore
from papaver.ports.system import Clock
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Response

__all__ = ["FOREIGN", "Health", "alive_response", "health_response"]

OK: Final = "ok"
STUCK: Final = 60.0
"""Seconds after which a due turn shows that nobody runs them."""
FOREIGN: Final = "not one of ours; let the proxy pass Host on, or set internal_hosts"
KEPT: Final = 1.0
"""Seconds for which one look is good: anybody may ask, and a look writes."""


def health_response(checks: Mapping[str, str]) -> Response:
    """200 when every part is well, else 503; the body says which part is not."""
    healthy = all(said == OK for said in checks.values())
    headers = Headers([("content-type", "application/json"), ("cache-control", "no-store")])
    return Response(200 if healthy else 503, headers, strict_json.dumps({"healthy": healthy, **checks}))


def alive_response(method: str) -> Response:
    """For whoever restarts a process that does not answer; whether it should be sent requests, `healthz` says."""
    if method not in ("GET", "HEAD"):
        return nothing_here(("GET", "HEAD"))
    headers = Headers([("content-type", "application/json"), ("cache-control", "no-store")])
    return Response(200, headers, strict_json.dumps({"alive": True}))


class Health:
    """Of one Company in this process. `turns_run` says whether a runner is at work, here or elsewhere."""

    def __init__(self, store: CompanyStore, runner: Runner, turns_run: Callable[[], bool], clock: Clock) -> None:
        self._store, self._runner, self._turns_run, self._clock = store, runner, turns_run, clock
        self._lock = asyncio.Lock()
        self._looked_at = float("-inf")
        self._checks: Mapping[str, str] = {}

    async def answer(self, method: str, wrong: Mapping[str, str]) -> Response:
        """The answer to a request for `healthz`. `wrong`: what is wrong about that request itself."""
        if method not in ("GET", "HEAD"):
            return nothing_here(("GET", "HEAD"))
        async with self._lock:
            if self._clock.monotonic() >= self._looked_at + KEPT:
                self._checks = {"store": await _said(self._store_works()), "turns": await _said(self._turns_are_run())}
                self._looked_at = self._clock.monotonic()
            return health_response({**wrong, **self._checks})

    async def _store_works(self) -> str:
        await self._store.probe()
        return OK

    async def _turns_are_run(self) -> str:
        if not self._turns_run():
            return "no turn runner runs"
        waited = await self._runner.stuck_for()
        return OK if waited < STUCK else f"one has been due for {waited:.0f} s"


async def _said(check: Awaitable[str]) -> str:
    try:
        return await check
    except PapaverError as error:
        return error.description
