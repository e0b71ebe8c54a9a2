"""Views of every page of the staff console, ordinary ones and some with hostile words."""

from __future__ import annotations

from dataclasses import replace

from papaver.ports.pages import ShownScope
from papaver.ports.staff_pages import ConversationView, NoticeView, QueueRow, QueueView, ShownEvent
from papaver.screens.staff import HtmlStaffPages
from papaver.web.messages import Response

__all__ = ["HOSTILE_TEXT", "ORIGIN", "ROOT", "conversation", "staff_pages", "staff_responses"]

ORIGIN = "https://shop.example"
ROOT = "/poppy/staff"
LINK = f"{ROOT}/conversations/cnv_8f3Kd2"
NOW = 1_800_000_000.0
HOSTILE_TEXT = "<script>alert(1)</script>\u202egnp.exe\u0000\n" + "e\u0301\u0301\u0301\u0301\u0301" + "\nx" + "y" * 400
SCOPES = (
    ShownScope("orders:read", "See your orders", "none", True),
    ShownScope("orders:write", "Exchange your orders", "reversible", True),
)
EVENTS = (
    ShownEvent(
        NOW - 900,
        "agent",
        "Personal Agent",
        "The jacket from order #1042 isn't warm enough. The User wants to return it.",
        facts=(("Language", "en-US"), ("Time zone", "America/Los_Angeles")),
    ),
    ShownEvent(NOW - 890, None, "The Company Agent works on an answer."),
    ShownEvent(
        NOW - 880,
        "company",
        "Company Agent",
        "I can do that. The insulated version would be warmer. Want to exchange instead for $70 more?",
        details='{\n  "data": {\n    "replacement_sku": "stormline-insulated-m",\n    "price_difference": 70\n  }\n}',
    ),
    ShownEvent(NOW - 700, "user", "The User, in their own words", "Medium, please.\nAnd can it be here by Friday?"),
    ShownEvent(NOW - 600, None, "A person was asked for."),
    ShownEvent(NOW - 500, None, "A person took over."),
    ShownEvent(NOW - 480, "person", "Alex (you)", "Hi, I am Alex. Friday works if you order today."),
    ShownEvent(NOW - 300, None, "The User was asked to sign in and allow:", scopes=SCOPES),
    ShownEvent(NOW - 200, None, "We asked to talk with the User:", text="To confirm the exchange."),
    ShownEvent(NOW - 100, None, "The User has come, in a Direct Conversation.", link=f"{ROOT}/conversations/cnv_2"),
)
MINE = ConversationView(
    company="The Outfitter",
    root=ROOT,
    person="Alex",
    link=LINK,
    conversation="cnv_8f3Kd2",
    agent="agent.example",
    client_id="https://agent.example/agent.json",
    account="acct_dana",
    csrf="csrf-token",
    key="key-1",
    panel="mine",
    standing="You have this conversation.",
    events=EVENTS,
    seq=10,
    earlier=f"{LINK}?before=1",
    facts=(("Language", "en-US"), ("Time zone", "America/Los_Angeles"), ("User can answer now", "yes")),
    scopes=SCOPES,
    asks_user=True,
    direct=f"{ROOT}/conversations/cnv_2",
)
QUEUE = QueueView(
    company="The Outfitter",
    root=ROOT,
    person="Alex",
    waiting=(
        QueueRow(LINK, "cnv_8f3Kd2", "agent.example", 312, True, False, facts=("en-US", "User is there")),
        QueueRow(f"{ROOT}/conversations/cnv_2", "cnv_2", "assistant.example", 42, False, True),
        QueueRow(f"{ROOT}/conversations/" + "c" * 256, "c" * 256, "a" * 200 + ".example", 7300, False, False),
    ),
    taken=(
        QueueRow(f"{ROOT}/conversations/cnv_3", "cnv_3", "agent.example", 5, True, False, "Alex", True),
        QueueRow(f"{ROOT}/conversations/cnv_4", "cnv_4", "agent.example", 5, True, False, HOSTILE_TEXT),
    ),
)


def conversation() -> ConversationView:
    """The one that this person has."""
    return MINE


def staff_pages() -> dict[str, Response]:
    """One of each kind, by a name for it."""
    html = HtmlStaffPages()
    hostile = ShownEvent(
        NOW, "agent", HOSTILE_TEXT, HOSTILE_TEXT, details=HOSTILE_TEXT, facts=((HOSTILE_TEXT, HOSTILE_TEXT),)
    )
    waits = replace(MINE, panel="queued", standing="Waiting for a person.", waited=312, direct=None)
    direct = replace(MINE, parent=f"{ROOT}/conversations/cnv_1", parent_events=EVENTS[:4], asks_user=False, direct=None)
    theirs = replace(waits, panel="theirs", standing="Kim has this conversation.", waited=None)
    return {
        "queue": html.queue(replace(QUEUE, notice="The Company Agent has it again.")),
        "empty": html.queue(replace(QUEUE, waiting=(), taken=())),
        "mine": html.conversation(replace(MINE, notice="You have this conversation now.")),
        "refused": html.conversation(
            replace(MINE, problem="Write a message first.", draft="Line one\nLine two", reason="Because."), 400
        ),
        "waits": html.conversation(waits),
        "taken": html.conversation(replace(theirs, problem="Kim handles this conversation already."), 409),
        "direct": html.conversation(direct),
        "older": html.conversation(replace(MINE, older=True)),
        "closed": html.conversation(replace(MINE, panel="closed", standing="This conversation is closed.")),
        "hostile": html.conversation(
            replace(MINE, events=(hostile,), facts=((HOSTILE_TEXT, HOSTILE_TEXT),), standing=HOSTILE_TEXT)
        ),
        "live": html.live(replace(MINE, events=EVENTS[-3:])),
        "quiet": html.live(replace(MINE, events=())),
        "nobody": html.message(NoticeView("The Outfitter", ROOT, "You may not come in here", "Sign in first."), 403),
    }


def staff_responses() -> dict[str, Response]:
    """The same by URL, with what they link to."""
    html = HtmlStaffPages()
    names = ("style.css", "icon.svg", "staff.css", "staff.js")
    assets = {f"{ORIGIN}{ROOT}/assets/{name}": html.asset(name) for name in names}
    found = {f"{ORIGIN}/{name}": page for name, page in staff_pages().items()}
    news = {
        f"{ORIGIN}{ROOT}/news": html.queue_news(QUEUE),
        f"{ORIGIN}{LINK}/news": Response(204),
        f"{ORIGIN}{LINK}/live": html.live(replace(MINE, events=())),
    }
    return {**found, **news, **{url: asset for url, asset in assets.items() if asset is not None}}
