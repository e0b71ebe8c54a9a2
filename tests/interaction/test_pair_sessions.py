"""Users, agents and Sessions as Companies see them: who is the same, who is a stranger, and what says so."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import combinations

import pytest

from papaver.adapters.system import SystemIds
from papaver.personal_agent.ids import session_id
from papaver.protocol.errors import ConfigurationError, Refused
from papaver.testing.pair import Pair, echoing, pair
from papaver.values.base64url import decode
from tests.house.pairing import claims, delegation, jose, replies, signed

pytestmark = pytest.mark.anyio

SHOP, BANK = "shop.example", "bank.example"


async def visit(
    both: Pair, domain: str, user: str, *, agent_id: str | None = None, anonymous: bool = False
) -> Mapping[str, object]:
    """Ask a Company in a new Session, and close it; what all of its requests say of User, agent and Session (5.2)."""
    before = len(signed(both))
    shop = await both.agent.discover(domain)
    async with shop.session(user, agent_id=agent_id, anonymous=anonymous) as session:
        await replies(await session.ask("Hi"))
    names = ("iss", "aud", "sid", "sub", "agent_id")
    first, *others = [{name: claims(one).get(name) for name in names} for one in signed(both)[before:]]
    assert others
    assert [one for one in others if one != first] == []
    return first


@pytest.mark.requirement("5.1-01", "5.1-02")
async def test_a_user_is_the_same_at_one_company_and_a_stranger_at_the_next() -> None:
    """Over Sessions, months and restarts; two Companies have nothing in common by which they could match Users."""
    async with pair(echoing(SHOP), echoing(BANK)) as both:
        first = await visit(both, SHOP, "dana")
        both.clock.advance(90 * 86_400)
        await both.restart()
        assert (await visit(both, SHOP, "dana"))["sub"] == first["sub"]
        seen = {str(first["sub"])}
        for domain, user in ((BANK, "dana"), (SHOP, "sam"), (BANK, "sam")):
            seen.add(str((await visit(both, domain, user))["sub"]))
        assert len(seen) == 4
        assert all(len(decode(sub.removeprefix("usr_"))) == 16 for sub in seen)


@pytest.mark.requirement("5.1-03")
async def test_the_user_id_belongs_to_the_company_and_not_to_a_host() -> None:
    """The documents are on one host, the conversations on another: one User ID, one audience."""
    async with pair(echoing(SHOP, base_url="https://poppy.provider.example/shop-a")) as both:
        await visit(both, SHOP, "dana")
        assert {one.request.url.split("/")[2] for one in signed(both)} == {"poppy.provider.example"}
        assert {(claims(one)["aud"], claims(one)["sub"]) for one in signed(both)} == {
            (f"https://{SHOP}", claims(signed(both)[0])["sub"])
        }


@pytest.mark.requirement("5.1-04", "5.1-09")
@pytest.mark.parametrize("user", ["dana", "dana@example.com", "+39 06 555 0100"])
async def test_ids_are_drawn_and_derived_from_nothing(user: str) -> None:
    """Whoever the User and the agent are, the same draw of randomness gives the same IDs; nothing else goes in."""
    async with pair(echoing(SHOP)) as nobody, pair(echoing(SHOP)) as somebody:
        plain = await visit(nobody, SHOP, "u", agent_id="a")
        named = await visit(somebody, SHOP, user, agent_id=f"{user}'s travel agent")
        assert (named["sub"], named["agent_id"]) == (plain["sub"], plain["agent_id"])


@pytest.mark.requirement("5.1-10", "5.1-08", "5.1-13")
async def test_agent_ids_are_stable_and_different_for_each_company() -> None:
    """The User's two agents, at two Companies, twice; whoever has one agent names none."""
    async with pair(echoing(SHOP), echoing(BANK)) as both:
        seen = {
            (domain, agent): (await visit(both, domain, "dana", agent_id=agent))["agent_id"]
            for domain in (SHOP, BANK)
            for agent in ("travel", "shopping")
        }
        assert len(set(seen.values())) == 4
        assert (await visit(both, BANK, "dana", agent_id="travel"))["agent_id"] == seen[BANK, "travel"]
        assert (await visit(both, BANK, "dana"))["agent_id"] is None


