"""One delegated key signs for one User ID, with its delegation in every header, until that expires."""

from __future__ import annotations

import json
from typing import Any

import jwt as pyjwt
import pytest

from papaver.jose.keys import KeySet, PrivateKey
from papaver.protocol.delegation import DelegationExpired
from papaver.protocol.session import ProvenSession, ath, expect
from papaver.protocol.session_signer import SessionSigner
from papaver.protocol.terms import AgentId, ClientId, CompanyId, SessionId, UserId
from papaver.testing.keys import NOW, AgentKeys
from papaver.values.base64url import decode
from papaver.versions.v0_4.session import SESSION
from papaver.web.urls import UrlError

AGENT = AgentKeys()
KEYS = KeySet.read(AGENT.jwks())
COMPANY = CompanyId("https://auth.example.com")
URL = "https://api.example.com/orders"
SID = SessionId("sid_1")


def signer(key: PrivateKey = AGENT.delegated, delegation: str = "", client_id: str = AGENT.client_id) -> SessionSigner:
    """A signer of the test agent."""
    return SessionSigner(
        SESSION, key, delegation or AGENT.delegation(), client_id=ClientId(client_id), company_id=COMPANY,
        user_id=UserId("usr_dana"),
    )  # fmt: skip


def parts(header: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The decoded JOSE header and claims."""
    head, payload, _ = header.split(".")
    return json.loads(decode(head)), json.loads(decode(payload))


def proven(header: str, method: str = "GET", url: str = URL) -> ProvenSession:
    """What the Company makes of it."""
    expected = expect(company_id=COMPANY, method=method, url=url, now=NOW)
    return SESSION.verify(SESSION.read_value(header), KEYS, expected)


@pytest.mark.requirement("5.2-19", "5.2-22")
def test_a_signed_header_has_every_claim_and_the_delegation() -> None:
    """Signed out and with one agent: all claims but `ath` and `agent_id`."""
    delegation = AGENT.delegation()
    header, claims = parts(signer(delegation=delegation).sign(sid=SID, method="GET", url=URL, now=NOW + 0.9, jti="j"))
    assert header == {
        "typ": "poppy-session+jwt",
        "alg": "ES256",
        "kid": AGENT.delegated.public.thumbprint,
        "poppy_dlg": delegation,
    }
    assert claims == {
        "iss": AGENT.client_id, "aud": COMPANY, "sid": SID, "sub": "usr_dana", "htm": "GET", "htu": URL, "iat": NOW,
        "jti": "j",
    }  # fmt: skip


@pytest.mark.requirement("5.1-08", "5.1-13")
def test_agent_id_is_there_only_when_given() -> None:
    """With a single agent it is left out; with several it says which one."""
    assert "agent_id" not in parts(signer().sign(sid=SID, method="GET", url=URL, now=NOW, jti="j"))[1]
    header = signer().sign(sid=SID, method="GET", url=URL, now=NOW, jti="j", agent_id=AgentId("agt_1"))
    assert proven(header).agent_id == "agt_1"


def test_ath_is_there_only_with_a_token() -> None:
    """The hash, never the token."""
    header = signer().sign(sid=SID, method="GET", url=URL, now=NOW, jti="j", access_token="secret-token")
    assert proven(header).ath == ath("secret-token")
    assert "secret-token" not in decode(header.split(".")[1]).decode()


@pytest.mark.requirement("5.2-15")
@pytest.mark.parametrize(
    "url",
    [URL + "?cursor=evt_1", URL + "#top", "https://API.example.com:443/orders", "https://api.example.com/%6frders"],
)
def test_htu_is_the_url_without_query_and_fragment(url: str) -> None:
    """And in the one form that both sides compare."""
    header = signer().sign(sid=SID, method="GET", url=url, now=NOW, jti="j")
    assert parts(header)[1]["htu"] == URL
    assert proven(header, url=url).sid == SID


def test_a_url_that_cannot_be_requested_is_not_signed() -> None:
    """The signer says so before anything is sent."""
    with pytest.raises(UrlError):
        signer().sign(sid=SID, method="GET", url="orders", now=NOW, jti="j")


@pytest.mark.requirement("5.2-37")
def test_nothing_is_signed_after_the_delegations_exp() -> None:
    """One second before it still is; at `exp` the remedy is a new key."""
    short = signer(delegation=AGENT.delegation(exp=NOW + 10))
    assert short.expires_at == NOW + 10
    assert short.sign(sid=SID, method="GET", url=URL, now=NOW + 9.9, jti="j")
    with pytest.raises(DelegationExpired) as caught:
        short.sign(sid=SID, method="GET", url=URL, now=NOW + 10, jti="j")
    assert caught.value.code == "delegation_expired"
    assert str(NOW + 10) in caught.value.detail


@pytest.mark.requirement("5.2-47")
def test_a_signer_signs_for_the_one_user_it_was_made_for() -> None:
    """There is no argument that would change User ID, Company or client."""
    made = signer()
    headers = [made.sign(sid=SessionId(f"s{n}"), method="GET", url=URL, now=NOW, jti=f"j{n}") for n in range(3)]
    assert {(parts(h)[1]["sub"], parts(h)[1]["aud"], parts(h)[1]["iss"]) for h in headers} == {
        ("usr_dana", COMPANY, AGENT.client_id)
    }
    with pytest.raises(TypeError):
        made.sign(sid=SID, method="GET", url=URL, now=NOW, jti="j", user_id="usr_erin")  # pyright: ignore[reportCallIssue]


@pytest.mark.requirement("5.2-05")
def test_every_request_has_a_jwt_of_its_own() -> None:
    """Distinct `jti` and signature, the same header."""
    made = signer()
    headers = [made.sign(sid=SID, method="GET", url=URL, now=NOW, jti=f"j{n}").split(".") for n in range(5)]
    assert len({header[0] for header in headers}) == 1
    assert len({header[1] for header in headers}) == len({header[2] for header in headers}) == 5


@pytest.mark.parametrize(
    ("key", "delegation", "client_id"),
    [
        (PrivateKey.generate(), AGENT.delegation(), AGENT.client_id),
        (AGENT.delegated, AGENT.delegation(), "https://other.example/agent.json"),
        (PrivateKey.generate("PS384"), AGENT.delegation(), AGENT.client_id),
    ],
    ids=["another key", "another client", "another algorithm"],
)
def test_a_delegation_that_does_not_belong_is_refused_at_once(key: PrivateKey, delegation: str, client_id: str) -> None:
    """Not first by every Company."""
    with pytest.raises(ValueError, match=r"the delegation is|a delegated key signs"):
        signer(key, delegation, client_id)


def test_another_library_reads_what_is_signed() -> None:
    """PyJWT verifies it with the delegated key."""
    header = signer().sign(sid=SID, method="GET", url=URL, now=NOW, jti="j")
    public = pyjwt.PyJWK({**AGENT.delegated.public.jwk(), "alg": "ES256"})
    options: Any = {"verify_iat": False}
    assert pyjwt.decode(header, public, algorithms=["ES256"], audience=COMPANY, options=options)["sid"] == SID


def test_a_signer_hides_its_delegation() -> None:
    """Its repr is for logs."""
    made = signer()
    assert repr(made) == f"SessionSigner(kid={made.kid!r}, expires_at={made.expires_at})"
