"""A Company that publishes as none may: documents that are huge, broken, moved, hostile, or that change their mind."""

from __future__ import annotations

import gzip
import json

import pytest

from papaver.personal_agent import AgentLimits, NotOffered
from papaver.protocol.errors import DiscoveryFailed, Refused
from papaver.testing.pair import Pair, pair
from papaver.testing.wire import Exchange, Onward
from papaver.web.messages import Response
from tests.house.pairing import (
    POPPY_JSON,
    RESOURCE,
    Scene,
    Script,
    claims,
    lose_request,
    replies,
    signed,
    told,
    with_members,
)

pytestmark = pytest.mark.anyio

HERE = f"https://example.com{POPPY_JSON}"
DOMAIN = {"name": "Example", "domain": "example.com"}


def document(**members: object) -> dict[str, object]:
    return {
        "protocol_version": "0.4",
        "organization": DOMAIN,
        "agent": {"protocols": [{"type": "poppy", "endpoint": "https://api.example.com/poppy/conversations"}]},
        **members,
    }


async def undiscovered(both: Pair, scene: Scene, place: str = POPPY_JSON) -> DiscoveryFailed:
    """The error of a discovery in which this place is answered so; nothing of it is kept, nothing was signed."""
    Script(both).always(place, scene)
    with pytest.raises(DiscoveryFailed) as caught:
        await both.agent.discover("example.com")
    assert await both.agent.companies() == ()
    assert signed(both) == []
    return caught.value


TWICE = json.dumps(document()).replace('"domain"', '"domain": "x.example", "domain"')
UNREADABLE: list[tuple[str, Scene, str]] = [
    ("large", told(200, {"padding": "x" * 102_401}), "discovery.fetched"),
    ("a bomb", told(200, gzip.compress(b"x" * 10_000_000), content_encoding="gzip"), "discovery.fetched"),
    ("another coding", told(200, b"{}", content_encoding="zstd"), "discovery.fetched"),
    ("a page", told(200, b"<html>"), "discovery.document-json"),
    ("empty", told(200, b""), "discovery.document-json"),
    ("a list", told(200, [document()]), "discovery.document-json"),
    ("a domain twice", told(200, TWICE.encode()), "discovery.document-json"),
    ("a well", told(200, b'{"a":' * 1000 + b"1" + b"}" * 1000), "discovery.document-json"),
    ("no text", told(200, json.dumps(document()).encode("utf-16")), "discovery.document-json"),
    ("not there", told(404), "discovery.document-served"),
    ("moved to nowhere", told(302), "discovery.fetched"),
    ("moved to itself", told(302, location=HERE), "discovery.fetched"),
    ("created", told(201, document()), "discovery.document-served"),
    ("not modified", told(304), "discovery.document-served"),
]  # fmt: skip


@pytest.mark.parametrize(("scene", "rule"), [case[1:] for case in UNREADABLE], ids=[case[0] for case in UNREADABLE])
async def test_a_document_that_cannot_be_read_is_none(scene: Scene, rule: str) -> None:
    """The rule, and a remedy for whoever has to correct it."""
    async with pair() as both:
        error = await undiscovered(both, scene)
        assert error.rule == rule
        assert error.remedy


WRONG: list[tuple[str, dict[str, object], str]] = [
    ("no version", {"protocol_version": None}, "document.protocol-version"),
    ("a version of no form", {"protocol_version": 0.4}, "document.protocol-version"),
    ("a version of nobody", {"protocol_version": "9.9"}, "version.newest-compatible"),
    ("another domain", {"organization": {**DOMAIN, "domain": "bank.example"}}, "discovery.domain-is-host"),
    ("a look-alike", {"organization": {**DOMAIN, "domain": "ex\u0430mple.com"}}, "discovery.domain-is-host"),
    ("a parent", {"organization": {**DOMAIN, "domain": "com"}}, "discovery.domain-is-host"),
    ("a port", {"organization": {**DOMAIN, "domain": "example.com:443"}}, "discovery.domain-is-host"),
    ("a dot", {"organization": {**DOMAIN, "domain": "example.com."}}, "discovery.domain-is-host"),
    ("sign-in without an issuer", {"auth": {"issuer": "https://auth.example.com"}}, "discovery.no-issuer-no-sign-in"),
    ("no channel", {"agent": None}, "document.one-channel"),
]


