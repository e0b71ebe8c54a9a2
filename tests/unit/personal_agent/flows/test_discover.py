"""Discovery as a flow: what is fetched, what is kept, and when an earlier answer still counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from papaver.personal_agent.flows.discover import discover
from papaver.protocol.dialect import Version
from papaver.protocol.discovery import Checks
from papaver.protocol.errors import DiscoveryFailed
from papaver.versions import DIALECTS
from papaver.web.messages import Headers, Response
from tests.house.agent_world import DOMAIN, ENDPOINT, ScriptedCompany, V, World, document, refused, unreachable

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
RESOURCE = f"https://{DOMAIN}/.well-known/oauth-protected-resource"
ISSUER = "https://auth.shop.example"
SERVER = f"{ISSUER}/.well-known/oauth-authorization-server"
NEWER = Version(V.major, V.minor + 1)


def with_issuer(issuer: str = ISSUER) -> ScriptedCompany:
    """A Company that has an issuer, confirmed from both sides."""
    company = ScriptedCompany(identifier=issuer)
    company.documents[RESOURCE] = {"resource": f"https://{DOMAIN}", "authorization_servers": [issuer]}
    company.documents[f"{issuer}/.well-known/oauth-authorization-server"] = {
        "issuer": issuer,
        "protected_resources": [f"https://{DOMAIN}"],
    }
    return company


def failure(world: World, **options: Any) -> DiscoveryFailed:
    """How discovery fails."""
    with pytest.raises(DiscoveryFailed) as caught:
        world.run(discover(world.setup(), DOMAIN, **options))
    return caught.value


@pytest.mark.requirement("3.2-09", "3.2-06", "3.4-17")
def test_a_company_without_an_issuer_is_its_domain() -> None:
    """A 404 for the resource metadata means that there is none; no fetch carries anything of a Session."""
    world = World()
    outcome = world.run(discover(world.setup(), "Shop.Example"))
    assert outcome.found.identifier == f"https://{DOMAIN}"
    assert outcome.found.issuer is None
    assert [request.url for request in world.fetched] == [POPPY, RESOURCE]
    names = {name for request in world.fetched for name, _ in request.headers}
    assert names == {"accept"}


@pytest.mark.requirement("3.2-13", "3-11", "3.2-36")
def test_an_issuer_is_found_and_confirmed() -> None:
    """The issuer that both sides name is the Company's identifier."""
    world = World(with_issuer())
    outcome = world.run(discover(world.setup(), DOMAIN))
    assert outcome.found.identifier == ISSUER
    assert [request.url for request in world.fetched] == [POPPY, RESOURCE, SERVER]


@pytest.mark.parametrize(
    ("served", "rule"),
    [
        pytest.param(500, "discovery.resource-status", id="b9-error-status"),
        pytest.param(unreachable(RESOURCE), "discovery.fetched", id="b9-timeout"),
        pytest.param(refused(RESOURCE), "discovery.fetched", id="b9-refused"),
        pytest.param({"resource": "https://other.example"}, "oauth.resource-is-requested", id="b9-invalid"),
        pytest.param(Response(200, Headers(), b"<html>"), "oauth.resource-metadata-shape", id="b9-no-json"),
    ],
)
@pytest.mark.requirement("3.2-11")
def test_b9_only_a_404_or_an_empty_list_falls_back(served: object, rule: str) -> None:
    """Whatever else comes in place of the resource metadata ends the discovery."""
    world = World()
    world.company.documents[RESOURCE] = served
    assert failure(world).rule == rule
    assert world.rows == {}


@pytest.mark.requirement("3.2-12")
@pytest.mark.parametrize("served", [404, 500, unreachable(RESOURCE)], ids=["404", "500", "timeout"])
def test_a_known_issuer_outlives_whatever_is_no_proof(served: object) -> None:
    """The issuer stays known, and the Company is not used under its domain (readings 10)."""
    world = World(with_issuer())
    world.run(discover(world.setup(), DOMAIN))
    world.company.documents[RESOURCE] = served
    failure(world, uncached=True)
    [row] = world.of_kind("company")
    assert row["issuer"] == ISSUER
    assert row["identifier"] == ISSUER


