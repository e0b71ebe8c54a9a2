"""Whom a Company accepts, and what strangers can make it fetch, on the wire (4.1, 5.3 step 1; readings 14, 15, 50)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from papaver.jose.keys import PrivateKey, write_key_set
from papaver.ports.system import FetchFault
from papaver.protocol.terms import ClientId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.keys import OMIT, AgentKeys
from papaver.web.messages import Headers

pytestmark = pytest.mark.anyio

CLIENT = ClientId("https://agent.example/agent.json")
KEYS = "https://agent.example/jwks.json"
OTHER = AgentKeys("https://other.example/agent.json")


def put_metadata(bench: CompanyBench, **members: object) -> None:
    bench.documents.bodies[CLIENT] = json.dumps(bench.agent.metadata(**members)).encode()


def put_keys(bench: CompanyBench, document: object) -> None:
    bench.documents.bodies[KEYS] = json.dumps(document).encode()


async def with_random_kid(bench: CompanyBench, n: int, **options: Any) -> str | None:
    """What a request gets whose delegation names a key that is not published."""
    delegation = bench.agent.delegation(bench.clock.now(), jose={"kid": f"kid_{n}"}, signer=PrivateKey.generate())
    return (await bench.start(delegation=delegation, **options)).error


@pytest.mark.parametrize(
    "members",
    [
        {"client_id": "https://agent.example/other.json"},
        {"jwks_uri": "https://keys.example/jwks.json"},
        {"jwks_uri": "http://agent.example/jwks.json"},
        {"jwks_uri": OMIT},
        {"redirect_uris": ["https://evil.example/callback"]},
        {"redirect_uris": ["com.example.app:/callback"]},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": OMIT},
        {"client_secret": "hunter2"},
        {"jwks": {"keys": [PrivateKey.generate().private_jwk()]}},
    ],
    ids=lambda members: "-".join(members),
)
@pytest.mark.requirement("4.1-02", "4.1-03", "4.1-05")
async def test_c44_wrong_client_metadata_is_invalid_session(members: dict[str, object]) -> None:
    """Each member that 4.1 lays down; a key set on another host is not even asked for."""
    async with company_bench(turns=False) as bench:
        put_metadata(bench, **members)
        answer = await bench.start()
        assert (answer.status, answer.error) == (400, "invalid_session")
        assert bench.documents.asked == [CLIENT]


@pytest.mark.requirement("3-16")
async def test_loopback_redirect_uris_are_no_fault() -> None:
    """RFC 8252's literals are exempt from https; a name is not."""
    async with company_bench(turns=False) as bench:
        put_metadata(bench, redirect_uris=["http://127.0.0.1:53211/cb", "http://[::1]/cb"])
        assert (await bench.start()).status == 201
    async with company_bench(turns=False) as bench:
        put_metadata(bench, redirect_uris=["http://localhost:53211/cb"])
        assert (await bench.start()).error == "invalid_session"


@pytest.mark.parametrize(
    "document",
    [[], {}, {"keys": 1}, {"keys": [1]}, {"keys": []}, {"keys": [{"kty": "oct", "k": "AAAA", "kid": "a"}]}, "x", None],
    ids=["array", "no keys", "a number", "no objects", "empty", "symmetric", "text", "null"],
)
@pytest.mark.requirement("papaver-13")
async def test_b1_a_malformed_key_set_is_invalid_session(document: object) -> None:
    """Or one without a usable key. Never a 500."""
    async with company_bench(turns=False) as bench:
        put_keys(bench, document)
        answer = await bench.start()
        assert (answer.status, answer.error) == (400, "invalid_session")


async def test_c44_a_key_set_with_a_private_key_is_invalid_session() -> None:
    """Whoever can read it could sign, so nothing that it verifies is proven."""
    async with company_bench(turns=False) as bench:
        put_keys(bench, {"keys": [{**bench.agent.identity.private_jwk(), "kid": bench.agent.identity.kid}]})
        assert (await bench.start()).error == "invalid_session"


@pytest.mark.parametrize("client_id", ["http://agent.example/agent.json", "ftp://agent.example/a", "agent", "urn:x:y"])
@pytest.mark.requirement("3-14")
async def test_c62_what_is_no_https_url_is_never_fetched(client_id: str) -> None:
    """Nor does it use up what may be fetched."""
    async with company_bench(turns=False) as bench:
        assert (await bench.start(iss=client_id)).error == "invalid_session"
        assert bench.documents.asked == []


