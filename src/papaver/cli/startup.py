"""Why an app did not start: its error is kept for us to tell, in place of the server's traceback through our frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from papaver.cli.failures import CliError
from papaver.cli.theirs import Theirs, shown
from papaver.values.errors import PapaverError

if TYPE_CHECKING:
    from papaver.adapters.asgi import ASGIApp, Receive, Scope, Send

__all__ = ["Observed"]


class Observed:
    """An app as it is, but for a lifespan that fails: `failures` has why, and the server is told without words."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.failures: list[PapaverError] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        phase, said = "startup", list[str]()

        async def told(message: Any) -> None:
            nonlocal phase
            if message["type"].endswith(".failed"):
                said.append(message.get("message", ""))
                return
            if message["type"] == "lifespan.startup.complete":
                phase = "shutdown"
            await send(message)

        try:
            with Theirs(lambda error: _failed(phase, f": it raised {type(error).__name__}", shown(error))):
                await self._app(scope, receive, told)
        except PapaverError as error:
            self.failures.append(error)
        else:
            self.failures += [_failed(phase, "", one) for one in said]
        if self.failures:
            await send({"type": f"lifespan.{phase}.failed", "message": ""})


def _failed(phase: str, why: str, detail: str) -> CliError:
    return CliError(
        f"the app did not {'start' if phase == 'startup' else 'end in order'}{why}",
        rule="serve.starts",
        detail=detail,
        next="correct it, then run the same command again",
    )
