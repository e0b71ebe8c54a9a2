"""`papaver inspect`: what a JWT says, what was verified, what was not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from papaver.cli.main import cli
from papaver.jose import jws
from papaver.jose.keys import PrivateKey
from papaver.oauth.assertions import make_assertion
from papaver.oauth.dpop import make_proof
from papaver.values.base64url import decode, encode
from papaver.values.strict_json import dumps
from papaver.versions import DIALECTS

SESSION = next(iter(DIALECTS.values())).session


@pytest.fixture(name="keys")
def make_keys() -> tuple[PrivateKey, PrivateKey]:
    """An identity key and a delegated key."""
    return PrivateKey.generate(), PrivateKey.generate()


def _delegation(keys: tuple[PrivateKey, PrivateKey], *, jwk: dict[str, Any] | None = None, **changes: object) -> str:
    now = int(time.time())
    claims = {
        "iss": "https://agent.example/agent.json",
        "cnf": {"jwk": jwk or keys[1].public.jwk()},
        "iat": now,
        "exp": now + 3600,
        "jti": "d1",
        **changes,
    }
    return jws.sign(dumps(claims), keys[0], typ=SESSION.delegation.typ, alg="ES256", kid=keys[0].kid)


def _session(keys: tuple[PrivateKey, PrivateKey], delegation: str | None, **changes: object) -> str:
    claims = {
        "iss": "https://agent.example/agent.json",
        "aud": "https://shop.example",
        "sid": "s1",
        "sub": "u1",
        "htm": "GET",
        "htu": "https://shop.example/x",
        "iat": int(time.time()),
        "jti": "j1",
        **changes,
    }
    more = {} if delegation is None else {SESSION.delegation_member: delegation}
    header = jws.header_segment(typ=SESSION.typ, alg="ES256", kid=keys[1].kid, more=more)
    signed = header + b"." + encode(dumps(claims)).encode()
    return f"{signed.decode()}.{encode(keys[1].sign(signed))}"


def _inspect(token: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli, ["inspect", "-", "--json"], input=token + "\n")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_session_jwt_is_verified_as_far_as_it_can_be_without_asking(keys: tuple[PrivateKey, PrivateKey]) -> None:
    """Its own signature can; who vouches for the key cannot, and that is said."""
    told = _inspect(_session(keys, _delegation(keys)))
    assert told["kind"].startswith("a Session JWT")
    assert told["failed"] == []
    assert "the signature is by the key of its delegation" in told["verified"]
    assert "kid is that key's thumbprint" in told["verified"]
    assert any("jwks_uri" in one for one in told["not_verified"])
    assert any("seen before" in one for one in told["not_verified"])
    assert told["claims"]["aud"] == "https://shop.example"
    assert told["delegation"]["kind"].startswith("a delegation")
    assert any("jwks_uri" in one for one in told["delegation"]["not_verified"])


def test_nothing_that_is_printed_can_be_replayed(keys: tuple[PrivateKey, PrivateKey]) -> None:
    """No signature, and so no JWT."""
    delegation = _delegation(keys)
    token = _session(keys, delegation)
    shown = CliRunner().invoke(cli, ["inspect", token]).output + json.dumps(_inspect(token))
    for part in (token.rpartition(".")[2], delegation.rpartition(".")[2], token, delegation):
        assert part not in shown


def test_what_is_wrong_is_said(keys: tuple[PrivateKey, PrivateKey]) -> None:
    """Another key, an old iat, another client."""
    other = (keys[0], PrivateKey.generate())
    told = _inspect(_session(keys, _delegation(other), iat=int(time.time()) - 900, iss="https://x.example/a.json"))
    assert "the signature is not by the key of its delegation" in told["failed"]
    assert any(one.startswith("iat is ") for one in told["failed"])
    assert "iss is the delegation's iss" in told["failed"]
    assert any("is missing" in one for one in _inspect(_session(keys, None))["failed"])


def test_a_delegation_is_measured(keys: tuple[PrivateKey, PrivateKey]) -> None:
    """How long it is made for, whether it is over, whether it gives a private key away, which is not shown."""
    now = int(time.time())
    good = _inspect(_delegation(keys))
    assert good["failed"] == []
    long = _inspect(_delegation(keys, iat=now - 100_000, exp=now - 10))
    assert any("at most" in one for one in long["failed"])
    assert any(one.startswith("exp is ") for one in long["failed"])
    private = keys[1].private_jwk()
    leaking = _inspect(_delegation(keys, jwk=private))
    assert "cnf.jwk is a public key alone" in leaking["failed"]
    assert private["d"] not in json.dumps(leaking)


def test_a_delegation_without_a_usable_key_is_told(keys: tuple[PrivateKey, PrivateKey]) -> None:
    """The Session JWT that carries it cannot be verified then."""
    told = _inspect(_session(keys, _delegation(keys, jwk={"kty": "EC", "crv": "P-999"})))
    assert any("cannot be used" in one for one in told["failed"])
    told = _inspect(_session(keys, _delegation(keys, cnf="none", exp=10**20)))
    assert any("cannot be used" in one for one in told["failed"])


def test_a_dpop_proof_is_verified_by_the_key_that_it_brings() -> None:
    """Whether the request is the one it was made for, nobody can tell here."""
    key = PrivateKey.generate()
    header = encode(dumps({"typ": "dpop+jwt", "alg": "ES256", "jwk": key.public.jwk()}))
    signed = f"{header}.{encode(dumps({'htm': 'GET', 'jti': 'x'}))}"
    told = _inspect(f"{signed}.{encode(key.sign(signed.encode()))}")
    assert told["kind"].startswith("a DPoP proof")
    assert told["verified"] == ["the signature is by the key in its header"]
    assert any("htm" in one for one in told["not_verified"])


def test_a_proof_that_brings_a_private_key_does_not_show_it() -> None:
    """It is wrong, and the key is the more in need of hiding."""
    key = PrivateKey.generate()
    header = encode(dumps({"typ": "dpop+jwt", "alg": "ES256", "jwk": key.private_jwk()}))
    signed = f"{header}.{encode(dumps({'htm': 'GET', 'jti': 'x'}))}"
    told = _inspect(f"{signed}.{encode(key.sign(signed.encode()))}")
    assert any("cannot be used" in one for one in told["failed"])
    assert key.private_jwk()["d"] not in json.dumps(told)


def test_a_proof_of_ours_is_told_whole() -> None:
    """Its key and its time; not whether it is for this request, this token, and new."""
    proof = make_proof(PrivateKey.generate(), method="GET", url="https://x.example/a", now=time.time(), jti="j")
    told = _inspect(proof.reveal())
    assert told["failed"] == []
    assert any("within 60" in one for one in told["verified"])
    assert any("cnf.jkt" in one for one in told["not_verified"])


@pytest.mark.parametrize("typ", ["JWT", "client-authentication+jwt"])
def test_what_an_assertion_itself_shows_is_told(typ: str) -> None:
    """One client, one issuer, a short life; its key set was not fetched, and its `aud` depends on who is asked."""
    now, key = int(time.time()), PrivateKey.generate()
    claims = {"iss": "https://a.example", "sub": "https://a.example", "aud": "https://s.example", "jti": "j"}
    token = jws.sign(dumps({**claims, "iat": now, "exp": now + 60}), key, typ=typ, alg="ES256", kid=key.kid)
    told = _inspect(token)
    assert told["kind"].startswith("a client assertion")
    assert told["failed"] == []
    assert "made for 60 s, at most 300" in told["verified"]
    assert any("key set" in one for one in told["not_verified"])
    assert any("character for character" in one for one in told["not_verified"])


def test_an_assertion_of_ours_is_known_by_its_claims() -> None:
    """Also without a `typ`."""
    now, key = time.time(), PrivateKey.generate()
    ours = make_assertion(key, client_id="https://a.example", issuer="https://s.example", now=now, jti="j")
    assert _inspect(ours.reveal())["failed"] == []
    header, payload, _ = ours.reveal().split(".")
    bare = {name: value for name, value in json.loads(decode(header)).items() if name != "typ"}
    signed = f"{encode(dumps(bare))}.{payload}"
    told = _inspect(f"{signed}.{encode(key.sign(signed.encode()))}")
    assert told["kind"].startswith("a client assertion")


def test_what_is_wrong_with_an_assertion_is_told() -> None:
    """Another subject, several audiences, no id, a long life (4.1)."""
    now, key = int(time.time()), PrivateKey.generate()
    claims = {"iss": "https://a.example", "sub": "other", "aud": ["https://s.example"], "iat": now, "exp": now + 3600}
    told = _inspect(jws.sign(dumps(claims), key, typ="JWT", alg="ES256", kid=key.kid))
    assert told["failed"] == [
        "iss and sub are one client_id",
        "aud is one string, not a list",
        "it has a jti, so it is used once",
        "made for 3600 s, at most 300",
    ]


def test_an_unknown_typ_is_told() -> None:
    """It may be a JWT of something else."""
    key = PrivateKey.generate()
    told = _inspect(jws.sign(b'{"x":1}', key, typ="other+jwt", alg="ES256", kid=key.kid))
    assert "other+jwt" in told["kind"]


def test_people_read_the_same() -> None:
    """Escape sequences in claims are shown as text."""
    key = PrivateKey.generate()
    token = jws.sign(dumps({"x": "\x1b[2J\u202e"}), key, typ="JWT", alg="ES256", kid=key.kid)
    shown = CliRunner().invoke(cli, ["inspect", token]).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "not verified" in shown


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c.d", "é.é.é", "e30.e30.e", "bm9uZQ.e30.eA"])
def test_what_is_no_jwt_is_told(text: str) -> None:
    """With exit status 1."""
    done = CliRunner().invoke(cli, ["inspect", "-", "--json"], input=text)
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"] == "invalid_jws"


def test_a_file_is_not_the_token_itself(tmp_path: Path) -> None:
    """What is meant is its content."""
    path = tmp_path / "session.jwt"
    path.write_text("a.b.c")
    done = CliRunner().invoke(cli, ["inspect", str(path)])
    assert done.exit_code == 2
    assert f"next      papaver inspect - < {path}" in done.stderr
