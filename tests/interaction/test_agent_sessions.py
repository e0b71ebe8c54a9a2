"""Sessions of a Personal Agent: whose they are, what of them is kept, and what happens when the Company changes."""

from __future__ import annotations

import json

import pytest

from papaver.protocol.discovery import Checks
from papaver.protocol.errors import DiscoveryFailed, SignInNeeded
from papaver.protocol.terms import CompanyId
from papaver.testing.clock import SeededIds
from tests.house.agent_ports import MemoryVault
from tests.house.agent_scripted import scripted
from tests.house.agent_world import CLIENT_ID, DOMAIN, ENDPOINT, ScriptedCompany, V, answer, document, unreachable

pytestmark = pytest.mark.anyio

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
RESOURCE = f"https://{DOMAIN}/.well-known/oauth-protected-resource"
ISSUER = "https://auth.shop.example"


def with_issuer(company: ScriptedCompany) -> None:
    """From now on this Company has an issuer."""
    company.identifier = ISSUER
    company.documents[RESOURCE] = {"resource": f"https://{DOMAIN}", "authorization_servers": [ISSUER]}
    company.documents[f"{ISSUER}/.well-known/oauth-authorization-server"] = {
        "issuer": ISSUER,
        "protected_resources": [f"https://{DOMAIN}", "https://shop2.example"],
    }


@pytest.mark.requirement("5-02", "5.1-02", "5.2-11")
async def test_several_sessions_of_one_user() -> None:
    """Each has a `sid` of its own, and all have the User's one ID; nothing is sent before they are used."""
    async with scripted() as (agent, network):
        company = await agent.discover(DOMAIN)
        first, second = company.session(user="dana"), company.session(user="dana")
        assert (first.sid, first.user_id, first.agent_id, network.hops) == (None, None, None, [])
        await first.ask("One")
        await second.ask("Two")
        one, two = network.company.proven
        assert one.sid != two.sid
        assert one.user_id == two.user_id == first.user_id
        assert one.sid == first.sid


@pytest.mark.requirement("5.1-02", "5.2-11")
async def test_a_restart_keeps_the_user_id_and_no_session() -> None:
    """User ID and delegated key are in the vault; a `sid` is in nobody's."""
    vault = MemoryVault()
    async with scripted(vault=vault) as (agent, network):
        session = (await agent.discover(DOMAIN)).session("dana")
        await session.ask("One")
        sid = session.sid
        company = network.company
    assert sid is not None
    assert not any(sid.encode() in value for value in vault.stored.values())
    async with scripted(company, vault, ids=SeededIds("after the restart")) as (agent, _):
        await (await agent.discover(DOMAIN)).session("dana").ask("Two")
    one, two = company.proven
    assert (one.user_id, one.delegation.key.kid) == (two.user_id, two.delegation.key.kid)
    assert one.sid != two.sid


@pytest.mark.requirement("5.1-05", "5.1-06")
async def test_an_anonymous_session_leaves_nothing_behind() -> None:
    """A new User ID, Agent ID and key each time, in no vault, and never the User's own."""
    vault = MemoryVault()
    async with scripted(vault=vault) as (agent, network):
        company = await agent.discover(DOMAIN)
        await company.session("dana", agent_id="travel").ask("As myself")
        kept = dict(vault.stored)
        for _ in range(2):
            async with company.session("dana", agent_id="travel", anonymous=True) as session:
                assert session.anonymous
                conversation = await session.ask("As nobody")
                network.company.say(conversation.id, "Hello, stranger")
                assert [event async for event in conversation.events()]
        known, first, second = network.company.proven[0], network.company.proven[1], network.company.proven[3]
        assert len({known.user_id, first.user_id, second.user_id}) == 3
        assert len({known.agent_id, first.agent_id, second.agent_id}) == 3
        assert len({one.delegation.jti for one in (known, first, second)}) == 3
        assert all("authorization" not in request.headers for request in network.company.requests)
        assert vault.stored == kept
        assert len(await agent.conversations()) == 1


async def test_what_is_known_of_a_company_protects_anonymous_sessions() -> None:
    """The issuer is known, so a 404 does not change the audience for them either (readings 10)."""
    async with scripted() as (agent, network):
        with_issuer(network.company)
        company = await agent.discover(DOMAIN)
        network.company.documents[RESOURCE] = 404
        session = company.session("dana", anonymous=True)
        network.company.script = [answer(400, {"error": "version_unsupported"})]
        with pytest.raises(DiscoveryFailed) as caught:
            await session.ask("Hello")
        assert caught.value.rule == "discovery.known-issuer-survives"


@pytest.mark.requirement("3.2-21", "5.1-03")
async def test_another_identifier_means_other_ids(caplog: pytest.LogCaptureFixture) -> None:
    """The Company gets an issuer: User IDs, Agent IDs, keys and Sessions are new, and the change is told."""
    async with scripted() as (agent, network):
        before = await agent.discover(DOMAIN)
        await before.session("dana", agent_id="travel").ask("One")
        with_issuer(network.company)
        after = await agent.discover(DOMAIN, uncached=True)
        assert (after.identifier, after.identifier_before) == (ISSUER, f"https://{DOMAIN}")
        assert "another Company now" in caplog.text
        await after.session("dana", agent_id="travel").ask("Two")
        one, two = network.company.proven
        assert (one.claims.aud, two.claims.aud) == (f"https://{DOMAIN}", ISSUER)
        assert one.user_id != two.user_id
        assert one.agent_id != two.agent_id
        assert one.delegation.key.kid != two.delegation.key.kid


