"""A Session JWT as values: typed claims, hidden octets, and one form of the request's URL."""

from __future__ import annotations

import pickle

import pytest

from papaver.protocol.session_jwt import CLAIMS, expect
from papaver.testing.keys import AgentKeys
from papaver.values.strict_json import dumps
from papaver.versions.v0_4.session import SESSION
from papaver.web.urls import UrlError

WHOLE = {"iss": "i", "aud": "a", "sid": "s", "sub": "u", "htm": "GET", "htu": "h", "iat": 1, "jti": "j"}


@pytest.mark.parametrize("more", [{}, {"ath": "x"}, {"agent_id": "x"}, {"ath": "x", "agent_id": "y"}, {"scope": "x"}])
def test_claims_are_read_with_and_without_the_optional_ones(more: dict[str, str]) -> None:
    """What is not in the claims stays unset; unknown claims are ignored."""
    claims = CLAIMS.read(dumps({**WHOLE, **more}))
    assert claims.sub == "u"
    assert {name for name in ("ath", "agent_id") if isinstance(getattr(claims, name), str)} == more.keys() - {"scope"}


def test_a_received_session_jwt_hides_itself() -> None:
    """Neither repr nor a pickle holds what could be sent again; its `iss` finds the key set."""
    header = AgentKeys().header("GET", "https://a.example/", "https://b.example")
    jwt = SESSION.read_value(header)
    assert jwt.iss == "https://agent.example/agent.json"
    assert repr(jwt) == "SessionJwt(…)"
    with pytest.raises(TypeError):
        pickle.dumps(jwt)


def test_the_url_of_a_request_is_normalised_once() -> None:
    """Scheme and host in lowercase, the default port dropped, no query (readings 28)."""
    expected = expect(company_id="c", method="GET", url="HTTPS://API.example:443/a%7Eb?cursor=x", now=1.5)
    assert expected == ("c", "GET", "https://api.example/a~b", 1.5, 60)
    with pytest.raises(UrlError):
        expect(company_id="c", method="GET", url="/a", now=1)
