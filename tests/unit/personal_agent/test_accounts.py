"""Accounts in the vault: what may be shown of one, and what nobody sees."""

from __future__ import annotations

import pickle

import pytest

from papaver.jose.keys import PrivateKey
from papaver.personal_agent.accounts import Access, access_of, known_account, need_of
from papaver.personal_agent.records import AccountRow, HeldTokenRow, SignInRow
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn, SignedIn
from papaver.values.secret import Secret

KEY = PrivateKey.generate().private_jwk()
TOKEN = HeldTokenRow("canary-token", "DPoP", ("a",), expires_at=2000.0)
ROW = AccountRow(
    company="https://auth.shop.example",
    domain="shop.example",
    user="dana",
    account="default",
    state="signed_in",
    chain="c",
    signed_in_at=1000.0,
    token_host="auth.shop.example",
    revocation_host="auth.shop.example",
    scopes=("a", "b"),
    refresh_token="canary-refresh",
    dpop_jwk=KEY,
    tokens=(TOKEN,),
    unrevoked=("canary-old",),
)


def test_what_is_shown_of_an_account_holds_no_secret() -> None:
    """Scopes, times, and how many tokens the Company still has to be told of."""
    known = known_account(ROW)
    assert (known.scopes, known.expires_at, known.unrevoked) == (("a", "b"), 2000.0, 1)
    assert "canary" not in repr(known)


@pytest.mark.parametrize(
    "row",
    [ROW, TOKEN, SignInRow("c", "d", "u", "a", ("s",), "r", "canary-verifier", "canary-state", 1.0, KEY)],
    ids=lambda row: type(row).__name__,
)
def test_rows_with_secrets_show_nothing_and_are_never_pickled(row: object) -> None:
    """Neither in a log nor in a worker's queue."""
    assert "canary" not in repr(row)
    assert KEY["d"] not in repr(row)
    with pytest.raises(TypeError):
        pickle.dumps(row)


def test_an_access_token_shows_its_scheme_to_nobody_but_the_request() -> None:
    """DPoP with its key, Bearer without."""
    bound = access_of(ROW, TOKEN)
    assert bound.authorization.reveal() == "DPoP canary-token"
    assert "canary" not in repr(bound)
    assert Access(Secret("t"), (), None, None, "c").authorization.reveal() == "Bearer t"


async def _never(*_: object) -> SignedIn:
    raise AssertionError("nobody asked")


@pytest.mark.requirement("5.4-08")
def test_a_sign_in_is_shown_and_never_pickled() -> None:
    """It has a link for the User and a way to wait for them: nothing in it takes credentials or fills in a page."""
    direct = DirectSignIn("https://auth.shop.example/authorize?state=canary", "r", ("a",), "Shop", "d", 1.0, _never)
    device = DeviceSignIn("WDJB-MJHT", "https://auth.shop.example/device", None, "Shop", "d", 1.0, ("a",), _never)
    assert "canary" not in repr(direct)
    for sign_in in (direct, device):
        with pytest.raises(TypeError):
            pickle.dumps(sign_in)
    public = {name for kind in (direct, device) for name in dir(kind) if not name.startswith("_")}
    shown = {"url", "redirect_uri", "user_code", "verification_uri", "verification_uri_complete", "company_name"}
    assert public == shown | {"domain", "expires_at", "scopes", "complete", "wait"}


def test_a_need_with_no_account_is_plain() -> None:
    """What is needed, and the User may be asked."""
    need = need_of(None, ["b", "a"])
    assert (need.scope, need.only_if_asked) == ("b a", False)
