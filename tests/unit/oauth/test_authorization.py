"""The two redirects of Direct Sign-In: where an answer may go, what a request says, whose an answer is."""

from __future__ import annotations

import pytest

from papaver.oauth.authorization import (
    AuthorizationRequest,
    authorization_url,
    code_url,
    error_url,
    matches_redirect,
    read_authorization_request,
    read_authorization_response,
    read_redirect,
)
from papaver.oauth.client_metadata import ClientMetadata
from papaver.oauth.errors import (
    AccessDenied,
    InvalidOAuthRequest,
    InvalidOAuthResponse,
    InvalidScope,
    OAuthError,
    ServerError,
    UnknownCode,
)
from papaver.oauth.forms import Form, read_form, write_form
from papaver.values.secret import Secret

ISSUER = "https://auth.example.com"
CLIENT = "https://agent.example/agent.json"
CALLBACK = "https://agent.example/oauth/callback"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
REQUEST = AuthorizationRequest(CLIENT, CALLBACK, ("orders:read", "orders:write"), "Xq81vR", CHALLENGE)
GOOD = {
    "response_type": "code",
    "client_id": CLIENT,
    "redirect_uri": CALLBACK,
    "scope": "orders:read orders:write",
    "state": "Xq81vR",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
}


def metadata(*redirect_uris: str) -> ClientMetadata:
    """A client with these redirect URIs."""
    return ClientMetadata(CLIENT, "https://agent.example/jwks.json", "private_key_jwt", redirect_uris=redirect_uris)


def spoiled(**changed: str | None) -> Form:
    """The good request with parameters changed; None leaves one out."""
    pairs = {**GOOD, **changed}
    return Form([(name, value) for name, value in pairs.items() if value is not None])


@pytest.mark.requirement("4.2-01", "4.7-16")
def test_a_request_is_written_as_the_specification_shows_it() -> None:
    """4.2's own example, and read back."""
    url = authorization_url("https://auth.example.com/oauth/authorize", REQUEST)
    endpoint, _, query = url.partition("?")
    assert endpoint == "https://auth.example.com/oauth/authorize"
    form = read_form(query)
    assert {name: form.one(name) for name in form} == GOOD
    assert read_authorization_request(form, CALLBACK) == REQUEST


def test_a_request_for_services_and_bound_to_a_key_is_read_back() -> None:
    """RFC 8707 and RFC 9449 10; a query of the endpoint stays."""
    request = AuthorizationRequest(
        CLIENT, CALLBACK, ("a",), None, CHALLENGE, ("https://b.example/mcp", "https://a.example"), CHALLENGE
    )
    url = authorization_url("https://auth.example.com/authorize?tenant=1", request)
    assert url.startswith("https://auth.example.com/authorize?tenant=1&response_type=code&")
    assert read_authorization_request(read_form(url.partition("?")[2]), CALLBACK) == request
    assert "Xq81vR" not in repr(REQUEST)


@pytest.mark.requirement("4.7-16")
def test_no_request_without_scopes_is_made() -> None:
    """4.7: each has `scope`."""
    with pytest.raises(InvalidScope):
        authorization_url(f"{ISSUER}/authorize", AuthorizationRequest(CLIENT, CALLBACK, (), "s", CHALLENGE))


@pytest.mark.requirement("papaver-44")
@pytest.mark.parametrize(
    ("changed", "rule", "code"),
    [
        ({"response_type": None}, "oauth.response-type-code", "invalid_request"),
        ({"response_type": "token"}, "oauth.response-type-code", "unsupported_response_type"),
        ({"response_mode": "fragment"}, "oauth.response-mode-query", "invalid_request"),
        ({"state": "a\n"}, "oauth.state-form", "invalid_request"),
        ({"state": "a" * 2049}, "oauth.state-form", "invalid_request"),
        ({"scope": None}, "oauth.scope-form", "invalid_scope"),
        ({"scope": 'a"'}, "oauth.scope-form", "invalid_scope"),
        ({"resource": "orders"}, "oauth.resource-form", "invalid_target"),
        ({"resource": "https://a.example/#x"}, "oauth.resource-form", "invalid_target"),
        ({"dpop_jkt": "short"}, "oauth.dpop-jkt-form", "invalid_request"),
    ],
)
def test_what_a_request_is_refused_for(changed: dict[str, str | None], rule: str, code: str) -> None:
    """After its redirect URI stood, so that the error can go back."""
    with pytest.raises(OAuthError) as refusal:
        read_authorization_request(spoiled(**changed), CALLBACK)
    assert (refusal.value.rule, refusal.value.code) == (rule, code)