@pytest.mark.requirement("5.1-12")
async def test_a_users_agents_share_their_conversations() -> None:
    """Who an Agent ID names is no owner: one begins, the other goes on."""
    async with pair() as both:
        shop = await both.agent.discover("example.com")
        conversation = await shop.session("dana", agent_id="travel").ask("Hi")
        await replies(conversation)
        other = await shop.session("dana", agent_id="shopping").resume(conversation.id)
        await other.say("It is me.")
        assert await replies(other) == ["You said: It is me."]
        assert len({claims(one)["agent_id"] for one in signed(both)}) == 2


@pytest.mark.requirement("5.1-14")
async def test_an_agent_of_another_operator_is_another_client() -> None:
    """It has a `client_id` of its own, and the same names mean nobody that the first one knows."""
    async with pair() as both:
        stranger = await both.another("https://travel.example/agent.json")
        ours = (await both.agent.discover("example.com")).session("dana", agent_id="travel")
        theirs = (await stranger.discover("example.com")).session("dana", agent_id="travel")
        conversation = await ours.ask("Hi")
        with pytest.raises(Refused) as caught:
            await replies(await theirs.resume(conversation.id))
        assert caught.value.code == "conversation_not_found"
        [one], [other] = signed(both)[:1], signed(both, "https://travel.example/agent.json")
        assert {claims(one)["iss"], claims(other)["iss"]} == {
            both.agent.identity.client_id,
            stranger.identity.client_id,
        }
        assert [name for name in ("sub", "agent_id", "sid") if claims(one)[name] == claims(other)[name]] == []


@pytest.mark.requirement("5.1-05", "5.1-06")
async def test_an_anonymous_user_is_new_each_time_and_leaves_nothing() -> None:
    """No User ID is used twice, none is in the vault at any time, and a closed Session is closed."""
    async with pair() as both:
        shop = await both.agent.discover("example.com")
        regular = (await visit(both, "example.com", "dana"))["sub"]
        rows = {kind: await both.vault.rows(kind) for kind in ("user-id", "delegated-key", "conversation", "outbox")}
        subs = {regular}
        for _ in range(2):
            session = shop.session("dana", anonymous=True)
            conversation = await session.ask("Hi")
            await replies(conversation)
            assert {kind: await both.vault.rows(kind) for kind in rows} == rows
            subs.add(session.user_id)
            await session.aclose()
            for again in (session.ask("Me again"), conversation.say("Me again"), conversation.close()):
                with pytest.raises(ConfigurationError) as caught:
                    await again
                assert caught.value.rule == "session.open"
        assert len(subs) == 3
        assert len({claims(one)["sub"] for one in signed(both)}) == 3
        assert [one.user for one in await both.agent.conversations()] == ["dana"]


@pytest.mark.requirement("5.1-15", "5.1-16")
async def test_who_has_which_id_is_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Local names are never on the wire; IDs are in no log, document or repr; a Company sees its own alone."""
    caplog.set_level(logging.DEBUG)
    async with pair(echoing(SHOP), echoing(BANK)) as both:
        seen = {
            domain: await visit(both, domain, "dana@example.com", agent_id="wardrobe adviser")
            for domain in (SHOP, BANK)
        }
        await both.agent.discover(SHOP, uncached=True)
        ids = {str(seen[domain][name]) for domain in seen for name in ("sub", "agent_id")}
        for one in both.wire.exchanges:
            text = repr((one.request.url, list(one.request.headers), one.request.body))
            assert "dana" not in text
            assert "wardrobe" not in text
        for here, there in ((SHOP, BANK), (BANK, SHOP)):
            told = " ".join(str(claims(one)) for one in signed(both) if here in one.request.url)
            assert str(seen[there]["sub"]) not in told
        published = b"".join(both.agent.documents().values()).decode()
        shown = f"{published} {both.agent!r} {await both.agent.companies()!r} {caplog.text}"
        assert [one for one in ids if one in shown] == []


@pytest.mark.requirement("5-02", "5-01")
async def test_a_user_may_have_several_sessions_at_once() -> None:
    """Each under a `sid` of its own and for the same User; either goes on, and ending one leaves the other."""
    async with pair() as both:
        shop = await both.agent.discover("example.com")
        one, other = shop.session("dana"), shop.session("dana")
        here, there = await one.ask("Returns"), await other.ask("Sizes")
        await replies(here)
        assert one.sid is not None
        assert (one.sid == other.sid, one.user_id == other.user_id) == (False, True)
        ended = one.sid
        await both.company.sessions.end(both.agent.identity.client_id, ended)
        await there.say("In blue.")
        await here.say("By post.")
        assert await replies(there) == ["You said: Sizes", "You said: In blue."]
        posts = [exchange for exchange in signed(both) if exchange.request.method == "POST"]
        assert [claims(exchange)["sid"] == ended for exchange in posts].count(True) == 2
        assert one.sid != ended


@pytest.mark.requirement("5.2-10", "5.2-11")
async def test_a_sid_is_random_and_never_used_again() -> None:
    """16 octets of the system's randomness; no two Sessions share one, at one Company or at two."""
    ids = SystemIds()
    drawn = {session_id(ids) for _ in range(100_000)}
    assert len(drawn) == 100_000
    assert {len(decode(sid)) for sid in list(drawn)[:100]} == {16}
    async with pair(echoing(SHOP), echoing(BANK)) as both:
        sids = [(await visit(both, domain, user))["sid"] for domain in (SHOP, BANK) for user in ("dana", "sam") * 3]
        assert len(set(sids)) == 12


