"""No secret of an account is seen anywhere: sign-in, refresh, step-up, device, sign-out, and each of them failing.

Planted are whatever went over the wire or into the vault: codes, verifiers, device codes, access and refresh tokens,
client assertions, DPoP proofs and the DPoP keys. Looked at is what anybody could see on the Personal Agent's side.
"""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any, cast
from urllib.parse import parse_qs

import pytest

from papaver.personal_agent.flows.effects import Post, Send, SessionFields
from papaver.personal_agent.records import AccountRow, HeldTokenRow, SignInRow, read_row
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn
from papaver.testing.pair import CALLBACK
from papaver.testing.wire import Exchange, Onward
from papaver.web.messages import Headers, Response
from tests.house.canary import Seen, logged
from tests.interaction.test_pair_sign_in import ISSUER, Shop, shop

pytestmark = pytest.mark.anyio

SENT = ("code", "code_verifier", "device_code", "refresh_token", "token", "client_assertion")
RECEIVED = ("access_token", "refresh_token", "device_code")


def planted(world: Shop, exchanges: list[Exchange]) -> set[str]:
    """Every secret of the account that went over the wire, with the parts of JWTs that sign."""
    found: set[str] = set()
    for one in exchanges:
        for name in ("authorization", "dpop"):
            found.update(value.rpartition(" ")[2] for value in one.request.headers.all(name))
        if one.request.url.startswith(ISSUER):
            form = parse_qs(one.request.body.decode())
            found.update(form[name][0] for name in SENT if name in form)
            try:
                answer: Any = json.loads(b"" if one.response is None else one.response.body)
            except ValueError:
                continue
            if isinstance(answer, dict):
                members = cast("dict[str, str]", answer)
                found.update(members[name] for name in RECEIVED if name in members)
    return found | {secret.rpartition(".")[2] for secret in found if secret.count(".") == 2}


async def failed(seen: Seen, name: str, doing: Any) -> None:
    """Something that has to fail."""
    try:
        await doing
    except Exception as failure:  # noqa: BLE001 - whatever it is, it is looked at
        seen.failed(name, failure)
    else:
        raise AssertionError(f"{name} did not fail")


def interposed(answers: dict[str, Response]) -> Any:
    """Stands in for the issuer once for each path."""

    async def between(exchange: Exchange, onward: Onward) -> Response:
        instead = answers.pop(exchange.place.rpartition("/")[2], None) if exchange.by == "agent" else None
        return await onward() if instead is None else instead

    return between


def said(status: int, **members: object) -> Response:
    return Response(status, Headers([("content-type", "application/json")]), json.dumps(members).encode())


async def begun(world: Shop, *scopes: str) -> DirectSignIn:
    sign_in = await world.session.sign_in(*scopes)
    assert isinstance(sign_in, DirectSignIn)
    return sign_in


async def journey(world: Shop, seen: Seen) -> set[str]:
    """Everything that works, and everything that does not → the secrets that only the vault and the browser had."""
    secrets: set[str] = set()
    for name, answer in {
        "refused code": said(400, error="invalid_grant", error_description="no"),
        "server error": said(500),
        "redirect": Response(307, Headers([("location", "https://evil.example/")])),
        "no JSON": Response(200, body=b"<html>"),
        "too much": said(200, access_token="canary-of-an-answer", token_type="Bearer", scope="orders:read more"),
        "no refresh token": said(200, access_token="canary-of-another-answer", token_type="Bearer"),
        "odd type": said(
            200, access_token="canary-of-a-third-answer", token_type="mac", refresh_token="canary-of-a-refresh-token"
        ),
    }.items():
        sign_in = await begun(world, "orders:read")
        callback = await world.dana.approve(sign_in.url)
        secrets.add(parse_qs(callback.partition("?")[2])["code"][0])
        world.both.wire.interpose = interposed({"token": answer})
        await failed(seen, name, sign_in.complete(callback))
    for name, change in {"wrong iss": "iss=https%3A%2F%2Fevil.example", "twice": "code=again"}.items():
        sign_in = await begun(world, "orders:read")
        callback = await world.dana.approve(sign_in.url)
        secrets.add(parse_qs(callback.partition("?")[2])["code"][0])
        await failed(seen, name, world.both.agent.complete(f"{callback.partition('&iss=')[0]}&{change}"))
    await failed(seen, "unknown", world.both.agent.complete(f"{CALLBACK}?state=x&code=canary-of-an-unknown-code"))
    world.both.wire.interpose = None
    seen.note("signed in", await world.sign_in("orders:read"))
    conversation = await world.session.ask("Where is my order?")
    seen.note("events", [event async for event in conversation.events()])
    world.both.clock.advance(3600)
    world.both.wire.interpose = interposed({"token": said(401, error="invalid_client")})
    await failed(seen, "refresh", conversation.say("And now?"))
    world.both.wire.interpose = None
    await conversation.say("And now?")
    response = await world.session.http.get(f"https://api.example.com/poppy/conversations/{conversation.id}/events")
    for what in (response, response.request, response.headers, response.request.headers):
        seen.note(f"http {type(what).__name__}", what)
    device = await world.session.sign_in("orders:write", device=True)
    assert isinstance(device, DeviceSignIn)
    seen.note("device", device)
    waiting = asyncio.create_task(device.wait())
    await world.dana.type_code(device.verification_uri, device.user_code, ["orders:read", "orders:write"])
    seen.note("waited", await waiting)
    link = said(
        200, device_code="canary-device-code", user_code="A", verification_uri="https://evil.example", expires_in=9
    )
    world.both.wire.interpose = interposed({"device_authorization": link})
    await failed(seen, "link", world.session.sign_in("orders:read", device=True))
    world.both.wire.interpose = None
    pending = await begun(world, "orders:read")
    seen.note("pending", pending)
    for kind, row in (("account", AccountRow), ("sign-in", SignInRow)):
        for _, value in await world.both.vault.rows(kind):
            kept: Any = read_row(row, value)
            seen.note(kind, kept)
            secrets |= {kept.dpop_jwk["d"]} | ({kept.verifier} if kind == "sign-in" else {kept.refresh_token})
    for what in (world.both.agent, world.session, world.session.live, await world.both.agent.accounts(), conversation):
        seen.note(type(what).__name__, what)
    for what in gc.get_objects():
        if isinstance(what, Post | Send | SessionFields | AccountRow | HeldTokenRow | SignInRow):
            seen.note(type(what).__name__, what)
    seen.note("signed out", await world.session.sign_out())
    return secrets


async def test_no_secret_of_an_account_is_seen_anywhere(capfd: pytest.CaptureFixture[str]) -> None:
    """Text, repr, pickle, traceback with local variables, every log record of every library, both outputs."""
    with logged() as (seen, handler):
        async with shop() as world:
            secrets = await journey(world, seen)
            secrets |= planted(world, world.both.wire.sent("agent"))
    output = capfd.readouterr()
    seen.pieces["stdout"], seen.pieces["stderr"] = output.out.encode(), output.err.encode()
    assert len(secrets) > 30
    assert [secret for secret in secrets if len(secret) < 16] == []
    assert "papaver" in handler.names
    leaks = seen.leaks(secret.encode() for secret in secrets)
    assert leaks == []
