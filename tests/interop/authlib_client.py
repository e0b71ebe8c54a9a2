"""Authlib's client as a Personal Agent's OAuth half: one sign-in, a JSON line for each thing it found.

A process of its own, because it brings its own HTTP client, to which the issuer's name has to be on this machine. The
task is its first argument; where the browser ended comes on stdin.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time
from collections.abc import Callable
from typing import Any

from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from joserfc.jwk import ECKey

TASK: dict[str, Any] = json.loads(sys.argv[1])
ISSUER: str = TASK["issuer"]
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"

plain = socket.create_connection


def here(address: tuple[str, int], *arguments: Any, **more: Any) -> socket.socket:
    """The issuer is on this machine; TLS verifies its name as ever."""
    return plain(("127.0.0.1", TASK["port"]), *arguments, **more)


socket.create_connection = here


def say(step: str, **found: object) -> None:
    """One line."""
    print(json.dumps({"step": step, **found}), flush=True)


def refused(step: str, act: Callable[[], Any]) -> None:
    """What was answered instead of a token."""
    try:
        act()
    except OAuthError as error:
        say(step, error=error.error)
    else:
        say(step, error=None)


class ShortLived(PrivateKeyJWT):
    """Authlib's assertions last an hour, which is not short (4.1); each has claims of its own, or `jti` comes twice."""

    def sign(self, auth: Any, token_endpoint: str) -> Any:
        self.claims = {"exp": int(time.time()) + 60}
        made: Any = super()
        return made.sign(auth, token_endpoint)


def client(audience: str | None, kind: type[PrivateKeyJWT] = ShortLived) -> Any:
    """A client with our agent's key; None is what Authlib takes for `aud` by default: the endpoint."""
    key = ECKey.import_key(TASK["jwk"])
    made: Any = OAuth2Client(
        TASK["client_id"],
        key,
        token_endpoint_auth_method="private_key_jwt",
        revocation_endpoint_auth_method="private_key_jwt",
        redirect_uri=TASK["redirect_uri"],
        scope=TASK["scope"],
        code_challenge_method="S256",
        verify=ssl.create_default_context(cafile=TASK["ca_file"]),
        trust_env=False,
    )
    made.register_client_auth_method(kind(audience, alg="ES256", headers={"kid": TASK["kid"]}))
    return made


def direct(ours: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    """Code with PKCE; the state is Authlib's own."""
    verifier = generate_token(48)
    url, state = ours.create_authorization_url(metadata["authorization_endpoint"], code_verifier=verifier)
    say("open", url=url)
    back = sys.stdin.readline().strip()
    found: dict[str, Any] = ours.fetch_token(
        metadata["token_endpoint"], authorization_response=back, state=state, code_verifier=verifier
    )
    return found


def device(ours: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    """Authlib has no function for the first request, so it is a POST that it authenticates; the rest is its own."""
    begun = ours.request(
        "POST",
        metadata["device_authorization_endpoint"],
        data={"client_id": TASK["client_id"], "scope": TASK["scope"]},
        auth=ours.client_auth("private_key_jwt"),
    ).json()
    say("open", url=begun["verification_uri"], user_code=begun["user_code"])
    sys.stdin.readline()
    found: dict[str, Any] = ours.fetch_token(
        metadata["token_endpoint"], grant_type=DEVICE, device_code=begun["device_code"], client_id=TASK["client_id"]
    )
    return found


def main() -> None:
    """Sign in, refresh, revoke, and be refused."""
    ours = client(ISSUER)
    metadata = ours.request("GET", f"{ISSUER}/.well-known/oauth-authorization-server", withhold_token=True).json()
    token = (direct if TASK["way"] == "direct" else device)(ours, metadata)
    say("tokens", token_type=token["token_type"], scope=token["scope"])
    endpoint: str = metadata["token_endpoint"]
    renewed = ours.refresh_token(endpoint, refresh_token=token["refresh_token"])
    say("refreshed", scope=renewed["scope"])
    latest = renewed["refresh_token"]
    refused("default_audience", lambda: client(None).refresh_token(endpoint, refresh_token=latest))
    refused("default_lifetime", lambda: client(ISSUER, PrivateKeyJWT).refresh_token(endpoint, refresh_token=latest))
    revoked = ours.revoke_token(metadata["revocation_endpoint"], latest, token_type_hint="refresh_token")
    say("revocation", status=revoked.status_code)
    refused("revoked", lambda: ours.refresh_token(endpoint, refresh_token=latest))


main()
