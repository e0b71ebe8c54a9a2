"""A Company with an embedded issuer in one process: an agent that signs in, a browser that goes where it is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from papaver.company.app import Company
from papaver.company.authserver import EmbeddedIssuer, IssuerLimits
from papaver.company.incoming import Incoming
from papaver.company.scopes import Scope
from papaver.oauth.assertions import ASSERTION_TYPE
from papaver.oauth.pkce import challenge_of
from papaver.ports.pages import ConnectedView, ConsentView, DeviceView, MessageView
from papaver.protocol.errors import InvalidToken, PayloadTooLarge
from papaver.protocol.terms import AccountId
from papaver.stores.memory import MemoryStore
from papaver.testing.clock import ManualClock, SeededIds
from papaver.testing.company import Answer, Documents, echo
from papaver.testing.keys import NOW, AgentKeys, compact
from papaver.web.messages import Headers, Response

__all__ = [
    "DANA",
    "ISSUER",
    "SCOPES",
    "VERIFIER",
    "Browser",
    "IssuerBench",
    "KeptPages",
    "interaction_of",
    "issuer_bench",
    "parameters_of",
]

ISSUER: Final = "https://auth.example.com"
SIGN_IN: Final = "https://www.example.com/sign-in"
DANA: Final = AccountId("acct_dana")
VERIFIER: Final = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
SCOPES: Final = (
    Scope("orders:read", "See your orders", "none", True),
    Scope("orders:write", "Change and cancel orders", "irreversible", True),
    Scope("addresses", "See your addresses"),
)
View = ConsentView | DeviceView | ConnectedView | MessageView


class KeptPages:
    """A `Pages` that keeps the view it was asked to show last, and answers with its kind."""

    def __init__(self) -> None:
        self.view: View | None = None

    def _keep(self, view: View, status: int) -> Response:
        self.view = view
        return Response(status, Headers([("content-type", "text/html")]), type(view).__name__.encode())

    def consent(self, view: ConsentView, status: int = 200) -> Response:
        return self._keep(view, status)

    def device(self, view: DeviceView, status: int = 200) -> Response:
        return self._keep(view, status)

    def connected(self, view: ConnectedView, status: int = 200) -> Response:
        return self._keep(view, status)

    def message(self, view: MessageView, status: int = 200) -> Response:
        return self._keep(view, status)

    def asset(self, path: str) -> Response | None:
        return Response(200, Headers([("content-type", "text/css")]), b"body {}") if path == "style.css" else None


class Browser:
    """A browser with its own cookies. It follows no redirect by itself: `location` says where it is sent."""

    def __init__(self, bench: IssuerBench) -> None:
        self._bench = bench
        self.cookies: dict[str, str] = {}

    async def get(self, url: str, **options: Any) -> Answer:
        """Open a URL of the issuer."""
        return await self._send("GET", url, **options)

    async def submit(self, url: str, pairs: Sequence[tuple[str, str]], **options: Any) -> Answer:
        """Send a form, as a page of the issuer's own would."""
        headers = {"sec-fetch-site": "same-origin", "origin": self._bench.origin, **options.pop("headers", {})}
        return await self._send("POST", url, urlencode(pairs).encode(), headers=headers, **options)

    async def _send(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str | None] | None = None,
        peer: str = "192.0.2.9",
        host: str | None = None,
    ) -> Answer:
        sent = dict(headers or {})
        if self.cookies:
            sent.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        answer = await self._bench.send(method, url, body, headers=sent, peer=peer, host=host)
        for field in answer.headers.all("set-cookie"):
            name, _, value = field.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    @property
    def view(self) -> Any:
        """What the page shows that was opened last."""
        return self._bench.pages.view

    async def decide(self, decision: str = "approve", scopes: Sequence[str] | None = None, **options: Any) -> Answer:
        """Send the form of the consent page that is open; all scopes ticked unless some are named."""
        view: ConsentView = self.view
        ticked = [scope.name for scope in view.scopes] if scopes is None else scopes
        pairs = [("csrf", view.csrf), *(("scope", name) for name in ticked), ("decision", decision)]
        return await self.submit(view.action, pairs, **options)