@pytest.mark.parametrize(("members", "rule"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
async def test_a_document_that_says_what_it_may_not_is_refused(members: dict[str, object], rule: str) -> None:
    """The rule says which clause; both values are told."""
    async with pair() as both:
        error = await undiscovered(both, told(200, document(**members)))
        assert error.rule == rule


@pytest.mark.parametrize(
    "location", ["https://10.0.0.1/", "https://localhost/", "https://user:pass@example.org/", "//["]
)
async def test_b13_a_redirect_to_an_inner_place_is_not_followed(location: str) -> None:
    """Named by an address, by a name that is nobody's, or by no URL at all."""
    async with pair() as both:
        both.wire.addresses["localhost"] = ["127.0.0.1"]
        error = await undiscovered(both, told(302, location=f"{location}.well-known/poppy.json"))
        assert error.rule == "discovery.fetched"
        assert len(both.wire.exchanges) == 1


async def test_redirects_have_an_end() -> None:
    """Five hops; the sixth is not asked."""
    async with pair() as both:
        hosts = [f"h{number}.example" for number in range(10)]
        both.wire.sites.update(dict.fromkeys(hosts, both.wire.sites["example.com"]))
        left = iter(hosts)

        async def further(exchange: Exchange, onward: Onward) -> Response:
            return told(302, location=f"https://{next(left)}{POPPY_JSON}")

        error = await undiscovered(both, further)
        assert "fetch.redirects" in error.found
        assert len(both.wire.exchanges) == 6


@pytest.mark.parametrize("place", [POPPY_JSON, RESOURCE])
@pytest.mark.parametrize(
    ("scene", "found"), [(lose_request, "no answer"), (told(200, b"x" * 200_000), "fetch.size")], ids=["lost", "large"]
)
async def test_a_certain_failure_and_a_passing_one_are_told_apart(place: str, scene: Scene, found: str) -> None:
    """What may pass says so; neither is a reason to fall back."""
    async with pair() as both:
        error = await undiscovered(both, scene, place)
        assert error.rule == "discovery.fetched"
        assert found in error.found


async def test_a_company_that_changes_its_mind_is_believed_when_it_is_asked_again() -> None:
    """The endpoint moves: an open Session goes on where it was, the next discovery knows better."""
    async with pair(limits=AgentLimits(document_fresh=0, document_fresh_most=0)) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        entry = {"type": "poppy", "endpoint": "https://moved.example.com/poppy/conversations"}
        both.wire.sites["moved.example.com"] = both.wire.sites["api.example.com"]
        Script(both).always(POPPY_JSON, with_members(agent={"protocols": [entry]}))
        other = (await both.agent.discover("example.com")).session("dana")
        await replies(conversation)
        with pytest.raises(Refused) as caught:
            await other.ask("Hi")
        assert caught.value.code == "invalid_session"
        assert {claims(one)["htu"].split("/")[2] for one in signed(both)} == {"api.example.com", "moved.example.com"}


async def test_documents_may_not_be_kept_for_ever() -> None:
    """A year, says the Company; an hour, says the agent."""

    async def for_a_year(exchange: Exchange, onward: Onward) -> Response:
        answer = await onward()
        return Response(answer.status, answer.headers.with_(("cache-control", "max-age=31536000")), answer.body)

    async with pair() as both:
        Script(both).always(POPPY_JSON, for_a_year)
        for seconds, fetched in ((0, 1), (3599, 1), (2, 2)):
            both.clock.advance(seconds)
            await both.agent.discover("example.com")
            assert len([one for one in both.wire.exchanges if one.request.url == HERE]) == fetched


@pytest.mark.requirement("8.1-02")
async def test_entries_that_cannot_be_used_are_passed_over() -> None:
    """Unknown types, other schemes, no endpoint: the first that is usable is used; without one there is no channel."""
    odd: list[object] = [
        {"type": "carrier-pigeon", "endpoint": "https://api.example.com/pigeons"},
        {"type": "poppy", "endpoint": "ftp://api.example.com/poppy"},
        {"type": "poppy"},
        {"type": "poppy", "endpoint": "https://user@api.example.com/poppy"},
    ]
    good = {"type": "poppy", "endpoint": "https://api.example.com/poppy/conversations", "access": "by-appointment"}
    async with pair() as both:
        script = Script(both).then(POPPY_JSON, with_members(agent={"protocols": [*odd, good]}))
        session = (await both.agent.discover("example.com")).session("dana")
        assert await replies(await session.ask("Hi")) == ["You said: Hi"]
        script.then(POPPY_JSON, with_members(agent={"protocols": odd[:1]}))
        with pytest.raises(NotOffered):
            await (await both.agent.discover("example.com", uncached=True)).session("dana").ask("Hi")


@pytest.mark.requirement("3.4-03", "3.4-04")
@pytest.mark.parametrize(
    ("scene", "rule"),
    [
        (told(302, location="https://example.com/elsewhere.json"), "version.newest-compatible"),
        (told(200, document(protocol_version="0.3")), "version.as-listed"),
        (told(200, document(supported_versions={"0.3": HERE})), "version.no-further-versions"),
        (told(200, document(organization={**DOMAIN, "domain": "bank.example"})), "discovery.domain-is-host"),
        (told(200, document(auth={"issuer": "https://auth.example.com"})), "discovery.no-issuer-no-sign-in"),
    ],
    ids=["redirect", "another-version", "a-chain", "another-domain", "another-issuer"],
)
async def test_a_versions_document_is_judged_like_the_first(scene: Scene, rule: str) -> None:
    """The preferred version is not ours; ours is listed, and what is there may not be used."""
    async with pair() as both:
        script = Script(both).always("/poppy-0.4.json", scene)
        listed = {"0.4": "https://example.com/poppy-0.4.json"}
        script.always(POPPY_JSON, with_members(protocol_version="0.9", supported_versions=listed))
        with pytest.raises(DiscoveryFailed) as caught:
            await both.agent.discover("example.com")
        assert caught.value.rule == rule
        assert not [one for one in both.wire.exchanges if one.request.url.endswith("elsewhere.json")]


async def test_a_versions_document_on_another_host_is_not_asked_for() -> None:
    """Nor one over http; a version that cannot be had is as good as none."""
    async with pair() as both:
        listed = {"0.4": "https://evil.example/poppy.json", "0.3": "http://example.com/0.3.json"}
        error = await undiscovered(both, with_members(protocol_version="0.9", supported_versions=listed))
        assert error.rule == "version.newest-compatible"
        assert len(both.wire.exchanges) == 1


@pytest.mark.parametrize("agent_documents", [told(404), told(302, location="https://x.example/"), told(200, b"[]")])
async def test_a_personal_agent_whose_own_documents_are_missing_is_told_so(agent_documents: Response) -> None:
    """The mistake is ours: one try, and the Company's word for it."""
    async with pair() as both:
        Script(both).always("/agent.json", agent_documents)
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused) as caught:
            await session.ask("Hi")
        assert caught.value.code == "invalid_session"
        assert len(signed(both)) == 1
