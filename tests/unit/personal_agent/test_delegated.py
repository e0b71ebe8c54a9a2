"""Delegated keys: one for each User ID, renewed in time, kept over a restart, void with the key that vouched for it."""

from __future__ import annotations

import json

import pytest

from papaver.jose.keys import PrivateKey
from papaver.personal_agent.delegated import DelegatedKeys
from papaver.personal_agent.identity import Identity
from papaver.protocol.delegation import read_delegation
from papaver.protocol.session_signer import SessionSigner
from papaver.protocol.terms import ClientId, CompanyId, UserId
from papaver.versions import DIALECTS
from tests.house.agent_world import CLIENT_ID, IDENTITY_KEY, Keys, V, World

PROFILE = DIALECTS[V].session
SHOP, BANK = CompanyId("https://shop.example"), CompanyId("https://bank.example")
DANA, SAM = UserId("usr_dana"), UserId("usr_sam")


class Ring:
    """Delegated keys in one vault; `restart` is another process."""

    def __init__(self, world: World, *keys: PrivateKey) -> None:
        self.world = world
        self.keys = Keys(*keys)
        self.restart()

    def restart(self, client_id: ClientId = CLIENT_ID) -> None:
        self.held = DelegatedKeys(Identity(client_id, self.keys), self.world.limits, self.world.ids)

    def signer(self, company: CompanyId = SHOP, user: UserId = DANA, ahead: float = 0) -> SessionSigner:
        return self.world.run(self.held.signer(PROFILE, company, user, self.world.clock.now() + ahead))


@pytest.mark.requirement("5.2-47", "10.7-01")
def test_each_user_id_has_a_key_of_its_own() -> None:
    """Neither two Users nor two Companies ever see the same key or delegation."""
    ring = Ring(World())
    signers = [ring.signer(SHOP, DANA), ring.signer(SHOP, SAM), ring.signer(BANK, UserId("usr_dana_bank"))]
    assert len({signer.kid for signer in signers}) == 3
    delegations = [row["delegation"] for row in ring.world.of_kind("delegated-key")]
    assert len({read_delegation(one).claims.jti for one in delegations}) == 3


@pytest.mark.requirement("5.2-30", "5.2-33", "5.2-34")
def test_a_delegation_names_the_client_and_the_key_and_nothing_else() -> None:
    """No User ID, no Company, no private member; its id is drawn at random."""
    ring = Ring(World())
    ring.signer()
    [row] = ring.world.of_kind("delegated-key")
    received = read_delegation(row["delegation"])
    assert set(received.header) == {"alg", "typ", "kid"}
    payload = json.loads(received.compact.payload)
    assert set(payload) == {"iss", "cnf", "iat", "exp", "jti"}
    assert set(payload["cnf"]["jwk"]) == {"kty", "crv", "x", "y"}
    assert len(payload["jti"]) == 22
    text = received.compact.payload.decode()
    assert DANA not in text
    assert "shop.example" not in text


@pytest.mark.requirement("5.2-37", "5.2-45")
def test_a_key_is_replaced_before_its_delegation_ends() -> None:
    """It is used for a while and then replaced by one with another delegation."""
    world = World(delegation_lifetime=3600, delegation_renewed=600)
    ring = Ring(world)
    first = ring.signer()
    world.clock.advance(2999)
    assert ring.signer() is first
    world.clock.advance(1)
    second = ring.signer()
    assert second.kid != first.kid
    assert second.expires_at == world.clock.now() + 3600
    [row] = world.of_kind("delegated-key")
    assert row["kid"] == second.kid


def test_a_restart_goes_on_with_the_stored_key() -> None:
    """The vault has it; another process makes no other."""
    ring = Ring(World())
    first = ring.signer()
    ring.restart()
    assert ring.signer().kid == first.kid


def test_a_key_from_the_companys_future_is_replaced() -> None:
    """A delegation that the Company's clock does not yet know is no use: readings 17."""
    ring = Ring(World())
    first = ring.signer()
    assert ring.signer(ahead=-20).kid == first.kid
    assert ring.signer(ahead=-300).kid != first.kid


def test_a_key_is_void_with_the_key_that_vouched_for_it() -> None:
    """After a rotation both are published, and the stored key stays; after the removal it is replaced."""
    newer = PrivateKey.generate("PS384")
    ring = Ring(World(), IDENTITY_KEY)
    first = ring.signer()
    ring.keys = Keys(newer, IDENTITY_KEY)
    ring.restart()
    assert ring.signer().kid == first.kid
    ring.keys = Keys(newer)
    ring.restart()
    second = ring.signer()
    assert second.kid != first.kid
    [row] = ring.world.of_kind("delegated-key")
    assert read_delegation(row["delegation"]).header["alg"] == "PS384"


def test_a_key_of_another_client_id_is_replaced() -> None:
    """A vault that moved to another `client_id` has no use for the old delegations."""
    ring = Ring(World())
    first = ring.signer()
    ring.restart(ClientId("https://agent.example/other.json"))
    assert ring.signer().kid != first.kid


def test_forgetting_drops_one_user() -> None:
    """What an anonymous Session used is gone with it; others stay."""
    ring = Ring(World())
    dana, sam = ring.signer(), ring.signer(user=SAM)
    ring.held.forget(DANA)
    ring.world.rows.clear()
    assert ring.signer(user=SAM) is sam
    assert ring.signer().kid != dana.kid
