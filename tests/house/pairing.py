"""What tests of a pair share: a script between the parties, and a look into what was signed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from papaver.company.app import Company
from papaver.company.turn import Handler
from papaver.personal_agent.conversation import Conversation
from papaver.protocol.conversation.model import MessageAdded, Role
from papaver.stores.memory import MemoryStore
from papaver.testing.pair import Pair
from papaver.testing.wire import Exchange, Lost, Onward
from papaver.values.base64url import decode
from papaver.web.messages import Headers, Response

__all__ = [
    "POPPY_JSON",
    "RESOURCE",
    "Scene",
    "Script",
    "answering",
    "changed",
    "claims",
    "delegation",
    "jose",
    "lose_answer",
    "lose_request",
    "replies",
    "signed",
    "told",
    "with_members",
]

POPPY_JSON = "/.well-known/poppy.json"
RESOURCE = "/.well-known/oauth-protected-resource"

Scene = Response | Callable[[Exchange, Onward], Awaitable[Response]]


def told(status: int, body: object = None, **headers: str) -> Response:
    """An answer: `body` as JSON unless it is octets; `_` in a header's name is a hyphen."""
    fields = Headers((name.replace("_", "-"), value) for name, value in headers.items())
    octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Response(status, fields, octets)


def answering(handler: Handler, **options: Any) -> Company:
    """A Company at example.com with this Company Agent."""
    base_url = "https://api.example.com/poppy"
    company = Company(domain="example.com", name="Example", base_url=base_url, store=MemoryStore(), **options)
    company.conversation(handler)
    return company


async def lose_request(exchange: Exchange, onward: Onward) -> Response:
    """The connection breaks before the request arrives."""
    raise Lost


async def lose_answer(exchange: Exchange, onward: Onward) -> Response:
    """The request is handled, and the connection breaks before the answer is back."""
    await onward()
    raise Lost


def changed(change: Callable[[Any], None]) -> Scene:
    """The JSON answer of the site, changed in place."""

    async def scene(exchange: Exchange, onward: Onward) -> Response:
        response = await onward()
        body = json.loads(response.body)
        change(body)
        headers = Headers(pair for pair in response.headers if pair[0] != "content-length")
        return Response(response.status, headers, json.dumps(body).encode())

    return scene


def with_members(**members: object) -> Scene:
    """The JSON answer of the site with these members."""
    return changed(lambda body: body.update(members))


class Script:
    """Stands between the parties. A scene is for requests whose method and URL, without the query, end so.

    `then` scenes are played once each, in order; an `always` scene whenever there is none left; else the site answers.
    """

    def __init__(self, both: Pair) -> None:
        self._next: dict[str, list[Scene | None]] = {}
        self._always: dict[str, Scene] = {}
        both.wire.interpose = self

    def then(self, ending: str, *scenes: Scene | None) -> Script:
        """Play these, one for each request; None lets one pass."""
        self._next.setdefault(ending, []).extend(scenes)
        return self

    def always(self, ending: str, scene: Scene) -> Script:
        """Play this each time."""
        self._always[ending] = scene
        return self

    async def __call__(self, exchange: Exchange, onward: Onward) -> Response:
        scene = self._scene(exchange.place)
        if scene is None:
            return await onward()
        return scene if isinstance(scene, Response) else await scene(exchange, onward)

    def _scene(self, place: str) -> Scene | None:
        for ending, scenes in self._next.items():
            if scenes and place.endswith(ending):
                return scenes.pop(0)
        return next((scene for ending, scene in self._always.items() if place.endswith(ending)), None)


def signed(both: Pair, by: str = "agent") -> list[Exchange]:
    """The exchanges that carried a Session header."""
    return [one for one in both.wire.exchanges if one.by == by and "poppy-session" in one.request.headers]


def claims(exchange: Exchange) -> dict[str, Any]:
    """The claims of the Session JWT."""
    return _part(_jwt(exchange), 1)


def jose(exchange: Exchange) -> dict[str, Any]:
    """The JOSE header of the Session JWT."""
    return _part(_jwt(exchange), 0)


def delegation(exchange: Exchange) -> Mapping[str, Any]:
    """The claims of the delegation."""
    return _part(jose(exchange)["poppy_dlg"], 1)


async def replies(conversation: Conversation) -> list[str | None]:
    """What the Company says until it is idle."""
    return [
        event.message.text
        async for event in conversation.events()
        if isinstance(event, MessageAdded) and event.message.role is Role.COMPANY
    ]


def _jwt(exchange: Exchange) -> str:
    [jwt] = exchange.request.headers.all("poppy-session")
    return jwt


def _part(jwt: str, number: int) -> dict[str, Any]:
    return json.loads(decode(jwt.split(".")[number]))
