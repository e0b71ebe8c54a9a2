"""Discovery between a real Company and a real Personal Agent: for whom a document speaks, what is asked after it."""

from __future__ import annotations

import pytest

from papaver.personal_agent import NotOffered
from papaver.ports.system import FetchFailed
from papaver.protocol.errors import DiscoveryFailed, NotADestination, Refused
from papaver.stores.memory import MemoryStore
from papaver.testing.pair import echoing, pair
from papaver.testing.wire import Exchange, Lost, Onward
from papaver.web.messages import Response
from tests.house.pairing import POPPY_JSON, RESOURCE, Script, changed, claims, replies, signed, told, with_members

pytestmark = pytest.mark.anyio

ISSUER = "https://auth.example.com"
SERVER = "/.well-known/oauth-authorization-server"


def resource(*servers: str, domain: str = "example.com") -> Response:
    """Protected resource metadata."""
    return told(200, {"resource": f"https://{domain}", "authorization_servers": list(servers)})


def server(*domains: str, **members: object) -> Response:
    """The issuer's metadata."""
    return told(
        200,
        {
            "issuer": ISSUER,
            "token_endpoint": f"{ISSUER}/token",
            "revocation_endpoint": f"{ISSUER}/revoke",
            "grant_types_supported": ["refresh_token"],
            "protected_resources": [f"https://{domain}" for domain in domains],
            **members,
        },
    )


async def nobody(exchange: Exchange) -> Response:
    """A site on which nothing is expected."""
    return told(404)


@pytest.mark.requirement("3-01", "3.2-02")
async def test_a_company_without_an_issuer_is_found_and_asked() -> None:
    """The document, the missing metadata, then a conversation: nothing of OAuth is needed."""
    async with pair() as both:
        shop = await both.agent.discover("example.com")
        assert (shop.name, shop.identifier, shop.issuer) == ("Example", "https://example.com", None)
        assert await replies(await shop.session("dana").ask("Hi")) == ["You said: Hi"]
        fetched = [one.place for one in both.wire.sent("agent", "example.com")]
        assert fetched == [f"GET https://example.com{POPPY_JSON}", f"GET https://example.com{RESOURCE}"]
        assert both.wire.exchanges[0].response is not None
        assert both.wire.exchanges[0].response.status == 200


@pytest.mark.requirement("3-02", "3-03", "3-08")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_the_well_known_url_may_redirect_to_another_host(status: int) -> None:
    """From www to the apex: the Company is the apex, and the metadata is the apex's."""
    async with pair() as both:

        async def www(exchange: Exchange) -> Response:
            return told(status, location=f"https://example.com{POPPY_JSON}")

        both.wire.sites["www.example.com"] = www
        shop = await both.agent.discover("www.example.com")
        assert (shop.identifier, shop.document.organization.domain) == ("https://example.com", "example.com")
        await replies(await shop.session("dana").ask("Hi"))
        assert {claims(one)["aud"] for one in signed(both)} == {"https://example.com"}
        assert len(both.wire.sent("agent", "www.example.com")) == 1


@pytest.mark.requirement("3-06", "3-07")
@pytest.mark.parametrize(
    ("location", "rule"),
    [
        ("https://example.com/uploads/poppy.json", "discovery.final-path"),
        (f"https://example.com{POPPY_JSON}/", "discovery.final-path"),
        (f"https://example.com{POPPY_JSON}?domain=www.example.com", "discovery.final-no-query"),
        (f"https://example.com{POPPY_JSON}?", "discovery.final-no-query"),
    ],
)
async def test_b6_a_redirect_to_another_path_or_query_speaks_for_nobody(location: str, rule: str) -> None:
    """Whoever can put a file onto a host, or echo a parameter, is not the Company."""
    async with pair() as both:

        async def anywhere(exchange: Exchange, onward: Onward) -> Response:
            if exchange.request.url == f"https://example.com{POPPY_JSON}":
                return told(302, location=location)
            return told(200, {"protocol_version": "0.4", "organization": {"name": "Evil", "domain": "example.com"}})

        both.wire.interpose = anywhere
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover("example.com")
        assert caught.value.rule == rule
        assert len(both.wire.exchanges) == 2


