"""`session_sign`: one Session JWT, from the request to the header value, against one raw ES256 signature."""

from __future__ import annotations

import itertools

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from bench.harness import compare
from papaver.protocol.session_signer import SessionSigner
from papaver.protocol.terms import ClientId, CompanyId, SessionId, UserId
from papaver.testing.keys import NOW, AgentKeys
from papaver.versions.v0_4.session import SESSION


def main() -> None:
    agent = AgentKeys()
    signer = SessionSigner(
        SESSION,
        agent.delegated,
        agent.delegation(),
        client_id=ClientId(agent.client_id),
        company_id=CompanyId("https://auth.example.com"),
        user_id=UserId("usr_Q7c1vK"),
    )
    urls = [f"https://api.example.com/poppy/conversations/conv_{number:022d}/messages" for number in range(400)]
    each = itertools.cycle([(url, agent.fresh()) for url in urls])
    sid = SessionId("Yx2b7Qd_Kp8mR3vT1nWc4A")

    def sign() -> str:
        url, jti = next(each)
        return signer.sign(sid=sid, method="POST", url=url, now=NOW, jti=jti)

    key, es256 = ec.generate_private_key(ec.SECP256R1()), ec.ECDSA(SHA256())
    each_message = itertools.cycle([sign().rpartition(".")[0].encode() for _ in urls])

    def raw() -> bytes:
        return key.sign(next(each_message), es256)

    compare("session_sign", baseline=raw, case=sign, goal=0.6, floor=0.6)


if __name__ == "__main__":
    main()
