"""`EmbeddedIssuer`: what an app configures, and what it calls when a User has signed in or an account changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from papaver.company.authserver.configuration import Configuration
from papaver.company.authserver.running import RunningEmbedded
from papaver.company.authserver.settings import IssuerLimits
from papaver.company.authserver.terms import SignInType
from papaver.company.sign_in import IssuerParts
from papaver.oauth.drafts import CIMD_DRAFT
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import AccountId, ClientId

__all__ = ["EmbeddedIssuer"]


class EmbeddedIssuer:
    """An authorization server for Personal Agents inside the Company's own app (3.2, section 4).

        issuer = EmbeddedIssuer("https://auth.example.com", sign_in_page="/sign-in")
        company = Company(…, sign_in=issuer, scopes=[Scope("orders:read", "See your orders", "none", True)])

    `sign_in_page` is the app's own: it is opened with `?interaction=…`, authenticates the User as it always does, and
    ends with a redirect to `await issuer.signed_in(interaction, account, name="dana@example.com")`.

    `direct`, `device`   the sign-in types offered           `dpop`  tokens are bound to a key when a proof comes
    `dpop_nonce`         proofs need a nonce of ours         `bearer_only`  services whose tokens are never bound
    `unlisted_scopes`    scopes that may be asked for and are not in the metadata (4.7)
    `sign_in_allowed`    (client_id, "direct" | "device") → whether that client may sign Users in so (4.1)
    `scope_allowed`      (client_id, scope) → whether that client may get the scope at all (4.7)
    `local_path`         the issuer's path as the app sees it, where a proxy strips a part of it
    `client_documents`   the draft that agents' metadata documents follow, acknowledged by its name: say it, and an
                         update that follows another one stops at start

    Raises ConfigurationError.
    """

    def __init__(
        self,
        issuer: str,
        *,
        sign_in_page: str,
        direct: bool = True,
        device: bool = True,
        dpop: bool = True,
        dpop_nonce: bool = False,
        bearer_only: Sequence[str] = (),
        unlisted_scopes: Sequence[str] = (),
        sign_in_allowed: Callable[[str, SignInType], bool] | None = None,
        scope_allowed: Callable[[str, str], bool] | None = None,
        local_path: str | None = None,
        client_documents: str = CIMD_DRAFT,
        limits: IssuerLimits | None = None,
    ) -> None:
        self._configuration = Configuration(
            issuer=issuer,
            sign_in_page=sign_in_page,
            direct=direct,
            device=device,
            dpop=dpop,
            dpop_nonce=dpop_nonce,
            bearer_only=tuple(bearer_only),
            unlisted_scopes=tuple(unlisted_scopes),
            sign_in_allowed=sign_in_allowed or _any_sign_in,
            scope_allowed=scope_allowed or _any_scope,
            local_path=local_path,
            client_documents=client_documents,
            limits=limits or IssuerLimits(),
        )
        self._running: RunningEmbedded | None = None

    @property
    def issuer(self) -> str:
        """The issuer identifier, exactly as its metadata says it."""
        return self._configuration.issuer

    @property
    def authorization_endpoint(self) -> str:
        return f"{self._configuration.root}/authorize"

    @property
    def token_endpoint(self) -> str:
        return self._configuration.token_endpoint

    @property
    def dpop(self) -> bool:
        return self._configuration.dpop

    @property
    def shows_pages(self) -> bool:
        return True

    def run(self, parts: IssuerParts) -> RunningEmbedded:
        """Called by the Company that runs it. Raises ConfigurationError."""
        self._running = RunningEmbedded(self._configuration, parts)
        return self._running

    async def signed_in(self, interaction: str, account: AccountId, *, name: str = "") -> str:
        """The User who came with this interaction is `account`: the URL to redirect to, our consent page.

        `name` is what the User calls the account, such as an e-mail address. Raises InteractionOver.
        """
        return await self._parts().sign_ins.signed_in(interaction, account, name)

    async def approve(self, interaction: str, account: AccountId, *, scopes: Sequence[str]) -> str:
        """For an app with a consent page of its own: the User approved these scopes. The URL to redirect to.

        The page has to show who asks for what, and its form has to be safe from forgery. Raises InteractionOver.
        """
        _, back = await self._parts().sign_ins.decide(interaction, account, scopes)
        return back.reveal()

    async def decline(self, interaction: str) -> str:
        """The User declined, or did not sign in: the URL to redirect to. Raises InteractionOver."""
        _, back = await self._parts().sign_ins.decide(interaction, None, ())
        return back.reveal()

    def connected_url(self) -> str:
        """Where Users see which agents are connected, and disconnect them: for a link in the account's settings."""
        return f"{self._configuration.root}/connected"

    async def disable(self, account: AccountId) -> None:
        """From now on nobody acts for this account: no token of it is good, and none is issued."""
        await self._parts().grants.disable(account, True)

    async def enable(self, account: AccountId) -> None:
        """Undo `disable`: tokens that have not ended meanwhile are good again."""
        await self._parts().grants.disable(account, False)

    async def disconnect(self, account: AccountId | None = None, client_id: str | None = None) -> int:
        """Revoke every grant of an account, of a client, or of a client at an account (5.4, 5.5); how many.

        With an account alone it is signed out everywhere. Raises ConfigurationError when neither is named.
        """
        if account is None and client_id is None:
            raise ConfigurationError("disconnect names an account, a client_id, or both", rule="issuer.disconnect")
        running = self._parts()
        client = None if client_id is None else ClientId(client_id)
        return await running.grants.revoke(running.clock.now(), account_id=account, client_id=client)

    def _parts(self) -> RunningEmbedded:
        if self._running is None:
            raise ConfigurationError(
                f"the issuer {self.issuer} is not running: give it to a Company as sign_in=… and run that Company",
                rule="configuration.running",
            )
        return self._running


def _any_sign_in(client_id: str, sign_in_type: SignInType) -> bool:
    return True


def _any_scope(client_id: str, scope: str) -> bool:
    return True