@pytest.mark.requirement("3-04")
async def test_b6_a_redirect_over_http_is_not_taken() -> None:
    """The hop is refused before it is asked."""
    async with pair() as both:
        Script(both).always(POPPY_JSON, told(301, location=f"http://example.com{POPPY_JSON}"))
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover("example.com")
        assert caught.value.rule == "discovery.fetched"
        assert "web.https-only" in caught.value.found
        assert len(both.wire.exchanges) == 1


@pytest.mark.requirement("3-10")
async def test_b8_a_copied_document_speaks_for_nobody() -> None:
    """evil.example serves example.com's document: it is refused, and nothing else is asked."""
    async with pair() as both:

        async def copy(exchange: Exchange) -> Response:
            return told(200, await body())

        async def body() -> object:
            return both.company.offer.documents()[POPPY_JSON]

        both.wire.sites["evil.example"] = copy
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover("evil.example")
        assert (caught.value.rule, caught.value.found) == ("discovery.domain-is-host", "example.com")
        assert [one.request.url for one in both.wire.exchanges] == [f"https://evil.example{POPPY_JSON}"]


@pytest.mark.requirement("3-11", "3.2-37")
async def test_b8_an_issuer_that_does_not_list_the_domain_is_not_the_domains() -> None:
    """A domain claims the issuer of another Company; the issuer says nothing of it."""
    async with pair(echoing("evil.example")) as both:
        both.wire.sites["auth.example.com"] = nobody
        script = Script(both).always(RESOURCE, resource(ISSUER, domain="evil.example"))
        script.always(SERVER, server("example.com"))
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover("evil.example")
        assert caught.value.rule == "oauth.issuer-lists-resource"
        assert signed(both) == []


@pytest.mark.requirement("3.2-11")
@pytest.mark.parametrize(
    "answer",
    [
        told(500),
        told(403),
        told(302, location=f"https://example.com{POPPY_JSON}"),
        told(200, b"<html>"),
        told(200, {"resource": "https://example.com/"}),
        told(200, {"resource": "https://example.com", "authorization_servers": "none"}),
        None,
    ],
    ids=["500", "403", "redirect", "page", "other-resource", "no-list", "no-answer"],
)
async def test_b9_nothing_but_a_404_or_an_empty_list_makes_the_domain_the_company(answer: Response | None) -> None:
    """The Company may have an issuer that cannot be seen just now: no Session JWT goes out to the domain's name."""
    async with pair() as both:

        async def scene(exchange: Exchange, onward: Onward) -> Response:
            if answer is None:
                raise Lost
            return answer

        Script(both).always(RESOURCE, scene)
        with pytest.raises(DiscoveryFailed):
            await both.agent.discover("example.com")
        assert await both.agent.companies() == ()


@pytest.mark.requirement("3.2-12")
@pytest.mark.parametrize("asked", ["example.com", "www.example.com"])
async def test_a_known_issuer_survives_a_404_however_the_company_is_asked_for(asked: str) -> None:
    """What is known is known of the host that serves the document, whichever name led there."""
    async with pair() as both:
        both.wire.sites["auth.example.com"] = nobody

        async def www(exchange: Exchange) -> Response:
            return told(301, location=f"https://example.com{POPPY_JSON}")

        both.wire.sites["www.example.com"] = www
        script = Script(both).then(RESOURCE, resource(ISSUER)).always(SERVER, server("example.com"))
        assert (await both.agent.discover("example.com")).identifier == ISSUER
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover(asked, uncached=True)
        assert (caught.value.rule, caught.value.found) == ("discovery.known-issuer-survives", "HTTP 404")
        script.then(RESOURCE, told(503))
        with pytest.raises(DiscoveryFailed):
            await both.agent.discover(asked, uncached=True)
        script.then(RESOURCE, resource())
        shop = await both.agent.discover(asked, uncached=True)
        assert shop.identifier == "https://example.com"


