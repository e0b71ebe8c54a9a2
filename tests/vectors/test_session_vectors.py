"""The fixed vectors of 4.1, 5.2 and 5.3: what any two implementations have to agree on, octet for octet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jwt as pyjwt
import pytest

from papaver.jose.keys import KeySet, PrivateKey, thumbprint
from papaver.protocol.delegation import verify_delegation
from papaver.protocol.errors import InvalidSession
from papaver.protocol.session import ath, check_ath, expect
from papaver.versions.v0_4.session import SESSION

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "session-0.4.json").read_text())
KEYS = KeySet.read(VECTORS["agent"]["jwks"])
EXPECTED = expect(**VECTORS["request"])


def named(name: str) -> list[Any]:
    """One list of vectors, each under its name."""
    return [pytest.param(vector, id=vector.get("name", vector.get("source"))) for vector in VECTORS[name]]


@pytest.mark.requirement("5.2-36")
@pytest.mark.parametrize("vector", named("thumbprints"))
def test_thumbprint(vector: dict[str, Any]) -> None:
    """RFC 7638; the sample of 5.2 is one."""
    assert thumbprint(vector["jwk"]) == vector["thumbprint"]


@pytest.mark.parametrize("vector", named("ath"))
def test_ath(vector: dict[str, str]) -> None:
    """The hash of an access token; the sample of 5.2 is RFC 9449's."""
    assert ath(vector["access_token"]) == vector["ath"]


def test_delegation() -> None:
    """The delegation verifies with the published key and names the delegated one."""
    vector, agent = VECTORS["delegation"], VECTORS["agent"]
    delegation = verify_delegation(vector["jwt"], SESSION.delegation, agent["client_id"], KEYS, EXPECTED.now)
    assert (delegation.iat, delegation.exp, delegation.jti) == (vector["iat"], vector["exp"], vector["jti"])
    assert delegation.key == PrivateKey.read(agent["delegated"]).public
    public = pyjwt.PyJWK(agent["jwks"]["keys"][0])
    options = {"verify_exp": False, "verify_iat": False}
    assert pyjwt.decode(vector["jwt"], public, algorithms=["ES256"], options=options)["jti"] == vector["jti"]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("vector", named("session_jwts"))
def test_session_jwt(vector: dict[str, Any]) -> None:
    """The whole way of 5.3, step 2, and `ath` of step 3."""
    proven = SESSION.verify(SESSION.read_value(vector["header"]), KEYS, EXPECTED)
    assert (proven.sid, proven.user_id, proven.jti) == (vector["sid"], vector["sub"], vector["jti"])
    check_ath(proven, vector["access_token"])


@pytest.mark.parametrize("vector", named("must_reject"))
def test_b7_and_others_must_be_rejected(vector: dict[str, Any]) -> None:
    """B7: the sample delegation's typ is from another name; it is refused with a sentence that says so."""
    with pytest.raises(InvalidSession) as caught:
        SESSION.verify(SESSION.read_value(vector["header"]), KEYS, EXPECTED)
    assert caught.value.rule == vector["rule"]
    if "delegation" in vector:
        assert "poppy-delegation+jwt" in caught.value.description
        assert "'pap-delegation+jwt'" in caught.value.detail