class IssuerBench:
    """Sends requests to the issuer as a Personal Agent or a browser would, or would not."""

    def __init__(
        self,
        company: Company,
        issuer: EmbeddedIssuer,
        agent: AgentKeys,
        clock: ManualClock,
        documents: Documents,
        pages: KeptPages,
    ) -> None:
        self.company, self.issuer, self.agent = company, issuer, agent
        self.clock, self.documents, self.pages = clock, documents, pages
        self.root = issuer.issuer.rstrip("/")
        self.origin = "/".join(self.root.split("/")[:3])
        self.redirect_uri = agent.client_id.rpartition("/")[0] + "/oauth/callback"

    async def send(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str | None] | None = None,
        more_headers: Sequence[tuple[str, str]] = (),
        peer: str = "192.0.2.7",
        host: str | None = None,
    ) -> Answer:
        """One request to a URL of the issuer; a POST is a form unless `headers` says otherwise."""
        parts = urlsplit(url)
        usual = {"content-type": "application/x-www-form-urlencoded"} if method == "POST" else {}
        fields = {**usual, **(headers or {})}

        async def read(limit: int) -> bytes:
            if len(body) > limit:
                raise PayloadTooLarge(rule="limits.body")
            return body

        async def leave() -> None:
            return None

        sent = Headers([*((name, value) for name, value in fields.items() if value is not None), *more_headers])
        named = parts.netloc if host is None else host
        response = await self.company.handle(Incoming(method, parts.path, parts.query, named, sent, peer, read, leave))
        return Answer(response if isinstance(response, Response) else Response(404, Headers(), b"{}"))

    def assertion(
        self, agent: AgentKeys | None = None, *, jose: Mapping[str, object] | None = None, **claims: object
    ) -> str:
        """A client assertion, right unless `jose` or `claims` say otherwise."""
        agent = agent or self.agent
        now = int(self.clock.now())
        header = {"alg": agent.identity.alg, "kid": agent.identity.kid, "typ": "JWT", **(jose or {})}
        body: dict[str, object] = {
            "iss": agent.client_id,
            "sub": agent.client_id,
            "aud": self.issuer.issuer,
            "iat": now,
            "exp": now + 60,
            "jti": agent.fresh("assertion"),
            **claims,
        }
        return compact(agent.identity, header, body)

    async def post(
        self,
        path: str,
        pairs: Sequence[tuple[str, str]],
        *,
        agent: AgentKeys | None = None,
        assertion: str | None = None,
        proof: str | None = None,
        peer: str = "192.0.2.7",
    ) -> Answer:
        """A form to an endpoint for agents, with a client assertion; `assertion=""` leaves it out."""
        made = self.assertion(agent) if assertion is None else assertion
        authenticated = [("client_assertion_type", ASSERTION_TYPE), ("client_assertion", made)] if made else []
        more = [] if proof is None else [("dpop", proof)]
        body = urlencode([*pairs, *authenticated]).encode()
        return await self.send("POST", self.root + path, body, more_headers=more, peer=peer)

    def authorize_url(self, **parameters: str | None) -> str:
        """An authorization URL; a parameter that is None is left out."""
        usual = {
            "response_type": "code",
            "client_id": self.agent.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": "orders:read orders:write",
            "state": "st_Xq81vR",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
        }
        pairs = {name: value for name, value in {**usual, **parameters}.items() if value is not None}
        return f"{self.root}/authorize?{urlencode(pairs)}"

    def browser(self) -> Browser:
        return Browser(self)

    async def to_consent(self, browser: Browser, account: AccountId = DANA, **parameters: str | None) -> Answer:
        """Authorize, sign in, open the consent page."""
        answer = await browser.get(self.authorize_url(**parameters))
        page = await self.issuer.signed_in(interaction_of(answer), account, name="dana@example.com")
        return await browser.get(page)

    async def code(
        self, scopes: Sequence[str] | None = None, account: AccountId = DANA, **parameters: str | None
    ) -> str:
        """A code of a User who approved; all that was asked for unless `scopes` are named."""
        browser = self.browser()
        await self.to_consent(browser, account, **parameters)
        return parameters_of(await browser.decide(scopes=scopes))["code"]

    async def redeem(
        self, code: str, *, verifier: str = VERIFIER, pairs: Sequence[tuple[str, str]] = (), **options: Any
    ) -> Answer:
        """Exchange a code."""
        form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.redirect_uri),
            ("code_verifier", verifier),
            *pairs,
        ]
        return await self.post("/token", form, **options)

    async def sign_in(
        self, scopes: Sequence[str] | None = None, account: AccountId = DANA, **parameters: str | None
    ) -> dict[str, Any]:
        """Direct Sign-In from beginning to end: the token response."""
        answer = await self.redeem(await self.code(scopes, account, **parameters))
        assert answer.status == 200, answer
        return answer.json

    async def refresh(self, token: str, pairs: Sequence[tuple[str, str]] = (), **options: Any) -> Answer:
        form = [("grant_type", "refresh_token"), ("refresh_token", token), *pairs]
        return await self.post("/token", form, **options)

    async def revoke(self, token: str, **options: Any) -> Answer:
        return await self.post("/revoke", [("token", token), ("token_type_hint", "refresh_token")], **options)

    async def begin_device(
        self, scope: str = "orders:read", pairs: Sequence[tuple[str, str]] = (), **options: Any
    ) -> Answer:
        return await self.post("/device_authorization", [("scope", scope), *pairs], **options)

    async def poll(self, device_code: str, pairs: Sequence[tuple[str, str]] = (), **options: Any) -> Answer:
        grant = "urn:ietf:params:oauth:grant-type:device_code"
        return await self.post("/token", [("grant_type", grant), ("device_code", device_code), *pairs], **options)

    async def enter(self, browser: Browser, user_code: str, **options: Any) -> Answer:
        """Enter a user code on the device page."""
        await browser.get(f"{self.root}/device")
        view: DeviceView = browser.view
        return await browser.submit(view.action, [("csrf", view.csrf), ("user_code", user_code)], **options)

    async def approve_device(self, user_code: str, decision: str = "approve", account: AccountId = DANA) -> Browser:
        """Enter the code, sign in and decide."""
        browser = self.browser()
        answer = await self.enter(browser, user_code)
        await browser.get(await self.issuer.signed_in(interaction_of(answer), account, name="dana@example.com"))
        await browser.decide(decision)
        return browser

    async def good(self, access_token: str) -> bool:
        """Whether the access token is good at the Company's services now."""
        try:
            await self.verify(access_token)
        except InvalidToken:
            return False
        return True

    async def verify(self, access_token: str) -> Any:
        """What the issuer's verifier says of an access token. Raises InvalidToken."""
        return await self.running.verifier.verify(access_token)

    @property
    def running(self) -> Any:
        wired: Any = self.company
        return wired._wired.issuer


