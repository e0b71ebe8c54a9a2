"""An issuer that a test scripts, and a Company that takes its tokens: in front of a Personal Agent driven by hand.

The issuer verifies every request as a strict one does: client assertion, PKCE, DPoP. It counts what a test looks at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from papaver.jose.keys import KeySet
from papaver.oauth.assertions import read_assertion, verify_assertion
from papaver.oauth.authorization import code_url, error_url
from papaver.oauth.dpop import Nonces, read_proof, verify_proof
from papaver.oauth.errors import AccessDenied, UseDpopNonce
from papaver.oauth.forms import Form, read_form
from papaver.oauth.pkce import challenge_of
from papaver.personal_agent.flows import sign_in as flows
from papaver.personal_agent.flows.effects import Flow
from papaver.personal_agent.flows.request import Exchange, signed
from papaver.personal_agent.flows.sign_in import BegunDirect, begin
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.setup import Setup
from papaver.personal_agent.sign_in import SignedIn
from papaver.ports.system import FetchFailed
from papaver.protocol.session import ath
from papaver.values.secret import Secret
from papaver.web.messages import Request, Response
from papaver.web.urls import protected_resource_metadata_url
from tests.house.agent_world import (
    CLIENT_ID,
    DOMAIN,
    ENDPOINT,
    IDENTITY_KEY,
    ScriptedCompany,
    World,
    answer,
    error,
    unreachable,
)

__all__ = [
    "AUTH",
    "CALLBACK",
    "ISSUER",
    "AccountCompany",
    "AccountWorld",
    "Granted",
    "ScriptedIssuer",
    "account_company",
    "complete",
    "publish",
]

AUTH = "auth.shop.example"
ISSUER = f"https://{AUTH}"
CALLBACK = "https://agent.example/oauth/callback"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
NAMES = {"token": "token", "revoke": "revocation", "device": "device_authorization"}


@dataclass
class Granted:
    """A refresh token that is valid, and what it is for."""

    scopes: tuple[str, ...]
    family: int


@dataclass
class ScriptedIssuer:
    """`script` holds answers or failures for the next requests; None for an ordinary one, "lost" for one that is made
    and whose answer never arrives.

    `asked`    (endpoint, form) of every request that arrived
    `jtis`     of their client assertions      `proofs`  the thumbprints of their DPoP keys, None without a proof
    `refresh`  the refresh tokens that are valid; `tokens` the access tokens: token → (scopes, resource, jkt)
    """

    issuer: str = ISSUER
    dpop: bool = False
    nonce: bool = False
    rotate: bool = True
    lifetime: int | None = 3600
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    script: list[Any] = field(default_factory=list[Any])
    asked: list[tuple[str, Form]] = field(default_factory=list[Any])
    urls: list[str] = field(default_factory=list[str])
    jtis: list[str] = field(default_factory=list[str])
    proofs: list[str | None] = field(default_factory=list[Any])
    refresh: dict[str, Granted] = field(default_factory=dict[str, Granted])
    successors: dict[str, str] = field(default_factory=dict[str, str])
    tokens: dict[str, tuple[tuple[str, ...], str | None, str | None]] = field(default_factory=dict[str, Any])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, Any])
    device: tuple[str, ...] | str = "authorization_pending"
    link: str = f"https://{AUTH}/device"
    number: int = 0

    def metadata(self) -> dict[str, Any]:
        """RFC 8414's document."""
        base = self.issuer.rstrip("/")
        document: dict[str, Any] = {
            "issuer": self.issuer,
            "token_endpoint": f"{base}/token",
            "revocation_endpoint": f"{base}/revoke",
            "authorization_endpoint": f"{base}/authorize",
            "device_authorization_endpoint": f"{base}/device",
            "grant_types_supported": ["refresh_token", "authorization_code", DEVICE],
            "scopes_supported": ["orders:read"],
            "protected_resources": [f"https://{DOMAIN}"],
        }
        if self.dpop:
            document["dpop_signing_alg_values_supported"] = ["ES256"]
        return {**document, **self.extra}

    def named(self, endpoint: str) -> list[Form]:
        """The forms that came to `token`, `revoke` or `device`."""
        return [form for name, form in self.asked if name == endpoint]

    def refreshes(self) -> int:
        """How often a refresh arrived."""
        return sum(form.one("grant_type") == "refresh_token" for form in self.named("token"))

    # ── the User ──────────────────────────────────────────────────────────────────────────────────────────────────

    def approve(self, url: str, *scopes: str, iss: str | None = None) -> str:
        """The User opens the link and approves → where their browser goes; all that is asked for, or `scopes`."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self.number += 1
        code = f"code_{self.number}"
        self.codes[code] = {**query, "granted": " ".join(scopes) or query["scope"]}
        return code_url(
            query["redirect_uri"], issuer=iss or self.issuer, state=query["state"], code=Secret(code)
        ).reveal()

    def decline(self, url: str) -> str:
        """The User declines → where their browser goes."""
        query = parse_qs(urlsplit(url).query)
        return error_url(query["redirect_uri"][0], issuer=self.issuer, state=query["state"][0], error=AccessDenied())

    # ── the endpoints ─────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, request: Request, now: float) -> Response:
        """A request to one of the endpoints."""
        name = urlsplit(request.url).path.rpartition("/")[2]
        form = read_form(request.body)
        self.asked.append((name, form))
        self.urls.append(request.url)
        jwt = read_assertion(form)
        keys = KeySet.read({"keys": [IDENTITY_KEY.public.entry()]})
        self.jtis.append(verify_assertion(jwt, keys, client_id=CLIENT_ID, issuer=self.issuer, now=now).jti)
        try:
            self.proofs.append(self._proven(request, now))
        except UseDpopNonce:
            self.proofs.append(None)
            return error("use_dpop_nonce", DPoP_Nonce=Nonces(b"n" * 32).current(now))
        scripted = self.script.pop(0) if self.script else None
        if isinstance(scripted, FetchFailed):
            raise scripted
        if isinstance(scripted, Response):
            return scripted
        response = self._answer(name, form)
        if scripted == "lost":
            raise unreachable(request.url)
        return response

    def _proven(self, request: Request, now: float) -> str | None:
        values = request.headers.all("dpop")
        if not values:
            return None
        nonces = Nonces(b"n" * 32) if self.nonce else None
        return verify_proof(read_proof(values), method="POST", url=request.url, now=now, nonces=nonces).jkt

    def _answer(self, name: str, form: Form) -> Response:
        if name == "revoke":
            self.refresh.pop(form.one("token") or "", None)
            return answer(200)
        if name == "device":
            shown = {"user_code": "WDJB-MJHT", "verification_uri": self.link, "expires_in": 600, "interval": 5}
            self.codes["device"] = {"granted": form.one("scope") or ""}
            return answer(200, {"device_code": "device_secret", **shown})
        grant = form.one("grant_type")
        if grant == "refresh_token":
            return self._refreshed(form)
        if grant == DEVICE:
            if isinstance(self.device, str):
                return error(self.device)
            return self._issued(self.device, form)
        asked = self.codes.pop(form.one("code") or "", None)
        if asked is None or challenge_of(form.one("code_verifier") or "") != asked["code_challenge"]:
            return error("invalid_grant")
        return self._issued(tuple(asked["granted"].split()), form)

    def _refreshed(self, form: Form) -> Response:
        token = form.one("refresh_token") or ""
        granted = self.refresh.get(token)
        if granted is None:
            return error("invalid_grant")
        scope = form.one("scope")
        scopes = granted.scopes if scope is None else tuple(scope.split())
        successor = None
        if self.rotate:  # within the grace period the same successor again
            successor = self.successors.setdefault(token, f"{token}+")
            self.refresh[successor] = granted
        return self._tokens(scopes, form, successor)

    def _issued(self, scopes: tuple[str, ...], form: Form) -> Response:
        self.number += 1
        token = f"refresh_{self.number}"
        self.refresh[token] = Granted(scopes, self.number)
        return self._tokens(scopes, form, token)

    def _tokens(self, scopes: tuple[str, ...], form: Form, refresh: str | None) -> Response:
        self.number += 1
        token, jkt = f"access_{self.number}", self.proofs[-1]
        self.tokens[token] = (scopes, form.one("resource"), jkt)
        body: dict[str, Any] = {"access_token": token, "token_type": "DPoP" if jkt else "Bearer"}
        body["scope"] = " ".join(scopes)
        body |= {} if refresh is None else {"refresh_token": refresh}
        body |= {} if self.lifetime is None else {"expires_in": self.lifetime}
        return answer(200, body)


@dataclass
class AccountCompany(ScriptedCompany):
    """A Company with an issuer. `needs` are the scopes that its endpoint asks for; None: nothing needs the account.

    `carried`  (scheme, token) of each request that arrived, None for a signed-out one
    `own`      the resource that tokens have to be issued for, if not the default one
    `nonce`    whether DPoP proofs need one
    """

    needs: str | None = None
    own: str | None = None
    nonce: bool = False
    auth: ScriptedIssuer = field(default_factory=ScriptedIssuer)
    carried: list[tuple[str, str] | None] = field(default_factory=list[Any])
    void: set[str] = field(default_factory=set[str])
    now: float = 0.0

    def take(self, request: Request, now: float) -> Response:
        """A request with a Session header, and perhaps a token."""
        value = request.headers.first("authorization")
        scheme, _, token = (value or "").partition(" ")
        self.carried.append((scheme, token) if value else None)
        self.now = now
        return super().take(request, now)

    def _answer(self, request: Request) -> Response:
        scheme, token = self.carried[-1] or ("", "")
        assert self.proven[-1].ath == (ath(token) if token else None)
        return self._judged(request, scheme, token, self.now) or super()._answer(request)

    def challenge(self, status: int, code: str | None, **params: str) -> Response:
        """A challenge of section 7."""
        given = {"error": code, **params} if code else dict(params)
        written = ", ".join(f'{name}="{value}"' for name, value in given.items())
        return answer(status, None, WWW_Authenticate=f"Bearer {written}".strip())

    def _judged(self, request: Request, scheme: str, token: str, now: float) -> Response | None:
        if not token:
            return None if self.needs is None else self.challenge(401, None, scope=self.needs)
        known = self.auth.tokens.get(token)
        if known is None or token in self.void:
            return self.challenge(401, "invalid_token")
        scopes, resource, jkt = known
        if resource != self.own:
            named = protected_resource_metadata_url(self.own or request.url)
            return self.challenge(401, "invalid_token", resource_metadata=named)
        if jkt is not None:
            try:
                verify_proof(
                    read_proof(request.headers.all("dpop")),
                    method=request.method,
                    url=request.url,
                    now=now,
                    access_token_ath=ath(token),
                    jkt=jkt,
                    nonces=Nonces(b"r" * 32) if self.nonce else None,
                )
            except UseDpopNonce:
                return answer(
                    401,
                    None,
                    WWW_Authenticate='DPoP error="use_dpop_nonce"',
                    DPoP_Nonce=Nonces(b"r" * 32).current(now),
                )
        assert scheme == ("Bearer" if jkt is None else "DPoP")
        if self.needs is not None and not set(self.needs.split()) <= set(scopes):
            return self.challenge(403, "insufficient_scope", scope=self.needs)
        return None


def account_company(auth: ScriptedIssuer | None = None, **members: Any) -> AccountCompany:
    """A Company whose issuer is `auth`; `members` are its own settings."""
    auth = auth or ScriptedIssuer()
    company = AccountCompany(identifier=auth.issuer, auth=auth, **members)
    company.documents[f"https://{DOMAIN}/.well-known/oauth-protected-resource"] = {
        "resource": f"https://{DOMAIN}",
        "authorization_servers": [auth.issuer],
    }
    publish(company)
    return company


def complete(setup: Setup, callback: str, **more: Any) -> Flow[SignedIn]:
    """The flow of a callback, as an application hands it in."""
    return flows.complete(setup, Secret(callback), **more)


def publish(company: AccountCompany) -> None:
    """Publish the issuer's metadata as it is now."""
    host, _, path = company.auth.issuer.removeprefix("https://").partition("/")
    suffix = f"/{path}".rstrip("/")
    company.documents[f"https://{host}/.well-known/oauth-authorization-server{suffix}"] = company.auth.metadata()


