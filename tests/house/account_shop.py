"""A Company with an issuer of its own, as processes of the command line run it: its module, and everything started."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from papaver.cli.main import cli
from tests.house.forms_browser import FormsBrowser
from tests.interop.processes import Place, Running, environment, papaver, started

__all__ = ["ME", "SHOP", "AccountShop", "account_shop"]

ME = "https://agent.example/agent.json"
SHOP = "shop.example"

MODULE = """
from typing import Annotated

from fastapi import FastAPI
from fastapi.responses import RedirectResponse

from papaver import Company, Poppy, SqliteStore, Turn, VerifiedSession
from papaver.adapters.httpx2 import NetworkSettings
from papaver.company import EmbeddedIssuer, OpenApi, Scope
from papaver.protocol.signed_in import SignedInSession
from papaver.protocol.terms import AccountId

issuer = EmbeddedIssuer(
    "https://auth.shop.example", sign_in_page="https://shop.example/sign-in", unlisted_scopes=["gifts"]
)
company = Company(
    domain="shop.example",
    name="Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("shop.db"),
    sign_in=issuer,
    scopes=[Scope("orders:read", "See your orders", "none", True), Scope("orders:write", "Order", "reversible", True),
            Scope("gifts", "Use gift cards", "irreversible", False)],
    apis=[OpenApi("https://shop.example/openapi.json", "Orders")],
)

@company.conversation
async def answer(turn: Turn) -> str:
    if "order" not in turn.text.lower():
        return "We are open."
    return f"The order of {turn.require('orders:read')} is on its way."

app = FastAPI()
poppy = Poppy(app, company, network=NetworkSettings.from_environment())

@app.get("/orders", operation_id="listOrders", summary="Your orders")
async def orders(
    session: Annotated[SignedInSession, poppy.signed_in("orders:read")], state: str = "all"
) -> dict[str, str]:
    return {"account": session.account_id, "state": state}

@app.post("/orders/{sku}", operation_id="order")
async def order(
    sku: str, body: dict[str, int], session: Annotated[SignedInSession, poppy.signed_in("orders:write")]
) -> dict[str, object]:
    return {"ordered": sku, **body}

@app.get("/gifts", operation_id="gifts")
async def gifts(session: Annotated[SignedInSession, poppy.signed_in("gifts")]) -> dict[str, int]:
    return {"cards": 1}

@app.get("/cart", operation_id="cart")
async def cart(session: Annotated[VerifiedSession, poppy.session()]) -> dict[str, str]:
    return {"cart_of": session.user_id}

@app.get("/sign-in", include_in_schema=False)
async def sign_in(interaction: str) -> RedirectResponse:
    return RedirectResponse(await issuer.signed_in(interaction, AccountId("acct_dana"), name="dana@example.com"), 303)
"""


@dataclass(frozen=True)
class AccountShop:
    """`options` let a command reach the Company; `told` keeps everything that any command printed."""

    folder: Path
    options: list[str]
    port: int
    agent_port: int
    ca_file: Path
    told: list[str]

    def browser(self) -> FormsBrowser:
        """A new browser, without cookies."""
        return FormsBrowser(self.port, self.ca_file, {"agent.example": self.agent_port})

    def run(self, *arguments: str, status: int = 0) -> Result:
        """A command to its end, in this process: it starts faster."""
        runner = CliRunner(env={"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"})
        done = runner.invoke(cli, [*arguments, *self.options])
        self.told.extend([done.stdout, done.stderr])
        assert done.exit_code == status, (done.stdout, done.stderr, done.exception)
        return done

    def lines(self, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
        """What it says to scripts."""
        return [json.loads(line) for line in self.run(*arguments, "--json", status=status).stdout.splitlines()]

    @contextmanager
    def started(self, *arguments: str) -> Generator[Running]:
        """A command that waits for the User."""
        errors = self.folder / f"errors-{len(self.told)}"
        with started(["-m", "papaver.cli", *arguments, "--json", *self.options], self.folder, errors) as running:
            yield running
        self.told.append(errors.read_text())

    def typed(self, *arguments: str) -> subprocess.Popen[str]:
        """A command whose stdin is a pipe, as somebody pastes into it."""
        return subprocess.Popen(
            [sys.executable, "-m", "papaver.cli", *arguments, *self.options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=environment(),
        )

    def said(self, running: Running) -> dict[str, Any]:
        """Its next line, which is kept."""
        line = running.line()
        self.told.append(line)
        found: dict[str, Any] = json.loads(line)
        return found

    def sign_in(self, *arguments: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Direct Sign-In, approved; what the command says at its end."""
        with self.started("sign-in", SHOP, "--no-open", *arguments) as running:
            self.browser().approve(self.said(running)["authorization_url"], without)
            end = self.said(running)
            assert running.process.wait(30) == 0, end
        return end


@contextmanager
def account_shop(folder: Path, *init: str, trace: bool = False, module: str = MODULE) -> Generator[AccountShop]:
    """The Company and the Personal Agent's documents, each a process; `init` are further options of `papaver init`."""
    place = Place.make(folder)
    (folder / "shop.py").write_text(module, encoding="utf-8")
    home = folder / "home"
    assert papaver("init", ME, "--home", home, *init).returncode == 0
    traced = ["--trace"] if trace else []
    told = list[str]()
    logs = folder / "identity.log", folder / "company.log", folder / "callbacks.log"
    serving = ["-m", "papaver.cli", "identity", "--json", "--home", home, "--serve", "127.0.0.1:0", *traced]
    with started([*serving, *place.tls("agent.example")], folder, logs[0]) as identity:
        at = f"agent.example:443={identity.said()['listening']}"
        serve = ["-m", "papaver.cli", "company", "serve", "shop:app", "--json", "--port", 0, *traced]
        local = [*place.tls(SHOP, "auth.shop.example"), "--resolve", at, "--ca-file", place.ca_file]
        with started([*serve, *local], folder, logs[1]) as company:
            address = company.said()["listening"]
            hosts = [f"--resolve={name}:443={address}" for name in (SHOP, "auth.shop.example")]
            options = ["--home", str(home), *hosts, "--ca-file", str(place.ca_file), *traced]
            # Another one, because the first was there before the Company whose sign-ins it would have to complete.
            back = [*serving, *hosts, "--ca-file", place.ca_file, *place.tls("agent.example")]
            with started(back, folder, logs[2]) as callbacks:
                there = callbacks.said()["listening"]
                yield AccountShop(folder, options, _port(address), _port(there), place.ca_file, told)
    told += [log.read_text() for log in logs]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