@pytest.mark.requirement("5.1-03", "3.2-30")
async def test_two_domains_of_one_issuer_are_one_company() -> None:
    """The same User ID for both; each has the endpoints of its own document."""
    async with scripted() as (agent, network):
        with_issuer(network.company)
        other = "https://api.shop2.example/talk"
        protocols = [{"type": "poppy", "endpoint": other}]
        network.company.documents["https://shop2.example/.well-known/poppy.json"] = document(
            "shop2.example", agent={"protocols": protocols}
        )
        network.company.documents["https://shop2.example/.well-known/oauth-protected-resource"] = {
            "resource": "https://shop2.example",
            "authorization_servers": [ISSUER],
        }
        await (await agent.discover(DOMAIN)).session("dana").ask("One")
        network.company.script = [answer(201, {"conversation_id": "cnv_9", "status": "idle", "responder": "agent"})]
        await (await agent.discover("shop2.example")).session("dana").ask("Two")
        one, two = network.company.proven
        assert one.user_id == two.user_id
        assert [request.url for request in network.company.requests] == [ENDPOINT, other]
        assert len(await agent.companies()) == 2


@pytest.mark.requirement("5.6-03")
async def test_no_url_holds_a_secret() -> None:
    """Neither a JWT nor a User ID is in any URL."""
    async with scripted() as (agent, network):
        session = (await agent.discover(DOMAIN)).session("dana")
        conversation = await session.ask("Hello")
        network.company.say(conversation.id, "Hi")
        assert [event async for event in conversation.events()]
        for hop in network.hops:
            assert hop.headers["poppy-session"] not in str(hop.url)
            assert str(session.user_id) not in str(hop.url)
            assert "eyJ" not in str(hop.url)


async def test_what_a_status_command_needs() -> None:
    """Companies, conversations, keys and what is to be sent, without a secret."""
    async with scripted() as (agent, network):
        session = (await agent.discover(DOMAIN)).session("dana")
        await session.ask("Hello")
        [company] = await agent.companies()
        assert (company.domain, company.name, company.issuer) == (DOMAIN, "Shop", None)
        assert company.version == str(V)
        [key] = await agent.delegated_keys()
        assert (key.company, key.user_id) == (CompanyId(f"https://{DOMAIN}"), session.user_id)
        assert key.expires_at == network.clock.now() + 6 * 3600
        [conversation] = await agent.conversations(user="dana")
        assert (conversation.conversation_id, conversation.status) == ("cnv_1", "working")
        assert list(agent.documents()) == [CLIENT_ID, "https://agent.example/jwks.json"]


async def test_a_company_describes_itself() -> None:
    """The discovered Company is a view of its document, and of each check that was made."""
    async with scripted() as (agent, network):
        network.company.documents[POPPY] = document(feedback={"endpoint": "https://shop.example/feedback"})
        checks = Checks()
        company = await agent.discover(DOMAIN, checks=checks)
        assert company.document.feedback == "https://shop.example/feedback"
        assert (company.domain, company.name, company.issuer) == (DOMAIN, "Shop", None)
        assert company.version == V
        assert company.identifier_before is None
        assert company.checks == checks.made
        assert repr(company) == f"DiscoveredCompany({DOMAIN!r}, 'https://{DOMAIN}', {V})"
        network.company.documents[POPPY] = unreachable(POPPY)
        failed = Checks()
        with pytest.raises(DiscoveryFailed):
            await agent.discover(DOMAIN, uncached=True, checks=failed)


async def test_an_account_that_is_needed_is_asked_for() -> None:
    """A challenge names the scopes; nothing is sent again."""
    async with scripted() as (agent, network):
        session = (await agent.discover(DOMAIN)).session("dana")
        network.company.script = [answer(401, None, WWW_Authenticate='Bearer scope="orders:read"')]
        with pytest.raises(SignInNeeded) as caught:
            await session.ask("Hello")
        assert caught.value.scope == "orders:read"
        assert len(network.hops) == 1


@pytest.mark.requirement("8.11-07", "8.11-08")
async def test_an_accepted_message_is_not_sent_again_for_its_challenge() -> None:
    """The challenge beside a 201 and the event are one need; the event tells of it (8.11)."""
    async with scripted() as (agent, network):
        session = (await agent.discover(DOMAIN)).session("dana")
        needed = {"id": "evt_2", "type": "authorization", "created_at": "2026-10-02T00:13:20Z"}
        body = {"conversation_id": "cnv_1", "has_more": False, "status": "idle", "responder": "agent"}
        events = [{**needed, "error": "insufficient_scope", "scope": "orders:read"}]
        challenge = 'Bearer error="insufficient_scope", scope="orders:read"'
        network.company.script = [
            answer(201, {**body, "events": events, "cursor": "evt_2"}, WWW_Authenticate=challenge)
        ]
        conversation = await session.ask("My order?", wait=5)
        [event] = [one async for one in conversation.events()]
        assert getattr(event, "scope", None) == "orders:read"
        assert [json.loads(hop.content)["message"]["text"] for hop in network.hops] == ["My order?"]


async def test_sessions_of_different_versions_do_not_mix() -> None:
    """A Session keeps its version to the end, while a later one begins with what was found meanwhile (3.4)."""
    async with scripted() as (agent, network):
        company = await agent.discover(DOMAIN)
        await company.session("dana").ask("One")
        again = await agent.discover(DOMAIN, uncached=True)
        await again.session("dana").ask("Two")
        assert {hop.headers["poppy-version"] for hop in network.hops} == {str(V)}
