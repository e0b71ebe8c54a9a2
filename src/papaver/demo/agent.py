"""The demo's Personal Agent: a process of its own that does what it is told on stdin and says what came of it.

It is what any application of `papaver` is: a key file, a vault, and the documents that it publishes. One JSON object
per line, both ways; it ends when its stdin does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import urllib.parse
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from papaver.adapters.httpx2.personal_agent import HttpSession, PersonalAgent
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.adapters.identity_server import IdentityServer
from papaver.adapters.keyfile import KeyFile
from papaver.adapters.loopback import LoopbackListener
from papaver.adapters.system import SystemIds
from papaver.personal_agent.content import compose
from papaver.personal_agent.conversation import Conversation
from papaver.personal_agent.direct import Agreed
from papaver.personal_agent.discovered import DiscoveredCompany
from papaver.personal_agent.events import LiveEvents
from papaver.personal_agent.identity import Identity
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.outbox import Target
from papaver.personal_agent.sign_in import DirectSignIn
from papaver.protocol.conversation.model import (
    AuthorizationNeeded,
    DirectClosed,
    Event,
    MessageAdded,
    Role,
    TextDelta,
    UserRequested,
)
from papaver.protocol.dialect import Wanted
from papaver.protocol.terms import ClientId
from papaver.stores.sqlite.vault import SqliteVault
from papaver.values.errors import PapaverError

__all__ = ["Dana", "main"]

USER = "dana"
REDIRECT = "http://127.0.0.1/callback"
"""Where the browser comes back to; any port of it is (RFC 8252 7.3)."""


class Dana:
    """One User's Personal Agent at one Company. Each method is one command, and returns what to say of it."""

    def __init__(self, agent: PersonalAgent) -> None:
        self._agent = agent
        self._company: DiscoveredCompany[HttpSession] | None = None
        self._session: HttpSession | None = None
        self._conversation: Conversation | None = None
        self._listener: LoopbackListener | None = None
        self._begun: DirectSignIn | None = None
        self._live: LiveEvents | None = None
        self._asked: UserRequested | None = None

    async def discover(self, domain: str) -> dict[str, Any]:
        """Every check of section 3."""
        self._company = company = await self._agent.discover(domain)
        checks = [{"rule": one.rule, "ok": one.ok, "detail": one.detail} for one in company.checks]
        return {
            "name": company.name,
            "identifier": company.identifier,
            "version": str(company.version),
            "checks": checks,
        }

    async def open(self) -> dict[str, Any]:
        """A Session with a fresh `sid`; the Company learns of it with the first request."""
        assert self._company is not None
        self._session = self._company.session(USER)
        return {}

    async def ask(self, text: str) -> dict[str, Any]:
        """Start a conversation and read until the Company is idle."""
        self._conversation = await self._open_session.ask(text, locale="en-US")
        return {**await self._read(), "sid": self._open_session.sid, "user_id": self._open_session.user_id}

    async def say(self, text: str) -> dict[str, Any]:
        """Go on in the conversation, and read until the Company is idle."""
        message = await self._open_conversation.say(text)
        return {**await self._read(), "message_id": message.id}

    async def say_twice(self, text: str) -> dict[str, Any]:
        """Send one message, then the same again, as an agent does that never heard the first answer (8.3)."""
        message = compose(message_id(SystemIds()), text)
        for _ in range(2):
            await self._open_session.deliver(message, Target(self._open_conversation.id), Wanted())
        return {**await self._read(), "message_id": message.id}

    async def say_only(self, text: str) -> dict[str, Any]:
        """Send a message and do not wait for the answer."""
        message = await self._open_conversation.say(text)
        return {"message_id": message.id}

    async def hear(self, text: str) -> dict[str, Any]:
        """Send a message and read until it is in the conversation: what is written from now on is heard (8.6)."""
        message = await self._open_conversation.say(text)
        self._live = self._open_conversation.live()
        read: list[Event] = []
        async for found in self._live:
            if not isinstance(found, TextDelta):
                read.append(found)
                if isinstance(found, MessageAdded) and found.message.id == message.id:
                    break
        return {**self._told(read), "message_id": message.id}

    async def hear_beginning(self) -> dict[str, Any]:
        """Read on until a piece of the answer is there."""
        assert self._live is not None
        read: list[Event] = []
        async for found in self._live:
            if not isinstance(found, TextDelta):
                read.append(found)
            elif found.so_far:
                return {**self._told(read), "reply_id": found.message_id, "so_far": found.so_far}
        return {**self._told(read), "reply_id": None, "so_far": ""}

    async def hear_on(self) -> dict[str, Any]:
        """Read on to the end of what is being written."""
        assert self._live is not None
        return self._told([found async for found in self._live if not isinstance(found, TextDelta)])

    async def talk_directly(self, words: str) -> dict[str, Any]:
        """The User says yes to what the Company asked for, in their own words, and reads its answer (8.10)."""
        assert self._asked is not None

        async def ask_user(_: UserRequested) -> Agreed:
            return Agreed(words)

        direct = await self._open_conversation.answer_request(self._asked, ask_user)
        assert direct is not None
        told = self._told([event async for event in direct.events()])
        await direct.close()
        return {**told, "conversation_id": direct.id, "parent_id": self._open_conversation.id}

    async def resume(self, conversation_id: str) -> dict[str, Any]:
        """The same conversation in another Session, from where its events were handled last."""
        await self._open_session.aclose()
        await self.open()
        self._conversation = await self._open_session.resume(conversation_id)
        return {**await self._read(), "sid": self._open_session.sid}

    async def sign_in(self, scopes: list[str]) -> dict[str, Any]:
        """Begin a Direct Sign-In (4.2): the URL for the User's browser. It comes back to this process."""
        self._listener = await LoopbackListener().__aenter__()
        begun = await self._open_session.sign_in(*scopes, redirect_uri=self._listener.redirect_uri)
        assert isinstance(begun, DirectSignIn)
        self._begun = begun
        return {"url": begun.url, "scopes": list(begun.scopes)}

    async def signed_in(self) -> dict[str, Any]:
        """The browser came back: what the User approved."""
        assert self._listener is not None
        assert self._begun is not None
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self._begun.url).query)
        callback = await self._listener.callback(query["state"][0])
        await self._listener.__aexit__(None, None, None)
        done = await self._begun.complete(callback.reveal())
        return {"scopes": list(done.scopes), "missing": list(done.missing)}

    async def go_on(self) -> dict[str, Any]:
        """Read on in the same conversation until the Company is idle."""
        return await self._read()

    async def call(self, url: str) -> dict[str, Any]:
        """GET one of the Company's APIs with the client that signs and carries the token (section 7)."""
        response = await self._open_session.http.get(url)
        return {
            "status": response.status_code,
            "body": response.json() if response.status_code == 200 else None,
            "challenge": response.headers.get("www-authenticate", "").partition(", DPoP")[0],
        }

    async def held(self) -> dict[str, Any]:
        """What may be done on the account now."""
        return {"scopes": sorted(await self._open_session.scopes())}

    async def close(self) -> dict[str, Any]:
        """End the conversation, and see that it takes no further message."""
        await self._open_conversation.close()
        status = self._open_conversation.status.value
        try:
            await self._open_conversation.say("One more thing.")
        except PapaverError as error:
            return {"status": status, "afterwards": error.code}
        return {"status": status, "afterwards": "accepted"}

    async def read_again(self) -> dict[str, Any]:
        """All messages from the beginning, by plain HTTP through the client that signs (8.5)."""
        assert self._company is not None
        endpoint = self._company.document.conversations()
        assert endpoint is not None
        url = f"{endpoint.endpoint}/{self._open_conversation.id}/events"
        messages: list[list[str]] = []
        query: dict[str, str] = {}
        while True:
            response = await self._open_session.http.get(url, params=query)
            page = response.raise_for_status().json()
            said = [event["message"] for event in page["events"] if event["type"] == "message"]
            messages += [[one["role"], one["id"], one.get("text", "")] for one in said]
            if not page["has_more"]:
                return {"messages": messages}
            query = {"cursor": page["cursor"]}

    async def _read(self) -> dict[str, Any]:
        """All new messages, as (role, id, text)."""
        return self._told([event async for event in self._open_conversation.events()])

    def _told(self, events: list[Event]) -> dict[str, Any]:
        conversation = self._open_conversation
        said = [event.message for event in events if isinstance(event, MessageAdded)]
        replies = [message for message in said if message.role is Role.COMPANY]
        for event in events:
            if isinstance(event, UserRequested):
                self._asked = event
        return {
            "conversation_id": conversation.id,
            "status": conversation.status.value,
            "responder": conversation.responder.value,
            "messages": [[message.role.value, message.id, message.text] for message in said],
            "replies": [message.text for message in replies],
            "authors": [[message.author.type.value, message.author.name] for message in replies],
            "needs": [event.scope for event in events if isinstance(event, AuthorizationNeeded)],
            "asked": [event.reason for event in events if isinstance(event, UserRequested)],
            "left": [event.conversation_id for event in events if isinstance(event, DirectClosed)],
        }

    @property
    def _open_session(self) -> HttpSession:
        assert self._session is not None
        return self._session

    @property
    def _open_conversation(self) -> Conversation:
        assert self._conversation is not None
        return self._conversation