@pytest.mark.parametrize("client_id", ["https://agent.example", "https://agent.example/"])
async def test_b19_a_bare_origin_as_client_id_is_told_what_is_missing(client_id: str) -> None:
    """The one fault of a `client_id` that its sender can mend at once."""
    async with company_bench(turns=False) as bench:
        answer = await bench.start(iss=client_id)
        assert answer.error == "invalid_session"
        assert "https://agent.example/agent.json" in answer.json["error_description"]
        assert bench.documents.asked == []


async def test_c45_documents_are_fetched_once_for_many_requests() -> None:
    """Side by side or one after the other, while they are fresh."""
    async with company_bench(turns=False) as bench:
        answers = await asyncio.gather(*(bench.start(str(n)) for n in range(50)))
        assert {answer.status for answer in answers} == {201}
        bench.clock.advance(59)
        assert (await bench.start()).status == 201
        assert sorted(bench.documents.asked) == [CLIENT, KEYS]
        bench.clock.advance(2)
        assert (await bench.start()).status == 201
        assert len(bench.documents.asked) == 4


@pytest.mark.parametrize(
    ("field", "seconds"),
    [("max-age=300", 300), ("max-age=5", 60), ("no-store", 60), ("max-age=99999", 3600), ("public", 60)],
)
async def test_cache_control_decides_within_bounds(field: str, seconds: int) -> None:
    """At least a minute and at most an hour, whatever the host says."""
    async with company_bench(turns=False) as bench:
        bench.documents.headers[KEYS] = Headers([("cache-control", field)])
        bench.documents.headers[CLIENT] = Headers([("cache-control", "max-age=3600")])
        await bench.start()
        bench.clock.advance(seconds - 1)
        await bench.start()
        assert bench.documents.asked.count(KEYS) == 1
        bench.clock.advance(1)
        await bench.start()
        assert bench.documents.asked.count(KEYS) == 2


async def test_b2_known_agents_go_on_while_their_host_is_down() -> None:
    """Five minutes and a thousand requests: each is answered, and the host is asked once per half minute."""
    async with company_bench(turns=False, requests_per_user=100_000) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        bench.clock.advance(61)
        bench.documents.failing.update({KEYS: FetchFault.UNREACHABLE, CLIENT: 503})
        bench.documents.asked.clear()
        for _ in range(1000):
            assert (await bench.read(conversation)).status == 200
            bench.clock.advance(0.3)
        assert 0 < bench.documents.asked.count(KEYS) <= 10
        assert 0 < bench.documents.asked.count(CLIENT) <= 10


async def test_b2_last_good_keys_serve_an_hour_and_no_longer() -> None:
    """Then the key may have been revoked (readings 14), and what cannot be checked is a 503."""
    async with company_bench(turns=False) as bench:
        await bench.start()
        bench.documents.failing[KEYS] = FetchFault.UNREACHABLE
        bench.clock.advance(3599)
        assert (await bench.start()).status == 201
        bench.clock.advance(31)
        assert (await bench.start()).status == 503


async def test_b2_a_failed_load_is_remembered_for_half_a_minute() -> None:
    """A thousand requests make one fetch, and the next one may succeed after 30 s."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        bench.documents.failing[KEYS] = 500
        assert {(await bench.start()).status for _ in range(1000)} == {503}
        assert bench.documents.asked == [CLIENT, KEYS]
        del bench.documents.failing[KEYS]
        bench.clock.advance(30)
        assert (await bench.start()).status == 201


async def test_b10_an_unfetchable_client_is_not_fetched_again_at_once() -> None:
    """Nor a thousand of them, which other addresses name (B10); the tables of failures are bounded."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        bench.documents.failing[CLIENT] = 404
        for n in range(100):
            assert (await bench.start(peer=f"192.0.2.{n}")).error == "invalid_session"
        assert bench.documents.asked == [CLIENT]


async def test_a_definite_fault_ends_the_use_of_a_stale_copy() -> None:
    """404 is an answer: the agent took its document away."""
    async with company_bench(turns=False) as bench:
        await bench.start()
        bench.clock.advance(61)
        bench.documents.failing[KEYS] = 404
        assert (await bench.start()).error == "invalid_session"
        bench.documents.failing[KEYS] = FetchFault.UNREACHABLE
        bench.clock.advance(31)
        assert (await bench.start()).status == 503