class AccountWorld(World):
    """A World whose Company has an issuer, and a User who signs in there."""

    def __init__(self, company: AccountCompany | None = None, **limits: int) -> None:
        self.shop = company or account_company()
        super().__init__(self.shop, **limits)
        self.auth = self.shop.auth
        self.redirect_uris = (CALLBACK, "http://127.0.0.1/callback")

    def begun(self, live: LiveSession, *scopes: str, redirect_uri: str | None = None) -> BegunDirect:
        """A Direct Sign-In that has begun."""
        begun = self.run(begin(live, scopes, redirect_uri, None))
        assert isinstance(begun, BegunDirect)
        return begun

    def signed_in(self, live: LiveSession, *scopes: str, approve: tuple[str, ...] = ()) -> SignedIn:
        """The User signs in, and approves everything or `approve`."""
        callback = self.auth.approve(self.begun(live, *scopes).url, *approve)
        return self.run(complete(live.setup, callback))

    def read(self, live: LiveSession, conversation: str = "cnv_1") -> Exchange:
        """A read of a conversation that is there."""
        self.shop.events.setdefault(conversation, [])
        request = Request("GET", f"{ENDPOINT}/{conversation}/events")
        return self.run(signed(live, lambda _: request))

    def account(self, account: str = "default", user: str = "dana") -> dict[str, Any]:
        """The account's row."""
        [row] = [one for one in self.of_kind("account") if (one["account"], one["user"]) == (account, user)]
        return row
