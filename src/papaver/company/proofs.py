"""The DPoP proof of a request at a Company's services (RFC 9449 7): verified, and good once."""

from __future__ import annotations

from collections.abc import Sequence

from papaver.oauth.dpop import ALGS, Nonces, VerifiedProof, read_proof, verify_proof
from papaver.oauth.errors import InvalidDpopProof, UseDpopNonce
from papaver.ports.grants import GrantChange, GrantKeys, GrantLoaded, GrantStore, Spent
from papaver.ports.system import Clock
from papaver.protocol.errors import InvalidToken, ProofNonceNeeded
from papaver.protocol.session import AccountAccess
from papaver.protocol.terms import ClientId
from papaver.values.rules import rule
from papaver.web.messages import Headers

__all__ = ["Proofs", "check_proof_unused"]


@rule("token.proof-once")
def check_proof_unused(used: Sequence[Spent]) -> None:
    """RFC 9449 11.1: a proof is good for one request, at whichever replica."""
    if used:
        raise InvalidToken("the DPoP proof was used before; make one for each request", rule="token.proof-once")


class Proofs:
    """Verifies the proofs of one Company. With `nonces` a proof needs one that the Company gave out."""

    def __init__(self, grants: GrantStore, clock: Clock, window: int, nonces: Nonces | None) -> None:
        self._grants, self._clock, self._window, self._nonces = grants, clock, window, nonces

    @property
    def algs(self) -> tuple[str, ...]:
        return ALGS

    async def verify(self, headers: Headers, method: str, url: str, access: AccountAccess) -> None:
        """RFC 9449 4.3 for a request that carries `access`. Raises InvalidToken (readings 6)."""
        proof = self._read(headers, method, url, access)
        spent = Spent(ClientId(access.client_id), "dpop", proof.jti, proof.until)

        def decide(loaded: GrantLoaded) -> GrantChange[None]:
            check_proof_unused(loaded.spent)
            return GrantChange(None)

        await self._grants.apply(GrantKeys(spent=(spent,)), decide)

    def _read(self, headers: Headers, method: str, url: str, access: AccountAccess) -> VerifiedProof:
        try:
            return verify_proof(
                read_proof(headers.all("dpop")),
                method=method,
                url=url,
                now=self._clock.now(),
                window=self._window,
                access_token_ath=access.ath,
                jkt=access.jkt,
                nonces=self._nonces,
            )
        except UseDpopNonce as error:
            raise ProofNonceNeeded(error.nonce, rule=error.rule, detail=error.detail) from None
        except InvalidDpopProof as error:
            raise InvalidToken(error.description, rule=error.rule, detail=error.detail) from None
