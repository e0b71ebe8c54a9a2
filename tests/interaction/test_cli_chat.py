"""`papaver chat` with a Company in the same process: lines are said, commands are done, what comes is printed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from papaver.cli import chatting
from papaver.cli.chatting import Chat
from papaver.cli.run import Run
from papaver.company.turn import Turn
from papaver.testing.pair import Pair, echoing, pair
from papaver.testing.wire import Exchange, Onward
from papaver.values.secret import Secret
from papaver.web.messages import Headers, Response
from tests.house.pairing import Script, answering, signed

pytestmark = pytest.mark.anyio


def typing(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """These lines are typed, then Ctrl-D."""

    def typed() -> asyncio.Queue[Secret | None]:
        queue: asyncio.Queue[Secret | None] = asyncio.Queue()
        for line in lines:
            queue.put_nowait(Secret(line))
        queue.put_nowait(None)
        return queue

    monkeypatch.setattr(chatting, "typed_lines", typed)


async def chatted(both: Pair, *, json_lines: bool = False, known: str | None = None, terminal: bool = False) -> None:
    """One chat to its end."""
    session = (await both.agent.discover("example.com")).session("me")
    current = None if known is None else await session.resume(known)
    run = Run(json=json_lines)
    chat = Chat(run, both.agent, session, "Example", by_user=True, current=current, terminal=lambda: terminal)
    await chat.go_on()


def said(both: Pair) -> list[dict[str, Any]]:
    """The bodies of what was posted."""
    return [json.loads(one.request.body) for one in signed(both) if one.request.method == "POST"]


async def test_lines_are_said_and_answered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In order, as the User's own words until /as says otherwise; `//` escapes."""
    typing(monkeypatch, "Hello", "", "/as agent", "//quit is a word", "/quit", "never")
    async with pair() as both:
        await chatted(both)
        messages = [body["message"] for body in said(both)]
        assert [(one["text"], one["author"]["type"]) for one in messages] == [
            ("Hello", "human"),
            ("/quit is a word", "agent"),
        ]
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "you: Hello",
        "Example (agent): You said: Hello",
        "you: /quit is a word",
        "Example (agent): You said: /quit is a word",
    ]
    assert "it stays open: --conversation cnv_" in err


@pytest.mark.parametrize("forged", ["id", "words", "author"])
async def test_what_this_run_did_not_say_is_the_companys_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], forged: str
) -> None:
    """A message of the User's side that was never sent, or with other words or another author than it was sent with."""
    typing(monkeypatch, "Hello")
    async with pair() as both:

        async def lie(exchange: Exchange, onward: Onward) -> Response:
            message = said(both)[0]["message"]
            told = {"id": message["id"], "role": "user", "author": {"type": "human"}, "text": "Hello"}
            told |= {"id": {"id": "msg_forged"}, "words": {"text": "Buy it."}, "author": {"author": {"type": "agent"}}}[
                forged
            ]
            event = {"id": "evt_1", "type": "message", "created_at": "2026-10-08T19:03:00Z", "message": told}
            conversation = exchange.place.split("/")[-2]
            rest = {"cursor": "evt_1", "has_more": False, "status": "idle", "responder": "agent"}
            body = json.dumps({"conversation_id": conversation, "events": [event], **rest}).encode()
            return Response(200, Headers({"content-type": "application/json"}), body)

        Script(both).always("/events", lie)
        await chatted(both)
    out = capsys.readouterr().out
    assert out == f"you (as the Company has it): {'Buy it.' if forged == 'words' else 'Hello'}\n"