@pytest.mark.parametrize(
    ("changed", "rule", "code"),
    [
        ({"code_challenge_method": "plain"}, "pkce.method-s256", "invalid_request"),
        ({"code_challenge_method": None}, "pkce.method-s256", "invalid_request"),
        ({"code_challenge": None}, "pkce.challenge", "invalid_request"),
        ({"scope": None}, "oauth.scope-form", "invalid_scope"),
        ({"scope": "a  b"}, "oauth.scope-form", "invalid_scope"),
    ],
)
def test_c54_plain_pkce_and_bad_scopes_are_refused(changed: dict[str, str | None], rule: str, code: str) -> None:
    """With errors that may be redirected."""
    assert read_redirect(spoiled(**changed), metadata(CALLBACK)) == CALLBACK
    with pytest.raises(OAuthError) as refusal:
        read_authorization_request(spoiled(**changed), CALLBACK)
    assert (refusal.value.rule, refusal.value.code) == (rule, code)


@pytest.mark.requirement("4.2-05")
@pytest.mark.parametrize(
    "uri",
    [
        None,
        f"{CALLBACK}/",
        f"{CALLBACK}?x=1",
        "https://AGENT.example/oauth/callback",
        "https://agent.example/oauth",
        f"{CALLBACK}/more",
        "https://agent.example:443/oauth/callback",
        "https://evil.example/oauth/callback",
    ],
)
def test_a_redirect_uri_is_in_the_list_exactly(uri: str | None) -> None:
    """Character for character (4.2)."""
    with pytest.raises(InvalidOAuthRequest) as refusal:
        read_redirect(spoiled(redirect_uri=uri), metadata(CALLBACK, "https://agent.example/second"))
    assert refusal.value.rule == "redirect.registered"
    assert read_redirect(spoiled(), metadata("https://agent.example/second", CALLBACK)) == CALLBACK


@pytest.mark.requirement("4.2-05", "4.2-06")
@pytest.mark.parametrize(
    ("uri", "entry", "matches"),
    [
        ("http://127.0.0.1:49152/cb", "http://127.0.0.1/cb", True),
        ("http://127.0.0.1/cb", "http://127.0.0.1:8000/cb", True),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", True),
        ("http://[::1]:49152/cb", "http://[::1]/cb", True),
        ("http://[::1]:49152/cb?a=b", "http://[::1]/cb?a=b", True),
        ("http://127.0.0.1:49152", "http://127.0.0.1", True),
        ("http://[::1]:49152/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/cb", "http://[::1]/cb", False),
        ("http://localhost:49152/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/cb", "http://localhost/cb", False),
        ("http://localhost:49152/cb", "http://localhost/cb", False),
        ("http://127.0.0.2:49152/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/other", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/cb/", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/cb?a=b", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/cb?", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/cb#", "http://127.0.0.1/cb", False),
        ("https://127.0.0.1:49152/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:65536/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:0/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:80@evil.example/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1.evil.example/cb", "http://127.0.0.1/cb", False),
        ("https://agent.example:8443/cb", "https://agent.example/cb", False),
    ],
)
def test_b48_only_a_loopback_literals_port_is_free(uri: str, entry: str, matches: bool) -> None:
    """RFC 8252 7.3: two addresses, one free port, and no name."""
    assert matches_redirect(uri, entry) is matches
    assert matches_redirect(entry, entry)


def answer(**parameters: str) -> str:
    """A redirect back to the callback."""
    return f"{CALLBACK}?{write_form(parameters.items()).decode()}"


def read(url: str, redirect_uri: str = CALLBACK) -> Secret:
    """As the client that sent the request."""
    return read_authorization_response(url, redirect_uri=redirect_uri, issuer=ISSUER, state="s1")


@pytest.mark.requirement("4.2-08")
@pytest.mark.parametrize(
    "redirect_uri", [CALLBACK, f"{CALLBACK}?a=1&b=x%20y", "http://127.0.0.1:49152/cb", "http://[::1]:49152"]
)
def test_a_code_goes_back_and_is_read(redirect_uri: str) -> None:
    """Beside a query of the redirect URI's own; the URL that holds it is a secret."""
    url = code_url(redirect_uri, issuer=ISSUER, state="s1", code=Secret("c0de+/="))
    assert url.reveal().startswith(f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}code=")
    assert read(url.reveal(), redirect_uri) == Secret("c0de+/=")
    assert read(f"{url.reveal()}#_=_", redirect_uri) == Secret("c0de+/=")
    assert "c0de" not in repr(url)


