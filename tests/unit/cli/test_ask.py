"""`papaver ask` where the Company asks for the User's account."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import pytest
from click.testing import CliRunner

from papaver.cli import agent
from papaver.cli.main import cli
from papaver.cli.run import Run
from papaver.protocol.conversation.model import AuthorizationNeeded, Event, Message, Responder, Status
from papaver.protocol.errors import SignInNeeded
from papaver.protocol.terms import ConversationId, EventId


class Asked:
    """A conversation in which the Company asks the User to sign in, and everything that leads to it."""

    id, cursor, name, domain = ConversationId("cnv_1"), EventId("evt_1"), "Shop", "shop.example"
    status, responder = Status.IDLE, Responder.AGENT
    sent_before = (("msg_0", "cnv_0"),)
    live = type("Live", (), {"current": None})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def discover(self, domain: str) -> Asked:
        return self

    def session(self, user: str, **_: object) -> Asked:
        return self

    async def ask(self, **_: object) -> Asked:
        logging.getLogger("papaver.personal_agent").warning("no answer yet;\x1b[2J trying again")
        return self

    def has_said(self, message: Message) -> bool:
        return bool(message)

    async def events(self) -> AsyncIterator[Event]:
        yield AuthorizationNeeded(EventId("evt_1"), datetime(2027, 1, 1, tzinfo=UTC), "orders:read")

    async def need_of(self, event: AuthorizationNeeded) -> SignInNeeded:
        return SignInNeeded(f"profile {event.scope}")


def _asked(run: Run) -> Asked:
    return Asked()


def test_a_company_that_needs_the_account_is_exit_status_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last line, what is needed is told with its scope."""
    monkeypatch.setattr(agent, "agent_of", _asked)
    done = CliRunner().invoke(cli, ["ask", "shop.example", "My orders?", "--json"])
    end, told = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    assert done.exit_code == 3
    assert end == {"conversation_id": "cnv_1", "status": "idle", "responder": "agent", "cursor": "evt_1"}
    assert told["error"] == "sign_in_needed"
    assert told["next"] == "papaver sign-in shop.example --scope 'profile orders:read'"
    assert "sent before: msg_0 in cnv_0" in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_tries_that_are_made_again_are_told_on_stderr(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    """Also where stdout is for a script; whoever waits half a minute sees why."""
    monkeypatch.setattr(agent, "agent_of", _asked)
    done = CliRunner().invoke(cli, ["ask", "shop.example", "My orders?", *options])
    assert done.stderr.startswith("papaver: no answer yet; trying again\n")
    assert "no answer yet" not in done.stdout
