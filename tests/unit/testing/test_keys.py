"""The test agent signs correctly whatever it is told to say, and the same things in every run."""

from __future__ import annotations

import json

from papaver.jose.keys import PrivateKey
from papaver.testing.keys import NOW, OMIT, AgentKeys, compact
from papaver.values.base64url import decode


def parts(token: str) -> list[dict[str, object]]:
    """The decoded header and payload."""
    return [json.loads(decode(part)) for part in token.split(".")[:2]]


def test_documents_name_the_agent_and_its_public_key() -> None:
    """Both under their URLs; members can be changed or left out."""
    agent = AgentKeys("https://a.example/agent.json", alg="PS384")
    documents = agent.documents()
    assert list(documents) == ["https://a.example/agent.json", "https://a.example/jwks.json"]
    assert json.loads(documents[agent.client_id])["client_id"] == agent.client_id
    assert json.loads(documents[agent.jwks_uri])["keys"][0]["alg"] == "PS384"
    changed = agent.metadata(client_name=OMIT, logo_uri="x")
    assert "client_name" not in changed
    assert changed["logo_uri"] == "x"


def test_headers_and_claims_can_be_replaced_added_and_left_out() -> None:
    """At both levels; what is not named stays right."""
    agent = AgentKeys()
    header, claims = parts(
        agent.header("GET", "https://b.example/?q", "c", jose={"typ": "x", "kid": OMIT}, sub=OMIT, more=1)
    )
    assert (header["typ"], "kid" in header) == ("x", False)
    assert (claims["aud"], claims["htu"], claims["more"], "sub" in claims) == ("c", "https://b.example/", 1, False)
    delegation = parts(agent.delegation(jose={"alg": "none"}, exp=1))
    assert (delegation[0]["alg"], delegation[1]["exp"]) == ("none", 1)
    assert parts(agent.header("GET", "https://b.example/", "c", payload=b'{"a":1}'))[1] == {"a": 1}


def test_one_delegation_serves_an_hour_of_headers() -> None:
    """So that caches have something to find; the next hour has another."""
    agent = AgentKeys()
    first, second, later = (agent.header("GET", "https://b.example/", "c", now=NOW + s) for s in (0, 1, 3600))
    assert first.split(".")[0] == second.split(".")[0] != later.split(".")[0]


def test_fresh_values_differ_and_repeat_with_the_run() -> None:
    """No randomness but in the keys."""
    assert [AgentKeys().fresh() for _ in range(2)] == [AgentKeys().fresh()] * 2
    agent = AgentKeys()
    assert agent.fresh() != agent.fresh()


def test_any_payload_is_signed() -> None:
    """Also one that is no JSON."""
    key = PrivateKey.generate()
    token = compact(key, {"a": 1, "b": OMIT}, b"x")
    assert token.startswith("eyJhIjoxfQ.eA.")