async def _serve(dana: Dana) -> None:
    commands: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
        "discover": dana.discover,
        "open": dana.open,
        "ask": dana.ask,
        "say": dana.say,
        "say_twice": dana.say_twice,
        "say_only": dana.say_only,
        "hear": dana.hear,
        "hear_beginning": dana.hear_beginning,
        "hear_on": dana.hear_on,
        "talk_directly": dana.talk_directly,
        "resume": dana.resume,
        "read_again": dana.read_again,
        "sign_in": dana.sign_in,
        "signed_in": dana.signed_in,
        "go_on": dana.go_on,
        "call": dana.call,
        "held": dana.held,
        "close": dana.close,
    }
    while line := await asyncio.to_thread(sys.stdin.readline):
        members = json.loads(line)
        try:
            answer = await commands[members.pop("do")](**members)
        except PapaverError as error:
            answer = {"error": str(error), "detail": error.detail}
        _say(**answer)


def _say(**members: Any) -> None:
    print(json.dumps(members), flush=True)


async def _run(identity: Identity, vault: Path) -> None:
    first = json.loads(await asyncio.to_thread(sys.stdin.readline))
    agent = PersonalAgent(
        identity.client_id,
        redirect_uris=identity.redirect_uris,
        keys=identity.keys,
        vault=SqliteVault(vault),
        network=NetworkSettings.read(first["resolve"], first["ca_file"], environ={}),
        name=identity.name,
    )
    async with agent:
        await _serve(Dana(agent))


def main() -> None:
    """Serve the documents and say on which port; take the network from the first line; then do what stdin says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client_id")
    parser.add_argument("--name", required=True)
    for name in ("--home", "--tls-cert", "--tls-key"):
        parser.add_argument(name, type=Path, required=True)
    options = parser.parse_args()
    identity = Identity(
        ClientId(options.client_id), KeyFile(options.home / "keys.json"), name=options.name, redirect_uris=(REDIRECT,)
    )
    with IdentityServer(identity.documents(), "127.0.0.1", 0, (options.tls_cert, options.tls_key)) as server:
        _say(port=server.address[1])
        asyncio.run(_run(identity, options.home / "agent.db"))


if __name__ == "__main__":
    main()