@pytest.mark.requirement("5.2-17", "5.2-05")
async def test_each_request_is_signed_for_itself() -> None:
    """Every `jti` is new and long; the JWT of one request is no other's, a repeated one included."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        for number in range(20):
            await conversation.say(str(number))
        made = [claims(one)["jti"] for one in signed(both)]
        assert len(made) == len(set(made)) > 20
        assert {len(decode(jti)) for jti in made} == {16}
        assert len({one.request.headers.first("poppy-session") for one in signed(both)}) == len(made)
        for one in signed(both):
            assert (claims(one)["htm"], claims(one)["htu"]) == tuple(one.place.split(" "))


@pytest.mark.requirement("5.2-47", "5.2-22", "5.2-29")
async def test_a_delegated_key_signs_for_one_user_id_and_is_no_published_key() -> None:
    """Two Users, two Companies, an anonymous one: no two share a key or a delegation; `cnf.jwk` is what signed."""
    async with pair(echoing(SHOP), echoing(BANK)) as both:
        for domain in (SHOP, BANK):
            for user, anonymous in (("dana", False), ("sam", False), ("dana", True), ("dana", False)):
                await visit(both, domain, user, anonymous=anonymous)
        published = {key.kid for key in both.keys.public_keys}
        used: dict[object, set[tuple[str, str]]] = {}
        for one in signed(both):
            given = delegation(one)
            assert sorted(given["cnf"]["jwk"]) == ["crv", "kty", "x", "y"]
            assert jose(one)["kid"] not in published
            used.setdefault(claims(one)["sub"], set()).add((jose(one)["kid"], given["jti"]))
        assert len(used) == 6
        assert {len(keys) for keys in used.values()} == {1}
        for mine, other in combinations(used.values(), 2):
            for here, there in zip(min(mine), min(other), strict=True):
                assert here != there


@pytest.mark.requirement("5.2-45", "5.2-37")
async def test_a_new_delegated_key_changes_nothing_for_the_company() -> None:
    """The delegation runs out: another key signs, in the same Session and conversation."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        both.clock.advance(6 * 3600 - 30)
        await conversation.say("Still me.")
        assert await replies(conversation) == ["You said: Still me."]
        first, last = signed(both)[0], signed(both)[-1]
        assert (claims(first)["sid"], claims(first)["sub"]) == (claims(last)["sid"], claims(last)["sub"])
        assert jose(first)["kid"] != jose(last)["kid"]
        assert all(claims(one)["iat"] < delegation(one)["exp"] for one in signed(both))


async def test_a_removed_identity_key_vouches_for_nothing_any_more() -> None:
    """The operator rotates: the next request has a delegation of the new key, and the Company asks for the key set."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        before = jose(signed(both)[-1])["poppy_dlg"]
        both.keys.keys[:] = [type(both.keys.current).generate()]
        both.clock.advance(31)
        await both.restart()
        session = (await both.agent.discover("example.com")).session("dana")
        again = await session.resume(conversation.id)
        await again.say("Rotated.")
        assert await replies(again) == ["You said: Rotated."]
        assert jose(signed(both)[-1])["poppy_dlg"] != before
