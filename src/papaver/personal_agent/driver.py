"""Performs the effects of flows: the one place where a Personal Agent's flows meet vault, network and time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar, assert_never

from papaver.personal_agent.flows.effects import (
    Effect,
    Exclusive,
    Fetch,
    Flow,
    Keep,
    Load,
    LoadAll,
    Post,
    Send,
    Sign,
    Wait,
)
from papaver.ports.personal_agent import Poster, Vault
from papaver.ports.system import Clock, Fetcher, Ids
from papaver.values.errors import PapaverError
from papaver.values.secret import Secret
from papaver.web.messages import Response

__all__ = ["Ports", "Sender", "drive", "no_sender", "perform"]

T = TypeVar("T")

Sender = Callable[[Send], Awaitable[Response]]
"""Sends a signed request. Raises FetchFailed when no response could be had."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What a Personal Agent takes from the outside world. Without a `poster` nobody can sign in."""

    vault: Vault
    fetcher: Fetcher
    clock: Clock
    ids: Ids
    poster: Poster | None = None


async def no_sender(effect: Send) -> Response:
    """For flows that only read documents and the vault."""
    raise TypeError(f"this flow may not send {effect.request.method} {effect.request.url}")


async def drive(flow: Flow[T], ports: Ports, sender: Sender = no_sender) -> T:
    """Run a flow to its end and return its result. An effect's PapaverError is raised inside the flow."""
    found: list[object] = []  # empty whenever the flow runs: a row is a secret, and this frame is in tracebacks
    try:
        effect = next(flow)
        while True:
            try:
                found.append(await perform(effect, ports, sender))
            except PapaverError as error:
                effect = flow.throw(error)
            else:
                effect = flow.send(found.pop())
    except StopIteration as end:
        result_of: T = end.value
        return result_of
    finally:
        flow.close()


async def perform(effect: Effect, ports: Ports, sender: Sender) -> object:
    """Do what one effect asks for."""
    match effect:
        case Send():
            return await sender(effect)
        case Fetch(request=request, policy=policy):
            return await ports.fetcher.fetch(request.url, policy, request.headers)
        case Post():
            return await _posted(effect, ports)
        case Wait(seconds=seconds):
            return await ports.clock.sleep(seconds)
        case Load(kind=kind, key=key):
            return await ports.vault.load(kind, key)
        case LoadAll(kind=kind):
            return await ports.vault.rows(kind)
        case Keep(kind=kind, key=key, decide=decide):
            return await ports.vault.change(kind, key, decide)
        case Exclusive(name=name, flow=flow):
            async with ports.vault.exclusive(name):
                return await drive(flow, ports, sender)
        case Sign():
            return _signed(effect, ports)
        case _:
            assert_never(effect)


async def _posted(effect: Post, ports: Ports) -> Response:
    if ports.poster is None:
        raise TypeError("these ports have no poster, so nothing can be sent to an OAuth endpoint")
    return await ports.poster.post(effect.request, effect.seconds, effect.max_bytes)


def _signed(effect: Sign, ports: Ports) -> Secret:
    jwt = effect.signer.sign(
        sid=effect.sid,
        method=effect.method,
        url=effect.url,
        now=ports.clock.now() + effect.offset,
        jti=ports.ids.token(),
        agent_id=effect.agent_id,
        access_token=None if effect.access_token is None else effect.access_token.reveal(),
    )
    return Secret(jwt)