@pytest.mark.requirement("5.2-27")
async def test_b2_a_new_key_is_found_by_one_forced_reload() -> None:
    """Also right after the first fetch: an agent that rotates its key is not locked out for a minute."""
    async with company_bench(turns=False) as bench:
        await bench.start()
        fresh = PrivateKey.generate()
        put_keys(bench, write_key_set([bench.agent.identity.public, fresh.public]))
        delegation = bench.agent.delegation(bench.clock.now(), signer=fresh, jose={"kid": fresh.kid})
        assert (await bench.start(delegation=delegation)).status == 201
        assert bench.documents.asked.count(KEYS) == 2


async def test_b58_a_flood_of_random_kids_harms_nobody() -> None:
    """One refetch per interval; the client's real keys and another client's go on, the cooldown holds (B55, B56)."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        bench.documents.publish(OTHER)
        await bench.start()
        await bench.start(agent=OTHER)
        bench.documents.asked.clear()
        for n in range(200):
            assert await with_random_kid(bench, n) == "invalid_session"
        assert bench.documents.asked == [KEYS]
        assert (await bench.start()).status == 201
        assert (await bench.start(agent=OTHER)).status == 201
        bench.clock.advance(30)
        assert await with_random_kid(bench, 999) == "invalid_session"
        assert bench.documents.asked == [KEYS, KEYS]


async def test_b55_an_unknown_kid_evicts_no_good_key() -> None:
    """Neither when the reload brings the same set, nor when the host is down: then the unknown one gets a 503."""
    async with company_bench(turns=False) as bench:
        await bench.start()
        assert await with_random_kid(bench, 1) == "invalid_session"
        assert (await bench.start()).status == 201
        bench.clock.advance(31)
        bench.documents.failing[KEYS] = FetchFault.UNREACHABLE
        assert await with_random_kid(bench, 2) == "temporarily_unavailable"
        assert await with_random_kid(bench, 3) == "temporarily_unavailable"
        assert (await bench.start()).status == 201
        assert bench.documents.asked.count(KEYS) == 3


@pytest.mark.requirement("papaver-13")
async def test_b57_an_empty_key_set_does_not_end_the_cooldown() -> None:
    """It is a fault like another: remembered, and not asked for again within its time."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        put_keys(bench, {"keys": []})
        for n in range(100):
            assert await with_random_kid(bench, n) == "invalid_session"
        assert bench.documents.asked.count(KEYS) == 1


async def test_b56_a_forced_reload_keeps_to_its_interval_side_by_side() -> None:
    """A hundred at once make one fetch."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        await bench.start()
        codes = await asyncio.gather(*(with_random_kid(bench, n) for n in range(100)))
        assert set(codes) == {"invalid_session"}
        assert bench.documents.asked.count(KEYS) == 2


async def test_a_key_that_left_the_key_set_takes_its_delegations_with_it() -> None:
    """Readings 14: a verified delegation is worth what the key set says now."""
    async with company_bench(turns=False) as bench:
        await bench.start()
        put_keys(bench, write_key_set([PrivateKey.generate().public]))
        assert (await bench.start()).status == 201
        bench.clock.advance(61)
        assert (await bench.start()).error == "invalid_session"


async def test_b10_strangers_fetch_ten_times_a_minute_from_one_address() -> None:
    """Then they wait; a known client is served all the while, and another address may still introduce one."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        await bench.start()
        for n in range(10):
            await bench.start(iss=f"https://s{n}.example/agent.json", peer="198.51.100.7")
        answer = await bench.start(iss="https://one-more.example/agent.json", peer="198.51.100.7")
        assert (answer.status, answer.error) == (429, "rate_limited")
        assert "https://one-more.example/agent.json" not in bench.documents.asked
        bench.clock.advance(61)
        assert (await bench.start(peer="198.51.100.7")).status == 201
        bench.documents.publish(OTHER)
        assert (await bench.start(agent=OTHER, peer="198.51.100.8")).status == 201


async def test_b58_strangers_of_many_addresses_are_bounded_in_all() -> None:
    """Sixty a minute; a client that an operator allowed is not among them."""
    async with company_bench(turns=False, requests_per_address=10_000) as bench:
        for n in range(61):
            await bench.start(iss=f"https://s{n}.example/agent.json", peer=f"198.51.{n}.7")
        assert len(bench.documents.asked) == 60
        bench.documents.publish(OTHER)
        assert (await bench.start(agent=OTHER)).status == 429
        await bench.company.clients.judge(ClientId(OTHER.client_id), "allowed")
        assert (await bench.start(agent=OTHER)).status == 201