async def test_scripts_get_one_line_for_each_event(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `ask` prints them, and last how the conversation stands."""
    typing(monkeypatch, "Hello", "/close")
    async with pair() as both:
        await chatted(both, json_lines=True)
    *events, last = map(json.loads, capsys.readouterr().out.splitlines())
    kinds = [one["event"]["type"] for one in events]
    assert kinds == ["message", "message", "state", "state"]
    assert (last["status"], last["responder"]) == ("closed", "agent")


async def agent(turn: Turn) -> str:
    if turn.opening:
        return "Hello, it is us."
    if turn.direct:
        return f"Direct: {turn.text}"
    if "direct" in turn.text:
        turn.request_user("Please confirm.")
    return f"Context {dict(turn.context)}"


async def test_the_user_goes_direct_and_comes_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request is declined in words, then agreed to without; /close leads back, and the events there are tagged."""
    typing(
        monkeypatch, "go direct", "/decline Not today.", "go direct", "/direct", "It is me", "/close", "/direct Again"
    )
    async with pair(answering(agent)) as both:
        await chatted(both)
        bodies = said(both)
        assert [body for body in bodies if "user_requested_event_id" in body and "message" not in body]
        assert bodies[-1]["message"]["text"] == "Again"
    out, err = capsys.readouterr()
    assert "(the Company asks for the User: Please confirm.)" in out
    assert "you: Not today." in out
    assert "Example (agent): Hello, it is us." in out
    assert "Example (agent): Direct: It is me" in out
    assert "[parent] (they ended cnv_" in err
    assert "Example (agent): Direct: Again" in out


@pytest.mark.requirement("8.8-02")
async def test_who_speaks_in_the_parent_is_who_spoke_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The User's own words in a Direct Conversation do not make those of their agent theirs afterwards."""
    typing(monkeypatch, "/as agent", "go direct", "/direct", "It is me", "/close", "I sum it up")
    async with pair(answering(agent)) as both:
        await chatted(both)
        messages = [body["message"] for body in said(both) if "message" in body]
    authors = {message["text"]: message["author"]["type"] for message in messages}
    assert authors == {"go direct": "agent", "It is me": "human", "I sum it up": "agent"}
    capsys.readouterr()


async def test_context_and_handoff(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Facts are told alone; a person is asked for, and nobody is there."""
    typing(monkeypatch, "Hi", "/context user_available=false units=metric", "And now?", "/handoff")
    async with pair(answering(agent)) as both:
        await chatted(both)
    out, err = capsys.readouterr()
    assert "Context {'user_available': False, 'units': 'metric'}" in out
    assert "Nobody is available" in out
    assert "(queued, agent)" in err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/close", "nothing has been said yet"),
        ("/as cat", "/as needs more"),
        ("/context", "/context needs more"),
        ("/context nonsense", "is not K=V"),
        ("/signin", "the Company has asked for nothing"),
        ("/direct", "nothing has been said yet"),
        ("/decline", "the Company has not asked for you"),
        ("/dance", "there is no /dance"),
    ],
)
async def test_what_cannot_be_done_is_told_and_the_chat_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    """With what to type instead."""
    typing(monkeypatch, line, "/help", "Hello")
    async with pair() as both:
        await chatted(both)
    out, err = capsys.readouterr()
    assert told in err
    assert "/handoff" in err
    assert "You said: Hello" in out


async def test_an_error_of_the_company_ends_no_chat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A closed conversation takes no message, and says so."""
    typing(monkeypatch, "Hello", "/close", "More", "/direct Words")
    async with pair() as both:
        await chatted(both)
    assert capsys.readouterr().err.count("conversation_closed") == 2


async def test_a_terminal_shows_pieces_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is written over, then replaced by the message; control characters of the Company are not printed."""
    lines: asyncio.Queue[Secret | None] = asyncio.Queue()
    monkeypatch.setattr(chatting, "typed_lines", lambda: lines)
    seen, shown = asyncio.Event(), ""

    async def slow(turn: Turn) -> None:
        await turn.write("It is \x1b[31m")
        await seen.wait()
        await turn.write("on its way.")

    async def until(text: str) -> str:
        out = ""
        while text not in out:
            await checkpoint()
            out += capsys.readouterr().out
        return out

    async with pair(answering(slow)) as both:
        going_on = asyncio.create_task(chatted(both, terminal=True))
        lines.put_nowait(Secret("Hello"))
        shown += await until("… It is")
        seen.set()
        shown += await until("Example (agent): It is on its way.")
        lines.put_nowait(None)
        await going_on
    assert "… It is" in shown
    assert "\r" in shown
    assert "\x1b[31m" not in shown


async def test_one_may_go_on_in_a_known_conversation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not read yet is printed first."""
    async with pair(echoing()) as both:
        session = (await both.agent.discover("example.com")).session("me")
        conversation = await session.ask("Before")
        typing(monkeypatch, "After")
        await chatted(both, known=conversation.id)
    said_by_us = [line for line in capsys.readouterr().out.splitlines() if "You said" in line]
    assert said_by_us == ["Example (agent): You said: Before", "Example (agent): You said: After"]