@pytest.mark.requirement("3.2-12", "3.2-21")
def test_a_company_may_prove_that_its_issuer_is_gone() -> None:
    """Valid metadata without a server is the proof; the identifier before is told."""
    world = World(with_issuer())
    world.run(discover(world.setup(), DOMAIN))
    world.company.documents[RESOURCE] = {"resource": f"https://{DOMAIN}"}
    outcome = world.run(discover(world.setup(), DOMAIN, uncached=True))
    assert outcome.found.identifier == f"https://{DOMAIN}"
    assert outcome.before == ISSUER
    assert world.run(discover(world.setup(), DOMAIN, uncached=True)).before is None


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        (f"{POPPY}?domain={DOMAIN}", "discovery.final-no-query"),
        (f"https://{DOMAIN}/uploads/poppy.json", "discovery.final-path"),
        (f"http://{DOMAIN}/.well-known/poppy.json", "discovery.hops-https"),
        ("https://other.example/.well-known/poppy.json", "discovery.domain-is-host"),
    ],
)
def test_b6_the_last_url_decides(url: str, rule: str) -> None:
    """A redirect to a query, another path, http or another host is refused."""
    world = World()
    world.company.documents[POPPY] = replace(ScriptedCompany().serve(POPPY), url=url)
    assert failure(world).rule == rule


@pytest.mark.requirement("3.2-12")
def test_an_issuer_is_known_of_the_host_that_serves() -> None:
    """A redirect from another domain does not make it unknown."""
    other = "www.shop.example"
    world = World(with_issuer())
    there = replace(ScriptedCompany().serve(POPPY), url=POPPY)
    world.company.documents[f"https://{other}/.well-known/poppy.json"] = there
    assert world.run(discover(world.setup(), other)).found.issuer == ISSUER
    world.company.documents[RESOURCE] = 404
    assert failure(world, uncached=True).rule == "discovery.known-issuer-survives"
    with pytest.raises(DiscoveryFailed):
        world.run(discover(world.setup(), other, uncached=True))


def test_b8_a_document_of_another_domain_is_refused() -> None:
    """A copied document names another host, and an issuer that does not list the domain may be another Company's."""
    world = World()
    world.company.documents[POPPY] = document("other.example")
    assert failure(world).rule == "discovery.domain-is-host"
    world = World(with_issuer())
    world.company.documents[SERVER] = {"issuer": ISSUER, "protected_resources": ["https://other.example"]}
    assert failure(world).rule == "oauth.issuer-lists-resource"


def test_documents_are_fetched_again_when_they_are_stale() -> None:
    """What a Company's answers say counts, within our limits; what could not be kept is asked for each time."""
    world = World()
    fresh = Headers([("Cache-Control", "max-age=60")])
    world.company.documents[POPPY] = replace(ScriptedCompany().serve(POPPY), headers=fresh)
    world.run(discover(world.setup(), DOMAIN))
    world.fetched.clear()
    world.clock.advance(59)
    world.run(discover(world.setup(), DOMAIN))
    assert [request.url for request in world.fetched] == [RESOURCE]
    world.fetched.clear()
    world.clock.advance(2)
    world.run(discover(world.setup(), DOMAIN))
    assert [request.url for request in world.fetched] == [POPPY, RESOURCE]


def test_nothing_is_written_when_everything_was_fresh() -> None:
    """A discovery from kept documents alone makes the checks and changes nothing."""
    world = World(with_issuer())
    world.run(discover(world.setup(), DOMAIN))
    before = dict(world.rows)
    world.fetched.clear()
    checks = Checks()
    world.clock.advance(10)
    world.run(discover(world.setup(), DOMAIN, checks=checks))
    assert world.fetched == []
    assert world.rows == before
    assert "discovery.domain-is-host" in {check.rule for check in checks.made}


