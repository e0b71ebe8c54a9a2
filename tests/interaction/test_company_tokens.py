"""Access tokens at a Company without an issuer: none can be valid, and which error says so is as readings 6 has it."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.protocol.errors import InvalidSession, InvalidToken
from papaver.protocol.session import ath
from papaver.testing.company import company_bench

pytestmark = pytest.mark.anyio

TOKEN = "an-access-token"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.requirement("papaver-39")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "DPoP"])
async def test_a_token_that_its_session_jwt_covers_is_an_invalid_token(scheme: str) -> None:
    """401 with the challenge, so that the Personal Agent goes on signed out; before the body, without a trace."""
    async with company_bench(turns=False) as bench:
        headers = {"authorization": f"{scheme} {TOKEN}"}
        answer = await bench.send("POST", "", raw=b"{", unread=True, access_token=TOKEN, headers=headers)
        assert (answer.status, answer.error) == (401, "invalid_token")
        (challenge,) = answer.headers.all("www-authenticate")
        assert challenge.startswith('Bearer error="invalid_token"')
        assert "no sign-in" in answer.json["error_description"]
        assert await bench.rows() == []


@pytest.mark.parametrize(
    ("claims", "headers", "told"),
    [
        ({}, BEARER, "ath is not the access token's hash"),
        ({"ath": ath("another")}, BEARER, "ath is not the access token's hash"),
        ({"ath": ath(TOKEN)}, {}, "has an ath, but the request has no access token"),
        ({"ath": ath(TOKEN)}, {"authorization": "Basic YTpi"}, "has an ath, but the request has no access token"),
    ],
    ids=["absent", "of another token", "without a token", "beside another scheme"],
)
async def test_a_token_and_an_ath_that_disagree_are_an_invalid_session(
    claims: dict[str, Any], headers: dict[str, str], told: str
) -> None:
    """The Session check fails first, and says what is wrong."""
    async with company_bench(turns=False) as bench:
        answer = await bench.start(headers=headers, **claims)
        assert (answer.status, answer.error) == (400, "invalid_session")
        assert told in answer.json["error_description"]
        assert await bench.rows() == []


async def test_credentials_of_another_scheme_are_left_alone() -> None:
    """A password in front of a whole site is no access token (readings 66)."""
    async with company_bench(turns=False) as bench:
        assert (await bench.start(headers={"authorization": "Basic YTpi"})).status == 201


@pytest.mark.requirement("papaver-40")
async def test_b10_an_authorization_field_that_is_there_twice_is_refused() -> None:
    """Once the Session is proven."""
    async with company_bench(turns=False) as bench:
        answer = await bench.start(headers=BEARER, more_headers=(("authorization", f"Bearer {TOKEN}"),))
        assert (answer.status, answer.error) == (400, "invalid_request")


async def test_an_api_says_the_same() -> None:
    """With the same two errors."""
    async with company_bench(turns=False) as bench:
        with pytest.raises(InvalidToken, check=lambda error: error.rule == "token.needs-issuer"):
            await bench.verify("GET", "/cart", headers=dict(BEARER), access_token=TOKEN)
        with pytest.raises(InvalidSession, check=lambda error: error.rule == "session.ath-matches-token"):
            await bench.verify("GET", "/cart", headers=dict(BEARER))