@pytest.mark.requirement("3.2-12")
async def test_an_issuer_that_was_found_by_a_redirect_is_known_of_the_host_that_served() -> None:
    """The other way round: first through www, then the apex itself."""
    async with pair() as both:
        both.wire.sites["auth.example.com"] = nobody

        async def www(exchange: Exchange) -> Response:
            return told(301, location=f"https://example.com{POPPY_JSON}")

        both.wire.sites["www.example.com"] = www
        Script(both).then(RESOURCE, resource(ISSUER)).always(SERVER, server("example.com"))
        assert (await both.agent.discover("www.example.com")).identifier == ISSUER
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover("example.com")
        assert caught.value.rule == "discovery.known-issuer-survives"


@pytest.mark.requirement("3.2-21")
async def test_a_changed_identifier_means_new_ids_and_sessions() -> None:
    """The Company gets an issuer: the User is a stranger there, and conversations stay behind."""
    async with pair() as both:
        both.wire.sites["auth.example.com"] = nobody
        before = await both.agent.discover("example.com")
        session = before.session("dana", agent_id="shopper")
        conversation = await session.ask("Hi")
        await replies(conversation)
        old = claims(signed(both)[-1])
        Script(both).always(RESOURCE, resource(ISSUER)).always(SERVER, server("example.com"))
        after = await both.agent.discover("example.com", uncached=True)
        assert (after.identifier, after.identifier_before) == (ISSUER, "https://example.com")
        other = after.session("dana", agent_id="shopper")
        resumed = await other.resume(conversation.id)
        with pytest.raises(Refused) as caught:
            await resumed.say("Still there?")
        assert caught.value.code == "invalid_session"  # this Company verifies for its domain alone
        new = claims(signed(both)[-1])
        assert new["aud"] == ISSUER
        assert [name for name in ("sub", "agent_id", "sid") if old[name] == new[name]] == []
        assert resumed.cursor is None


@pytest.mark.requirement("3.2-22")
async def test_what_was_said_under_an_old_identifier_stays_there() -> None:
    """A Company moves to another domain, with the store that it had: the conversation is not found."""
    store = MemoryStore()
    async with pair(echoing("old.example", store=store)) as both:
        conversation = await (await both.agent.discover("old.example")).session("dana").ask("Hi")
        await replies(conversation)
        await both.run(echoing("example.com", store=store))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused) as caught:
            await replies(await session.resume(conversation.id))
        assert caught.value.code == "conversation_not_found"


@pytest.mark.requirement("3.2-24", "3.2-30")
async def test_domains_of_one_issuer_are_one_company() -> None:
    """The User is the same on both, and each domain's own document says where to go."""
    async with pair(echoing("example.com"), echoing("example.org")) as both:
        both.wire.sites["auth.example.com"] = nobody
        script = Script(both).always(SERVER, server("example.com", "example.org"))
        script.always(f"example.com{RESOURCE}", resource(ISSUER))
        script.always(f"example.org{RESOURCE}", resource(ISSUER, domain="example.org"))
        users: list[str] = []
        for domain in ("example.com", "example.org"):
            session = (await both.agent.discover(domain)).session("dana")
            with pytest.raises(Refused, match="400"):
                await session.ask("Hi")
            last = signed(both)[-1]
            assert last.request.url == f"https://api.{domain}/poppy/conversations"
            assert claims(last)["aud"] == ISSUER
            users.append(claims(last)["sub"])
        assert len(set(users)) == 1