async def test_one_ipv6_subscriber_counts_as_one_address() -> None:
    """A /64 has more addresses than anybody can count."""
    async with company_bench(turns=False, requests_per_address=3) as bench:
        for n in range(3):
            assert (await bench.start(aud="https://x.example", peer=f"2001:db8:1:2::{n}")).status == 400
        assert (await bench.start(aud="https://x.example", peer="2001:db8:1:2:ffff::9")).status == 429
        assert (await bench.start(aud="https://x.example", peer="2001:db8:1:3::1")).status == 400


@pytest.mark.requirement("4.1-16")
async def test_b10_a_blocked_client_is_refused_at_its_next_request() -> None:
    """And served again when the verdict is taken back (B12, C46)."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        await bench.company.clients.judge(CLIENT, "blocked")
        answer = await bench.read(conversation)
        assert (answer.status, answer.error) == (400, "invalid_session")
        await bench.company.clients.judge(CLIENT, None)
        assert (await bench.read(conversation)).status == 200


@pytest.mark.requirement("4.1-16")
async def test_c46_only_allowed_clients_are_served_and_others_not_fetched() -> None:
    """`accept="allowed"`: the list of the operator is the registration."""
    async with company_bench(turns=False, accept="allowed") as bench:
        assert (await bench.start()).error == "invalid_session"
        assert bench.documents.asked == []
        await bench.company.clients.judge(CLIENT, "allowed")
        assert (await bench.start()).status == 201
        (row,) = await bench.company.clients.clients()
        assert (row.client_id, row.verdict, row.seen_at) == (CLIENT, "allowed", bench.clock.now())


async def test_only_proven_clients_are_listed_and_stored() -> None:
    """What a stranger publishes fills no disk: its documents are kept once its signature verified."""
    async with company_bench(turns=False) as bench:
        assert (await bench.start(aud="https://x.example")).error == "invalid_session"
        assert await bench.company.clients.load_document(CLIENT) is None
        assert await bench.company.clients.clients() == ()
        assert (await bench.start()).status == 201
        assert await bench.company.clients.load_document(CLIENT) is not None
        assert await bench.company.clients.load_document(KEYS) is not None


async def test_a_restart_fetches_nothing_that_is_fresh() -> None:
    """And what one process fetched, another on the same store uses."""
    store, agent = MemoryStore(), AgentKeys()
    for expected in ([CLIENT, KEYS], []):
        async with company_bench(turns=False, store=store, agent=agent) as bench:
            assert (await bench.start()).status == 201
            assert bench.documents.asked == expected


async def test_keys_that_are_gone_do_not_come_back_with_a_restart() -> None:
    """The store's copy is given up when the host says that there is none."""
    store, agent = MemoryStore(), AgentKeys()
    async with company_bench(turns=False, store=store, agent=agent) as bench:
        bench.documents.headers[KEYS] = Headers([("cache-control", "max-age=3600")])
        await bench.start()
        bench.documents.failing[KEYS] = 404
        assert await with_random_kid(bench, 1) == "invalid_session"
        assert (await bench.start()).error == "invalid_session"
    async with company_bench(turns=False, store=store, agent=agent) as bench:
        bench.documents.failing[KEYS] = FetchFault.UNREACHABLE
        assert (await bench.start()).status == 503


async def test_another_processs_newer_keys_are_used_without_a_fetch() -> None:
    """Four processes do not ask four times for one rotation."""
    store, agent = MemoryStore(), AgentKeys()
    fresh = PrivateKey.generate()
    async with (
        company_bench(turns=False, store=store, agent=agent) as one,
        company_bench(turns=False, store=store, agent=agent) as two,
    ):
        await one.start()
        await two.start()
        for bench in (one, two):
            bench.clock.advance(1)
            put_keys(bench, write_key_set([agent.identity.public, fresh.public]))
        two.documents.asked.clear()
        delegation = agent.delegation(one.clock.now(), signer=fresh, jose={"kid": fresh.kid})
        assert (await one.start(delegation=delegation)).status == 201
        assert (await two.start(delegation=delegation, jti="two")).status == 201
        assert two.documents.asked == []


async def test_a_refusal_says_nothing_about_why_a_client_is_not_accepted() -> None:
    """The verdict is the operator's; the answer to a blocked client is the answer to an unlisted one."""
    async with company_bench(turns=False, accept="allowed") as bench:
        unlisted = await bench.start()
        await bench.company.clients.judge(CLIENT, "blocked")
        assert (await bench.start()).response.body == unlisted.response.body