def interaction_of(answer: Answer) -> str:
    """The interaction that the browser takes to the app's sign-in page."""
    assert answer.status == 303, answer
    return parameters_of(answer)["interaction"]


def parameters_of(answer: Answer) -> dict[str, str]:
    """The query of where the browser is sent."""
    location = answer.headers.first("location") or ""
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


@asynccontextmanager
async def issuer_bench(
    *, agent: AgentKeys | None = None, store: Any = None, issuer: str = ISSUER, **options: Any
) -> AsyncGenerator[IssuerBench]:
    """A Company with an embedded issuer, run with a memory store unless it has another.

    `options` go to EmbeddedIssuer; those named `company_…` to Company, and those of IssuerLimits into its limits.
    """
    names = {*IssuerLimits.__dataclass_fields__}
    limits = {name: options.pop(name) for name in names & options.keys()}
    company_options = {name[8:]: options.pop(name) for name in [*options] if name.startswith("company_")}
    settings: dict[str, Any] = {"sign_in_page": SIGN_IN, "limits": IssuerLimits(**limits), **options}
    embedded = EmbeddedIssuer(issuer, **settings)
    company_settings: dict[str, Any] = {
        "domain": "example.com",
        "name": "Example",
        "base_url": "https://api.example.com/poppy",
        "store": store or MemoryStore(),
        "sign_in": embedded,
        "scopes": SCOPES,
        **company_options,
    }
    company = Company(**company_settings)
    company.conversation(echo)
    agent = agent or AgentKeys()
    documents = Documents()
    documents.publish(agent)
    clock, pages = ManualClock(NOW), KeptPages()
    opening = not company.store.is_open
    if opening:
        await company.store.open()
    await company.wire(clock, SeededIds(), documents, pages=pages, turns_elsewhere=True)
    try:
        yield IssuerBench(company, embedded, agent, clock, documents, pages)
    finally:
        company.stop()
        company.unwire()
        if opening:
            await company.store.close()