def test_uncached_asks_past_every_cache() -> None:
    """Each request says no-cache, and no kept document is used."""
    world = World(with_issuer())
    world.run(discover(world.setup(), DOMAIN))
    world.fetched.clear()
    world.run(discover(world.setup(), DOMAIN, uncached=True))
    assert [request.headers.first("cache-control") for request in world.fetched] == ["no-cache"] * 3


def test_a_body_that_is_no_text_is_not_kept_as_something_else() -> None:
    """Octets that are not UTF-8 are refused, and nothing of them is stored."""
    world = World()
    world.company.documents[POPPY] = Response(200, Headers(), b'{"protocol_version":"\xff"}')
    assert failure(world).rule == "discovery.document-json"
    assert world.rows == {}


def test_a_domain_that_is_none_is_never_fetched() -> None:
    """A URL, a port or an address is no domain (readings 13)."""
    world = World()
    for text in ("https://shop.example", "shop.example:443", "127.0.0.1", ""):
        with pytest.raises(DiscoveryFailed) as caught:
            world.run(discover(world.setup(), text))
        assert caught.value.rule == "discovery.domain-name"
    assert world.fetched == []


def test_an_unreachable_document_says_why() -> None:
    """The rule of the fetcher is shown; its private detail stays private."""
    world = World()
    world.company.documents[POPPY] = refused(POPPY)
    error = failure(world)
    assert error.rule == "discovery.fetched"
    assert "fetch.address-public" in error.found


class TestVersions:
    """A Personal Agent that speaks two versions (3.4)."""

    url = f"https://{DOMAIN}/poppy/newer.json"

    def world(self, **members: Any) -> World:
        """`poppy.json` is ours; the newer version, with another endpoint, has a document of its own."""
        world = World()
        world.dialects = {V: DIALECTS[V], NEWER: replace(DIALECTS[V], version=NEWER)}
        world.company.documents[POPPY] = document(supported_versions={str(NEWER): self.url})
        world.company.documents[self.url] = document(protocol_version=str(NEWER), **members)
        return world

    @pytest.mark.requirement("3.4-10", "3.4-05")
    def test_the_newest_shared_version_is_used(self) -> None:
        """Its document, from whatever path, is the one in use."""
        agent = {"protocols": [{"type": "poppy", "endpoint": f"{ENDPOINT}-2"}]}
        world = self.world(agent=agent)
        outcome = world.run(discover(world.setup(), DOMAIN))
        assert outcome.found.version == NEWER
        protocol = outcome.found.document.conversations()
        assert protocol is not None
        assert protocol.endpoint == f"{ENDPOINT}-2"

    @pytest.mark.requirement("3.4-03")
    @pytest.mark.parametrize("served", [Response(302), refused(url, "fetch.redirects"), 404], ids=["302", "hop", "404"])
    def test_a_version_that_cannot_be_had_is_left_out(self, served: object) -> None:
        """A redirect of a version's document is not followed; another version may do."""
        world = self.world()
        world.company.documents[self.url] = served
        outcome = world.run(discover(world.setup(), DOMAIN))
        assert outcome.found.version == V
        assert [check.rule for check in outcome.found.checks if not check.ok]

    def test_a_version_that_cannot_be_reached_ends_it(self) -> None:
        """A timeout is no reason for an older version."""
        world = self.world()
        world.company.documents[self.url] = unreachable(self.url)
        assert failure(world).rule == "discovery.fetched"

    @pytest.mark.requirement("3.4-11")
    def test_without_a_shared_version_no_document_is_used(self) -> None:
        """Nothing further is fetched, and nothing is kept."""
        world = World()
        world.company.documents[POPPY] = document(protocol_version="7.0")
        assert failure(world).rule == "version.newest-compatible"
        assert [request.url for request in world.fetched] == [POPPY]
        assert world.rows == {}
