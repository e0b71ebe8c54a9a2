"""`session_check`: from the raw header value to a ProvenSession with a cached delegation, against raw ES256 verify.

Four hundred JWTs over forty delegated keys, each for a URL of its own. In the case every check is on: header size,
strict segments and base64, repeated members, key-set generation, delegation `iss` and `exp`, signature, and each claim;
the thumbprint, `typ` and `alg` stand with the cached header, octet for octet. `htu` is normalised per request.
"""

from __future__ import annotations

import itertools

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from bench.harness import compare
from papaver.jose.keys import KeySet, PrivateKey
from papaver.protocol.delegation import DelegationCache
from papaver.protocol.session import expect
from papaver.testing.keys import NOW, AgentKeys
from papaver.values.base64url import decode
from papaver.versions.v0_4.session import SESSION

COMPANY = "https://auth.example.com"


def main() -> None:
    identity = PrivateKey.generate()
    agents = [AgentKeys(identity=identity) for _ in range(40)]
    keys, cache = KeySet.read(agents[0].jwks()), DelegationCache()
    requests: list[tuple[str, str]] = []
    raw: list[tuple[ec.EllipticCurvePublicKey, bytes, bytes]] = []
    for number in range(400):
        agent, url = agents[number % 40], f"https://api.example.com/poppy/conversations/conv_{number:022d}/messages"
        token = agent.header("POST", url, COMPANY)
        requests.append((token, url))
        signing_input, _, signature = token.encode().rpartition(b".")
        octets = decode(signature)
        der = utils.encode_dss_signature(int.from_bytes(octets[:32], "big"), int.from_bytes(octets[32:], "big"))
        x, y = (int.from_bytes(decode(agent.delegated.public.members[name]), "big") for name in "xy")
        raw.append((ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key(), der, signing_input))
    each_request, each_raw, es256 = itertools.cycle(requests), itertools.cycle(raw), ec.ECDSA(SHA256())

    def check() -> object:
        token, url = next(each_request)
        expected = expect(company_id=COMPANY, method="POST", url=url, now=NOW)
        return SESSION.verify(SESSION.read_value(token), keys, expected, cache)

    def verify() -> None:
        key, signature, message = next(each_raw)
        key.verify(signature, message, es256)

    for _ in requests:
        check()
    compare("session_check", baseline=verify, case=check, goal=0.83, floor=0.75)


if __name__ == "__main__":
    main()