@pytest.mark.requirement("3-13")
async def test_urls_over_http_are_never_asked() -> None:
    """The document is used for what is https in it; its http endpoints are not there."""
    async with pair() as both:
        entry = {"type": "poppy", "endpoint": "http://api.example.com/poppy/conversations"}
        apis = [
            {"type": "mcp", "url": f"{scheme}://mcp.example.com/mcp", "description": "Products"}
            for scheme in ("http", "https")
        ]
        feedback = {"endpoint": "http://api.example.com/feedback"}
        Script(both).always(POPPY_JSON, with_members(agent={"protocols": [entry]}, apis=apis, feedback=feedback))
        shop = await both.agent.discover("example.com")
        assert [api.url for api in shop.document.apis] == ["https://mcp.example.com/mcp"]
        with pytest.raises(NotOffered):
            await shop.session("dana").ask("Hi")
        for url in ("http://mcp.example.com/mcp", feedback["endpoint"]):
            with pytest.raises(NotADestination):
                await shop.session("dana").http.post(url)
        assert len(both.wire.exchanges) == 2


@pytest.mark.requirement("3-20")
@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1", "fc00::1"])
async def test_an_endpoint_at_a_private_address_is_never_connected_to(address: str) -> None:
    """A Company cannot aim a Personal Agent at somebody's internal server; the message does not stay in the outbox."""
    async with pair() as both:
        both.wire.addresses["api.example.com"] = ["93.184.216.34", address]
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(FetchFailed) as caught:
            await session.ask("Hi")
        assert caught.value.rule == "fetch.address-public"
        assert both.wire.sent("agent", "api.example.com") == []


@pytest.mark.requirement("3.4-17", "5.2-04")
async def test_documents_are_fetched_without_any_session_header() -> None:
    """Discovery and the Company's look at the agent carry no header of the protocol, and nothing of the User."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        await replies(await session.ask("Hi"))
        await both.agent.discover("example.com", uncached=True)
        documents = [one for one in both.wire.exchanges if "/poppy/conversations" not in one.request.url]
        assert len(documents) == 6
        for one in documents:
            names = {name for name, _ in one.request.headers}
            assert not names & {"poppy-session", "poppy-version", "poppy-extensions", "authorization", "cookie"}


@pytest.mark.requirement("5.2-03", "5.2-04")
async def test_nothing_on_the_same_host_is_a_destination_by_itself() -> None:
    """Refused before anything is signed or sent."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        for url in (
            "https://api.example.com/poppy",
            "https://api.example.com/poppy/conversations/../orders",
            "https://example.com/.well-known/poppy.json",
            "https://auth.example.com/token",
            "http://api.example.com/poppy/conversations",
        ):
            with pytest.raises(NotADestination) as caught:
                await session.http.post(url)
            assert caught.value.rule == "destination.listed"
        assert signed(both) == []


@pytest.mark.requirement("3-15")
async def test_a_link_to_a_page_is_content_whatever_its_scheme() -> None:
    """The rule about https is for the protocol's URLs; what a message says about a website is not judged."""
    async with pair() as both:
        shop = await both.agent.discover("example.com")
        text = "See http://old.example.com/sizes please."
        assert await replies(await shop.session("dana").ask(text)) == [f"You said: {text}"]


@pytest.mark.requirement("3.3-09", "3.3-08")
async def test_unknown_members_and_extensions_are_passed_over() -> None:
    """A document of a later day is used for what is known of it."""

    def later(document: dict[str, object]) -> None:
        document["weather"] = {"rain": True}
        document["extensions"] = {"example.com/gift-wrap": [{"version": "9", "endpoint": "https://g.example.com"}]}

    async with pair() as both:
        Script(both).always(POPPY_JSON, changed(later))
        shop = await both.agent.discover("example.com")
        assert await replies(await shop.session("dana").ask("Hi")) == ["You said: Hi"]
        assert all("poppy-extensions" not in one.request.headers for one in signed(both))
