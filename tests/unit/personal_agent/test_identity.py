"""A Personal Agent's published documents: what Companies read is what the keys sign with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.jose.keys import KeySet, PrivateKey
from papaver.oauth.client_metadata import read_client_metadata
from papaver.personal_agent.identity import Identity
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ClientId
from tests.house.agent_world import CLIENT_ID, Keys


def test_the_documents_are_what_a_company_accepts() -> None:
    """The metadata document at its own URL, and beside it a key set of public keys only."""
    keys = Keys(PrivateKey.generate("ES256"), PrivateKey.generate("PS384"))
    identity = Identity(CLIENT_ID, keys, name="Example", redirect_uris=("https://agent.example/callback",))
    documents = {url: json.loads(body) for url, body in identity.documents().items()}
    assert list(documents) == [CLIENT_ID, "https://agent.example/jwks.json"]
    metadata = read_client_metadata(CLIENT_ID, documents[CLIENT_ID])
    assert metadata.jwks_uri == "https://agent.example/jwks.json"
    assert metadata.client_name == "Example"
    published = KeySet.read(documents[metadata.jwks_uri])
    assert {key.alg for key in published.keys.values()} == {"ES256", "PS384"}
    assert keys.current.kid in published.keys


def test_the_key_set_may_be_elsewhere_on_the_host() -> None:
    """`jwks_uri` is taken as given."""
    identity = Identity(CLIENT_ID, Keys(), jwks_uri="https://agent.example/keys")
    assert identity.published_jwks_uri == "https://agent.example/keys"


@pytest.mark.parametrize("client_id", ["https://agent.example", "http://agent.example/agent.json", "agent"])
def test_a_client_id_that_no_company_takes_is_refused_at_once(client_id: str) -> None:
    """B19: the remedy is in the error."""
    with pytest.raises(ConfigurationError) as caught:
        Identity(ClientId(client_id), Keys())
    assert caught.value.rule == "client.client-id-form"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"jwks_uri": "https://other.example/jwks.json"}, "client.jwks-uri-same-host"),
        ({"redirect_uris": ("https://other.example/callback",)}, "client.redirect-uris"),
        ({"logo_uri": "http://agent.example/logo.png"}, "client.shown-urls-https"),
    ],
)
def test_a_document_that_no_company_takes_is_not_written(options: dict[str, Any], rule: str) -> None:
    """The rule of 4.1 is named."""
    with pytest.raises(ConfigurationError) as caught:
        Identity(CLIENT_ID, Keys(), **options).documents()
    assert caught.value.rule == rule
