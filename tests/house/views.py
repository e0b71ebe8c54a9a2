"""Views of every page of sign-in, ordinary ones and some with hostile names."""

from __future__ import annotations

from papaver.ports.pages import (
    ConnectedAgent,
    ConnectedView,
    ConsentView,
    DeviceView,
    MessageView,
    ShownAgent,
    ShownScope,
)
from papaver.screens import HtmlPages
from papaver.web.messages import Response

__all__ = ["AGENT", "HOSTILE", "ISSUER", "consent", "pages", "responses"]

ISSUER = "https://auth.example"
AGENT = ShownAgent("Dana's agent", "agent.example", "https://agent.example/agent.json")
HOSTILE = ShownAgent(
    '<script>alert(1)</script>"><b>Your Bank</b>\u202e\u0000\ud800' + "x" * 300,
    "agent.example",
    "https://agent.example/" + "a" * 300 + "/agent.json",
)
SCOPES = (
    ShownScope("orders:read", "See your orders", "none", True),
    ShownScope("orders:write", "Exchange your orders", "reversible", False),
    ShownScope("orders:cancel", "Cancel your orders", "irreversible", True),
    ShownScope("gifts"),
)
COMPANY = "The Outfitter"
NOW = 1_800_000_000.0


def consent(agent: ShownAgent = AGENT, user_code: str | None = None, problem: str | None = None) -> ConsentView:
    return ConsentView(
        COMPANY,
        agent,
        SCOPES,
        "dana@mail.example",
        f"{ISSUER}/consent",
        "csrf-token",
        held=frozenset({"orders:read"}),
        user_code=user_code,
        problem=problem,
    )


def pages() -> dict[str, Response]:
    """One of each kind, by a name for it."""
    html = HtmlPages()
    agents = (ConnectedAgent(AGENT, SCOPES, NOW), ConnectedAgent(HOSTILE, SCOPES[:1], NOW))
    return {
        "consent": html.consent(consent()),
        "device-consent": html.consent(consent(user_code="WDJB-MJHT", problem="Choose.")),
        "hostile": html.consent(consent(HOSTILE)),
        "device": html.device(DeviceView(COMPANY, f"{ISSUER}/device", "csrf-token", "WDJB-MJHT")),
        "device-wrong": html.device(DeviceView(COMPANY, f"{ISSUER}/device", "csrf-token", problem="Unknown."), 400),
        "connected": html.connected(
            ConnectedView(COMPANY, "dana@mail.example", agents, f"{ISSUER}/connected", "csrf-token", "Done.")
        ),
        "nobody": html.connected(ConnectedView(COMPANY, "dana", (), f"{ISSUER}/connected", "csrf-token")),
        "done": html.message(MessageView(COMPANY, "Approved", "You can go back to the device.", "done")),
        "problem": html.message(MessageView(COMPANY, "This is over", "Start again in your agent."), 400),
    }


def responses() -> dict[str, Response]:
    """The same by URL, with what they link to."""
    html = HtmlPages()
    assets = {f"{ISSUER}/assets/{name}": html.asset(name) for name in ("style.css", "icon.svg")}
    found = {f"{ISSUER}/{name}": page for name, page in pages().items()}
    return {**found, **{url: asset for url, asset in assets.items() if asset is not None}}
