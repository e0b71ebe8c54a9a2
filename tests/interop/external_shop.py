"""A Company whose issuer is oidc-provider, set up by what docs/external-issuer.md says: everything is a process."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from papaver.demo.authority import Authority
from tests.house import npm
from tests.house.account_shop import ME, SHOP, AccountShop
from tests.house.forms_browser import FormsBrowser, Page
from tests.interop.node import SCRIPTS, node, node_environment
from tests.interop.processes import ROOT, Place, papaver, started

__all__ = ["ISSUER", "approve", "approve_device", "external_shop", "noted"]

AUTH = "auth.shop.example"
ISSUER = f"https://{AUTH}"
SECRET = "a-secret-of-the-company-at-its-issuer"

MODULE = """
import os
from typing import Annotated

from fastapi import FastAPI

from papaver import Company, Poppy, SqliteStore, Turn
from papaver.adapters.httpx2 import NetworkSettings
from papaver.company import ExternalIssuer, Introspection, OpenApi, Scope
from papaver.protocol.signed_in import SignedInSession
from papaver.values.secret import Secret

ISSUER = "https://auth.shop.example"
asked = Introspection.basic(f"{ISSUER}/token/introspection", "the-company", Secret(os.environ["COMPANY_SECRET"]))
company = Company(
    domain="shop.example",
    name="Shop",
    base_url="https://shop.example/poppy",
    store=SqliteStore("shop.db"),
    sign_in=ExternalIssuer(ISSUER, introspection=asked if os.environ["COMPANY_ASKS"] else None),
    scopes=[Scope("orders:read", "See your orders", "none", True),
            Scope("orders:write", "Order", "reversible", True)],
    apis=[OpenApi("https://shop.example/openapi.json", "Orders")],
    own_tokens=["https://shop.example/poppy/conversations"],
)

@company.conversation
async def answer(turn: Turn) -> str:
    return f"The order of {turn.require('orders:read')} is on its way."

app = FastAPI()
poppy = Poppy(app, company, network=NetworkSettings.from_environment())

@app.get("/orders", operation_id="listOrders")
async def orders(session: Annotated[SignedInSession, poppy.signed_in("orders:read")]) -> dict[str, str]:
    return {"account": session.account_id}

@app.post("/orders/{sku}", operation_id="order")
async def order(sku: str, session: Annotated[SignedInSession, poppy.signed_in("orders:write")]) -> dict[str, str]:
    return {"ordered": sku}
"""


def documented(opaque: bool) -> str:
    """The blocks of JavaScript in docs/external-issuer.md as one module; the second is for opaque tokens."""
    text = (ROOT / "docs" / "external-issuer.md").read_text(encoding="utf-8")
    settings, introspection, serving = re.findall(r"```js\n(.*?)```", text, re.DOTALL)
    return "\n".join([settings, introspection if opaque else "", serving])


def noted(shop: AccountShop, event: str) -> list[dict[str, Any]]:
    """What the issuer noted of one kind, in order."""
    lines = (shop.folder / "provider.log").read_text(encoding="utf-8").splitlines()
    return [one for line in lines if line.startswith("{") and (one := json.loads(line))["event"] == event]


@contextmanager
def provider(place: Place, opaque: bool, agent_port: int) -> Generator[int]:
    """oidc-provider over TLS; its port. What it says of a failure is in the folder."""
    # The module is where its packages are, so that `import` finds them.
    module = npm.installed("oidc-provider").parent.parent / f"documented-{os.getpid()}-{place.folder.name}.mjs"
    module.write_text(documented(opaque), encoding="utf-8")
    certificate, key = place.authority.issue(AUTH)
    command = node(SCRIPTS / "provider.mjs", module, certificate, key)
    env = node_environment({"agent.example": agent_port}, place.ca_file, {"COMPANY_SECRET": SECRET})
    with (place.folder / "provider.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env)
    try:
        assert process.stdout is not None
        # Before it listens, it warns about what is for development only.
        first = next((line for line in process.stdout if line.startswith('{"listening"')), None)
        assert first is not None, (place.folder / "provider.log").read_text()
        yield int(json.loads(first)["listening"])
    finally:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()
        module.unlink()


@contextmanager
def external_shop(folder: Path, *, opaque: bool = False) -> Generator[AccountShop]:
    """The Personal Agent's documents, the issuer, the Company. With `opaque` it asks its issuer about each token."""
    place = Place(folder, Authority(folder))
    (folder / "shop.py").write_text(MODULE)
    home = folder / "home"
    assert papaver("init", ME, "--home", home).returncode == 0
    serving = ["-m", "papaver.cli", "identity", "--json", "--home", home, "--serve", "127.0.0.1:0"]
    with started([*serving, *place.tls("agent.example")], folder, folder / "identity.log") as identity:
        at = identity.said()["listening"]
        agent_port = int(at.rpartition(":")[2])
        with provider(place, opaque, agent_port) as auth_port:
            there = f"{AUTH}:443=127.0.0.1:{auth_port}"
            serve = ["-m", "papaver.cli", "company", "serve", "shop:app", "--json", "--port", 0, *place.tls(SHOP)]
            local = ["--resolve", f"agent.example:443={at}", "--resolve", there, "--ca-file", place.ca_file]
            env = {"COMPANY_SECRET": SECRET, "COMPANY_ASKS": "1" if opaque else ""}
            with started([*serve, *local], folder, folder / "company.log", env) as company:
                address = company.said()["listening"]
                options = ["--home", str(home), f"--resolve={SHOP}:443={address}", f"--resolve={there}"]
                options += ["--ca-file", str(place.ca_file)]
                yield AccountShop(folder, options, auth_port, agent_port, place.ca_file, [])


def approve(browser: FormsBrowser, url: str, account: str) -> Page:
    """oidc-provider's own pages for development: any name signs in, then what is asked for is approved."""
    return _signed_in(browser, browser.open(url), account)


def approve_device(browser: FormsBrowser, url: str, user_code: str, account: str) -> Page:
    """The code is typed and confirmed first."""
    confirm = browser.send(browser.open(url), {"user_code": user_code})
    return _signed_in(browser, browser.send(confirm, {}), account)


def _signed_in(browser: FormsBrowser, page: Page, account: str) -> Page:
    consent = browser.send(page, {"login": account, "password": "any"})
    return browser.send(consent, {})