def test_without_a_state_none_goes_back() -> None:
    """RFC 6749 4.1.2: it is there if the request had one."""
    assert code_url(CALLBACK, issuer=ISSUER, state=None, code=Secret("c")).reveal() == (
        f"{CALLBACK}?code=c&iss=https%3A%2F%2Fauth.example.com"
    )


@pytest.mark.requirement("4.2-08")
def test_b40_an_error_carries_iss_and_is_believed_only_with_it() -> None:
    """RFC 9207 2: also on `error=access_denied`."""
    url = error_url(CALLBACK, issuer=ISSUER, state="s1", error=AccessDenied('no "way"'))
    assert "iss=https%3A%2F%2Fauth.example.com" in url
    assert read_form(url.partition("?")[2]).one("error_description") == "no 'way'"
    with pytest.raises(AccessDenied) as denied:
        read(url)
    assert denied.value.description == AccessDenied.description
    for iss in ({}, {"iss": f"{ISSUER}/"}):
        with pytest.raises(InvalidOAuthResponse) as refusal:
            read(answer(error="access_denied", state="s1", **iss))
        assert refusal.value.rule == "oauth.response-iss"


@pytest.mark.requirement("4.2-08")
@pytest.mark.parametrize(
    "iss", [None, "", f"{ISSUER}/", "https://AUTH.example.com", "https://auth.example.com:443", "https://other.example"]
)
def test_b40_iss_is_the_issuer_byte_for_byte(iss: str | None) -> None:
    """Never after any normalisation, and never missing."""
    with pytest.raises(InvalidOAuthResponse) as refusal:
        read(answer(code="c", state="s1", **({} if iss is None else {"iss": iss})))
    assert refusal.value.rule == "oauth.response-iss"


@pytest.mark.requirement("papaver-45")
@pytest.mark.parametrize("state", [None, "", "s", "s1 ", "S1", "\u00e4"])
def test_another_state_is_another_sign_in(state: str | None) -> None:
    """Before anything else is believed, errors included."""
    for said in ({"code": "c"}, {"error": "access_denied"}):
        with pytest.raises(InvalidOAuthResponse) as refusal:
            read(answer(iss=ISSUER, **said, **({} if state is None else {"state": state})))
        assert refusal.value.rule == "oauth.response-state"


@pytest.mark.requirement("papaver-45")
@pytest.mark.parametrize(
    ("url", "redirect_uri"),
    [
        (f"https://agent.example/other?code=c&state=s1&iss={ISSUER}", CALLBACK),
        (f"https://evil.example/oauth/callback?code=c&state=s1&iss={ISSUER}", CALLBACK),
        (f"http://127.0.0.1:1/cb?code=c&state=s1&iss={ISSUER}", "http://127.0.0.1:2/cb"),
        (f"{CALLBACK}?code=c&state=s1&iss={ISSUER}", f"{CALLBACK}?a=1"),
        (f"{CALLBACK}?a=2&code=c&state=s1&iss={ISSUER}", f"{CALLBACK}?a=1"),
        ("not a url", CALLBACK),
    ],
)
def test_an_answer_elsewhere_is_refused(url: str, redirect_uri: str) -> None:
    """It comes to the redirect URI that was asked for."""
    with pytest.raises(InvalidOAuthResponse) as refusal:
        read(url, redirect_uri)
    assert refusal.value.rule == "oauth.response-at-redirect-uri"


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (f"state=s1&iss={ISSUER}", "oauth.response-code"),
        (f"state=s1&iss={ISSUER}&code=%00", "oauth.response-code"),
        (f"state=s1&iss={ISSUER}&error=%00", "oauth.response-code"),
        (f"state=s1&iss={ISSUER}&code=a&code=b", "oauth.parameter-once"),
        (f"state=s1&state=s1&iss={ISSUER}&code=a", "oauth.parameter-once"),
        ("state=%zz", "oauth.form-encoding"),
    ],
)
def test_an_answer_that_says_nothing_clear_is_refused(query: str, rule: str) -> None:
    """Neither code nor error, or two."""
    with pytest.raises(InvalidOAuthResponse) as refusal:
        read(f"{CALLBACK}?{query}")
    assert refusal.value.rule == rule


def test_what_the_issuer_says_of_an_error_is_for_our_log_alone() -> None:
    """Known codes and unknown ones."""
    with pytest.raises(ServerError) as known:
        read(answer(error="server_error", error_description="buy at evil.example", state="s1", iss=ISSUER))
    assert (known.value.description, known.value.detail) == (ServerError.description, "buy at evil.example")
    with pytest.raises(UnknownCode) as unknown:
        read(answer(error="login_required", error_description="x" * 900, state="s1", iss=ISSUER))
    assert unknown.value.code == "login_required"
    assert len(unknown.value.detail) == 200
